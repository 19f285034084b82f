"""A Call that follows a script: it keeps claims, jobs, bills and waits, on a clock that never really waits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from oeb_ray.errors import VendorTimeout
from oeb_ray.providers.contract import Document, Response

FREE = ("/upload", "/files")
"""Where requests end that cost nothing."""
PDF_BYTES = b"%PDF-1.4\n1 0 obj << /Type /Catalog >> endobj\n"


def reply(status: int = 200, body: Any = None, **headers: str) -> Response:
    """A response with a JSON body (or the given bytes or text); ``retry_after="3"`` becomes a header."""
    data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Response(status, {name.replace("_", "-"): value for name, value in headers.items()}, data)


def pdf(name: str = "a.pdf", data: bytes = PDF_BYTES) -> Document:
    return Document(doc_id="a", name=name, media_type="application/pdf", data=data)


@dataclass
class Request:
    """One request as it was sent, and whether that was inside a claim."""

    method: str
    url: str
    headers: Mapping[str, str]
    json: Any
    data: Mapping[str, str] | None
    files: Mapping[str, tuple[str, bytes, str]] | None
    timeout: float
    claimed: bool
    params: Mapping[str, str | Sequence[str]] | None = None
    content: bytes | None = None


@dataclass
class FakeCall:
    """``script``: responses and errors in order; the last one repeats. ``latency``: seconds each request takes."""

    script: list[Response | Exception]
    budget: float = 1800.0
    job_id: str | None = None
    latency: float = 0.0
    clock: float = 0.0
    claims: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)
    bills: list[dict[str, Any]] = field(default_factory=list)
    sleeps: list[float] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    claimed: bool = False
    sent_in_claim: int = 0
    on_send: Callable[[Request], None] | None = None
    refusals: list[str] = field(default_factory=list)

    def remaining(self) -> float:
        return self.budget - self.clock

    async def work(self, function: Callable[[Any], Awaitable[Any]], given: Any) -> Any:
        return await function(given)

    @asynccontextmanager
    async def paid(self, reason: str) -> AsyncIterator[None]:
        assert not self.claimed, "a claim inside a claim"
        self.claims.append(reason)
        self.claimed, self.sent_in_claim = True, 0
        try:
            yield
        finally:
            self.claimed = False
        assert self.sent_in_claim == 1, "one request per claim"

    async def accepted(self, job_id: str) -> None:
        assert self.claimed, "a job is accepted inside its claim"
        self.jobs.append(job_id)

    async def refused(self, why: str) -> None:
        self.refusals.append(why)

    def billed(self, **figures: Any) -> None:
        self.bills.append(figures)

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
        if self.remaining() <= 0 and not late:
            raise VendorTimeout("the document's time is used up")
        costs = method == "POST" and not late and not url.endswith(FREE)
        assert self.claimed == costs, "what costs is sent in a claim, what is free is not"
        self.sent_in_claim += self.claimed
        request = Request(method, url, headers or {}, json, data, files, timeout, self.claimed, params, content)
        self.requests.append(request)
        if self.on_send:
            self.on_send(request)
        self.clock += self.latency
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        return reading(step) if reading else step

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.sleeps.append(seconds)
        self.clock += min(seconds, max(0.0, self.remaining()))

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.requests)
