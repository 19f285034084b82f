"""Reducto: what its requests hold, how its jobs end, and results behind addresses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, Unreadable, VendorError, VendorTimeout
from oeb_ray.providers import vendors
from oeb_ray.providers.contract import Extraction, VendorOptions
from oeb_ray.providers.reducto import Reducto
from tests.providers.fakes import FakeCall, pdf, reply
from tests.providers.wires import GOLD, in_a_hurry, wire

UPLOAD, SUBMIT = reply(200, {"file_id": "reducto://abc.pdf"}), reply(200, {"job_id": "job1"})
RUNNING = reply(200, {"status": "Pending", "progress": 0.1})
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "rows": {"type": "array", "items": {}}}}


def done(result: Any, **more: Any) -> Any:
    usage = {"num_pages": 1, "num_fields": 4, "credits": 31}
    inner = {"response_type": "extract", "job_id": "job1", "usage": usage, "citations": None, "result": result} | more
    return reply(200, {"status": "Completed", "result": inner})


def run(call: FakeCall, settings: vendors.Reducto | None = None, **given: Any) -> Extraction:
    asked = Reducto().extract(pdf(), SCHEMA, settings or vendors.Reducto(), VendorOptions(**given), call)
    return asyncio.run(asked)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)


def test_the_requests_are_as_the_vendor_documents_them() -> None:
    call = FakeCall([UPLOAD, SUBMIT, RUNNING, done([{"name": "x", "rows": []}, {"name": "y", "rows": [{"id": 1}]}])])
    given = run(call, vendors.Reducto(system_prompt="be brief", agentic_table_mode="default"))
    assert json.loads(given.prediction) == {"name": "x", "rows": [{"id": 1}]}
    assert call.bills == [{"credits": 31, "source": "usage.credits"}] and given.pages == 1
    assert "result" not in given.raw["result"] and given.raw["result"]["usage"]["num_fields"] == 4
    upload, submit, poll, _ = call.requests
    assert (upload.url, upload.timeout) == ("https://platform.reducto.ai/upload", 300)
    assert upload.files == {"file": ("document.pdf", pdf().data, "application/pdf")}
    assert submit.url.endswith("/extract_async") and submit.claimed
    assert submit.json == {
        "async": {"priority": False},
        "input": "reducto://abc.pdf",
        "parsing": {"enhance": {"agentic": [{"scope": "table", "mode": "default"}]}},
        "instructions": {"schema": SCHEMA, "system_prompt": "be brief"},
        "settings": {
            "deep_extract": True,
            "citations": {"enabled": False},
            "alpha": {"deep_extract_model": "v2"},
        },
    }
    assert (poll.method, poll.url, poll.timeout) == ("GET", "https://platform.reducto.ai/job/job1", 60)
    assert (call.jobs, call.claims, call.sleeps) == (["job1"], ["first"], [5, 5])


@pytest.mark.parametrize(
    ("error", "passing"),
    [("CAPACITY_TIMEOUT", True), ("GPU_OUT_OF_MEMORY", True), ("DOCUMENT_TOO_LARGE", False), ("INVALID_SCHEMA", False)],
)
def test_the_name_of_a_failure_says_whether_it_passes(error: str, passing: bool) -> None:
    body = {"status": "Failed", "reason": "boom", "error": {"name": error, "code": 1, "message": "inner"}}
    with pytest.raises(VendorError, match=rf"job job1 failed in state Failed \({error}\): inner.*boom") as caught:
        run(FakeCall([UPLOAD, SUBMIT, reply(200, body)]))
    assert caught.value.passing is passing and caught.value.body == body


def test_a_job_that_failed_for_the_key_concerns_the_account_and_may_be_submitted_again() -> None:
    body = {"status": "Failed", "error": {"name": "AUTH_ERROR", "message": "token revoked"}}
    call = FakeCall([UPLOAD, SUBMIT, reply(200, body)])
    with pytest.raises(AccountFailure, match="token revoked"):
        run(call)
    assert call.refusals == ["AUTH_ERROR"]


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        [{}],
        [3],
        "text",
        {"type": "url"},
        {"type": "url", "url": "http://10.0.0.1/x"},
        {"type": "url", "url": 5},
    ],
)
def test_what_is_no_object_is_no_answer(result: Any) -> None:
    with pytest.raises(Unreadable, match="job1"):
        run(FakeCall([UPLOAD, SUBMIT, done(result)]))


def test_a_reply_without_an_extraction_is_not_taken_for_one() -> None:
    reply_without = reply(200, {"status": "Completed", "result": {"job_id": "j", "usage": {"credits": 1}}})
    with pytest.raises(Unreadable, match="no extraction"):
        run(FakeCall([UPLOAD, SUBMIT, reply_without]))
    bare = reply(200, {"status": "Completed", "result": {"name": "x"}})
    assert json.loads(run(FakeCall([UPLOAD, SUBMIT, bare])).prediction) == {"name": "x"}


def test_an_upload_that_names_no_file_is_told_as_such_and_nothing_is_bought() -> None:
    call = FakeCall([reply(200, {"detail": "disk full"})])
    with pytest.raises(Unreadable, match="names no file: disk full"):
        run(call)
    assert call.claims == []


def test_an_overdue_job_is_cancelled_beyond_its_time() -> None:
    call = FakeCall([UPLOAD, SUBMIT, RUNNING], budget=11)
    with pytest.raises(VendorTimeout, match="job1"):
        run(call)
    assert call.requests[-1].url.endswith("/cancel/job1") and call.claims == ["first"]


def test_a_large_result_is_fetched_from_its_address_without_the_key(tmp_path: Path) -> None:
    with wire(tmp_path, "reducto", behind_address=True, documents=2) as work:
        records = work.ask()
        assert [record["error"] for record in records] == [None, None]
        assert work.prediction(work.docs[1].doc_id) == GOLD and work.paths("result") == 2
        assert not [entry for entry in work.simulator.log() if entry["kind"] == "result" and entry["key"]]
        assert records[0]["cost"]["credits"] == 3 and records[0]["cost"]["usd"] is None
        assert records[0]["cost"]["billed_out_of_band"] is False


def test_an_address_in_our_own_network_is_not_asked(tmp_path: Path) -> None:
    body = {"status": "Completed", "result": {"result": {"type": "url", "url": "https://127.0.0.1/r"}, "usage": {}}}
    with wire(tmp_path, "reducto", bodies=body) as work:
        (record,) = work.ask()
        assert record["error"]["type"] == "Unreadable" and "not a public one" in record["error"]["message"]
        assert record["job_id"]
