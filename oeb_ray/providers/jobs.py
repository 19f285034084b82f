"""What vendors have in common that are submitted to and then polled; a vendor's own module says only its words.

In: a JobVendor, which puts its requests into `Request` values and reads its replies into a `State` and an `Answer`.
Out: a paid provider. Money: whatever comes before the submission is free; the submission is the only request that is
claimed; once a job's id is known the job is polled, and cancelled where its time is used up.
"""

from __future__ import annotations

import asyncio
import dataclasses
from abc import abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from ..errors import AccountFailure, OebError, Unreadable, VendorError, VendorTimeout
from .contract import Call, Document, Extraction, Response
from .replies import (
    ERROR_LENGTH,
    answer_of,
    body_of,
    prediction_bytes,
    reason,
    recordable,
    redacted,
    strip_sidecars,
)
from .transport import ACCOUNT_LENGTH, poll, submit
from .vendor import Line, Request, Vendor

UNREADABLE_POLLS = 5
"""Polls in a row whose answer is no JSON object (a gateway's page): the job is paid for, so it is asked again."""
LATE_BILL_TIMEOUT = 30.0
"""Seconds for the one request that only asks for the bill."""
CANCEL_SECONDS = 10.0
"""Beyond a document's budget, for telling the vendor that nobody waits for its job any more."""
LONGEST_ID = 200
"""Characters of a job's id; a longer one is none."""


class State(NamedTuple):
    """Where a job is: ``word`` is the vendor's own, ``why`` its reason if it has failed (else what its reply says).

    ``account``: it was not done for a reason that concerns the account. ``passing``: the same may succeed later.
    """

    kind: Literal["running", "done", "failed", "account"]
    word: str
    why: str = ""
    passing: bool = False


class Answer(NamedTuple):
    """What a finished job gave. ``value``: the extraction, an object or its JSON text, None if there is none.

    ``raw``: the reply as it is recorded, without the extraction; ``citations``: the evidence by field.
    """

    value: Any
    raw: dict[str, Any]
    citations: Sequence[Any] = ()
    pages: int | None = None


def state_of(word: Any, *, done: Collection[str], failed: Collection[str]) -> State | None:
    """The state that a word means, whatever its case; unknown words are polled on. None if it is no text."""
    if not isinstance(word, str) or not word:
        return None
    known = word.lower()
    return State("done" if known in done else "failed" if known in failed else "running", word)


