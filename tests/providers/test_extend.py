"""Extend: what its requests hold, how its runs end, what evidence is kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, VendorError
from oeb_ray.providers import vendors
from oeb_ray.providers.contract import Extraction, VendorOptions
from oeb_ray.providers.extend import Extend
from tests.providers.fakes import FakeCall, pdf, reply
from tests.providers.wires import KEY, in_a_hurry, wire

UPLOAD = reply(200, {"object": "file", "id": "file_1"})
SUBMIT = reply(200, {"object": "extract_run", "id": "exr_1", "status": "PROCESSING"})
RUNNING = reply(200, {"id": "exr_1", "status": "PENDING"})
SCHEMA = {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}
RUN = {
    "object": "extract_run",
    "id": "exr_1",
    "status": "PROCESSED",
    "edited": False,
    "output": {"value": {"name": "x", "rows": [{"id__": 3}]}, "metadata": {"rows[0].id__": {"ocrConfidence": 1}}},
    "usage": {"credits": 4, "totalCredits": 6},
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)
    monkeypatch.delenv("EXTEND_WORKSPACE_ID", raising=False)


def run(call: FakeCall, **given: Any) -> Extraction:
    return asyncio.run(Extend().extract(pdf(), SCHEMA, vendors.Extend(**given), VendorOptions(), call))


def test_the_requests_are_as_the_vendor_documents_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXTEND_WORKSPACE_ID", "ws_1")
    call = FakeCall([UPLOAD, SUBMIT, RUNNING, reply(200, RUN)])
    given = run(call, array_strategy="large_array_heuristics")
    assert json.loads(given.prediction) == {"name": "x", "rows": [{"id": 3}]}
    assert given.citations == ({"path": "rows[0].id", "ocrConfidence": 1},)
    assert given.raw == {
        "object": "extract_run",
        "id": "exr_1",
        "status": "PROCESSED",
        "edited": False,
        "usage": {"credits": 4, "totalCredits": 6},
        "envelope_path": "output.value",
    }
    assert call.bills == [{"credits": 6, "source": "usage.totalCredits"}]
    upload, submit, poll, _ = call.requests
    assert upload.url == "https://api.extend.ai/files/upload"
    assert submit.url == "https://api.extend.ai/extract_runs" and submit.claimed
    assert submit.json == {
        "file": {"id": "file_1"},
        "config": {
            "schema": SCHEMA,
            "advancedOptions": {"arrayStrategy": {"type": "large_array_heuristics"}},
        },
    }
    assert (poll.method, poll.url) == ("GET", "https://api.extend.ai/extract_runs/exr_1")
    assert [request.headers for request in call.requests] == [
        {
            "Authorization": f"Bearer {KEY}",
            "x-extend-api-version": "2026-02-09",
            "x-extend-workspace-id": "ws_1",
        }
    ] * 4


@pytest.mark.parametrize("word", ["extractRun", "processorRun", "run"])
def test_older_wrappers_are_taken_off(word: str) -> None:
    upload, submit = reply(200, {"file": {"id": "file_1"}}), reply(200, {word: {"id": "exr_1", "status": "PENDING"}})
    call = FakeCall([upload, submit, reply(200, {word: RUN | {"usage": {"credits": 4}}})])
    assert json.loads(run(call).prediction)["name"] == "x"
    assert call.jobs == ["exr_1"] and call.bills == [{"credits": 4, "source": "usage.credits"}]


@pytest.mark.parametrize(
    ("more", "words", "passing"),
    [
        ({"failureReason": "PARSING_ERROR", "failureMessage": "bad page"}, "FAILED: PARSING_ERROR: bad page", False),
        ({"failureReason": "INTERNAL_ERROR"}, "FAILED: INTERNAL_ERROR", True),
        ({"failureReason": None, "failureMessage": ""}, "FAILED: no reason given", False),
        ({}, "FAILED: no reason given", False),
        ({"failureMessage": {"message": "inner"}}, "FAILED: inner", False),
    ],
)
def test_a_failed_run_says_why_or_that_nobody_knows(more: dict[str, Any], words: str, passing: bool) -> None:
    with pytest.raises(VendorError, match=f"extend: job exr_1 failed in state {words}") as caught:
        run(FakeCall([UPLOAD, SUBMIT, reply(200, {"id": "exr_1", "status": "FAILED", "output": None, **more})]))
    assert caught.value.passing is passing


def test_a_long_reason_is_cut_and_kept_whole_in_the_record(tmp_path: Path) -> None:
    body = {"id": "exr_1", "status": "FAILED", "failureMessage": "y" * 5000}
    with wire(tmp_path, "extend", bodies=body) as work:
        (record,) = work.ask()
        assert len(record["error"]["message"]) == 600 and record["raw"] == body


@pytest.mark.parametrize(
    "refusal", [reply(403, {"code": "USAGE_BLOCKED", "message": "no credits"}), reply(400, {"code": "USAGE_BLOCKED"})]
)
def test_a_blocked_organisation_stops_the_account(refusal: Any) -> None:
    with pytest.raises(AccountFailure):
        run(FakeCall([UPLOAD, refusal]))


def test_a_403_about_the_document_is_the_documents() -> None:
    with pytest.raises(VendorError) as caught:
        run(FakeCall([UPLOAD, reply(403, {"code": "FORBIDDEN", "message": "not your file"})]))
    assert caught.value.status == 403


def test_a_run_out_of_credits_stops_the_account_and_is_bought_again_when_there_are_some(tmp_path: Path) -> None:
    body = {"id": "exr_1", "status": "FAILED", "failureReason": "OUT_OF_CREDITS", "failureMessage": "no credits"}
    with wire(tmp_path, "extend", bodies=body) as work:
        stopped = work.stop()
        assert isinstance(stopped, AccountFailure) and "no credits" in str(stopped)
        assert work.bought() == [1, 1]
        work.simulator.dials("extend", bodies="")
        (record,) = work.ask()
        assert record["error"] is None and work.bought() == [2, 2]
        assert [attempt["outcome"] for attempt in record["attempts"]] == ["status OUT_OF_CREDITS", "recorded"]


def test_evidence_is_kept_beside_a_plain_prediction(tmp_path: Path) -> None:
    with wire(tmp_path, "extend") as work:
        (record,) = work.ask()
        assert {item["path"] for item in record["citations"]} == {"id", "total", "rows"}
        assert record["citations"][0]["ocrConfidence"] == 0.98
        assert record["cost"]["credits"] == 3 and record["cost"]["source"] == "usage.totalCredits"
        assert record["schema_sent"]["properties"]["id__"] == {"type": ["string", "null"]}


def test_a_file_that_is_gone_is_the_documents_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def forgetful(line: Any, request: Any, *places: str) -> str:
        return "file_unknown"

    monkeypatch.setattr("oeb_ray.providers.vendor.Line.upload", forgetful)
    with wire(tmp_path, "extend") as work:
        (record,) = work.ask()
        assert (record["error"]["type"], record["error"]["status"]) == ("VendorError", 404)
        assert record["raw"]["code"] == "NOT_FOUND" and work.bought() == [0, 0]
