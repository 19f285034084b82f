"""All simulated vendors alike: what is hostile or wrong is refused and never an exception; uploads and their books."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.profile import VENDORS
from oeb_ray.simulator.server import Desk

PDF = b"%PDF-1.7 x"
BODIES = (
    b"", b"x", b"[]", b"\xff", b"null", b"{}", b'{"a": ' + b"[" * 200_000, b"--x\r\n\r\n",
    json.dumps({"file": 3, "config": {"schema": []}, "input": {}, "instructions": 3, "configuration": []}).encode(),
    json.dumps({"file": {"id": "none"}, "config": {"schema": {"type": "object"}}}).encode(),
    json.dumps({"input": "reducto://none.pdf", "instructions": {"schema": {}}}).encode(),
    json.dumps({"file_input": [], "configuration": {"tier": "x", "data_schema": {}}}).encode(),
    json.dumps({"fieldSchema": {"fields": {"a": {"type": 3}}}, "config": {"completion": "m"}}).encode(),
)  # fmt: skip


@pytest.fixture
def simulator(tmp_path: Path) -> Iterator[Simulator]:
    (tmp_path / "answers").mkdir()
    with Simulator(Profile.from_dict({"answers": "answers"}, str(tmp_path))) as opened:
        yield opened


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_hostile_requests_are_refused(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, tmp_path: Path, vendor: str
) -> None:
    caplog.set_level(logging.WARNING)
    form = {"content-type": "multipart/form-data; boundary=x"}
    with httpx.Client(timeout=20) as client:
        for route in Desk(Profile(str(tmp_path / "answers"))).vendors[vendor].table:
            path = route.path.replace("{job}", "none").replace("{analyzer}", "none").replace("{operation}", "1")
            for method in sorted((route.methods or set()) - {"HEAD"}):
                for body in BODIES if method in ("POST", "PUT") else BODIES[:1]:
                    for headers in ({}, form, {"authorization": "Basic x", "content-type": "application/json"}):
                        answer = client.request(
                            method, f"{simulator.url}/{vendor}{path}", content=body, headers=headers
                        )
                        fine = method == "GET" and path.endswith("/projects")
                        assert fine or 400 <= answer.status_code < 500, (method, path, body[:80])
    assert simulator.stats()[vendor]["accepted"] == {}
    assert not [record for record in caplog.records if record.exc_info], caplog.text


UPLOADS = {"extend": "/files/upload", "llamaextract": "/api/v1/beta/files", "reducto": "/upload"}


@pytest.mark.parametrize("vendor", sorted(UPLOADS))
def test_uploads_cost_nothing_and_count_against_the_rate(simulator: Simulator, vendor: str) -> None:
    simulator.dials(vendor, rpm=2, price=1.0)

    def upload() -> httpx.Response:
        return httpx.post(f"{simulator.url}/{vendor}{UPLOADS[vendor]}", files={"file": ("a.pdf", PDF)}, timeout=20)

    first, second, third = upload(), upload(), upload()
    assert [first.status_code, second.status_code, third.status_code] == [200, 200, 429]
    assert first.json() != second.json(), "each upload is a file of its own"
    stats: dict[str, Any] = simulator.stats()[vendor]
    assert stats["kinds"] == {"upload": 3} and (stats["billed"], stats["submissions"]) == (0, {})
    assert stats["in_flight"] == stats["peak_in_flight"] == 0
