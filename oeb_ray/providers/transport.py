"""The one place where vendor calls are tried again, and where a status becomes an error.

In: a Call and a coroutine that sends one request. Out: a Response with a 2xx status, or one of the errors of errors.py.
Money: `submit` makes one claim per request and sends again only what provably was not carried out; `ask` and `poll` are
free and never submit. All waits go through the Call and fit its budget, or end as VendorTimeout at once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

from ..errors import (
    AccountFailure,
    DocumentError,
    MissingCredential,
    NotSent,
    Unreachable,
    VendorError,
    VendorTimeout,
)
from .contract import Call, Response
from .replies import ERROR_LENGTH, body_of, reason, recordable

WAITS = (20.0, 60.0, 120.0)
"""Seconds between the attempts of a request that costs; one attempt more than waits."""
BUSY_WAIT = 20.0
"""Seconds until an account that has too much under way is asked again."""
RETRIED = frozenset({429, 500, 502, 503})
"""The server says that it has not done the work, or failed at it without billing."""
LOST = frozenset({504, *range(520, 525)})
"""A gateway lost the answer of a server that may have done the work: never sent again."""
ACCOUNT_LENGTH = 200
"""Characters kept of a vendor's words about the account."""
ACCOUNT_PHRASES = (
    "exceeded the maximum number of credits",
    "subscription has expired",
    "insufficient_quota",
    "insufficient credits",
)
"""In any refusal (status 400 and up) these concern the account and not the document."""
MISSING_POLLS = 5
"""Polls in a row that may answer 404: vendors have been seen to lose sight of a job just accepted or just finished."""
SHORTEST_INTERVAL = 0.1
"""Seconds between polls at least, whatever the setting says."""
LONGEST_WAIT = 1e9
"""Seconds; a longer wish to wait is read as this one."""

Verdict = Literal["fine", "again", "busy", "lost", "account", "document"]
"""What a response means for a request: done, not done so ask again, not done while the account has others under way,
unknown, the account's fault, the document's."""


@dataclass(frozen=True, slots=True)
class VendorRules:
    """How to read one vendor's refusals.

    ``account_phrases``: more phrases (lower case) for the account, from the vendor's documentation;
    ``account_statuses``: statuses beside 401 and 402 that concern it. ``secrets``: what no message or record may hold.
    ``judge``: a first opinion on a response; None leaves it to the rules here.
    """

    name: str
    account_phrases: tuple[str, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)
    judge: Callable[[Response], Verdict | None] | None = None
    account_statuses: tuple[int, ...] = ()


def verdict(response: Response, vendor: VendorRules) -> Verdict:
    """What the response to a request that costs means."""
    opinion = vendor.judge(response) if vendor.judge else None
    if opinion:
        return opinion
    status = response.status
    if 200 <= status < 300:
        return "fine"
    if status in (401, 402, *vendor.account_statuses):
        return "account"
    if status >= 400:
        text = response.body[: ERROR_LENGTH * 100].decode("utf-8", "replace").lower()
        if any(phrase in text for phrase in (*ACCOUNT_PHRASES, *vendor.account_phrases)):
            return "account"
    if status in RETRIED:
        return "again"
    return "lost" if status in LOST else "document"


async def submit(
    call: Call, send: Callable[[], Awaitable[Response]], *, vendor: VendorRules, why: str = "first"
) -> Response:
    """Sends a request that may cost, each attempt under a claim of its own, at most ``len(WAITS) + 1`` times.

    ``send`` sends exactly one request and, if the vendor accepts a job with it, makes the job's id durable. ``why``:
    the reason of the first claim. Attempts of a busy account are not counted; it is asked while the budget lasts.

    Raises:
        AccountFailure: the vendor refuses the account.
        VendorError: it refuses the document, or failed at every attempt.
        NotSent: it was not reached at any attempt.
        Unreachable: the request may have been carried out, the answer is lost; it was not sent again.
        VendorTimeout: the next wait is longer than the budget.
    """
    return await _attempts(call, send, vendor, call.paid, why)


