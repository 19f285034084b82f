"""LlamaExtract: what its requests hold, how its jobs end, jobs that are out of sight for a while."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, DialectError, Unreadable, VendorError
from oeb_ray.providers import llamaextract, vendors
from oeb_ray.providers.contract import Extraction, VendorOptions
from oeb_ray.providers.llamaextract import LlamaExtract, llamaextract_dialect
from tests.providers.fakes import FakeCall, pdf, reply
from tests.providers.wires import KEY, in_a_hurry, wire

PROJECTS, UPLOAD = reply(200, [{"id": "proj1"}]), reply(200, {"id": "dfl-1"})
SUBMIT = reply(200, {"id": "ext-1", "status": "PENDING"})
RUNNING = reply(200, {"id": "ext-1", "status": "RUNNING"})
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
DONE = {
    "id": "ext-1",
    "status": "COMPLETED",
    "extract_result": {"name": "x"},
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:09.5Z",
    "metadata": {"usage": {"num_pages_extracted": 1}},
    "extract_metadata": {"field_metadata": {"name": {"confidence": 0.9}}},
    "usage": {"credits": 50.5},
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)
    monkeypatch.setattr(llamaextract, "_PROJECTS", {})


def run(call: FakeCall, **given: Any) -> Extraction:
    return asyncio.run(LlamaExtract().extract(pdf(), SCHEMA, vendors.LlamaExtract(**given), VendorOptions(), call))


def test_the_requests_are_as_the_vendor_documents_them() -> None:
    call = FakeCall([PROJECTS, UPLOAD, SUBMIT, RUNNING, reply(200, DONE)])
    given = run(call, tier="agentic")
    assert json.loads(given.prediction) == {"name": "x"} and given.pages == 1
    assert given.raw["server_latency_s"] == 9.5 and given.raw["tier"] == "agentic"
    assert given.raw["extract_metadata"] and "extract_result" not in given.raw
    assert call.bills == [{"credits": 50.5, "source": "usage.credits"}]
    projects, upload, submit, poll, _ = call.requests
    server = "https://api.cloud.llamaindex.ai"
    assert (projects.method, projects.url) == ("GET", f"{server}/api/v1/projects")
    assert upload.url == f"{server}/api/v1/beta/files" and upload.data == {"purpose": "extract"}
    assert upload.files == {"file": ("document.pdf", pdf().data, "application/pdf")}
    assert submit.url == f"{server}/api/v2/extract" and submit.params == {"project_id": "proj1"} and submit.claimed
    assert submit.json == {
        "file_input": "dfl-1",
        "configuration": {"tier": "agentic", "extraction_target": "per_doc", "data_schema": SCHEMA},
    }
    assert poll.url == f"{server}/api/v2/extract/ext-1"
    assert poll.params == {"project_id": "proj1", "expand": ("metadata", "extract_metadata", "usage")}
    assert {request.headers["Authorization"] for request in call.requests} == {f"Bearer {KEY}"}


def test_the_project_is_asked_for_once_per_key(monkeypatch: pytest.MonkeyPatch) -> None:
    run(FakeCall([reply(200, {"projects": [{"id": "p1"}]}), UPLOAD, SUBMIT, reply(200, DONE)]))
    again = FakeCall([UPLOAD, SUBMIT, reply(200, DONE)])
    run(again)
    assert [request.params for request in again.requests[1:2]] == [{"project_id": "p1"}]
    monkeypatch.setenv("LLAMA_CLOUD_API_KEY", "another")
    other = FakeCall([reply(403, {"detail": "not for this key"}), UPLOAD, SUBMIT, reply(200, DONE)])
    run(other)
    assert other.requests[2].params == {} and "project_id" not in (other.requests[3].params or {})


def test_either_variable_holds_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLAMA_CLOUD_API_KEY")
    monkeypatch.setenv("LLAMAPARSE_API_KEY", "llx-2")
    call = FakeCall([PROJECTS, UPLOAD, SUBMIT, reply(200, DONE)])
    run(call)
    assert call.requests[0].headers == {"Authorization": "Bearer llx-2"}


@pytest.mark.parametrize("status", [401, 402, 403])
def test_refusals_of_key_money_and_project_stop_the_account(status: int) -> None:
    with pytest.raises(AccountFailure):
        run(FakeCall([PROJECTS, UPLOAD, reply(status, {"detail": "project disabled"})]))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({}, "no reason given"),
        ({"error_message": None}, "no reason given"),
        ({"error_message": ""}, "no reason given"),
        ({"error_message": {"message": "inner"}}, "inner"),
        ({"error_message": "y" * 5000}, "yyy"),
    ],
)
def test_a_failed_job_says_vendor_state_and_job(tmp_path: Path, error: Any, words: str) -> None:
    body = {"id": "ext-1", "status": "FAILED", **error}
    with wire(tmp_path, "llamaextract", bodies=body) as work:
        (record,) = work.ask()
        message = record["error"]["message"]
        assert message.startswith(f"llamaextract: job {record['job_id']} failed in state FAILED: ")
        assert words in message and len(message) <= 600 and record["raw"] == body


@pytest.mark.parametrize("key", ["extract_result", "data", "result"])
def test_the_extraction_stands_in_one_of_three_places(key: str) -> None:
    body = {"id": "ext-1", "status": "SUCCESS", key: {"document_result": {"name": "x"}, "page_results": []}}
    given = run(FakeCall([PROJECTS, UPLOAD, SUBMIT, reply(200, body | {"usage": {"credits": 1}})]))
    assert json.loads(given.prediction) == {"name": "x"}


@pytest.mark.parametrize("given", [None, [], [{"name": "x"}], {}, "text", {"document_result": []}])
def test_what_is_no_object_is_no_answer(given: Any) -> None:
    with pytest.raises(Unreadable, match="ext-1"):
        run(FakeCall([PROJECTS, UPLOAD, SUBMIT, reply(200, DONE | {"extract_result": given})]))


def test_credits_that_come_late_are_asked_for_once() -> None:
    early = reply(200, DONE | {"usage": {"credits": None}})
    call = FakeCall([PROJECTS, UPLOAD, SUBMIT, early, reply(200, DONE)])
    given = run(call)
    assert call.bills == [{"credits": 50.5, "source": "usage.credits"}] and given.raw["usage"] == {"credits": 50.5}
    never = FakeCall([UPLOAD, SUBMIT, early])
    run(never)
    assert never.bills == [] and len(never.requests) == 4


def test_a_job_out_of_sight_at_first_then_running_then_done(tmp_path: Path) -> None:
    with wire(tmp_path, "llamaextract", poll_404_first=2, latency=0.2) as work:
        (record,) = work.ask()
        assert record["error"] is None and work.bought() == [1, 1] and work.paths("poll") >= 4
        assert record["raw"]["tier"] == "agentic_plus" and record["cost"]["credits"] == 3


def test_an_overdue_job_is_cancelled_in_its_project(tmp_path: Path) -> None:
    with wire(tmp_path, "llamaextract", never_ends=1.0, options={"timeout_s": 0.5}) as work:
        work.ask()
        (record,) = work.ask(again=True)
        assert work.stats()["running"] == 0 and record["cost"]["attempts"] == 2, "what was cancelled is bought anew"


def test_polls_of_a_known_job_that_cannot_learn_the_project_do_not_condemn_the_job() -> None:
    call = FakeCall([reply(503, {"detail": "down"})], job_id="ext-1")
    with pytest.raises(Exception, match="job ext-1") as caught:
        run(call)
    assert not isinstance(caught.value, VendorError) and call.count("POST") == 0


def test_schemas_beyond_the_vendors_limits_are_refused() -> None:
    def properties(count: int, text: str = "") -> dict[str, Any]:
        node = {"description": text} if text else {}
        return {"type": "object", "properties": {f"f{number}": node for number in range(count)}}

    assert llamaextract_dialect(properties(5000))
    with pytest.raises(DialectError, match="5,001 properties"):
        llamaextract_dialect(properties(5001))
    with pytest.raises(DialectError, match="120,000 characters"):
        llamaextract_dialect(properties(10, "x" * 12_000))


def test_keywords_with_a_dollar_go_and_fields_stay() -> None:
    schema = {"properties": {"$foo": {"type": "string", "$comment": "c"}, "$ref": {"enum": [None]}}, "$anchor": "a"}
    assert llamaextract_dialect(schema) == {
        "type": "object",
        "properties": {"$foo": {"type": "string"}, "$ref": {"enum": [None], "type": "null"}},
    }
