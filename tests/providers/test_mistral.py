"""Mistral: one call, and only a readable annotation is an answer."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from oeb_ray.errors import (
    AccountFailure,
    DialectError,
    InternalError,
    MissingCredential,
    NotSent,
    Unreachable,
    VendorError,
    VendorTimeout,
)
from oeb_ray.providers import vendors
from oeb_ray.providers.contract import Document, Extraction, VendorOptions, typed
from oeb_ray.providers.mistral import Mistral
from tests.providers.fakes import FakeCall, pdf, reply

KEY = "ms-secret"
SCHEMA = {"type": "object", "properties": {"name": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/x"}]}}}
USAGE = {"pages_processed": 1, "doc_size_bytes": 20}


def answered(annotation: Any = '{"name": "x"}', usage: Any = USAGE) -> Any:
    pages = [{"index": 0, "markdown": "hi"}]
    body = {"model": "mistral-ocr-2512", "pages": pages, "document_annotation": annotation, "usage_info": usage}
    return reply(200, body)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    monkeypatch.delenv("OEB_MISTRAL_ADDRESS", raising=False)


def run(call: FakeCall | None, document: Document | None = None, **given: Any) -> Extraction:
    options = VendorOptions(**given)
    return asyncio.run(Mistral().extract(document or pdf(), SCHEMA, vendors.Mistral(), options, call))


def failure(call: FakeCall, kind: type[Exception] = VendorError, **given: Any) -> Any:
    with pytest.raises(kind) as caught:
        run(call, **given)
    assert str(caught.value) and KEY not in repr((str(caught.value), caught.value.args))
    return caught.value


def test_one_call_gives_the_annotation() -> None:
    call = FakeCall([answered()])
    given = run(call)
    assert json.loads(given.prediction) == {"name": "x"}
    assert given.raw == {"model": "mistral-ocr-2512", "pages": [{"index": 0, "markdown": "hi"}], "usage_info": USAGE}
    assert (given.pages, given.citations) == (1, ())
    assert (call.claims, call.jobs, call.bills, call.sleeps) == (["first"], [], [], [])


def test_the_request_is_as_the_vendor_documents_it() -> None:
    call = FakeCall([answered()], budget=300)
    run(call)
    (sent,) = call.requests
    assert (sent.method, sent.url) == ("POST", "https://api.mistral.ai/v1/ocr")
    assert sent.headers == {"Authorization": f"Bearer {KEY}"}
    assert sent.json == {
        "model": "mistral-ocr-latest",
        "document": {
            "type": "document_url",
            "document_url": "data:application/pdf;base64," + base64.b64encode(pdf().data).decode(),
        },
        "document_annotation_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "schema": SCHEMA, "strict": False},
        },
    }
    assert sent.timeout == 300 and sent.files is None and sent.data is None


def test_another_server_may_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OEB_MISTRAL_ADDRESS", "http://env:1")
    for address, url in (("", "http://env:1/v1/ocr"), ("http://option:2/", "http://option:2/v1/ocr")):
        call = FakeCall([answered()])
        run(call, address=address)
        assert call.requests[0].url == url


LOOPING = '{"slip_no": "W-9", "gross": 20.' + "0" * 5000


@pytest.mark.parametrize(
    "annotation",
    [LOOPING, None, "", "null", "{}", {}, "[]", [{"name": "x"}], "prose", '{"name": NaN}', '{"a": 1e999}', 7],
)
def test_an_annotation_that_cannot_be_read_is_a_failure_with_its_pages_kept(annotation: Any) -> None:
    call = FakeCall([answered(annotation)])
    error = failure(call)
    assert error.status == 200 and "annotation" in str(error)
    assert error.body["usage_info"] == USAGE and error.body["document_annotation"] == annotation
    assert len(call.claims) == 1, "not bought again"


@pytest.mark.parametrize("body", ["<html>", "", [], "{"])
def test_a_reply_that_is_no_object_is_a_failure(body: Any) -> None:
    error = failure(FakeCall([reply(200, body)]))
    assert error.status == 200 and "unreadable" in str(error)


def test_an_annotation_may_be_an_object_and_keeps_its_digits() -> None:
    assert run(FakeCall([answered({"n": 12345678901234567890123})])).prediction == b'{"n": 12345678901234567890123}'
    assert run(FakeCall([answered('{"n": 12345678901234567890123}')])).prediction == b'{"n": 12345678901234567890123}'


@pytest.mark.parametrize(
    ("cost", "usd"),
    [(0.0051234567, 0.005123), (0, 0.0), (None, None), (True, None), ("0.5", None), (-1, None), (float("nan"), None)],
)
def test_the_cost_is_what_is_stated(cost: Any, usd: float | None) -> None:
    call = FakeCall([answered(usage={"cost": cost, "pages_processed": True})])
    given = run(call)
    assert call.bills == ([] if usd is None else [{"usd": usd, "source": "usage_info.cost"}])
    assert given.pages is None


def test_a_useless_answer_is_billed_too() -> None:
    call = FakeCall([answered("cut {", usage={"cost": 0.005})])
    failure(call)
    assert call.bills == [{"usd": 0.005, "source": "usage_info.cost"}]


def test_passing_refusals_are_tried_again_with_a_claim_each() -> None:
    call = FakeCall([reply(429, {"message": "limit"}, retry_after_ms="30500"), reply(503), NotSent("x"), answered()])
    run(call)
    assert call.claims == ["first", "status 429", "status 503", "connection refused"]
    assert call.sleeps == [30.5, 60, 120]
    assert failure(FakeCall([reply(429, {"message": "limit"})])).status == 429


@pytest.mark.parametrize("lost", [reply(504), reply(524), Unreachable("reset")])
def test_a_lost_answer_is_not_bought_again(lost: Any) -> None:
    call = FakeCall([lost])
    failure(call, Unreachable)
    assert len(call.claims) == 1


@pytest.mark.parametrize("status", [401, 402])
def test_refusals_of_the_account_stop_it(status: int) -> None:
    assert "Unauthorized" in str(failure(FakeCall([reply(status, {"message": f"Unauthorized {KEY}"})]), AccountFailure))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"object": "error", "message": "Failed to parse schema", "code": 3300}, "Failed to parse schema: code 3300"),
        ({"message": "not a valid PDF", "code": "3740"}, "not a valid PDF: code 3740"),
        ({"detail": [{"loc": ["body", "document"], "msg": "bad"}]}, "body.document: bad"),
    ],
)
def test_refusals_of_the_document_hold_code_and_words(body: Any, words: str) -> None:
    error = failure(FakeCall([reply(400, body)]))
    assert words in str(error) and error.status == 400 and error.body == body


def test_a_budget_spent_in_waiting_is_a_timeout() -> None:
    call = FakeCall([reply(500)], budget=70)
    failure(call, VendorTimeout)
    assert (call.sleeps, call.clock) == ([20], 20)


def test_nothing_is_sent_without_a_key_or_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    call = FakeCall([answered()])
    assert "empty" in str(failure(call, document=pdf(data=b"")))
    monkeypatch.delenv("MISTRAL_API_KEY")
    failure(call, MissingCredential)
    assert (call.claims, call.requests) == ([], [])


def test_the_key_is_not_in_the_record() -> None:
    given = run(FakeCall([answered(usage={"echo": [KEY]})]))
    assert KEY not in repr(given)


def test_it_is_a_provider_whose_schema_goes_as_it_is() -> None:
    provider = Mistral()
    assert provider.problems({}, {"address": ""}) == [] and len(provider.problems({}, {"address": "ftp://x"})) == 1
    assert (provider.name, provider.paid, provider.cap) == ("mistral", True, 5)
    circle = {"properties": {"a": {"$ref": "#"}}}
    told = provider.prepare_schema(circle, vendors.Mistral())
    assert told == circle and told is not circle
    with pytest.raises(DialectError):
        provider.prepare_schema({"maximum": float("inf")}, vendors.Mistral())
    values, problems = typed(provider.Options, {}, "mistral")
    assert not problems and values["overlay"] is True
    with pytest.raises(InternalError):
        run(None)
