"""Models at their makers' own interfaces: what is asked, what a reply means, what is billed, what stops an account."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, DocumentError, MissingCredential, Unreadable, VendorError
from oeb_ray.providers.contract import Document, Extraction, Response, VendorOptions
from oeb_ray.providers.direct import DirectVendor
from oeb_ray.providers.google import told
from oeb_ray.providers.registry import PAID, settings_for
from tests.providers.fakes import FakeCall, pdf, reply

KEY = "sk-canary/1"
SCHEMA = {"type": "object", "properties": {"nâme": {"type": "string"}}}
VENDORS = ("anthropic", "google", "openai")
ALL = pytest.mark.parametrize("vendor", VENDORS)
DATA = base64.b64encode(pdf().data).decode()
PNG = Document("a", "a.png", "image/png", b"\x89PNG\r\n\x1a\nx")


def message(text: str, stop: str = "end_turn", **usage: Any) -> dict[str, Any]:
    usage = {"input_tokens": 900, "output_tokens": 40} | usage
    content = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
    return {"id": "msg_1", "type": "message", "content": content, "stop_reason": stop, "usage": usage}


def response(text: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": 900, "output_tokens": 40, "input_tokens_details": {"cached_tokens": 128}}
    output = [{"type": "reasoning", "summary": []}, said]
    return {"id": "r", "status": status, "error": None, "output": output, "usage": usage} | more


def candidate(text: str, finish: str = "STOP") -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": text}]}
    usage = {"promptTokenCount": 900, "candidatesTokenCount": 30, "thoughtsTokenCount": 10}
    return {"candidates": [{"content": content, "finishReason": finish}], "usageMetadata": usage}


ANSWER: dict[str, Callable[[str], dict[str, Any]]] = {
    "anthropic": message,
    "google": candidate,
    "openai": response,
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VENDORS:
        monkeypatch.setenv(PAID[name].credential[0], KEY)
        monkeypatch.delenv(f"OEB_{name.upper()}_ADDRESS", raising=False)
    monkeypatch.setattr("oeb_ray.providers.transport.WAITS", (0.1, 0.2))


def asked(
    vendor: str, *script: Any, document: Document | None = None, schema: Any = SCHEMA, **given: Any
) -> tuple[FakeCall, Extraction]:
    """The call that a vendor made of these replies, and what it gave."""
    call = FakeCall([one if isinstance(one, Response) else reply(200, one) for one in script], budget=300)
    provider = PAID[vendor]
    settings = provider.Settings(**settings_for(vendor, given))
    told = provider.prepare_schema(schema, settings)
    return call, asyncio.run(provider.extract(document or pdf(), told, settings, VendorOptions(), call))


def failure(vendor: str, *script: Any, kind: type[Exception] = DocumentError, **given: Any) -> Any:
    with pytest.raises(kind) as caught:
        asked(vendor, *script, **given)
    assert KEY not in str(caught.value)
    return caught.value


# --- requests -----------------------------------------------------------------------------------------------------


def test_anthropic_is_asked_as_its_messages_interface_has_it() -> None:
    call, given = asked("anthropic", message('{"a": 1}'), model="claude-opus-4-8")
    (sent,) = call.requests
    assert (sent.method, sent.url) == ("POST", "https://api.anthropic.com/v1/messages") and sent.timeout == 300
    assert sent.headers == {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
    (turn,) = sent.json.pop("messages")
    source = {"type": "base64", "media_type": "application/pdf", "data": DATA}
    assert turn["content"][0] == {"type": "document", "source": source, "title": "document.pdf"}
    assert turn["content"][1]["text"].endswith(f"\n\n```json\n{json.dumps(SCHEMA, indent=2)}\n```")
    assert "JSON object" in sent.json.pop("system")
    assert sent.json == {"model": "claude-opus-4-8", "max_tokens": 32_000}, "newer models take no temperature"
    assert json.loads(given.prediction) == {"a": 1}
    call, _ = asked("anthropic", message('{"a": 1}'), model="claude-haiku-4-5", document=PNG)
    assert call.requests[0].json["temperature"] == 0
    (part, _) = call.requests[0].json["messages"][0]["content"]
    assert (part["type"], part["source"]["media_type"]) == ("image", "image/png")


def test_openai_is_asked_as_its_responses_interface_has_it() -> None:
    call, given = asked("openai", response('{"a": 1}'), model="gpt-5.6-sol")
    (sent,) = call.requests
    assert (sent.method, sent.url) == ("POST", "https://api.openai.com/v1/responses")
    assert sent.headers == {"Authorization": f"Bearer {KEY}"}
    (turn,) = sent.json.pop("input")
    url = f"data:application/pdf;base64,{DATA}"
    assert turn["content"][0] == {"type": "input_file", "filename": "document.pdf", "file_data": url}
    assert turn["content"][1]["type"] == "input_text" and "JSON object" in sent.json.pop("instructions")
    told = {"type": "json_schema", "name": "extraction", "schema": SCHEMA, "strict": False}
    assert sent.json == {
        "model": "gpt-5.6-sol",
        "text": {"format": told},
        "max_output_tokens": 128_000,
        "store": False,
    }
    assert json.loads(given.prediction) == {"a": 1}
    call, _ = asked("openai", response('{"a": 1}'), document=PNG, schema={"properties": {"a": {}}})
    body = call.requests[0].json
    assert body["input"][0]["content"][0]["image_url"].startswith("data:image/png;base64,")
    assert body["text"]["format"]["schema"]["type"] == "object"


def test_google_is_asked_as_generate_content_has_it() -> None:
    call, given = asked("google", candidate('{"a": 1}'), model="gemini-2.5-pro")
    (sent,) = call.requests
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent"
    assert (sent.method, sent.url, sent.headers) == ("POST", url, {"x-goog-api-key": KEY})
    (turn,) = sent.json.pop("contents")
    assert turn["parts"][0] == {"inlineData": {"mimeType": "application/pdf", "data": DATA}}
    assert "JSON object" in sent.json.pop("systemInstruction")["parts"][0]["text"]
    told = {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}
    assert sent.json == {"generationConfig": {"temperature": 0.0, "maxOutputTokens": 65_536} | told}
    assert json.loads(given.prediction) == {"a": 1}
    call, _ = asked("google", candidate('{"a": 1}'), document=PNG, model="a/../b")
    assert call.requests[0].json["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "image/png"
    assert call.requests[0].url.endswith("/models/a%2F..%2Fb:generateContent"), "a model's id leaves no path"


def test_google_is_told_only_what_it_knows_of_a_schema() -> None:
    schema = {
        "type": "object",
        "definitions": {"row": {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "x"}}}},
        "properties": {
            "rows": {"type": "array", "maxItems": 3, "items": {"$ref": "#/definitions/row", "description": "d"}},
            "kind": {"const": "a"},
            "state": {"type": ["string", "null"], "description": "d", "enum": ["x", None]},
            "flag": {"enum": ["x", True]},
            "sum": {"allOf": [{"type": "number"}, {"description": "b"}], "minimum": 0},
        },
        "patternProperties": {"^x": {}},
    }
    row = {"type": "object", "properties": {"pattern": {"type": "string"}}}
    assert told(schema) == {
        "type": "object",
        "$defs": {"row": row},
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
            "kind": {"enum": ["a"]},
            "state": {"description": "d", "anyOf": [{"type": ["string"], "enum": ["x"]}, {"type": "null"}]},
            "flag": {},
            "sum": {"type": "number", "description": "b"},
        },
    }


@ALL
def test_other_files_are_refused_before_anything_is_sent(vendor: str) -> None:
    text = Document("a", "a.txt", "text/plain", b"x")
    assert "takes application/pdf" in str(failure(vendor, ANSWER[vendor]('{"a": 1}'), document=text))


def test_the_key_of_google_has_three_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PAID["google"].credential:
        monkeypatch.delenv(name, raising=False)
    failure("google", candidate('{"a": 1}'), kind=MissingCredential)
    for number, name in enumerate(("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY")):
        monkeypatch.setenv(name, f"k{number}")
        call, _ = asked("google", candidate('{"a": 1}'))
        assert call.requests[0].headers["x-goog-api-key"] == f"k{number}"


# --- replies ------------------------------------------------------------------------------------------------------


def test_tokens_are_noted_with_those_from_a_cache() -> None:
    usage = {"cache_creation_input_tokens": 10, "cache_read_input_tokens": 100}
    call, _ = asked("anthropic", message('{"a": 1}', **usage))
    assert call.bills == [{"tokens_in": 1010, "tokens_out": 40, "tokens_cached": 100}]
    call, _ = asked("openai", response('{"a": 1}'))
    assert call.bills == [{"tokens_in": 900, "tokens_out": 40, "tokens_cached": 128}]
    call, _ = asked("google", candidate('{"a": 1}'))
    assert call.bills == [{"tokens_in": 900, "tokens_out": 40}]


@ALL
def test_the_record_keeps_the_reply_without_the_answer(vendor: str) -> None:
    _, given = asked(vendor, ANSWER[vendor]('{"answer": "4711"}'))
    assert "4711" not in json.dumps(given.raw) and "900" in json.dumps(given.raw)
    assert given.raw["model"] and given.raw["max_output_tokens"] and given.raw["finish_reason"]


@ALL
def test_a_useless_answer_is_shown_to_the_model_with_what_is_wrong(vendor: str) -> None:
    call, given = asked(vendor, ANSWER[vendor]("Sorry."), ANSWER[vendor]('{"a": 1}'))
    assert call.claims == ["first", "no usable answer"] and json.loads(given.prediction) == {"a": 1}
    first, second = (request.json for request in call.requests)
    place = {"anthropic": "messages", "google": "contents", "openai": "input"}[vendor]
    assert second[place][:1] == first[place] and len(second[place]) == 3
    _, answer, complaint = second[place]
    assert answer["role"] in ("assistant", "model") and "Sorry." in json.dumps(answer)
    assert "its text is no JSON object" in json.dumps(complaint)
    assert {key: value for key, value in second.items() if key != place} == {
        key: value for key, value in first.items() if key != place
    }
    error = failure(vendor, ANSWER[vendor]("Sorry."), kind=Unreadable)
    assert "no usable answer in 2 completions" in str(error) and len(error.body["calls"]) == 2


FINAL = [
    ("anthropic", message('{"a"', "max_tokens"), "cut off at max_output_tokens=32000, with 40 tokens"),
    ("anthropic", message("No.", "refusal"), "withheld"),
    ("anthropic", message("") | {"content": []}, "wrote nothing"),
    ("google", candidate('{"a"', "MAX_TOKENS"), "cut off at max_output_tokens=65536, with 40 tokens spent, 10 of them"),
    ("google", candidate("", "SAFETY"), "withheld"),
    ("google", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "withheld"),
    (
        "openai",
        response('{"a"', "incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "cut off at max_output_tokens=128000",
    ),
    ("openai", response("", "incomplete", incomplete_details={"reason": "content_filter"}), "withheld"),
    (
        "openai",
        response("") | {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I will not."}]}]},
        "the model refused: I will not.",
    ),
    ("openai", response("", "failed", error={"code": "invalid_image", "message": "bad image"}), "bad image"),
]


@pytest.mark.parametrize(("vendor", "body", "words"), FINAL)
def test_what_would_end_the_same_way_is_not_bought_again(vendor: str, body: Any, words: str) -> None:
    call = FakeCall([reply(200, body)], budget=300)
    provider = PAID[vendor]
    settings = provider.Settings(**settings_for(vendor))
    with pytest.raises(VendorError, match=words):
        asyncio.run(provider.extract(pdf(), SCHEMA, settings, VendorOptions(), call))
    assert call.claims == ["first"] and (not body.get("usage") or call.bills), "what was billed is kept"


# --- refusals -----------------------------------------------------------------------------------------------------


def google_error(status: int, text: str, *details: dict[str, Any]) -> Response:
    return reply(status, {"error": {"code": status, "message": text, "status": "X", "details": list(details)}})


ACCOUNT = [
    ("anthropic", reply(400, {"type": "error", "error": {"message": "Your credit balance is too low to access"}})),
    ("anthropic", reply(402, {"type": "error", "error": {"type": "billing_error", "message": "x"}})),
    (
        "anthropic",
        reply(429, {"error": {"message": "x", "details": {"error_code": "enforced_spend_limit_reached"}}}),
    ),
    ("google", google_error(400, "API key not valid.", {"reason": "API_KEY_INVALID"})),
    ("google", google_error(403, "Your API key was reported as leaked")),
    ("google", google_error(429, "quota", {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]})),
    ("openai", reply(429, {"error": {"type": "insufficient_quota", "code": "project_spend_limit_exceeded"}})),
    ("openai", reply(401, {"error": {"code": "invalid_api_key", "message": f"Incorrect API key provided: {KEY}"}})),
]


@pytest.mark.parametrize(("vendor", "refusal"), ACCOUNT)
def test_what_concerns_the_account_stops_it(vendor: str, refusal: Response) -> None:
    failure(vendor, refusal, kind=AccountFailure)


@pytest.mark.parametrize(
    ("vendor", "refusal"),
    [
        ("anthropic", reply(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})),
        ("google", google_error(503, "overloaded")),
        ("openai", reply(200, response("", "failed", error={"code": "server_error", "message": "x"}))),
    ],
)
def test_an_overloaded_server_is_asked_again(vendor: str, refusal: Response) -> None:
    call, given = asked(vendor, refusal, ANSWER[vendor]('{"a": 1}'))
    assert json.loads(given.prediction) == {"a": 1} and len(call.claims) == 2 and call.sleeps == [0.1]


def test_google_states_its_wait_in_the_body() -> None:
    details = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "41.5s"}
    call, _ = asked("google", google_error(429, "per minute", details), candidate('{"a": 1}'))
    assert call.sleeps == [41.5]


def test_an_overloaded_server_slows_the_account_down() -> None:
    vendor = PAID["anthropic"]
    assert isinstance(vendor, DirectVendor)
    assert vendor.said(reply(529, {})).throttled and not vendor.said(reply(500, {})).throttled
