"""One vendor account at work: its pool, its HTTP client, its claims. No Ray; an actor or a thread holds one.

In: jobs that register, and documents to predict. Out: receipts. A document is asked for only under a claim; what an
earlier attempt means is decided here before anything is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..ask import Outcome, failed, predict, with_attempts
from ..calls import ANSWERED, HEARTBEAT_SECONDS, Attempt, Owner, attempts_of, is_alive
from ..digests import digest
from ..errors import AccountFailure, LimitReached, OebError, Unreachable, Unreadable, VendorError
from ..paid import PaidCall, Place, Taken, Worker, here, http_client, patiently
from ..pool import JobGone, Pool
from ..providers.contract import Document
from ..receipts import read_receipt
from ..records import Doc, FileStamp, PredictBatch, Receipt
from . import work
from .contract import Predicted

PING_SECONDS = 5.0  # between a job's signs of life at its pools
WATCHING_SECONDS = 0.5  # between looks at a document that another job is asking for


class Account:
    """See the module's text. All methods belong to one event loop. ``worker``: does what takes long, see Worker."""

    def __init__(self, name: str, worker: Worker = here) -> None:
        self.pool = Pool(name)
        self._worker = worker
        self.owner = Owner()
        self._client = http_client()
        self._outs: set[str] = set()
        self._busy: set[tuple[str, str, str]] = set()  # documents that are being asked for: output, run, doc_id
        self._beating: asyncio.Task[None] | None = None

    def register(self, job: str, member: Mapping[str, Any]) -> None:
        """See Pool.register."""
        self.pool.register(job, dict(member))

    async def close(self) -> None:
        """Ends the heartbeat and the connections."""
        if self._beating is not None:
            self._beating.cancel()
        await self._client.aclose()
        for out in list(self._outs):
            await self.end(out)

    def outputs(self) -> list[str]:
        """Where documents of this account are recorded."""
        return sorted(self._outs)

    async def end(self, out: str) -> None:
        """Nothing more is asked for in an output: no heartbeat is needed there."""
        self._outs.discard(out)
        with suppress(OebError):  # a heartbeat that stays is outlived
            await asyncio.to_thread(self.owner.end, out)

    async def predict(self, job: str, batch: PredictBatch) -> Predicted:
        """Asks for each document of a batch in its turn; what stops the account ends the batch."""
        receipts: list[Receipt] = []
        try:
            for doc in batch.docs:
                receipts += [await self._one(job, batch, doc)]
        except OebError as error:
            if isinstance(error, AccountFailure) and not isinstance(error, LimitReached):
                self.pool.stop(error)
            return Predicted(batch, tuple(receipts), error)
        return Predicted(batch, tuple(receipts))

    async def _one(self, job: str, batch: PredictBatch, doc: Doc) -> Receipt:
        key = batch.out, batch.run.name, doc.doc_id
        while key in self._busy:  # for another job of this account
            await asyncio.sleep(WATCHING_SECONDS)
            self._check(job)
        self._busy.add(key)
        try:
            return await self._alone(job, batch, doc)
        finally:
            self._busy.discard(key)

    async def _alone(self, job: str, batch: PredictBatch, doc: Doc) -> Receipt:
        await self._beat(batch.out)
        run, out = batch.run, batch.out
        while True:
            there = None if batch.again else await asyncio.to_thread(read_receipt, out, run.name, doc.doc_id)
            if there is not None:
                self.pool.learn(job, run.name, there.usd)
                return there
            attempts = await asyncio.to_thread(attempts_of, out, run.name, doc.doc_id)
            if attempts and await self._is_under_way(out, attempts[-1]):
                await asyncio.sleep(WATCHING_SECONDS)
                self._check(job)
                continue
            running = bool(attempts) and attempts[-1].job_id is not None and not attempts[-1].is_free
            source = await asyncio.to_thread(_source, batch, doc)  # before a slot is held for it
            try:
                async with self.pool.slot(job, running=running and not batch.again):
                    return await self._ask(job, batch, source, attempts)
            except Taken:
                self._check(job)

    async def _is_under_way(self, out: str, last: Attempt) -> bool:
        """Whether another owner, alive, is at work at the document."""
        over = last.outcome not in (None, ANSWERED) or last.owner == self.owner.name
        return not over and await asyncio.to_thread(is_alive, out, last.owner)

    def _check(self, job: str) -> None:
        if self.pool.stopped is not None:
            raise self.pool.stopped
        if job not in self.pool.members:
            raise JobGone(f"job {job} has left")

    async def _ask(self, job: str, batch: PredictBatch, source: _Source, attempts: list[Attempt]) -> Receipt:
        """Polls the job that is known, or submits; an attempt of unknown outcome is not repeated unasked."""
        run, last = batch.run, attempts[-1] if attempts else None
        doc, document, stamp, earlier = source
        known_job = last is not None and last.job_id is not None and not last.is_free
        is_lost = last is not None and not known_job and last.is_open and not batch.again
        call = self._call(job, batch, doc, attempts, adopts=known_job or is_lost)
        if last is not None and is_lost:
            unknown = Unreachable(f"the outcome of attempt {last.n} is unknown: its owner ended before an answer came")
            outcome = failed(document, stamp, doc.schema_sha256, run, earlier, unknown)
        else:
            outcome = await predict(document, stamp, doc.schema, doc.schema_sha256, run, earlier, call)
            if known_job and batch.again and _job_has_failed(outcome):
                call = self._call(job, batch, doc, attempts, adopts=False)
                outcome = await predict(document, stamp, doc.schema, doc.schema_sha256, run, earlier, call)
        error = outcome.record["error"]
        call.conclude(f"recorded as {error['type']}" if error else "recorded")
        outcome = with_attempts(outcome, call.attempts, call.job_id)
        receipt = await patiently(work.store, batch.out, run, outcome, replace=batch.again)
        await call.close()
        return receipt

    def _call(self, job: str, batch: PredictBatch, doc: Doc, attempts: list[Attempt], *, adopts: bool) -> PaidCall:
        options = batch.run.options
        return PaidCall(
            self.pool,
            self._client,
            Place(batch.out, batch.run.name, self.pool.account, job, self.owner),
            doc.doc_id,
            before=attempts,
            adopts=adopts,
            timeout=options["timeout_s"],
            estimate=batch.run.lane.usd_per_doc if batch.run.lane else None,
            replaces=batch.again,
            worker=self._worker,
        )

    async def _beat(self, out: str) -> None:
        if out not in self._outs:
            await asyncio.to_thread(self.owner.beat, out)
            self._outs.add(out)
        if self._beating is None or self._beating.done():
            self._beating = asyncio.ensure_future(self._keep_beating())

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            for out in list(self._outs):
                await asyncio.to_thread(self.owner.beat, out)


class _Source(NamedTuple):
    """What a document is asked for with: itself, its stamp, and what earlier records leave to the next."""

    doc: Doc
    document: Document
    stamp: FileStamp
    earlier: list[Any]


def _source(batch: PredictBatch, doc: Doc) -> _Source:
    document, stamp = work.source_of(batch.run, doc)
    return _Source(doc, document, stamp, work.history_of(batch.out, batch.run.name, doc.doc_id))


def _job_has_failed(outcome: Outcome) -> bool:
    error = outcome.record["error"]
    return error is not None and error["type"] in (VendorError.__name__, Unreadable.__name__)


@cache
def code_digest() -> str:
    """What tells two versions of the code behind a pool apart: eight characters over the package's sources."""
    package = Path(__file__).parent.parent
    sources = b"".join(path.read_bytes() for path in sorted(package.rglob("*.py")))
    return digest(sources)[:8]
