"""Datalab: submitted once, polled to its end, and only an extraction is an answer."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from oeb_ray.errors import (
    AccountFailure,
    InternalError,
    MissingCredential,
    NotSent,
    Unreachable,
    VendorError,
    VendorTimeout,
)
from oeb_ray.providers import vendors
from oeb_ray.providers.contract import Document, Extraction, VendorOptions, typed
from oeb_ray.providers.datalab import Datalab
from tests.providers.fakes import FakeCall, pdf, reply

KEY = "dl-secret/key"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}, "rows": {"items": {"properties": {"n": {}}}}}}
SUBMIT = reply(200, {"success": True, "error": None, "request_id": "rq1", "request_check_url": "http://evil/rq1"})
RUNNING = reply(200, {"status": "processing", "success": True})
COST = {"final_cost_cents": 2.5, "list_cost_cents": 3}


def complete(extraction: Any = '{"name": "x"}', **more: Any) -> Any:
    body = {"status": "complete", "success": True, "page_count": 1, "cost_breakdown": COST} | more
    return reply(200, body if extraction is None else body | {"extraction_schema_json": extraction})


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    monkeypatch.delenv("OEB_DATALAB_ADDRESS", raising=False)


def run(call: FakeCall | None, document: Document | None = None, schema: Any = SCHEMA, **given: Any) -> Extraction:
    mode = given.pop("mode", "balanced")
    interval = given.pop("poll_interval", 5.0)
    settings = vendors.Datalab(mode=mode, poll_interval=interval)
    return asyncio.run(Datalab().extract(document or pdf(), schema, settings, VendorOptions(**given), call))


def failure(call: FakeCall, kind: type[Exception] = VendorError, **given: Any) -> Any:
    with pytest.raises(kind) as caught:
        run(call, **given)
    assert str(caught.value) and KEY not in repr((str(caught.value), caught.value.args))
    return caught.value


def test_one_submission_and_polls_until_complete() -> None:
    answer = '{"name": "x", "name_citations": ["/page/0/Text/1"]}'
    call = FakeCall([SUBMIT, RUNNING, complete(answer)])
    given = run(call)
    assert json.loads(given.prediction) == {"name": "x"}
    assert given.citations == ({"path": "name", "blocks": ["/page/0/Text/1"]},)
    assert given.raw == {
        "status": "complete",
        "success": True,
        "page_count": 1,
        "cost_breakdown": COST,
        "evidence": [{"path": "name", "key": "name_citations", "value": ["/page/0/Text/1"]}],
    }
    assert given.pages == 1
    assert call.bills == [{"usd": 0.025, "source": "cost_breakdown.final_cost_cents"}]
    assert (call.claims, call.jobs, call.sleeps) == (["first"], ["rq1"], [5, 5])


def test_the_request_is_as_the_vendor_documents_it() -> None:
    call = FakeCall([SUBMIT, complete()])
    run(call, pdf("Müller & Co.pdf"), mode="accurate")
    sent, poll = call.requests
    assert (sent.method, sent.url) == ("POST", "https://www.datalab.to/api/v1/extract")
    assert sent.headers == poll.headers == {"X-Api-Key": KEY}
    assert sent.data is not None and json.loads(sent.data["page_schema"]) == SCHEMA
    assert (sent.data["extraction_mode"], sent.data["output_format"], len(sent.data)) == ("accurate", "json", 3)
    assert sent.files == {"file": ("document.pdf", pdf().data, "application/pdf")}
    assert (poll.method, poll.url) == ("GET", "https://www.datalab.to/api/v1/extract/rq1"), (
        "not the address in the reply"
    )
    assert sent.timeout == poll.timeout == 120


def test_names_and_ids_cannot_break_out() -> None:
    call = FakeCall([reply(200, {"request_id": "../x?y#z"}), complete()])
    run(call, pdf('a"\r\nX-Evil: 1.pdf'), send_name="original")
    assert call.requests[0].files is not None and call.requests[0].files["file"][0] == "a___X-Evil: 1.pdf"
    assert call.requests[1].url.endswith("/api/v1/extract/..%2Fx%3Fy%23z")


def test_another_server_may_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OEB_DATALAB_ADDRESS", "http://env:1/")
    call = FakeCall([SUBMIT, complete()])
    run(call)
    assert call.requests[0].url == "http://env:1/api/v1/extract"
    call = FakeCall([SUBMIT, complete()])
    run(call, address="http://option:2")
    assert call.requests[1].url == "http://option:2/api/v1/extract/rq1"


def test_a_server_that_is_none_is_told_before_anything_runs() -> None:
    settings = {"mode": "fast", "base_url": "https://www.datalab.to", "poll_interval": 5.0}
    assert Datalab().problems(settings, {"address": ""}) == []
    for address in ("localhost:1", "/tmp/x", "http://", "http://[x"):
        (problem,) = Datalab().problems(settings, {"address": address})
        assert repr(address.rstrip("/")) in problem


def test_a_known_job_is_polled_and_never_submitted() -> None:
    call = FakeCall([RUNNING, complete()], job_id="old")
    assert json.loads(run(call, pdf(data=b"")).prediction) == {"name": "x"}
    assert call.count("POST") == 0 and call.claims == [] and call.jobs == []
    assert call.requests[0].url.endswith("/old")


def test_429_for_ever_is_four_submissions() -> None:
    call = FakeCall([reply(429, {"detail": "slow"})])
    assert failure(call).status == 429
    assert (call.count("POST"), call.sleeps, call.jobs) == (4, [20, 60, 120], [])


def test_503_then_success_is_two_claims() -> None:
    call = FakeCall([reply(503), SUBMIT, complete()])
    run(call)
    assert (call.claims, call.sleeps) == (["first", "status 503"], [20, 5])


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (402, "no money"),
        (401, "Invalid API key provided"),
        (403, "You need an active, paid subscription"),
        (403, "Your subscription has expired"),
        (403, "Your payment has failed"),
    ],
)
def test_refusals_of_the_account_stop_it_at_submission_and_at_polls(status: int, detail: str) -> None:
    refused = reply(status, {"detail": f"{detail}: {KEY}"})
    assert detail in str(failure(FakeCall([refused]), AccountFailure))
    call = FakeCall([SUBMIT, refused])
    failure(call, AccountFailure)
    assert call.jobs == ["rq1"]


def test_other_403s_are_the_documents() -> None:
    assert failure(FakeCall([reply(403, {"detail": "file is protected"})])).status == 403


def test_a_429_between_polls_is_waited_out() -> None:
    call = FakeCall([SUBMIT, RUNNING, reply(429), complete()])
    run(call)
    assert (call.count("POST"), call.sleeps) == (1, [5, 5, 2])


@pytest.mark.parametrize("lost", [Unreachable("reset"), NotSent("refused"), reply(404), reply(500)])
def test_a_poll_that_fails_is_repeated_and_nothing_is_bought_again(lost: Any) -> None:
    call = FakeCall([SUBMIT, lost, lost, complete()])
    run(call)
    assert call.count("POST") == 1


def test_a_job_that_stays_missing_fails_with_its_id() -> None:
    error = failure(FakeCall([SUBMIT, reply(404, {"detail": "gone"})]))
    assert error.status == 404 and "rq1" in str(error) and "gone" in str(error)


@pytest.mark.parametrize("lost", [Unreachable("reset after the body"), reply(504), reply(522)])
def test_a_lost_answer_to_the_submission_is_not_bought_again(lost: Any) -> None:
    call = FakeCall([lost])
    failure(call, Unreachable)
    assert call.count("POST") == 1 and call.jobs == []


@pytest.mark.parametrize("state", ["processing", "sleeping", "Canceled"])
def test_a_job_that_never_ends_is_a_timeout_at_the_budget(state: str) -> None:
    call = FakeCall([SUBMIT, reply(200, {"status": state, "success": True})], budget=22)
    error = failure(call, VendorTimeout)
    assert "rq1" in str(error) and error.status is None
    assert (call.clock, call.claims, call.jobs) == (22, ["first"], ["rq1"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"status": "complete", "success": False, "error": "no text found"}, "no text found"),
        ({"status": "error", "success": False, "error": "bad", "error_in": "OTHER"}, "bad (error in OTHER)"),
        ({"status": "error", "success": True}, "no reason given"),
        ({"status": "error", "error": None}, "no reason given"),
        ({"status": "error", "error": ""}, "no reason given"),
        ({"status": "error", "error": {"message": "inner"}}, "inner"),
        ({"status": "sleeping", "success": False, "error": "x"}, "x"),
        ({"detail": "internal"}, "unreadable reply without a status: internal"),
        ({"status": None, "success": True}, "unreadable"),
        ({"status": "complete", "success": True}, "no extraction"),
        ({"status": "complete", "success": True, "extraction_schema_json": "{}"}, "empty"),
        ({"status": "complete", "success": True, "extraction_schema_json": {}}, "empty"),
        ({"status": "complete", "success": True, "extraction_schema_json": "not json"}, "unreadable"),
        ({"status": "complete", "success": True, "extraction_schema_json": '[{"name": 1}]'}, "unreadable"),
        ({"status": "complete", "success": True, "extraction_schema_json": '{"name": NaN}'}, "unreadable"),
        ({"status": "complete", "success": True, "extraction_schema_json": '{"name_meta": {}}'}, "no field"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_failure_with_job_state_and_words(body: Any, words: str) -> None:
    call = FakeCall([SUBMIT, reply(200, body)])
    error = failure(call)
    assert words in str(error) and "job rq1" in str(error)
    assert (error.status, error.body, call.count("POST")) == (200, body, 1)


def test_a_long_reason_is_cut_and_kept_whole_in_the_body() -> None:
    error = failure(FakeCall([SUBMIT, reply(200, {"status": "error", "error": "y" * 5000})]))
    assert len(str(error)) == 600 and error.body["error"] == "y" * 5000


def test_an_object_that_speaks_of_an_error_is_an_answer() -> None:
    given = run(FakeCall([SUBMIT, complete('{"error": "could not extract"}')]))
    assert json.loads(given.prediction) == {"error": "could not extract"}


def test_a_gateways_page_between_polls_is_no_answer() -> None:
    call = FakeCall([SUBMIT, *[reply(200, "<html>")] * 5, complete()])
    run(call)
    assert call.count("POST") == 1
    error = failure(FakeCall([SUBMIT, reply(200, "<html>")]))
    assert "unreadable" in str(error) and error.body == "<html>"


def test_success_false_while_processing_is_polled_on() -> None:
    call = FakeCall([SUBMIT, reply(200, {"status": "processing", "success": False}), complete()])
    run(call)
    assert len(call.sleeps) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"success": False, "error": "quota of pages", "request_id": None}, "quota of pages"),
        ({"success": False, "error": "no", "request_id": "rq9"}, "no"),
        ({"success": True}, "no reason given"),
        ({"request_id": 7}, "no reason given"),
        ("<html>", "no JSON object"),
    ],
)
def test_a_submission_without_a_job_is_a_failure(body: Any, words: str) -> None:
    call = FakeCall([reply(200, body)])
    error = failure(call)
    assert words in str(error) and error.status == 200 and (call.jobs, len(call.requests)) == ([], 1)


def test_a_201_with_a_job_is_a_job() -> None:
    call = FakeCall([reply(201, {"success": True, "request_id": "rq1"}), complete()])
    assert json.loads(run(call).prediction) == {"name": "x"}
    assert call.jobs == ["rq1"]


@pytest.mark.parametrize(
    ("figures", "bill"),
    [
        ({"cost_breakdown": {"final_cost_cents": 2.5}, "total_cost": 9}, (0.025, "cost_breakdown.final_cost_cents")),
        ({"cost_breakdown": {"list_cost_cents": 3}, "total_cost": 7}, (0.07, "total_cost")),
        ({"cost_breakdown": None, "total_cost": 0}, (0.0, "total_cost")),
        ({"total_cost": 1.23456789}, (0.012346, "total_cost")),
        ({"cost_breakdown": {"final_cost_cents": True}, "total_cost": "5"}, None),
        ({"total_cost": -1}, None),
        ({}, None),
    ],
)
def test_cents_become_dollars_once_and_nothing_is_not_zero(figures: Any, bill: Any) -> None:
    body = {"status": "complete", "success": True, "extraction_schema_json": {"name": "x"}} | figures
    call = FakeCall([SUBMIT, reply(200, body)])
    run(call)
    assert call.bills == ([{"usd": bill[0], "source": bill[1]}] if bill else [])


def test_a_failed_job_has_a_cost_too() -> None:
    call = FakeCall([SUBMIT, reply(200, {"status": "error", "total_cost": 4})])
    failure(call)
    assert call.bills == [{"usd": 0.04, "source": "total_cost"}]


def test_a_late_cost_is_asked_for_once() -> None:
    late = complete("{}", cost_breakdown={"final_cost_cents": 6})
    call = FakeCall([SUBMIT, complete(cost_breakdown=None), late])
    given = run(call)
    assert call.bills == [{"usd": 0.06, "source": "cost_breakdown.final_cost_cents"}]
    assert json.loads(given.prediction) == {"name": "x"}
    assert given.raw["cost_breakdown"] == {"final_cost_cents": 6}


@pytest.mark.parametrize(
    "late",
    [reply(500), reply(401), reply(200, "<html>"), Unreachable("x"), AccountFailure("stopped"), VendorTimeout("x")],
)
def test_asking_for_the_cost_never_loses_the_answer(late: Any) -> None:
    call = FakeCall([SUBMIT, complete(cost_breakdown=None), late])
    assert json.loads(run(call).prediction) == {"name": "x"}
    assert (call.bills, len(call.requests)) == ([], 3)


def test_with_little_time_left_the_cost_is_not_asked_for() -> None:
    call = FakeCall([SUBMIT, complete(cost_breakdown=None)], budget=15)
    run(call)
    assert len(call.requests) == 2


def test_all_side_keys_leave_the_prediction_unless_asked_for() -> None:
    schema: dict[str, Any] = {"properties": {"lot": {}, "lot_meta": {}, "rows": {"items": {"properties": {"n": {}}}}}}
    answer = {
        "lot": "L7",
        "lot_meta": "north",
        "lot_score": {"score": 4},
        "rows": [{"n": 1, "n_citations": ["/page/1/T/2"], "n_meta": {"verification": {"status": "PASS"}}}],
        "extraction_score_average": 4.5,
    }
    given = run(FakeCall([SUBMIT, complete(answer)]), schema=schema)
    assert json.loads(given.prediction) == {"lot": "L7", "lot_meta": "north", "rows": [{"n": 1}]}
    assert given.citations == ({"path": "rows[0].n", "blocks": ["/page/1/T/2"]},)
    assert {item["key"] for item in given.raw["evidence"]} == {
        *("lot_score", "n_citations", "n_meta", "extraction_score_average"),
    }
    asked: dict[str, Any] = {"properties": {"lot": {}, "extraction_score_average": {}}}
    kept = run(FakeCall([SUBMIT, complete(answer)]), schema=asked)
    assert "extraction_score_average" in json.loads(kept.prediction)


def test_every_digit_is_kept() -> None:
    text = '{"name": 98765432109876543210987654321, "x": 0.30000000000000004, "y": "ü"}'
    assert run(FakeCall([SUBMIT, complete(text)])).prediction == text.encode()


def test_the_key_is_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    given = run(FakeCall([SUBMIT, complete(versions={"echo": f"X-Api-Key: {KEY}"}, n=float("nan"))]))
    assert KEY not in repr(given) and "[redacted]" in repr(given.raw)
    json.dumps(given.raw, allow_nan=False)
    call = FakeCall([reply(400, {"detail": f"header was {KEY}"})])
    assert KEY not in repr(failure(call).body)
    monkeypatch.delenv("DATALAB_API_KEY")
    call = FakeCall([SUBMIT])
    failure(call, MissingCredential)
    assert call.requests == []


def test_a_document_that_is_none_is_not_sent() -> None:
    call = FakeCall([SUBMIT])
    assert "web page" in str(failure(call, document=pdf(data=b"<html>")))
    assert call.claims == [] and call.requests == []


def test_it_is_a_provider() -> None:
    provider = Datalab()
    assert (provider.name, provider.paid, provider.cap) == ("datalab", True, 10)
    assert provider.credential == ("DATALAB_API_KEY",)
    assert provider.prepare_schema({"properties": {"a": {"type": ["string", "null"]}}}, vendors.Datalab()) == {
        "properties": {"a": {"type": "string"}}
    }
    values, problems = typed(provider.Options, {"overlay": False}, "datalab")
    assert not problems and values == {"overlay": False, "send_name": "neutral", "address": ""}
    with pytest.raises(InternalError):
        run(None)
