"""What all simulated vendors have in common: limits, dice, faults and books round a vendor's own words.

In: requests. Out: answers and log entries. A vendor's module says where its requests come in, how it reads a
submission, and what its bodies look like; `JobVendor` is submitted to and polled, `CallVendor` answers at once.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, ClassVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from .account import Account, Job, Upload, Visit
from .library import Library
from .profile import NO_JOB_FAULTS
from .wire import Answer, Clock, Cut, gone

MAX_BODY = 300 << 20  # bytes of a request
CREDITS = 100  # that a dollar is to vendors that state credits
IN_FLIGHT_TEXT = "Too much is in flight for the balance"
_LIMITS = {"rate", "busy", "first_429", "first_402"}
_TEXTS = {
    "rate": "Rate limit exceeded",
    "busy": "Too many concurrent requests",
    "first_429": "Rate limit exceeded",
    "fail_500": "Internal server error",
    "fail_503": "Service temporarily unavailable",
    "poll_503": "Service temporarily unavailable",
    "fail_504_job_made": "Gateway timeout",
    "error_400": "The document could not be processed",
    "first_402": IN_FLIGHT_TEXT,
    "error_inside": "Provider returned error",
}
_STATUS = {
    "rate": 429, "busy": 429, "first_429": 429, "fail_500": 500, "fail_503": 503, "poll_503": 503,
    "fail_504_job_made": 504, "error_400": 400, "first_402": 402,
    "error_inside": 200,
}  # fmt: skip


class BadRequest(Exception):
    """A submission that the vendor does not understand."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


