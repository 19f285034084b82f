"""Azure: which shape a version has, analyzers that are made once, values read from nodes, operations that end oddly."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, DialectError, Unreadable, VendorError, VendorTimeout
from oeb_ray.providers import azure_cu, vendors
from oeb_ray.providers.azure_cu import AzureCu
from oeb_ray.providers.azure_fields import LIST, NAMES, field_schema
from oeb_ray.providers.contract import Extraction, VendorOptions, choice_warnings
from oeb_ray.providers.registry import settings_for
from tests.providers.fakes import FakeCall, pdf, reply
from tests.providers.wires import GOLD, KEY, in_a_hurry, wire

SERVER = "https://acme.cognitiveservices.azure.com"
FIELDS = {"fields": {"name": {"type": "string", "description": ""}}}
MADE = reply(201, {}, operation_location=f"{SERVER}/contentunderstanding/analyzers/oeb1/operations/7?api-version=v")
CREATED, RUNNING = reply(200, {"status": "Succeeded"}), reply(200, {"status": "Running"})
SENT = reply(202, {}, operation_location=f"{SERVER}/contentunderstanding/analyzerResults/op-1?api-version=v")
NODES = {
    "name": {"type": "string", "valueString": "x", "confidence": 0.9, "spans": [], "source": "D(1)"},
    "total": {"type": "number", "valueNumber": 2},
    "maybe": {"type": "string"},
    "n": {"type": "integer", "valueInteger": 0},
    "yes": {"type": "boolean", "valueBoolean": False},
    "at": {"type": "time", "valueTime": "12:30"},
    "any": {"type": "json", "valueJson": {"a": [1]}},
    "text": {"type": "string", "content": "as printed"},
    "__u24__foo": {"type": "string", "valueString": "dollar"},
    "rows": {
        "type": "array",
        "valueArray": [{"valueObject": {"id": {"valueNumber": 1, "confidence": 0.5}}}, {"type": "object"}],
    },
    "grid": {"type": "array", "valueArray": [{"valueObject": {LIST: {"valueArray": [{"valueNumber": 1}]}}}]},
}  # fmt: skip
VALUES = {
    "name": "x", "total": 2, "maybe": None, "n": 0, "yes": False, "at": "12:30", "any": {"a": [1]},
    "text": "as printed", "$foo": "dollar", "rows": [{"id": 1}, None], "grid": [[1]],
}  # fmt: skip


def done(contents: Any, **more: Any) -> Any:
    return reply(200, {"id": "1", "status": "Succeeded", "result": {"contents": contents}, **more})


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_hurry(monkeypatch)
    monkeypatch.setattr(azure_cu, "_READY", set())


def run(call: FakeCall, version: str = "2025-05-01-preview", fields: Any = FIELDS) -> Extraction:
    settings = vendors.AzureCu(endpoint=SERVER, api_version=version)
    return asyncio.run(AzureCu().extract(pdf(), fields, settings, VendorOptions(), call))


def test_the_preview_is_asked_in_its_own_shape() -> None:
    call = FakeCall([MADE, RUNNING, CREATED, SENT, RUNNING, done([{"kind": "document", "fields": NODES}])])
    given = run(call)
    assert json.loads(given.prediction) == VALUES
    make, look, _, analyze, poll, _ = call.requests
    assert make.method == "PUT" and make.json == {
        "baseAnalyzerId": "prebuilt-documentAnalyzer",
        "config": {"returnDetails": False, "completion": "gpt-4.1-mini"},
        "fieldSchema": FIELDS,
    }
    analyzer = make.url.rsplit("/", 1)[1]
    assert make.url == f"{SERVER}/contentunderstanding/analyzers/{analyzer}" and analyzer.isalnum()
    assert look.url == f"{SERVER}/contentunderstanding/analyzers/oeb1/operations/7"
    assert analyze.url == f"{SERVER}/contentunderstanding/analyzers/{analyzer}:analyze" and analyze.claimed
    assert (analyze.content, analyze.headers["Content-Type"]) == (pdf().data, "application/octet-stream")
    assert (poll.method, poll.url) == ("GET", f"{SERVER}/contentunderstanding/analyzerResults/op-1")
    assert {request.params["api-version"] for request in call.requests if request.params} == {"2025-05-01-preview"}
    assert {request.headers["Ocp-Apim-Subscription-Key"] for request in call.requests} == {KEY}
    assert call.jobs == ["op-1"] and call.claims == ["first"]
    assert given.citations == (
        {"path": "name", "confidence": 0.9, "source": "D(1)", "spans": []},
        {"path": "rows[0].id", "confidence": 0.5},
    )
    assert "fields" not in given.raw["result"]["contents"][0]


def test_the_general_version_is_asked_in_its_own_shape() -> None:
    tokens = {"gpt-4.1-mini-input": 900, "gpt-4.1-mini-output": 40, "embedding-input": 10}
    usage = {"documentPagesMinimal": 1, "documentPagesStandard": 2, "tokens": tokens}
    other, document = {"kind": "audio", "fields": {}}, {"kind": "document", "fields": NODES}
    call = FakeCall([MADE, CREATED, SENT, done([other, document], usage=usage)])
    given = run(call, "2025-11-01")
    make, _, analyze, _ = call.requests
    assert make.json == {
        "baseAnalyzerId": "prebuilt-document",
        "config": {"returnDetails": False},
        "models": {"completion": "gpt-4.1-mini"},
        "fieldSchema": {"name": "extraction", "description": "", **FIELDS, "definitions": {}},
    }
    assert analyze.url.endswith(":analyzeBinary") and analyze.headers["Content-Type"] == "application/pdf"
    assert json.loads(given.prediction) == VALUES and given.pages == 3
    assert call.bills == [{"tokens_in": 910, "tokens_out": 40, "source": "usage.tokens"}]


def test_an_analyzer_is_made_once_and_by_whoever_comes_first() -> None:
    answer = done([{"fields": NODES}])
    first = FakeCall([reply(409, {"error": {"code": "ModelExists"}}), reply(200, {"status": "creating"}),
                      reply(200, {"status": "ready"}), SENT, answer])  # fmt: skip
    run(first)
    assert first.requests[1].url == first.requests[0].url, "another is making it: it is waited for"
    again = FakeCall([SENT, answer])
    run(again)
    other = FakeCall([MADE, CREATED, SENT, answer])
    run(other, fields={"fields": {"other": {"type": "string", "description": ""}}})
    assert other.requests[0].url != first.requests[0].url


def test_an_analyzer_that_was_deleted_is_made_again_and_the_document_asked_again() -> None:
    answer, gone = done([{"fields": NODES}]), reply(404, {"error": {"code": "ModelNotFound"}})
    run(FakeCall([MADE, CREATED, SENT, answer]))
    call = FakeCall([gone, MADE, CREATED, SENT, answer])
    assert json.loads(run(call).prediction) == VALUES
    assert call.claims == ["first", "first"], "each request is claimed"
    with pytest.raises(VendorError, match="404"):
        run(FakeCall([gone, MADE, CREATED, gone]))


def test_a_failed_analyzer_is_replaced_where_that_can_be_asked_for() -> None:
    exists, failed = reply(409), reply(200, {"status": "failed", "error": {"message": "no model deployed"}})
    call = FakeCall([exists, failed, MADE, CREATED, SENT, done([{"fields": NODES}])])
    run(call, "2025-11-01")
    assert call.requests[2].params == {"api-version": "2025-11-01", "allowReplace": "true"}
    with pytest.raises(VendorError, match=r"analyzer oeb.* is failed: no model deployed") as caught:
        run(FakeCall([exists, failed]))
    assert caught.value.body
    call = FakeCall([MADE, reply(200, {"status": "Failed", "error": {"message": "bad field"}})])
    with pytest.raises(VendorError, match="bad field"):
        run(call, "2025-11-01", {"fields": {"x": {"type": "string", "description": ""}}})
    assert call.claims == []


def test_an_analyzer_that_never_gets_ready_is_a_timeout_and_nothing_is_bought() -> None:
    call = FakeCall([MADE, RUNNING], budget=10)
    with pytest.raises(VendorTimeout, match="analyzer oeb"):
        run(call)
    assert call.claims == []


@pytest.mark.parametrize(
    ("place", "job"),
    [
        ("https://elsewhere.test/contentunderstanding/analyzerResults/op-1?x=1", "op-1"),
        (f"{SERVER}/contentunderstanding/analyzers/a/results/op-1", "analyzers/a/results/op-1"),
        (f"{SERVER}/contentunderstanding/../admin", None),
        (f"{SERVER}/other/op-1", None),
        ("", None),
    ],
)
def test_results_are_asked_for_at_our_own_server_alone(place: str, job: str | None) -> None:
    sent = reply(202, {"id": "x"}, operation_location=place)
    call = FakeCall([MADE, CREATED, sent, done([{"fields": NODES}])])
    if job is None:
        with pytest.raises(VendorError, match="no job was accepted"):
            run(call)
        return
    run(call)
    assert call.jobs == [job] and call.requests[-1].url.startswith(f"{SERVER}/contentunderstanding/")


@pytest.mark.parametrize("word", ["Failed", "Canceled", "Cancelled"])
def test_an_operation_that_failed_in_either_spelling(word: str) -> None:
    body = {"status": word, "error": {"code": "InternalServerError", "message": "m"}}
    with pytest.raises(VendorError, match=f"state {word}: m: code InternalServerError") as caught:
        run(FakeCall([MADE, CREATED, SENT, reply(200, body)]))
    assert caught.value.passing


@pytest.mark.parametrize("contents", [None, [], {}, [3], [{}], [{"fields": []}], [{"fields": {}}]])
def test_success_without_fields_is_no_answer(contents: Any) -> None:
    with pytest.raises(Unreadable, match="op-1"):
        run(FakeCall([MADE, CREATED, SENT, done(contents)]))


def test_nodes_without_an_end_are_no_answer() -> None:
    node: dict[str, Any] = {"valueString": "x"}
    for _ in range(150):
        node = {"valueObject": {"a": node}}
    with pytest.raises(Unreadable):
        run(FakeCall([MADE, CREATED, SENT, done([{"fields": {"a": node}}])]))


@pytest.mark.parametrize("status", [401, 402, 403])
def test_refusals_of_key_money_and_quota_stop_the_account(status: int) -> None:
    with pytest.raises(AccountFailure):
        run(FakeCall([reply(status, {"error": {"message": "denied"}})]))


def test_a_missing_endpoint_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_for("azure-cu", {})
    assert AzureCu().problems(settings, {"address": ""}) == [
        "endpoint must name your resource, such as https://NAME.cognitiveservices.azure.com"
    ]
    assert AzureCu().problems(settings_for("azure-cu", {"endpoint": "nowhere"}), {"address": ""})
    monkeypatch.setenv("OEB_AZURE_CU_ADDRESS", "http://127.0.0.1:1")
    assert AzureCu().problems(settings, {"address": ""}) == []
    (warning,) = choice_warnings(vendors.AzureCu, settings, "azure-cu")
    assert "2025-05-01-preview" in warning and "2025-11-01" in warning


@pytest.mark.parametrize("version", ["2025-05-01-preview", "2025-11-01", "2026-06-01-preview"])
def test_each_version_over_the_wire(tmp_path: Path, version: str) -> None:
    with wire(tmp_path, "azure-cu", documents=3, options={"settings": {"api_version": version}}) as work:
        records = work.ask()
        assert [record["error"] for record in records] == [None] * 3
        assert work.prediction(work.docs[0].doc_id) == GOLD and work.bought() == [3, 3]
        assert 1 <= work.paths("make") <= 3
        record = records[0]
        assert record["schema_sent"]["fields"]["id"]["type"] == "string"
        assert (record["cost"]["tokens_in"], record["cost"]["usd"]) == (100, None)
        assert {"path": "rows[1].note", "confidence": 0.9}.items() <= record["citations"][-1].items()


def test_stuck_operations_do_not_hold_up_the_others(tmp_path: Path) -> None:
    with wire(tmp_path, "azure-cu", documents=6, never_ends=0.5, options={"timeout_s": 1.5}) as work:
        records = work.ask()
        kinds = {record["error"]["type"] if record["error"] else None for record in records}
        assert kinds == {"VendorTimeout", None} and work.seconds < 5
        assert all(record["job_id"] for record in records)


def test_what_the_vendor_cannot_hold_is_cut_or_refused() -> None:
    told = field_schema({"properties": {"a": {"description": "x" * 2000}}}, "object")
    assert len(told["fields"]["a"]["description"]) == 1024
    with pytest.raises(DialectError, match="64 characters"):
        field_schema({"properties": {"x" * 65: {}}}, "object")
    for schema in ({}, {"type": "object"}, {"type": "array", "items": {}}):
        with pytest.raises(DialectError, match="properties"):
            field_schema(schema, "object")
    assert field_schema({"properties": {"m": {"type": "object"}}}, "object")["fields"]["m"]["type"] == "object"


def test_names_in_the_vendors_alphabet_stay() -> None:
    for name in ("id", "Größe", "net.amount", "a-b_c", "id__"):
        assert NAMES.told(name) == name
    for name in (LIST, "a b", "", "$x", "__u24__"):
        assert NAMES.told(name) != name and NAMES.meant(NAMES.told(name)) == name