async def ask(call: Call, send: Callable[[], Awaitable[Response]], *, vendor: VendorRules, job: str = "") -> Response:
    """Sends a request that costs nothing, such as an upload; as `submit`, without claims, and also after a lost answer.

    ``job``: the accepted job that it is about, if there is one.

    Raises:
        Unreachable: there is a job, and the vendor did not answer for it; the job itself may be fine.
        The others as of `submit`.
    """
    try:
        return await _attempts(call, send, vendor, None)
    except (VendorError, NotSent) as error:
        if not job or (error.status is not None and error.status not in RETRIED | LOST):
            raise
        raise Unreachable(f"job {job}: {error}"[:ERROR_LENGTH], error.status, error.body) from error


async def _attempts(
    call: Call,
    send: Callable[[], Awaitable[Response]],
    vendor: VendorRules,
    paid: Callable[[str], AbstractAsyncContextManager[None]] | None,
    why: str = "first",
) -> Response:
    """``paid`` makes the claim of each attempt; None for a request that is free and so may be repeated."""
    waits = list(WAITS)
    while True:
        asked, judged = None, "again"
        failure: DocumentError
        try:
            async with paid(why) if paid else nullcontext():
                response = await send()
        except NotSent as error:
            failure, why = error, "connection refused"
        except Unreachable as error:
            if paid:
                raise
            failure = error
        else:
            judged = verdict(response, vendor)
            if judged == "fine":
                return response
            if judged == "account":
                raise account_failure(response, vendor)
            lost = judged == "lost"
            failure, why = failure_of(response, vendor, lost=lost and bool(paid)), f"status {response.status}"
            if judged not in ("again", "busy") and (paid or not lost):
                raise failure
            asked = retry_after(response.headers, time.time())
        if judged == "busy":
            wait = BUSY_WAIT
        elif waits:
            wait = waits.pop(0)
        else:
            raise failure
        await _pause(call, max(wait, asked or 0.0), failure, vendor)


async def poll(
    call: Call, send: Callable[[], Awaitable[Response]], *, interval: float, vendor: VendorRules, job: str = ""
) -> Response:
    """Waits ``interval`` seconds and asks for a job's state, again and again until there is a 2xx answer.

    A 408, 429, 5xx or lost connection is asked again in place. A 404 is too, up to `MISSING_POLLS` times in a row at
    the interval, since the job is paid for and may only be out of sight. ``job`` is for the messages.

    Raises:
        AccountFailure: the vendor refuses the account.
        VendorError: it refuses the poll for good.
        VendorTimeout: the budget is used up.
    """
    named = f"job {job}" if job else "the job"
    failures = missing = 0
    last: DocumentError | None = None
    wait = max(interval, SHORTEST_INTERVAL)
    while True:
        if wait < call.remaining() or not last:
            await call.sleep(max(0.0, min(wait, call.remaining())))
        else:
            raise _no_time(f"{vendor.name}: {named} is not done, and the next wait of {wait:g} s", call, last)
        if call.remaining() <= 0:
            raise VendorTimeout(f"{vendor.name}: {named} is not done and its time is used up", body=_body(last))
        asked = None
        try:
            response = await send()
        except (NotSent, Unreachable) as error:
            last = error
        else:
            judged = verdict(response, vendor)
            if judged == "fine":
                return response
            if judged == "account":
                raise account_failure(response, vendor)
            last = failure_of(response, vendor, named)
            if response.status == 404 and missing < MISSING_POLLS:
                missing += 1
                wait = max(interval, SHORTEST_INTERVAL)
                continue
            if judged != "again" and response.status not in (408, 429) and response.status < 500:
                raise last
            asked = retry_after(response.headers, time.time())
        missing, failures = 0, failures + 1
        wait = max(backoff(failures), asked or 0.0)


async def _pause(call: Call, seconds: float, failure: DocumentError, vendor: VendorRules) -> None:
    if seconds >= call.remaining():
        raise _no_time(f"{vendor.name}: the next attempt's wait of {seconds:g} s", call, failure)
    await call.sleep(seconds)