class JobVendor(Vendor):
    """A vendor that is polled.

    ``late_bill``: the keys of a reply that state the bill, if that may come after completion; it is asked for once
    more. ``side_keys``: what the vendor puts among the fields of the root without being asked.
    """

    late_bill: tuple[str, ...] = ()
    side_keys: tuple[str, ...] = ()

    # --- the vendor's words ---------------------------------------------------------------------------------------

    @abstractmethod
    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        """The request that costs, after all that is free has been done, such as the upload."""

    @abstractmethod
    def job_of(self, response: Response, body: Any) -> str | None:
        """The id of the job that a 2xx answer to the submission (its JSON: ``body``) says was accepted."""

    @abstractmethod
    async def polling(self, line: Line, job: str) -> Request:
        """The request for a job's state."""

    async def cancelling(self, line: Line, job: str) -> Request | None:
        """The request that ends a job; None if the vendor has none."""
        return None

    @abstractmethod
    def state(self, body: dict[str, Any]) -> State | None:
        """What a reply to a poll says; None if it cannot be read."""

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a reply states as its price, as Call.billed takes it; empty if nothing."""
        return {}

    @abstractmethod
    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        """The extraction of a job that is done; ``schema`` as it was sent."""

    def restored(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The extraction, its side keys gone, with the names that the dialect changed put back."""
        return answer

    def interval(self, settings: Any) -> float:
        """Seconds between polls."""
        return float(settings.poll_interval)

    # --- the provider ---------------------------------------------------------------------------------------------

    async def extract(
        self, document: Document, schema: dict[str, Any], settings: Any, options: Any, call: Call | None
    ) -> Extraction:
        """Submits the document, unless a job is known, and waits for its end.

        Raises:
            VendorError: the document is refused, the job failed, or its answer holds no extraction that can be read.
            MissingCredential, AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        line = self.line(call, settings, options)
        job = line.call.job_id
        if job is None:
            await self.check(document)
            job = await self._submitted(line, await self.submission(line, document, schema))
        final = await self._finished(line, job)
        return await self._extraction(line, job, final, schema)

    async def _submitted(self, line: Line, request: Request) -> str:
        """The id of the job that the vendor accepted; it is durable when this returns."""

        async def send() -> Response:
            response = await line.send(request)
            job = self._job(response)
            if job:
                await line.call.accepted(job)
            return response

        response = await submit(line.call, send, vendor=line.vendor)
        job = self._job(response)
        if not job:
            body = recordable(body_of(response.body), line.vendor.secrets)
            words = reason(body) if isinstance(body, dict) else "the reply is no JSON object"
            text = f"{self.name}: no job was accepted: {words or 'no reason given'}"
            raise VendorError(text[:ERROR_LENGTH], response.status, body)
        return job

    def _job(self, response: Response) -> str | None:
        given = self.job_of(response, body_of(response.body)) if 200 <= response.status < 300 else None
        return given if isinstance(given, str) and 0 < len(given.strip()) <= LONGEST_ID else None

    async def _finished(self, line: Line, job: str) -> dict[str, Any]:
        """The last reply of a job that is done, with its bill noted.

        States that the vendor does not document are polled on until the budget ends.
        """
        request = await self.polling(line, job)
        unreadable = 0
        bill: dict[str, Any] = {}
        while True:
            try:
                response = await poll(
                    line.call,
                    lambda: line.send(request),
                    interval=self.interval(line.settings),
                    vendor=line.vendor,
                    job=job,
                )
            except VendorTimeout:
                await self._cancelled(line, job)
                raise
            body = body_of(response.body)
            if not isinstance(body, dict):
                unreadable += 1
                if unreadable > UNREADABLE_POLLS:
                    raise self._failed(line, job, "gives unreadable replies: no JSON object", response.status, body)
                continue
            unreadable = 0
            if (stated := self.bill(body)) and stated != bill:
                line.call.billed(**stated)
                bill = stated
            if await self._is_done(line, job, response.status, body):
                return body if bill or not self.late_bill else await self._with_late_bill(line, request, body)

    async def _is_done(self, line: Line, job: str, status: int, body: dict[str, Any]) -> bool:
        """Whether the job is done. Raises what it has failed with."""
        state = self.state(body)
        if state is None:
            words = reason(body) or "no reason given"
            raise self._failed(line, job, f"gives an unreadable reply without a status: {words}", status, body)
        if state.kind in ("running", "done"):
            return state.kind == "done"
        words = state.why or reason(body) or "no reason given"
        if state.kind == "account":
            await line.call.refused(state.word)
            text = redacted(f"job {job} ended in state {state.word[:40]}: {words}", line.vendor.secrets)
            raise AccountFailure(f"{self.name}: {text[:ACCOUNT_LENGTH]}")
        text = redacted(f"{self.name}: job {job} failed in state {state.word[:40]}: {words}", line.vendor.secrets)
        raise VendorError(text[:ERROR_LENGTH], status, recordable(body, line.vendor.secrets), state.passing)

    async def _with_late_bill(self, line: Line, request: Request, final: dict[str, Any]) -> dict[str, Any]:
        """The final reply with the bill that the vendor states only after completion, if one more poll brings it.

        Nothing that happens here may cost the answer that is in hand: it takes at most half of the time that is left.
        """
        if 4 * self.interval(line.settings) > line.call.remaining():
            return final
        try:
            await line.call.sleep(self.interval(line.settings))
            timeout = min(LATE_BILL_TIMEOUT, line.call.remaining() / 2)
            response = await line.send(dataclasses.replace(request, timeout=timeout))
        except OebError:
            return final
        body = body_of(response.body)
        bill = self.bill(body) if response.status == 200 and isinstance(body, dict) else {}
        if not bill:
            return final
        line.call.billed(**bill)
        return final | {key: body[key] for key in self.late_bill if key in body}

    async def _cancelled(self, line: Line, job: str) -> None:
        """Tells the vendor, if it can be told, that nobody waits for the job; whatever comes of it."""
        with suppress(OebError, TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                request = await self.cancelling(line, job)
                if request is not None:
                    await line.send(dataclasses.replace(request, timeout=CANCEL_SECONDS), late=True)

    async def _extraction(self, line: Line, job: str, final: dict[str, Any], schema: dict[str, Any]) -> Extraction:
        """The extraction of a job that is done. Raises Unreadable if there is none, or only an empty one."""
        given = await self.answer(line, job, final, schema)
        answer = answer_of(given.value)
        if answer is None:
            problem = "has no extraction" if given.value is None else "has an unreadable or empty extraction"
            raise self._failed(line, job, f"is complete but {problem}", 200, final)
        plain, evidence = strip_sidecars(answer, schema)
        for key in set(self.side_keys) & set(plain) - set(schema.get("properties", {})):
            evidence.append({"path": "", "key": key, "value": plain.pop(key)})
        if not plain:
            raise self._failed(line, job, "is complete but its extraction holds evidence and no field", 200, final)
        raw = {**given.raw, **({"evidence": evidence} if evidence else {})}
        beside = [{"path": e["path"], "blocks": e["value"]} for e in evidence if e["key"].endswith("citations")]
        return Extraction(
            prediction=prediction_bytes(self.restored(plain)),
            raw=recordable(raw, line.vendor.secrets),
            citations=tuple(recordable([*given.citations, *beside], line.vendor.secrets)),
            pages=given.pages,
        )

    def _failed(self, line: Line, job: str, what: str, status: int, body: Any) -> Unreadable:
        text = redacted(f"{self.name}: job {job} {what}", line.vendor.secrets)
        return Unreadable(text[:ERROR_LENGTH], status, recordable(body, line.vendor.secrets))