class Vendor(ABC):
    """One vendor. ``name``: as in a profile and in its URLs."""

    name: ClassVar[str]
    key_status: ClassVar[tuple[int, str]]  # of a wrong key
    credit_status: ClassVar[tuple[int, str]]  # of an account that cannot pay

    def __init__(self, account: Account, library: Library, clock: Clock) -> None:
        self.account, self.library, self.clock = account, library, clock
        self.table = self.routes()

    @abstractmethod
    def routes(self) -> list[Route]:
        """Where requests come in, below ``/<name>``; submissions go to `submit`."""

    @abstractmethod
    def key(self, request: Request) -> str:
        """The key that a request bears, "" for none."""

    @abstractmethod
    async def read(self, request: Request) -> Upload:
        """Reads a whole submission. Raises BadRequest."""

    @abstractmethod
    def problem(self, status: int, text: str) -> Any:
        """The JSON body of an error."""

    @abstractmethod
    def result(self, job: Job, text: str, padding: str) -> Any:
        """The JSON body with the extraction ``text``; ``padding`` goes where the vendor's answers grow large."""

    @abstractmethod
    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        """Status and JSON body for a document that the vendor cannot extract."""

    @abstractmethod
    async def accepted(self, request: Request, visit: Visit, job: Job) -> Response:
        """Logs and answers an accepted submission, which no fault keeps from being answered."""

    def is_submission(self, method: str, path: str) -> bool:
        """Whether a request line, its path below ``/<name>``, begins a submission."""
        return any(
            route.endpoint == self.submit and method in (route.methods or ()) and route.path_regex.match(path)
            for route in self.table
        )

    async def submit(self, request: Request) -> Response:
        """A submission from its arrival to its answer."""
        key = self.key(request)
        account = self.account
        visit = account.arrive("submit", key, holds=True)
        try:
            if arrival := request.scope["state"]["arrival"]:
                account.note(visit, None, arrival)
                return Cut()
            try:
                upload = await self.read(request)
            except BadRequest as wrong:
                account.note(visit, wrong.status, "bad_request")
                return self.answer(wrong.status, self.problem(wrong.status, wrong.text))
            except ClientDisconnect:
                account.note(visit, None, "client_left")
                return Cut()
            visit.document = upload.document
            # All that is awaited comes first: between the look at the limits and the job nobody else gets in.
            next_one = account.rolls[upload.document] + 1
            scripted = await self.library.scripted(account.dials.bodies, upload.document, next_one)
            found = scripted is not None or await self.library.answer(upload.document) is not None
            if why := account.refusal(visit, key):
                return self._refused(visit, why)
            roll = account.roll(upload.document)
            if roll.fault in NO_JOB_FAULTS:
                return self._refused(visit, roll.fault)
            if scripted is not None and scripted.status >= 400:
                account.note(visit, scripted.status, "scripted")
                return Answer(scripted.status, scripted.body, scripted.headers, clock=self.clock)
            job = account.open(visit, roll, upload.size, found=found)
            return await self.accepted(request, visit, job)
        finally:
            account.leave(visit)

    async def other(self, request: Request) -> Response:
        """A request to no known place."""
        self.account.note(self.account.arrive("other", self.key(request)), 404)
        return self.answer(404, self.problem(404, "Not Found"))

    def answer(self, status: int, body: Any, **treatment: Any) -> Answer:
        """An answer in JSON; ``treatment``: as of `Answer`."""
        return Answer(status, json.dumps(body).encode(), clock=self.clock, **treatment)

    def _refused(self, visit: Visit, why: str) -> Response:
        """Logs and answers what is refused, by the account or by the dice."""
        account_level = {"key": self.key_status, "credit": self.credit_status}
        status, text = account_level.get(why) or (_STATUS[why], _TEXTS[why])
        visit.account.note(visit, status, why)
        headers = retry_after(visit.account.dials.retry_after) if why in _LIMITS else []
        return self.answer(status, self.problem(status, text), headers=headers)

    def free_fault(self, visit: Visit, what: str) -> Response | None:
        """What the dice make of a request that costs nothing; None if nothing happens to it."""
        fault = self.account.free_fault(what)
        if fault == "poll_503":
            return self._refused(visit, fault)
        if fault == "poll_drop":
            self.account.note(visit, None, fault)
            return Cut()
        return None

    def final_status(self, job: Job) -> int:
        """The status of the answer with the extraction."""
        failed = not job.found and self.account.dials.missing == "error" and job.fault != "empty"
        return self.failed(job, "")[0] if failed else 200

    async def final(self, job: Job, *, cut: bool = False) -> Answer:
        """The answer with the extraction, or with what a fault makes of it."""
        dials = self.account.dials
        scripted = await self.library.scripted(dials.bodies, job.document, job.nth)
        if scripted is not None:
            body, headers = scripted.body, scripted.headers
            return Answer(200, body, headers, clock=self.clock, drip=dials.slow_body, cut=cut)
        text = "{}" if job.fault == "empty" else await self.library.answer(job.document)
        if text is None and dials.missing == "error":
            status, problem = self.failed(job, "No answer is known for this document")
            return self.answer(status, problem, cut=cut)
        padding = "x" * int(dials.huge_mb * 1e6) if job.fault == "huge" else ""
        body = json.dumps(self.result(job, text or "{}", padding)).encode()
        if job.fault == "malformed":
            body = body[: len(body) // 2]
        return Answer(200, body, clock=self.clock, drip=dials.slow_body, cut=cut)


class CallVendor(Vendor):
    """A vendor that answers a submission with the extraction, when it is done. A call holds its slot until then."""

    async def upload_in(self, request: Request, document_of: Callable[[bytes], bytes], status: int) -> Upload:
        """The document in a request's body; ``status`` is that of a body without one. Raises BadRequest."""
        body = await read_body(request)
        try:
            data = await asyncio.to_thread(document_of, body) if len(body) > 1 << 20 else document_of(body)
        except ValueError as error:
            raise BadRequest(status, str(error)) from None
        return Upload(await self.library.document(data), len(data))

    async def accepted(self, request: Request, visit: Visit, job: Job) -> Response:
        account = job.account
        silent = job.fault in ("no_answer", "never_ends")
        status = None if silent or job.fault == "drop_after_body" else self.final_status(job)
        account.note(visit, 504 if job.fault == "fail_504_job_made" else status, job.fault, job)
        try:
            if silent:
                await gone(request.receive)
                return Cut()
            if await self.clock.leaves(request.receive, job.latency):
                return Cut()  # billed all the same; the slot was the connection
            if job.fault == "drop_after_body":
                return Cut()
            if job.fault == "fail_504_job_made":
                return self.answer(504, self.problem(504, _TEXTS[job.fault]))
            return await self.final(job, cut=job.fault == "drop_in_answer")
        finally:
            account.end(job)


class JobVendor(Vendor):
    """A vendor that answers a submission with a job's id and is polled for the rest."""

    @abstractmethod
    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        """Status and JSON body of the answer to a submission."""

    @abstractmethod
    def running(self, job: Job) -> Any:
        """The JSON body of a poll before the job is done."""

    async def accepted(self, request: Request, visit: Visit, job: Job) -> Response:
        if job.ready < math.inf:
            asyncio.get_running_loop().call_later(job.latency, job.account.end, job)
        status, body = self.created(request, job)
        if job.fault in ("no_answer", "drop_after_body"):
            job.account.note(visit, None, job.fault, job)
            if job.fault == "no_answer":
                await gone(request.receive)
            return Cut()
        if job.fault == "fail_504_job_made":
            job.account.note(visit, 504, job.fault, job)
            return self.answer(504, self.problem(504, _TEXTS[job.fault]))
        job.account.note(visit, status, job.fault, job)
        headers = self.created_headers(request, job)
        return self.answer(status, body, headers=headers, cut=job.fault == "drop_in_answer")

    def created_headers(self, request: Request, job: Job) -> list[tuple[str, str]]:
        """More headers of the answer to a submission."""
        return []

    def cancelled(self, job: Job) -> Any:
        """The JSON body of a poll after the job was cancelled."""
        return self.failed(job, "cancelled")[1]

    async def cancel(self, request: Request) -> Response:
        """Ends the job in the path parameter ``job``."""
        account = self.account
        visit = account.arrive("cancel", self.key(request))
        visit.job = request.path_params["job"]
        job = account.jobs.get(visit.job)
        if why := account.refusal(visit, self.key(request)):
            return self._refused(visit, why)
        account.note(visit, 200 if job else 404)
        if job is None:
            return self.answer(404, self.problem(404, "Request not found"))
        job.cancelled = True
        account.end(job)
        return self.answer(200, self.cancelled(job))

    async def poll(self, request: Request) -> Response:
        """One poll of the job in the path parameter ``job``."""
        key, account = self.key(request), self.account
        visit = account.arrive("poll", key)
        visit.job = request.path_params["job"]
        job = account.jobs.get(visit.job)
        visit.document = job.document if job else ""
        if why := account.refusal(visit, key):
            return self._refused(visit, why)
        fault = account.poll_fault(job) if job else ""
        if job is None or fault == "poll_404_first":
            account.note(visit, 404, fault)
            return self.answer(404, self.problem(404, "Request not found"))
        if fault == "poll_503":
            return self._refused(visit, fault)
        if fault == "poll_drop":
            account.note(visit, None, fault)
            return Cut()
        if job.cancelled:
            account.note(visit, 200)
            return self.answer(200, self.cancelled(job))
        if time.monotonic() < job.ready:
            account.note(visit, 200)
            return self.answer(200, self.running(job))
        account.end(job)  # before the client learns of it, so that its next submission finds the slot free
        account.note(visit, self.final_status(job))
        return await self.final(job)


def value_of(text: str) -> Any:
    """An extraction's value; the text itself if it is no JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def bearer(request: Request) -> str:
    """The key in ``Authorization: Bearer``, "" for none."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


async def read_body(request: Request) -> bytes:
    """A request's whole body. Raises BadRequest if it exceeds 300 MB."""
    check_length(request)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BadRequest(413, "The request is too large")
    return bytes(body)


def check_length(request: Request) -> None:
    """Raises BadRequest if the request says that its body exceeds 300 MB."""
    if int(request.headers.get("content-length", "0")) > MAX_BODY:
        raise BadRequest(413, "The request is too large")


def retry_after(dial: str) -> list[tuple[str, str]]:
    """The headers that a dial of this text asks for."""
    headers = []
    for part in dial.split("|") if dial else []:
        if part.startswith("date:"):
            when = math.ceil(time.time() + int(part.removeprefix("date:")))
            headers.append(("retry-after", formatdate(when, usegmt=True)))
        elif part.startswith("ms:"):
            headers.append(("retry-after-ms", part.removeprefix("ms:")))
        else:
            headers.append(("retry-after", part))
    return headers
