"""What a job tells those who watch it: a line of JSON per event, and figures for the cluster's metrics.

In: what passes between the driver and its cluster, and RunStates. Out: events on a stream. Names, counts, seconds and
money only: no values of documents, no texts of vendors, no keys.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from .cluster.contract import Cluster, Ended, Graded, Lost, Predicted, Summed
from .errors import RequestError
from .jsontext import line
from .records import PartTask, PredictBatch, Receipt, SummaryTask
from .runstate import Progress, RunState
from .steering import figures, vendor_of
from .storage import protocol_of

STDERR = "stderr"
FIGURES_SECONDS = 1.0  # between figures for the metrics
STANDSTILL_SECONDS = 60.0  # without an end of any task, after which that is said, and again each time


class Events:
    """Appends events to a file, or to standard error; to nothing if ``place`` is None.

    Raises:
        RequestError: the file cannot be written.
    """

    def __init__(self, place: str | None = None) -> None:
        self.job = uuid.uuid4().hex[:8]
        self._stream: TextIO | None = sys.stderr if place == STDERR else None
        if place not in (None, STDERR):
            try:
                if protocol_of(str(place)) != "file":
                    raise OSError(errno.EINVAL, "no file")
                os.makedirs(os.path.dirname(os.path.abspath(str(place))), exist_ok=True)
                self._stream = open(str(place), "a", encoding="utf-8", buffering=1)  # noqa: SIM115 - see `close`
            except OSError as error:
                raise RequestError(
                    f"events={place}: {error.strerror}; give a file of this machine, or stderr"
                ) from None

    def tell(self, event: str, **facts: Any) -> None:
        """One line, whole, at once; a full disk hinders no job."""
        if self._stream is not None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            with suppress(OSError, ValueError):
                self._stream.write(line({"at": at, "event": event, "job": self.job, **facts}) + "\n")
                self._stream.flush()

    def close(self) -> None:
        """No more events."""
        if self._stream is not None and self._stream is not sys.stderr:
            with suppress(OSError):
                self._stream.close()
        self._stream = None


class Watching:
    """Stands between the driver and its cluster and progress, with the verbs of both, and tells what passes."""

    def __init__(self, cluster: Cluster, progress: Progress, events: Events) -> None:
        self.cluster, self.progress, self.events = cluster, progress, events
        self._tasks = 0  # handed to the cluster, not to a vendor
        self._ended_at = self._told_at = time.monotonic()
        self._over: set[tuple[str, str]] = set()

    def begin(self, out: str, states: Sequence[RunState]) -> None:
        """The job is about to begin."""
        runs = {state.name: {"documents": state.total, "to_predict": len(state.queue)} for state in states}
        self.events.tell("job_began", out=out, host=socket.gethostname(), processors=self.cluster.slots, runs=runs)

    def end(self, states: Sequence[RunState], error: BaseException | None) -> None:
        """The job is over; ``error``: what it ended with."""
        self.update(states, force=True)
        self.events.tell("job_ended", error=None if error is None else type(error).__name__)
        self.events.close()

    # --- the cluster's verbs ----------------------------------------------------------------------------------------

    @property
    def slots(self) -> int:
        return self.cluster.slots

    @property
    def memory(self) -> int:
        return self.cluster.memory

    @property
    def under_way(self) -> int:
        return self.cluster.under_way

    def pool(self, account: str, member: Mapping[str, Any]) -> None:
        self.cluster.pool(account, member)

    def send(self, batch: PredictBatch) -> None:
        self._tasks += batch.run.lane is None
        self.cluster.send(batch)

    def score(self, task: PartTask) -> None:
        self._tasks += 1
        self.cluster.score(task)

    def summarise(self, task: SummaryTask) -> None:
        self._tasks += 1
        self.cluster.summarise(task)

    def wait(self, seconds: float) -> list[Ended]:
        found = self.cluster.wait(seconds)
        now = time.monotonic()
        for ended in found:
            self._tell(ended)
        if found or not self._tasks:
            self._ended_at = now
        elif now - self._ended_at >= STANDSTILL_SECONDS:
            self._ended_at = now
            self.progress.note(
                f"nothing has ended for {STANDSTILL_SECONDS:g} s: {self._tasks} tasks are at work or wait for a place; "
                f"the cluster has {self.cluster.slots} processors for all its jobs"
            )
        return found

    def tell(self, run: str, provider: str, now: Mapping[str, float]) -> None:
        self.cluster.tell(run, provider, now)

    def hold(self) -> None:
        self.cluster.hold()

    def close(self) -> None:
        self.cluster.close()

    # --- progress ---------------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        self.progress.note(text)

    def update(self, states: Sequence[RunState], force: bool = False) -> None:
        self.progress.update(states, force)
        now = time.monotonic()
        if force or now - self._told_at >= FIGURES_SECONDS:
            self._told_at = now
            for state in states:
                self.cluster.tell(state.name, vendor_of(state), figures(state))
        for state in states:
            if state.stopped is not None and (state.name, "stopped") not in self._over:
                self._over.add((state.name, "stopped"))
                self.events.tell("run_stopped", run=state.name, error=type(state.stopped).__name__)
            if state.summary is not None and (state.name, "ended") not in self._over:
                self._over.add((state.name, "ended"))
                self.events.tell("run_ended", run=state.name, took=round(state.duration(), 3), **figures_of(state))

    # --- events -----------------------------------------------------------------------------------------------------

    def _tell(self, ended: Ended) -> None:
        if isinstance(ended, Predicted):
            self._tasks -= ended.batch.run.lane is None
            for receipt in ended.receipts:
                self._recorded(ended.batch, receipt)
        elif isinstance(ended, Graded):
            self._tasks -= 1
            self.events.tell("scored", **_part(ended.task), error=_name(ended.failed))
        elif isinstance(ended, Summed):
            self._tasks -= 1
        else:
            self._lost(ended)

    def _recorded(self, batch: PredictBatch, receipt: Receipt) -> None:
        self.events.tell(
            "recorded",
            run=batch.run.name,
            doc_id=receipt.doc_id,
            error=receipt.error_type,
            seconds=round(receipt.wall_s, 3),
            usd=receipt.usd,
            credits=receipt.credits,
            attempts=receipt.attempts,
        )

    def _lost(self, ended: Lost) -> None:
        reason = ended.reason.split(":", 1)[0]
        if isinstance(ended.work, PartTask):
            self._tasks -= 1
            self.events.tell("worker_lost", **_part(ended.work), reason=reason)
        elif isinstance(ended.work, SummaryTask):
            self._tasks -= 1
            self.events.tell("worker_lost", run=ended.work.run.name, reason=reason)
        else:
            self._tasks -= ended.work.run.lane is None
            named = [doc.doc_id for doc in ended.work.docs]
            self.events.tell("worker_lost", run=ended.work.run.name, doc_ids=named, reason=reason)


def _part(task: PartTask) -> dict[str, Any]:
    return {
        "run": task.run.name,
        "scorer": task.scorer,
        "suite": task.suite,
        "part": task.part,
        "documents": len(task.items),
    }


def figures_of(state: RunState) -> dict[str, float]:
    """The figures of a run that has ended."""
    return {name: value for name, value in figures(state).items() if name in ("total", "done", "failed", "usd")}


def _name(error: Exception | None) -> str | None:
    return None if error is None else type(error).__name__
