"""Chat models, over real HTTP against the simulator: what is asked, what is paid, what is recorded, what stops."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import calls, layout, storage
from oeb_ray.errors import AccountFailure, InternalError, LimitReached, RequestError, VendorError
from oeb_ray.plan import expand
from oeb_ray.providers import vendors
from oeb_ray.providers.contract import Document
from oeb_ray.providers.openrouter import served_by
from oeb_ray.providers.registry import find
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.account import fingerprint
from tests.helpers import SmallCorpus, make_pdf_corpus
from tests.providers.fakes import FakeCall, pdf, reply
from tests.test_account import Setting

KEY, OPENAI_KEY = "sk-or-canary", "sk-oa-canary"
MODEL = "org/model"
CASES = Path(__file__).parent.parent / "data" / "chat_cases"
DOCS = 24
Make = Callable[..., Setting]


def case(name: str) -> Any:
    return json.loads((CASES / name).read_text())


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), documents=DOCS)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
    monkeypatch.delenv("OEB_OPENROUTER_ADDRESS", raising=False)
    monkeypatch.setattr("oeb_ray.providers.transport.WAITS", (0.1, 0.2, 0.3))
    monkeypatch.setattr("oeb_ray.providers.transport.BUSY_WAIT", 0.1)
    monkeypatch.setattr("oeb_ray.providers.chat.pause_before_next", lambda tries: 0.05)


@pytest.fixture
def make(corpus: SmallCorpus, tmp_path: Path) -> Iterator[Make]:
    """Starts a simulator: ``bodies`` are its answers by position of the document, one or several in turn, each a body
    or (status, body) or (status, body, headers)."""
    running: list[Simulator] = []

    def begin(
        bodies: dict[int, Any] | None = None,
        provider: str = MODEL,
        given: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
        **dials: Any,
    ) -> Setting:
        folder = tmp_path / f"bodies {len(running)}"
        folder.mkdir()
        for position, answers in (bodies or {}).items():
            for nth, answer in enumerate(answers if isinstance(answers, list) else [answers], start=1):
                status, body, *headers = answer if isinstance(answer, tuple) else (200, answer)
                name = f"doc {position:05} [x].{nth}"
                (folder / f"{name}.json").write_text(body if isinstance(body, str) else json.dumps(body))
                (folder / f"{name}.head").write_text("\n".join([str(status), *headers]))
        profile = {
            "answers": str(corpus.predictions / "good"),
            "documents": str(corpus.folder / "docs"),
            "vendors": {"openrouter": {"latency": 0.02, "price": 0.03, "bodies": str(folder)} | dials},
        }
        running.append(Simulator(Profile.from_dict(profile)))
        options = {"overlay": True, "send_name": "neutral"} | (options or {})
        out = tmp_path / f"out {len(running)}"
        return Setting(corpus, out, "openrouter", running[-1], provider=provider, given=given, **options)

    yield begin
    for simulator in running:
        simulator.close()


def body(content: Any, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": 900, "completion_tokens": 40, "cost": 0.004}
    return {"id": "g", "choices": [{"index": 0, "finish_reason": finish, "message": message}], "usage": usage} | more


# --- the request --------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"nâme": {"type": "string"}}}


def asked(document: Document, call: FakeCall, **given: Any) -> Any:
    settings = vendors.Chat(**{"model": MODEL, "max_output_tokens": 64_000} | given)
    provider = served_by(settings.base_url)
    return asyncio.run(provider.extract(document, SCHEMA, settings, vendors.ChatOptions(), call))


def test_the_request_is_as_the_protocol_has_it() -> None:
    call = FakeCall([reply(200, body('{"a": 1}'))], budget=300)
    asked(pdf("Ünsafe\r\n.pdf"), call)
    (sent,) = call.requests
    assert (sent.method, sent.url) == ("POST", "https://openrouter.ai/api/v1/chat/completions")
    assert sent.headers == {"Authorization": f"Bearer {KEY}"} and sent.timeout == 300
    system, user = sent.json["messages"]
    file, text = user["content"]
    assert (system["role"], user["role"]) == ("system", "user") and "JSON object" in system["content"]
    url = "data:application/pdf;base64," + base64.b64encode(pdf().data).decode()
    assert file == {"type": "file", "file": {"filename": "document.pdf", "file_data": url}}
    assert text["text"].endswith(f"\n\n```json\n{json.dumps(SCHEMA, indent=2)}\n```") and text["text"].isascii()
    rest = {key: value for key, value in sent.json.items() if key != "messages"}
    assert rest == {
        "model": MODEL,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "schema": SCHEMA, "strict": False},
        },
        "max_tokens": 64_000,
        "temperature": 0.0,
        "usage": {"include": True},
    }


def test_images_are_sent_as_images_and_other_files_are_refused_before_anything_is_sent() -> None:
    call = FakeCall([reply(200, body('{"a": 1}'))])
    asked(Document("a", "a.png", "image/png", b"\x89PNG\r\n\x1a\nx"), call)
    part = call.requests[0].json["messages"][1]["content"][0]
    assert part["type"] == "image_url" and part["image_url"]["url"].startswith("data:image/png;base64,")
    call = FakeCall([reply(200, body('{"a": 1}'))])
    with pytest.raises(VendorError, match="takes application/pdf"):
        asked(Document("a", "a.txt", "text/plain", b"x"), call)
    assert not call.claims


# --- servers and keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        (vendors.OPENROUTER, KEY),
        ("https://OpenRouter.ai./api/v1/", KEY),
        ("https://eu.openrouter.ai/api/v1", KEY),
        ("https://openrouter.ai.example.com/v1", OPENAI_KEY),
        ("https://notopenrouter.ai/v1", OPENAI_KEY),
        ("https://example.com/openrouter.ai", OPENAI_KEY),
        ("https://api.openai.com/v1", OPENAI_KEY),
        ("http://gpu-node:8000/v1", OPENAI_KEY),
    ],
)
def test_each_key_goes_to_its_own_servers_alone(base_url: str, key: str) -> None:
    call = FakeCall([reply(200, body('{"a": 1}'))])
    asked(pdf(), call, base_url=base_url)
    (sent,) = call.requests
    assert sent.headers == {"Authorization": f"Bearer {key}"}
    assert sent.url == base_url.rstrip("/") + "/chat/completions"
    assert ("usage" in sent.json) == (key == KEY)


def test_an_adapter_of_another_server_refuses() -> None:
    settings = vendors.Chat(model=MODEL, base_url="https://example.com/v1")
    call = FakeCall([reply(200, body('{"a": 1}'))])
    provider: Any = find(MODEL)
    with pytest.raises(InternalError, match="another kind of server"):
        asyncio.run(provider.extract(pdf(), SCHEMA, settings, vendors.ChatOptions(), call))
    assert not call.requests


def test_openais_own_server_is_asked_in_its_own_words() -> None:
    call = FakeCall([reply(200, body('{"a": 1}'))])
    asked(pdf(), call, model="openai/gpt-5.6-sol", base_url="https://api.openai.com/v1")
    sent = call.requests[0].json
    assert sent["model"] == "gpt-5.6-sol" and sent["max_completion_tokens"] == 64_000
    assert not {"max_tokens", "temperature", "usage"} & set(sent)


def test_a_server_of_ones_own_needs_no_key(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    server = make().simulator
    own = {"base_url": f"{server.url}/openrouter/v1"}
    work = make(given=own, options={"address": ""})
    work.ask(positions=[0])
    assert work.record(0)["error"] is None
    assert {entry["key"] for entry in server.log()} == {""}
    runs, _ = expand({MODEL: own}, 60.0)
    assert runs[0].lane and runs[0].lane.account.startswith("openai-compatible@127.0.0.1:")
    with pytest.raises(RequestError, match="OPENAI_API_KEY"):
        expand({MODEL: {"base_url": "https://example.com/v1"}}, 60.0)


def test_all_models_of_one_key_are_one_account() -> None:
    own = {"base_url": "http://gpu-node:8000/v1"}
    runs, _ = expand({"a/one": {"options": [{}, own]}, "b/two": {}, "b/three": own}, 60.0)
    accounts = {run.provider + run.settings["base_url"]: run.lane.account for run in runs if run.lane}
    first = accounts["a/onehttp://gpu-node:8000/v1"]
    assert len(set(accounts.values())) == 2 and first.startswith("openai-compatible@gpu-node:8000#")
    assert KEY not in str(runs) and OPENAI_KEY not in str(runs)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"base_url": "http://openrouter.ai/api/v1"}, "unencrypted"),
        ({"base_url": "https://user:pw@example.com/v1"}, "without user and password"),
        ({"base_url": "openrouter.ai"}, "no address"),
        ({"base_url": "https://[x"}, "no address"),
        ({"max_output_tokens": 0}, "no room"),
        ({"base_url": "http://gpu:1/v1", "max_usd": 5}, "states no dollars"),
        ({"model": "x"}, "the model is the provider's name"),
        ({"attempts": 0}, "at least 1"),
    ],
)
def test_what_would_make_every_document_fail_is_refused_in_the_plan(given: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words):
        expand({MODEL: given}, 60.0)


# --- answers ------------------------------------------------------------------------------------------------------


def test_every_document_is_bought_once_and_recorded_with_its_cost(make: Make) -> None:
    work = make()
    receipts = [receipt for ended in work.ask() for receipt in ended.receipts]
    assert [receipt.error for receipt in receipts] == [None] * DOCS
    assert set(work.submissions().values()) == {1} and len(work.submissions()) == DOCS
    assert {entry["key"] for entry in work.simulator.log()} == {fingerprint(KEY)}
    record = work.record(3)
    prediction = storage.read(layout.prediction(work.out, work.run.name, work.corpus.ids[3]))
    assert json.loads(prediction)["invoice_id"] == "INV-00003"
    assert record["provider"] == record["run_manifest"]["model"] == MODEL and record["job_id"] is None
    assert record["cost"]["usd"] == 0.03 and record["cost"]["source"] == "usage.cost"
    assert record["cost"]["tokens_out"] > 0 and record["cost"]["attempts"] == 1
    (made,) = record["raw"]["calls"]
    assert made["id"].startswith("gen-") and "content" not in made["choices"][0]["message"]
    assert record["raw"]["finish_reason"] == "stop" and record["raw"]["max_output_tokens"] == 64_000
    assert KEY not in json.dumps(record) + json.dumps(work.simulator.log())
    for key in storage.listed(work.out):
        assert KEY.encode() not in storage.read(storage.join(work.out, key))


def one(make: Make, *answers: Any, **more: Any) -> tuple[Setting, Any, Any]:
    """Asks for one document whose answers are these: the setting, its record (None if there is none), what stopped."""
    work = make({0: list(answers)}, **more)
    (ended,) = work.ask(positions=[0])
    return work, (work.record(0) if ended.receipts else None), ended.stopped


@pytest.mark.parametrize("number", range(14))
def test_a_status_of_200_may_hold_an_error(make: Make, number: int) -> None:
    given, expected = case("BR-26_chat_200_errors.json")["bodies"][number]
    work, record, stopped = one(make, given, given, given, given, body('{"late": 1}'))
    error = record["error"] if record else None
    asked_for = sum(work.submissions().values())
    if expected == "account stops":
        assert record is None and isinstance(stopped, AccountFailure) and asked_for == 1
        assert given["error"]["message"] in str(stopped)
    elif expected == "transient, waits":
        assert error is None and asked_for == 5
    elif expected.startswith("transient"):
        code = given["error"]["code"]
        assert (error["status"], error["transient"], asked_for) == (code, True, 4) and str(code) in expected
        assert given["error"]["message"] in error["message"]
        assert record["cost"]["usd"] == (0.0048 if "usage" in given else None)
    elif expected.startswith("asked again"):
        assert (error["status"], error["transient"], asked_for) == (200, False, 3)
        assert record["raw"] == {"calls": [given] * 3}
    else:
        assert (error["transient"], asked_for) == (False, 1) and record["raw"] == given
        inner = given.get("error", {}).get("code") if isinstance(given, dict) else None
        assert error["status"] == (inner if isinstance(inner, int) else 200)
        assert record["cost"]["usd"] == (0.0012 if isinstance(given, dict) and "usage" in given else None)


def test_an_error_in_a_choice_counts_as_well(make: Make) -> None:
    broken = body("half", finish="error")
    broken["choices"][0]["error"] = {"code": "502", "message": "upstream reset"}
    _, record, _ = one(make, *[broken] * 4)
    assert record["error"]["status"] == 502 and "upstream reset" in record["error"]["message"]


def test_the_reason_of_the_model_s_provider_is_in_the_message(make: Make) -> None:
    given = case("BR-27_raw_reason.json")
    refusal = (given["status"], given["body"])
    work, record, _ = one(make, refusal, refusal, body('{"a": 1}'))
    assert record["error"] is None and sum(work.submissions().values()) == 3
    work, record, _ = one(make, *[refusal] * 4)
    assert "NorthHost" in record["error"]["message"] and given["body"]["error"]["metadata"]["raw"] in str(record)
    assert (record["error"]["status"], record["error"]["transient"]) == (429, True)


@pytest.mark.parametrize(("number", "usd", "tokens"), [(0, 0.31, 40), (1, 1.92, 128000), (2, 0.02, 40)])
def test_what_was_cut_off_at_the_limit_is_not_bought_again(make: Make, number: int, usd: float, tokens: int) -> None:
    given = case("BR-28_length.json")["answers"][number]
    work, record, _ = one(make, *[given] * 3, given={"max_output_tokens": 128_000})
    message = record["error"]["message"]
    assert "max_output_tokens=128000" in message and f"{tokens} tokens" in message
    assert sum(work.submissions().values()) == 1 and record["cost"]["usd"] == usd
    assert record["raw"] == given and not record["error"]["transient"]


def test_every_completion_is_counted_and_rounded_once(make: Make) -> None:
    given = case("BR-29_three_tries.json")
    work = make({0: given["document_1"], 1: given["document_2"]})
    work.ask(positions=[0, 1])
    first, second = work.record(0), work.record(1)
    assert (first["cost"]["usd"], first["error"]) == (0.014, None)
    assert [attempt["usd"] for attempt in first["attempts"]] == [0.004, 0.004, 0.006]
    assert [attempt["reason"] for attempt in first["attempts"]] == ["first", "no usable answer", "no usable answer"]
    assert first["cost"]["tokens_in"] == 2700 and first["cost"]["attempts"] == 3
    assert second["cost"]["usd"] == 0.012 and "3 completions" in second["error"]["message"]
    assert second["raw"] == {"calls": given["document_2"]}
    stored = calls.attempts_of(work.out, work.run.name, work.corpus.ids[0])
    assert [attempt.usd for attempt in stored] == [0.004, 0.004, 0.006]
    assert [attempt.outcome for attempt in stored] == ["no usable answer", "no usable answer", "recorded"]


def test_a_limit_in_dollars_ends_the_tries_of_a_document_and_then_its_run(make: Make) -> None:
    given = case("BR-29_three_tries.json")
    work = make({0: given["document_1"], 1: given["document_2"]})
    work.run.options["timeout_s"] = 5.0
    ended = [
        work.ask(positions=[n], max_usd=0.045, spent={work.run.name: 0.014 * (n > 0) + 0.004 * (n > 1)})[0]
        for n in range(3)
    ]
    assert [item.stopped is None for item in ended] == [True, True, False] and isinstance(
        ended[2].stopped, LimitReached
    )
    assert work.submissions()["doc 00002 [x]"] == 0 and work.record(0)["cost"]["usd"] == 0.014
    second = work.record(1)
    assert second["cost"]["usd"] == 0.004 and "no money for another try" in second["error"]["message"]
    assert work.submissions()["doc 00001 [x]"] == 1


TEMPERATURES = [("talk", "talk", 0.0, 0.1, 0.2), ("[1]", "talk", 0.0, 0.0, 0.1), ('{"a": NaN}', "{}", 0.0, 0.1, 0.1)]


@pytest.mark.parametrize(("one_text", "next_text", "first", "second", "third"), TEMPERATURES)
def test_only_what_is_no_json_makes_the_next_try_warmer(
    one_text: str, next_text: str, first: float, second: float, third: float
) -> None:
    script: list[Any] = [reply(200, body(text)) for text in (one_text, next_text, '{"a": 1}')]
    call = FakeCall(script)
    assert json.loads(asked(pdf(), call).prediction) == {"a": 1}
    assert [sent.json["temperature"] for sent in call.requests] == [first, second, third]


def test_texts_amid_talk_give_the_object_or_nothing(make: Make) -> None:
    texts = case("BR-31_texts.json")["texts"]
    work = make({n: body(text) for n, (text, _) in enumerate(texts)}, given={"attempts": 1})
    work.ask(positions=range(len(texts)))
    for n, (text, allowed) in enumerate(texts):
        record = work.record(n)
        found = "nothing"
        if record["error"] is None:
            found = json.loads(storage.read(layout.prediction(work.out, work.run.name, work.corpus.ids[n])))
        assert found in allowed, text


def test_content_in_parts_is_one_text(make: Make) -> None:
    parts = [{"type": "reasoning", "text": "{}"}, {"type": "text", "text": '{"a":'}, {"type": "text", "text": " 1}"}]
    work, record, _ = one(make, body(parts))
    assert record["error"] is None
    refusal = body(None)
    refusal["choices"][0]["message"]["refusal"] = "I must not"
    work, record, _ = one(make, refusal)
    assert "I must not" in record["error"]["message"] and sum(work.submissions().values()) == 1


@pytest.mark.parametrize("number", range(6))
def test_402_waits_or_stops_by_where_the_limit_comes_from(make: Make, number: int) -> None:
    status, given, expected = case("BR-45_402.json")["answers"][number]
    refusal = (status, given, "retry-after: 0.2")
    work, record, stopped = one(make, *[refusal] * 6, body('{"a": 1}'))
    if expected == "account stops":
        assert record is None and isinstance(stopped, AccountFailure) and sum(work.submissions().values()) == 1
        assert given["error"]["message"] in str(stopped)
    elif expected == "transient":
        assert record["error"]["status"] == 429 and sum(work.submissions().values()) == 4
    else:
        assert record["error"] is None and sum(work.submissions().values()) == 7
        assert record["cost"]["usd"] == 0.004 and record["cost"]["unpriced"] == 0


def test_an_in_flight_limit_that_stays_ends_with_the_time_of_the_document(make: Make) -> None:
    work = make(first_402=1000)
    work.run.options["timeout_s"] = 1.0
    (ended,) = work.ask(positions=[0])
    assert ended.stopped is None
    record = work.record(0)
    assert record["error"]["type"] == "VendorTimeout" and record["run_manifest"]["timed_out"]
    assert ended.receipts[0].retryable


# --- faults -------------------------------------------------------------------------------------------------------

FAULTS: list[tuple[str, int, str | None, int | None, float | None]] = [
    # dial, submissions, error type, status, dollars
    ("fail_500", 4, "VendorError", 500, None),
    ("fail_503", 4, "VendorError", 503, None),
    ("error_inside", 4, "VendorError", 502, None),
    ("error_400", 1, "VendorError", 400, None),
    ("fail_504_job_made", 1, "Unreachable", 504, None),
    ("drop_before_accept", 1, "Unreachable", None, None),
    ("drop_after_headers", 1, "Unreachable", None, None),
    ("drop_after_body", 1, "Unreachable", None, None),
    ("drop_in_answer", 1, "Unreachable", None, None),
    ("malformed", 1, "Unreadable", 200, None),
    ("cut_short", 1, "VendorError", 200, 0.03),
    ("empty", 3, "Unreadable", 200, 0.09),
    ("talk", 3, "Unreadable", 200, 0.09),
    ("huge", 1, None, None, 0.03),
]


@pytest.mark.parametrize(("fault", "count", "kind", "status", "usd"), FAULTS)
def test_faults_give_their_record(
    make: Make, fault: str, count: int, kind: str | None, status: int | None, usd: float | None
) -> None:
    work = make(**{fault: 1.0})
    ended = work.ask(positions=[0, 1])
    assert [item.stopped for item in ended] == [None, None]
    for position in (0, 1):
        record = work.record(position)
        error = record["error"] or {"type": None, "status": None}
        assert (error["type"], error["status"]) == (kind, status)
        assert record["cost"]["usd"] == usd and record["cost"]["attempts"] == count
    stats = work.simulator.stats()["openrouter"]
    assert stats["kinds"]["submit"] == 2 * count


def test_silence_ends_with_the_time_of_the_document(make: Make) -> None:
    work = make(no_answer=1.0)
    work.run.options["timeout_s"] = 0.6
    work.ask(positions=[0])
    assert work.record(0)["error"]["type"] == "VendorTimeout" and work.submissions()["doc 00000 [x]"] == 1


@pytest.mark.parametrize(("dial", "words"), [({"key": "another"}, "No auth"), ({"credit": 0}, "more credits")])
def test_a_refused_account_stops_and_records_nothing(make: Make, dial: dict[str, Any], words: str) -> None:
    work = make(**dial)
    ended = work.ask()
    assert all(isinstance(item.stopped, AccountFailure) and words in str(item.stopped) for item in ended)
    assert not storage.listed(f"{work.out}/{work.run.name}/records")
    assert sum(work.submissions().values()) <= 4


def test_passing_refusals_are_waited_out(make: Make) -> None:
    work = make(first_429=1, first_402=2, retry_after="0.1")
    work.ask(positions=range(6))
    for position in range(6):
        record = work.record(position)
        assert record["error"] is None and record["cost"]["usd"] == 0.03 and record["cost"]["attempts"] == 4


def test_what_never_arrived_is_sent_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    work = make()
    monkeypatch.setattr("oeb_ray.providers.transport.WAITS", (0.8, 0.8, 0.8))  # beyond what is refused
    work.simulator.refuse(1.5)
    work.ask(positions=[0])
    reasons = [attempt["reason"] for attempt in work.record(0)["attempts"]]
    assert work.record(0)["error"] is None and set(reasons[1:]) == {"connection refused"}


def test_a_document_left_between_two_tries_goes_on_and_keeps_its_bill(make: Make) -> None:
    """What an answer of no use has cost is known, and the next one may be asked for: nothing is unknown here."""
    work = make({0: [body("talk"), (402, {"error": {"code": 402, "message": "no credits"}}), body('{"a": 1}')]})
    (ended,) = work.ask(positions=[0])
    assert isinstance(ended.stopped, AccountFailure) and not ended.receipts
    work.ask(positions=[0])
    record = work.record(0)
    assert record["error"] is None and record["cost"]["usd"] == 0.008
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["no usable answer", "status 402", "recorded"]
    # The same where the process ends right after the answer of no use was noted.
    work = make({1: [body("talk"), body('{"a": 1}')]})
    talk = calls.new_attempt(work.corpus.ids[1], 1, "first", "test", "somebody who is gone")
    calls.claim(work.out, work.run.name, talk)
    calls.note(work.out, work.run.name, talk, outcome="no usable answer", usd=0.004)
    work.simulator.dials("openrouter", bodies="")
    work.ask(positions=[1])
    assert work.record(1)["error"] is None and work.record(1)["cost"]["usd"] == 0.034


def test_the_key_is_in_no_record_when_it_is_printed_back(make: Make) -> None:
    echo = body('{"a": 1}', echo=f"Bearer {KEY}")
    _, record, _ = one(make, body(f"talk {KEY}"), echo)
    assert record["error"] is None and KEY not in json.dumps(record) and "[redacted]" in json.dumps(record)


# --- pages as images ----------------------------------------------------------------------------------------------


def drawn(data: bytes) -> list[Any]:
    call = FakeCall([reply(200, body('{"a": 1}'))])
    settings = vendors.Chat(model=MODEL, max_output_tokens=64_000, base_url="http://gpu-node:8000/v1")
    provider = served_by(settings.base_url)
    document = Document("a", "a.pdf", "application/pdf", data)
    asyncio.run(provider.extract(document, SCHEMA, settings, vendors.ChatOptions(page_images=True), call))
    return list(call.requests[0].json["messages"][1]["content"][:-1])


def sheets(count: int, size: str = "200 100") -> bytes:
    """A PDF of so many empty pages."""
    kids = " ".join(f"{number + 3} 0 R" for number in range(count))
    pages = "".join(
        f"{number + 3} 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 {size}]>>endobj\n" for number in range(count)
    )
    tree = f"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[{kids}]/Count {count}>>endobj\n"
    return f"%PDF-1.4\n{tree}{pages}trailer<</Root 1 0 R>>\n".encode()


def test_pages_are_sent_as_images_where_a_server_takes_no_pdf() -> None:
    parts = drawn(sheets(3))
    assert [part["type"] for part in parts] == ["image_url"] * 3
    head, _, data = parts[0]["image_url"]["url"].partition(";base64,")
    image = base64.b64decode(data)
    width, height = (int.from_bytes(image[place : place + 4], "big") for place in (16, 20))
    assert head == "data:image/png" and image.startswith(b"\x89PNG\r\n\x1a\n")
    assert (width, height) == (556, 278), "200 dpi"
    large = base64.b64decode(drawn(sheets(1, "14400 7200"))[0]["image_url"]["url"].partition(";base64,")[2])
    assert int.from_bytes(large[16:20], "big") == 2000


@pytest.mark.parametrize(("data", "words"), [(sheets(51), "at most 50 pages"), (b"%PDF-1.4\nx", "cannot be drawn")])
def test_what_cannot_be_sent_as_images_is_refused_unsent(data: bytes, words: str) -> None:
    with pytest.raises(VendorError, match=words):
        drawn(data)
