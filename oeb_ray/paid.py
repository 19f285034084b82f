"""A document's call to a vendor over HTTP: claims, turns, budget and bills in one place. No Ray.

In: an account's Pool, an HTTP client, where claims are stored. Out: a PaidCall, which adapters use as their Call, and
which tells afterwards what was attempted and billed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, Protocol, TypeVar

import httpx

from . import layout, storage
from .calls import ANSWERED, NOT_MADE, REFUSED, Attempt, Owner, claim, new_attempt, note
from .errors import NotSent, OebError, StorageError, Unreachable, VendorTimeout
from .pool import Pool
from .providers.contract import UNUSABLE, G, R, Response
from .providers.transport import LOST, retry_after

P = ParamSpec("P")
T = TypeVar("T")
LARGEST_ANSWER = 256 * 2**20
"""Bytes of one answer that are read; a longer one is refused."""
TOO_MANY = 429
PATIENCE_SECONDS, AGAIN_SECONDS = 120.0, 0.5
THROTTLING = frozenset({TOO_MANY, 503})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)


def http_client() -> httpx.AsyncClient:
    """The client of one account: no proxies or credentials of the environment, no redirects, no retries of its own."""
    return httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))


async def patiently(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Stores in a thread what money was spent on; while the storage does not take it, again and again for a while.

    Raises:
        StorageError: it has not for `PATIENCE_SECONDS`.
    """
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await asyncio.to_thread(work, *args, **kwargs)
        except StorageError:
            if time.monotonic() >= until:
                raise
        await asyncio.sleep(AGAIN_SECONDS)


