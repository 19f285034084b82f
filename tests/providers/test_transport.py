"""Trying again: what is sent once more, how long it waits, what each status becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

import pytest

from oeb_ray.errors import (
    AccountFailure,
    MissingCredential,
    NotSent,
    Unreachable,
    VendorError,
    VendorTimeout,
)
from oeb_ray.providers.contract import Response
from oeb_ray.providers.transport import VendorRules, ask, backoff, key_of, poll, retry_after, server, submit
from tests.providers.fakes import FakeCall, reply

RULES = VendorRules("acme", ("your plan has ended",), secrets=("sk-12345",))
GOOD = reply(200, {"ok": 1})


def submitted(call: FakeCall, vendor: VendorRules = RULES) -> Response:
    return asyncio.run(submit(call, lambda: call.send("POST", "http://x"), vendor=vendor))


def asked(call: FakeCall, job: str = "") -> Response:
    return asyncio.run(ask(call, lambda: call.send("GET", "http://x"), vendor=RULES, job=job))


def polled(call: FakeCall, interval: float = 5.0) -> Response:
    return asyncio.run(poll(call, lambda: call.send("GET", "http://x"), interval=interval, vendor=RULES, job="j1"))


def test_429_for_ever_is_four_claims() -> None:
    call = FakeCall([reply(429, {"detail": "slow down"})])
    with pytest.raises(VendorError, match="acme: status 429: slow down") as caught:
        submitted(call)
    assert caught.value.status == 429 and caught.value.body == {"detail": "slow down"}
    assert call.sleeps == [20, 60, 120]
    assert call.claims == ["first", "status 429", "status 429", "status 429"]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_a_passing_refusal_is_tried_again(status: int) -> None:
    call = FakeCall([reply(status), GOOD])
    assert submitted(call) is GOOD
    assert (call.sleeps, call.claims) == ([20], ["first", f"status {status}"])


def test_what_never_arrived_is_sent_again() -> None:
    call = FakeCall([NotSent("refused"), NotSent("refused"), GOOD])
    assert submitted(call) is GOOD
    assert call.claims == ["first", "connection refused", "connection refused"]
    call = FakeCall([NotSent("refused")])
    with pytest.raises(NotSent):
        submitted(call)
    assert len(call.claims) == 4


@pytest.mark.parametrize("status", [504, 520, 521, 522, 523, 524])
def test_a_lost_answer_is_never_bought_again(status: int) -> None:
    call = FakeCall([reply(status, "<html>gateway</html>")])
    with pytest.raises(Unreachable) as caught:
        submitted(call)
    assert (caught.value.status, len(call.requests), call.sleeps) == (status, 1, [])
    call = FakeCall([Unreachable("reset")])
    with pytest.raises(Unreachable):
        submitted(call)
    assert len(call.requests) == 1


@pytest.mark.parametrize("lost", [reply(429), reply(500), reply(504), NotSent("x"), Unreachable("reset")])
def test_what_is_free_is_repeated_whatever_became_of_it(lost: Response | Exception) -> None:
    call = FakeCall([lost, GOOD])
    assert asked(call) is GOOD
    assert (call.sleeps, call.claims) == ([20], [])
    call = FakeCall([lost])
    with pytest.raises((VendorError, NotSent, Unreachable)) as caught:
        asked(call)
    assert caught.value.status == getattr(lost, "status", None) and call.sleeps == [20, 60, 120]


def test_what_is_free_and_concerns_a_job_never_makes_the_job_a_failure() -> None:
    for lost in (reply(503, {"detail": "down"}), NotSent("refused"), Unreachable("reset")):
        with pytest.raises(Unreachable):
            asked(FakeCall([lost]), "j1")
    with pytest.raises(VendorError) as caught:
        asked(FakeCall([reply(403)]), "j1")
    assert not isinstance(caught.value, Unreachable) and caught.value.status == 403


@pytest.mark.parametrize("status", [301, 400, 403, 404, 408, 413, 415, 422, 501])
def test_other_refusals_are_the_documents(status: int) -> None:
    call = FakeCall([reply(status, {"error": {"message": "Failed to parse schema", "code": 3300}})])
    with pytest.raises(VendorError, match="Failed to parse schema: code 3300") as caught:
        submitted(call)
    assert caught.value.status == status and len(call.claims) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "who are you"),
        (402, "no money"),
        (403, "Sorry: your plan has ended"),
        (403, "Your subscription has expired"),
        (429, "insufficient_quota"),
        (400, "You exceeded the maximum number of credits"),
    ],
)
def test_refusals_of_the_account_stop_it(status: int, words: str) -> None:
    for way in (submitted, polled):
        call = FakeCall([reply(status, {"detail": f"{words} (sk-12345) " + "x" * 500})])
        with pytest.raises(AccountFailure) as caught:
            way(call)
        text = str(caught.value)
        assert words in text and "sk-12345" not in text and len(text) < 240
        assert len(call.requests) == 1


def test_the_phrases_count_in_refusals_only() -> None:
    good = reply(200, {"text": "letter: your subscription has expired"})
    assert submitted(FakeCall([good])) is good


def test_a_vendor_may_judge_first() -> None:
    rules = VendorRules("chat", judge=lambda response: "again" if response.status == 402 else None)
    call = FakeCall([reply(402, {"error": "in flight"}, retry_after="30"), GOOD])
    assert submitted(call, rules) is GOOD
    assert call.sleeps == [30]


def test_a_printed_back_key_is_in_no_error() -> None:
    for status in (400, 500, 504):
        with pytest.raises((VendorError, Unreachable)) as caught:
            submitted(FakeCall([reply(status, {"detail": "key sk-12345"})]))
        assert "sk-12345" not in repr((str(caught.value), caught.value.args, caught.value.body))
    assert "sk-12345" not in repr(RULES)


@pytest.mark.parametrize("body", [None, "", b"", [], {"detail": None}, {"error": {}}, b"\xff\xfe"])
def test_no_error_is_without_a_text(body: Any) -> None:
    with pytest.raises(VendorError) as caught:
        submitted(FakeCall([reply(400, body)]))
    assert str(caught.value).startswith("acme: status 400: ") and len(str(caught.value)) > 18


def test_long_reasons_are_cut() -> None:
    with pytest.raises(VendorError) as caught:
        submitted(FakeCall([reply(400, {"detail": "y" * 5000})]))
    assert len(str(caught.value)) == 600 and caught.value.body == {"detail": "y" * 5000}


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0"}, None),
        ({"retry-after": formatdate(NOW + 9, usegmt=True)}, 9),
        ({"retry-after": formatdate(NOW - 90, usegmt=True)}, None),
        ({"retry-after": formatdate(NOW + 9, usegmt=True), "date": formatdate(NOW + 5, usegmt=True)}, 4),
        ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "86400"}, 86400),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "9" * 500}, 1e9),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "1", "retry-after-ms": "2500"}, 2.5),
        ({"retry-after": "3, 11"}, 11),
        ({"retry-after": f"{formatdate(NOW + 9, usegmt=True)}, {formatdate(NOW + 30, usegmt=True)}"}, 30),
        ({}, None),
    ],
)
def test_what_the_server_asks_for(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(("asked", "waited"), [("7", 20), ("45", 45), ("soon", 20), ("-5", 20)])
def test_waits_are_never_shorter_than_schedule_or_wish(asked: str, waited: float) -> None:
    call = FakeCall([reply(429, retry_after=asked), GOOD])
    submitted(call)
    assert call.sleeps == [waited]


@pytest.mark.parametrize("ask", [submitted, polled])
def test_a_wait_beyond_the_budget_ends_at_once(ask: Callable[[FakeCall], Response]) -> None:
    call = FakeCall([reply(429, {"detail": "later"}, retry_after="86400")], budget=60)
    with pytest.raises(VendorTimeout, match=r"86400 s is longer than the \d+\.\d s left .*later") as caught:
        ask(call)
    assert caught.value.status is None and call.clock <= 5


def test_backoff_grows_to_half_a_minute() -> None:
    assert [backoff(n) for n in (1, 2, 3, 4, 5, 6, 10_000)] == [2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize("failure", [reply(429), reply(408), reply(503), reply(504), NotSent("x"), Unreachable("x")])
def test_a_failed_poll_is_repeated_in_place(failure: Response | Exception) -> None:
    call = FakeCall([failure, GOOD])
    assert polled(call) is GOOD
    assert (call.sleeps, call.claims) == ([5, 2], [])


def test_failed_polls_go_on_to_the_end_of_the_budget() -> None:
    call = FakeCall([reply(503, {"detail": "down"})], budget=100)
    with pytest.raises(VendorTimeout, match=r"job j1 is not done.*down"):
        polled(call)
    assert call.sleeps == [5, 2, 4, 8, 16, 30, 30] and call.claims == []


def test_a_job_out_of_sight_is_looked_for_five_more_times() -> None:
    call = FakeCall([*[reply(404)] * 5, GOOD])
    assert polled(call) is GOOD
    assert call.sleeps == [5] * 6
    call = FakeCall([reply(404, {"detail": "Not Found"})])
    with pytest.raises(VendorError, match="job j1: status 404: Not Found"):
        polled(call)
    assert len(call.requests) == 6


def test_a_refused_poll_fails_at_once() -> None:
    call = FakeCall([reply(422)])
    with pytest.raises(VendorError) as caught:
        polled(call)
    assert (caught.value.status, len(call.requests)) == (422, 1)


def test_the_last_interval_is_clipped_and_no_poll_follows() -> None:
    call = FakeCall([GOOD], budget=3)
    with pytest.raises(VendorTimeout, match="job j1"):
        polled(call)
    assert (call.sleeps, call.requests) == ([3], [])


def test_an_interval_of_zero_still_pauses() -> None:
    call = FakeCall([GOOD])
    polled(call, interval=0)
    assert call.sleeps == [0.1]


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE_KEY", "TWO_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingCredential, match="acme: set ONE_KEY or TWO_KEY"):
        key_of(("ONE_KEY", "TWO_KEY"), "acme")
    monkeypatch.setenv("TWO_KEY", " abc\n")
    assert key_of(("ONE_KEY", "TWO_KEY"), "acme") == "abc"
    monkeypatch.setenv("ONE_KEY", "a\r\nX-Evil: 1")
    with pytest.raises(MissingCredential) as caught:
        key_of(("ONE_KEY", "TWO_KEY"), "acme")
    assert "Evil" not in str(caught.value)


def test_the_server_is_the_option_then_the_environment_then_the_vendors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OEB_ACME_ADDRESS", raising=False)
    assert server("", "OEB_ACME_ADDRESS", "https://acme/") == "https://acme"
    monkeypatch.setenv("OEB_ACME_ADDRESS", "http://env/")
    assert server("", "OEB_ACME_ADDRESS", "https://acme") == "http://env"
    assert server("http://option", "OEB_ACME_ADDRESS", "https://acme") == "http://option"


def test_cancelling_is_no_failure_to_retry() -> None:
    class Stopped(Exception):
        pass

    async def send() -> Response:
        raise Stopped

    call = FakeCall([GOOD])
    asked: Callable[[], Awaitable[Response]] = send
    with pytest.raises(Stopped):
        asyncio.run(poll(call, asked, interval=1, vendor=RULES))