def _no_time(what: str, call: Call, failure: DocumentError) -> VendorTimeout:
    text = f"{what} is longer than the {max(0.0, call.remaining()):.1f} s left (last: {failure})"
    return VendorTimeout(text[:ERROR_LENGTH], body=failure.body)


def _body(failure: DocumentError | None) -> object:
    return failure.body if failure else None


def failure_of(response: Response, vendor: VendorRules, what: str = "", *, lost: bool = False) -> DocumentError:
    """The document's error for a response, with the vendor's words and no secret; its text is never empty."""
    body = recordable(body_of(response.body), vendor.secrets)
    kind = Unreachable if lost else VendorError
    lead = f"{vendor.name}: {what}: " if what else f"{vendor.name}: "
    text = f"{lead}status {response.status}: {reason(body) or 'no reason given'}"
    return kind(text[:ERROR_LENGTH], response.status, body)


def account_failure(response: Response, vendor: VendorRules) -> AccountFailure:
    """The account's error for a response, in the vendor's words and without its key."""
    words = reason(recordable(body_of(response.body), vendor.secrets)) or "no reason given"
    return AccountFailure(f"{vendor.name}: status {response.status}: {words[:ACCOUNT_LENGTH]}")


def backoff(n: int) -> float:
    """Seconds after the ``n``-th failed poll in a row, from 1: 2, 4, 8, 16, then 30."""
    return float(min(30, 2 ** min(n, 5)))


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DATE = re.compile(r"[A-Za-z]{3,9},\s[^,]+")


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks to wait; None if it asks for nothing, or for nothing that makes sense.

    Read are ``retry-after-ms`` (milliseconds) and ``retry-after`` (seconds, also fractional, or an HTTP date); of
    several the longest counts. A date is taken against the server's own ``date`` if there is one, since clocks differ,
    and else against ``now`` (seconds since 1970). Zero, negative and past values ask for nothing. Names in lower case.
    """
    waits = [_number(part) / 1000 for part in headers.get("retry-after-ms", "").split(",")]
    given = headers.get("retry-after", "")
    server_now = _date(headers.get("date", ""))
    waits += [
        moment - (now if server_now is None else server_now)
        for text in _DATE.findall(given)
        if (moment := _date(text)) is not None
    ]
    waits += [_number(part) for part in _DATE.sub("", given).split(",")]
    longest = max(waits)
    return min(longest, LONGEST_WAIT) if longest > 0 else None


def _number(text: str) -> float:
    return float(text.strip()) if _NUMBER.fullmatch(text.strip()) else 0.0


def _date(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def key_of(names: tuple[str, ...], vendor: str) -> str:
    """The key of a vendor: the first of the environment variables that is set. Keys are read here alone.

    Without names there is no key: "".

    Raises:
        MissingCredential: none is set, or the value cannot stand in a header.
    """
    if not names:
        return ""
    for name in names:
        key = os.environ.get(name, "").strip()
        if key:
            if not (key.isascii() and key.isprintable()):
                raise MissingCredential(f"{vendor}: the value of {name} holds characters that no key has")
            return key
    raise MissingCredential(f"{vendor}: set {' or '.join(names)} to the key of your account")


def has_key(names: tuple[str, ...]) -> bool:
    """Whether one of the environment variables is set."""
    return any(os.environ.get(name, "").strip() for name in names)


def server(address: str, variable: str, own: str) -> str:
    """The server to call, without a slash at its end: the option, else the environment's, else the vendor's own."""
    return (address or os.environ.get(variable, "").strip() or own).rstrip("/")


def server_problems(address: str, variable: str, own: str) -> list[str]:
    """Why the server that `server` would name cannot be called, if it cannot."""
    chosen = server(address, variable, own)
    try:
        parts = urlsplit(chosen)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        fine = False
    return (
        []
        if fine
        else [
            f"the server {chosen!r} is no address such as https://HOST, without user and password "
            f"(address, {variable} or default)"
        ]
    )