class Worker(Protocol):
    """Runs an async function of one argument where there is room for what takes long; see contract.Call.work."""

    async def __call__(self, function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R: ...


async def here(function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R:
    """A Worker: in this process."""
    return await function(given)


class Taken(OebError):
    """Another job has claimed the attempt, or has recorded the document meanwhile; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a document's attempts are stored, and for whom: output, run name, account, job at its pool, owner."""

    out: str
    run: str
    account: str
    job: str
    owner: Owner


class PaidCall:
    """See contract.Call. ``attempts``: all of the document's, those from before first.

    Args:
        before: earlier attempts. adopts: the last of them is to be brought to its end; its job, if known, is polled.
        timeout: seconds from the first request on. estimate: dollars that one attempt may cost, None if unknown.
        replaces: the document has a record that is to be replaced. worker: does what `work` is given.
    """

    def __init__(
        self,
        pool: Pool,
        client: httpx.AsyncClient,
        place: Place,
        doc_id: str,
        *,
        before: list[Attempt],
        adopts: bool,
        timeout: float,
        estimate: float | None,
        replaces: bool,
        worker: Worker = here,
    ) -> None:
        self.job_id = before[-1].job_id if adopts else None
        self.attempts = list(before)
        self._pool, self._client, self._place, self._doc_id = pool, client, place, doc_id
        self._timeout, self._estimate, self._replaces, self._worker = timeout, estimate, replaces, worker
        self._until: float | None = None
        self._reserved: list[float | None] = [None] * len(before)
        if not replaces:  # else they count among what is recorded
            self._owe_earlier()
        self._earlier = len(before)
        self._ours = len(before) - adopts  # the first attempt that may be noted here
        self._written = before[-1] if before else None  # the last attempt as it is stored
        self._status: int | None = None
        self._sent = False  # a request of the current attempt

    def _owe_earlier(self) -> None:
        """Attempts from before count as well: one that is open at what it may cost, the others at what they did."""
        place = self._place
        for number, attempt in enumerate(self.attempts):
            if not attempt.is_free:
                self._reserved[number] = self._pool.owe(place.job, place.run, self._estimate)
                if number + 1 < len(self.attempts) or not attempt.is_open:
                    self._settle(number, attempt.usd)

    # --- time -----------------------------------------------------------------------------------------------------

    def remaining(self) -> float:
        return self._timeout if self._until is None else self._until - time.monotonic()

    def _begin(self) -> None:
        if self._until is None:
            self._until = time.monotonic() + self._timeout

    async def sleep(self, seconds: float) -> None:
        left = self.remaining()
        await asyncio.sleep(max(0.0, min(seconds, left)))
        if seconds >= left:
            raise VendorTimeout(f"no answer within {self._timeout:g} s")

    async def work(self, function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R:
        return await self._worker(function, given)

    # --- money ----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def paid(self, reason: str) -> AsyncIterator[None]:
        place = self._place
        if reason == UNUSABLE and len(self.attempts) > self._ours:
            await self._note(outcome=UNUSABLE)
            self._settle(len(self.attempts) - 1, self.attempts[-1].usd)
        reserved = await self._pool.reserve(place.job, place.run, self._estimate)
        if self.attempts and len(self.attempts) == self._earlier:  # the first claim of this call
            reason = f"again after: {self.attempts[-1].outcome or 'unknown outcome'}"
        attempt = new_attempt(self._doc_id, len(self.attempts) + 1, reason, place.account, place.owner.name)
        try:
            await self._write()
            await asyncio.to_thread(_claimed, place, attempt, looks=not self._replaces)
        except BaseException:
            self._pool.settle(place.job, place.run, reserved, 0.0)
            raise
        self.attempts.append(attempt)
        self._written = attempt
        self._reserved.append(reserved)
        self._begin()
        self._status, self._sent = None, False
        try:
            yield
        except OebError as error:
            told = f"{type(error).__name__}: {error}"
            await self._note(outcome=(told if self._sent else f"{NOT_MADE}: {told}")[:200])
            if isinstance(error, NotSent) or not self._sent:
                self._settle(len(self.attempts) - 1, 0.0)
            raise
        await self._note_status()

    async def _note_status(self) -> None:
        """A refusal is an end, and costs what it states; an answer without a job is one too, lost if we die now."""
        if self._status is None or self._status in LOST:
            return
        if self._status >= 400:
            await self._note(outcome=f"{REFUSED} {self._status}")
            self._settle(len(self.attempts) - 1, self.attempts[-1].usd or 0.0)
        elif self.job_id is None:
            await self._note(outcome=ANSWERED)

    async def accepted(self, job_id: str) -> None:
        self.job_id = job_id
        await self._note(job_id=job_id)
        self._pool.proven()

    async def refused(self, why: str) -> None:
        if len(self.attempts) > self._ours:
            await self._note(outcome=f"{REFUSED} {why}"[:200])
            self._settle(len(self.attempts) - 1, 0.0)

    def billed(
        self,
        *,
        usd: float | None = None,
        source: str | None = None,
        credits: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        tokens_cached: int | None = None,
    ) -> None:
        if len(self.attempts) > self._ours:
            last = self.attempts[-1]
            given: dict[str, Any] = {
                "usd": usd,
                "source": source,
                "credits": credits,
                "tokens_in": tokens_in,
                "tokens_out": tokens_out,
                "tokens_cached": tokens_cached,
            }
            self.attempts[-1] = replace(last, **{name: value for name, value in given.items() if value is not None})

    def conclude(self, outcome: str) -> None:
        """The document has an end: so has the last attempt. `close` makes that durable, once the record is."""
        if len(self.attempts) > self._ours and self.attempts[-1].outcome in (None, ANSWERED):
            self.attempts[-1] = replace(self.attempts[-1], outcome=outcome)

    async def close(self) -> None:
        """Writes what has become known of the last attempt, and settles all reservations."""
        await self._write()
        for place, attempt in enumerate(self.attempts):
            self._settle(place, attempt.usd)

    def _settle(self, place: int, usd: float | None) -> None:
        reserved = self._reserved[place]
        if reserved is not None:
            self._pool.settle(self._place.job, self._place.run, reserved, usd)
            self._reserved[place] = None

    async def _note(self, **changes: Any) -> None:
        self.attempts[-1] = replace(self.attempts[-1], **changes)
        await self._write()

    async def _write(self) -> None:
        """Stores the last attempt if it is ours and has changed."""
        if len(self.attempts) > self._ours and self.attempts[-1] != self._written:
            self._written = self.attempts[-1]
            await patiently(note, self._place.out, self._place.run, self._written)

    # --- requests -------------------------------------------------------------------------------------------------

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | Sequence[str]] | None = None,
        json: Any = None,
        data: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes, str]] | None = None,
        content: bytes | None = None,
        timeout: float = 120.0,
        late: bool = False,
        reading: Callable[[Response], Response] | None = None,
    ) -> Response:
        await self._pool.turn()
        if self._pool.stopped is not None and self.job_id is None:  # what is paid for is still fetched
            raise self._pool.stopped
        self._begin()
        left = self.remaining()
        if left <= 0 and not late:
            raise VendorTimeout(f"no answer within {self._timeout:g} s")
        within = timeout if late else min(timeout, left)
        request = self._client.build_request(
            method,
            url,
            headers=headers,
            params=params,
            json=json,
            data=data,
            files=files,
            content=content,
            timeout=within,
        )
        self._sent = True
        try:
            # httpx counts its time-out anew for every packet; the whole exchange has one as well.
            async with asyncio.timeout(within):
                response = await self._exchange(request)
        except NEVER_SENT as error:
            raise NotSent(f"{type(error).__name__}: {error}"[:300]) from error
        except (httpx.TransportError, TimeoutError) as error:
            if self.remaining() <= 0.05:
                raise VendorTimeout(f"no answer within {self._timeout:g} s") from error
            raise Unreachable(f"the answer is lost: {type(error).__name__}: {error}"[:300]) from error
        response = reading(response) if reading else response
        self._status = response.status
        self._tell_pool(response)
        return response

    async def _exchange(self, request: httpx.Request) -> Response:
        answer = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > LARGEST_ANSWER:
                    raise Unreachable(f"the answer is longer than {LARGEST_ANSWER} bytes", answer.status_code)
            headers: dict[str, str] = {}
            for name, value in answer.headers.multi_items():
                headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
            return Response(answer.status_code, headers, bytes(body))
        finally:
            await answer.aclose()

    def _tell_pool(self, response: Response) -> None:
        throttles = response.status in THROTTLING or response.throttled
        wish = retry_after(response.headers, time.time()) if throttles else None
        if wish:
            self._pool.pause(min(wish, self._timeout))
        # A 503 that asks for nothing is one request's bad luck.
        if wish or response.status == TOO_MANY or response.throttled:
            self._pool.throttled()
        elif 200 <= response.status < 300:
            self._pool.proven()


def _claimed(place: Place, attempt: Attempt, *, looks: bool) -> None:
    """Claims an attempt, and ``looks`` once, now that nobody else can begin, whether the document has a record.

    Raises:
        Taken: the attempt is another job's, or there is a record.
    """
    if not claim(place.out, place.run, attempt):
        raise Taken(f"attempt {attempt.n} of {attempt.doc_id!r} is another job's")
    if not looks:
        return
    try:  # to read costs an object store less than to ask for its size
        storage.read(layout.record(place.out, place.run, attempt.doc_id))
    except FileNotFoundError:
        return
    note(place.out, place.run, attempt, outcome=f"{NOT_MADE}: recorded meanwhile")
    raise Taken(f"{attempt.doc_id!r} has been recorded meanwhile")
