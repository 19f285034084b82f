"""The driver: plan, predict, score, summarise. What jobs and the command line call.

In: a Job. Out: the summaries by run. It holds counts and receipts, never documents, predictions or verdicts. A part is
scored as soon as its last document is recorded, while others are still being predicted.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
import uuid
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import layout, storage
from .cluster.contract import Cluster, Graded, Lost, Predicted
from .config import Job
from .corpus.manifest import Corpus, load
from .errors import InternalError, OebError, RequestError
from .jsontext import pretty
from .plan import Plan, RunPlan, Selection, expand, make_plan, settings_file
from .receipts import read_receipt
from .records import PartReceipt, PartTask, PredictBatch, Receipt
from .scoring.field_matching.scorer import NAME
from .signals import Interrupts
from .summaries import write_summaries
from .tables import receipts_table

BATCH = 32  # documents of a free provider in one task
ATTEMPTS = 3  # of work whose worker is lost
FLUSH_SECONDS = 2.0  # receipts that a kill may cost; they are made again from the records
GRACE_SECONDS = 120.0  # for calls in flight after a first interrupt


class Stopped(OebError):
    """The job was interrupted; what is recorded stays, and the same command goes on."""

    def __init__(self, message: str, exit_code: int = 130) -> None:
        super().__init__(message, exit_code)
        self.exit_code = exit_code


class Progress(Protocol):
    """Told now and then how far the runs are."""

    def update(self, states: Sequence[RunState], force: bool = False) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass
class RunState:
    """One Run while the job goes on. ``total``: selected documents; ``done``, ``failed`` of them are recorded."""

    plan: RunPlan
    total: int
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    parts: int = 0
    parts_done: int = 0
    started: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    queue: deque[int] = field(default_factory=deque)
    left: Counter[layout.Home] = field(default_factory=Counter)
    fresh: list[Receipt] = field(default_factory=list)
    flushed: float = 0.0
    own_files: list[str] = field(default_factory=list)
    stopped: Exception | None = None
    summary: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.plan.run.name


def plan_job(job: Job) -> Plan:
    """Everything that can be refused is refused here, before anything is started or written."""
    runs, warnings = expand(job.providers, job.timeout)
    corpus = load_corpus(job)
    selection = Selection(job.verdicts, job.rescore, job.score_only, job.retry_failed, job.predict_stale)
    plan = make_plan(storage.absolute(job.out), corpus, runs, selection)
    plan.warnings.extend(warnings)
    return plan


def load_corpus(job: Job) -> Corpus:
    """The corpus of a job. Raises RequestError."""
    return load(
        job.manifest,
        data_root=job.data_root,
        suites=job.suites,
        limit=job.limit,
        only=job.only,
        identity=job.corpus_name,
    )


def start_cluster(job: Job) -> Cluster:
    """The place that the job's config names. Raises RequestError."""
    kind = job.cluster.get("kind")
    if kind == "inline":
        from .cluster.inline import InlineCluster

        return InlineCluster()
    if kind not in ("local", "existing"):
        raise RequestError(f"cluster.kind={kind!r}: known: local, inline, existing")
    from .cluster.rays import RayCluster  # 1 s to import

    return RayCluster(job.cluster.get("address") if kind == "existing" else None, job.cluster.get("cpus"))


def execute(
    plan: Plan, cluster: Cluster, progress: Progress, interrupts: Interrupts | None = None
) -> dict[str, dict[str, Any]]:
    """Does all that the plan says, and returns the summaries by run.

    Raises:
        AccountFailure, RequestError: what stopped a provider, after all others have ended.
        StorageError, InternalError: what stopped everything.
        Stopped: interrupted; calls in flight were recorded.
    """
    driver = _Driver(plan, cluster, progress, interrupts or Interrupts())
    try:
        driver.go()
    except (Stopped, KeyboardInterrupt) as stopped:
        driver.stop()
        raise stopped if isinstance(stopped, Stopped) else Stopped("interrupted") from None
    except BaseException:
        driver.flush_all()
        raise
    for state in driver.states:
        if state.stopped is not None:
            raise state.stopped
    return {state.name: state.summary for state in driver.states if state.summary is not None}


class _Driver:
    def __init__(self, plan: Plan, cluster: Cluster, progress: Progress, interrupts: Interrupts) -> None:
        self.plan, self.cluster, self.progress, self.interrupts = plan, cluster, progress, interrupts
        self.ready: list[tuple[float, int, PartTask]] = []  # a heap, dearest first
        self.order = itertools.count()
        self.predicting = self.scoring = 0
        self.lost: Counter[tuple[str, ...]] = Counter()
        self.repredicted: set[tuple[str, str]] = set()
        self.positions = {doc_id: position for position, doc_id in enumerate(plan.corpus.ids)}
        self.states = [self._state(run) for run in plan.runs]
        self.by_name = {state.name: state for state in self.states}

    def _state(self, made: RunPlan) -> RunState:
        plan = self.plan
        state = RunState(made, total=len(plan.corpus.selected))
        again = set(made.predict)
        for position in plan.corpus.selected:
            receipt = made.receipts.get(plan.corpus.ids[position])
            if receipt is not None and position not in again:
                state.done += 1
                state.failed += receipt.error is not None
        state.queue.extend(sorted(made.predict, key=lambda position: (plan.homes[position], position)))
        state.left.update(plan.homes[position] for position in made.predict)
        return state

    # --- the loop -------------------------------------------------------------------------------------------------

    def go(self) -> None:
        for state in self.states:
            storage.create(
                storage.join(self.plan.out, state.name, "settings.json"),
                pretty(settings_file(state.plan.run, self.plan.corpus)),
            )
            self.cluster.pool(state.plan.run.provider, self.cluster.slots)
            recorded = {home for home in self.plan.members if self.plan.recorded(state.plan, home)}
            for home in recorded - state.plan.current:
                if not state.left[home]:
                    self._make_ready(state, home)
            state.parts = len((recorded - state.plan.current) | set(state.left))
        self._finish_ended()
        while any(state.summary is None for state in self.states):
            self._fill()
            for ended in self.cluster.wait(0.5):
                self._take(ended)
            self._flush(FLUSH_SECONDS)
            self._finish_ended()
            self.progress.update(self.states)
            if self.interrupts.exit_code:
                raise Stopped("interrupted", self.interrupts.exit_code)
        self.progress.update(self.states, force=True)

    def _fill(self) -> None:
        """Keeps twice as much under way as there are slots; a ready part goes before more predictions."""
        while self.predicting + self.scoring < 2 * self.cluster.slots:
            sending = next((state for state in self.states if state.queue), None)
            if self.ready and (self.scoring < self.cluster.slots or sending is None):
                self.scoring += 1
                self.cluster.score(heapq.heappop(self.ready)[2])
            elif sending is not None:
                self._send(sending)
            else:
                return

    def _send(self, state: RunState) -> None:
        made, corpus = state.plan, self.plan.corpus
        share = math.ceil(sum(len(other.queue) for other in self.states) / (4 * self.cluster.slots))
        again = state.queue[0] in made.again
        positions: list[int] = []
        while state.queue and len(positions) < min(BATCH, share) and (state.queue[0] in made.again) == again:
            positions.append(state.queue.popleft())
        batch = PredictBatch(self.plan.out, made.run, tuple(corpus.doc(position) for position in positions), again)
        state.in_flight += len(positions)
        self.predicting += 1
        self.cluster.send(batch)

    def _take(self, ended: Predicted | Graded | Lost) -> None:
        if isinstance(ended, Predicted):
            self._take_predicted(ended)
        elif isinstance(ended, Graded):
            self._take_graded(ended)
        else:
            self._take_lost(ended)

    def _take_predicted(self, ended: Predicted) -> None:
        self.predicting -= 1
        state = self.by_name[ended.batch.run.name]
        state.in_flight -= len(ended.batch.docs)
        for receipt in ended.receipts:
            self._recorded(state, receipt)
        if ended.stopped is not None:
            recorded = {receipt.doc_id for receipt in ended.receipts}
            for doc in ended.batch.docs:
                if doc.doc_id not in recorded:
                    self._settled(state, doc.doc_id)
            self._stop_provider(state, ended.stopped)

    def _recorded(self, state: RunState, receipt: Receipt) -> None:
        state.plan.receipts[receipt.doc_id] = receipt
        state.fresh.append(receipt)
        state.done += 1
        state.failed += receipt.error is not None
        self._settled(state, receipt.doc_id)

    def _settled(self, state: RunState, doc_id: str) -> None:
        """The document will not be waited for any more; the last of a part makes the part ready."""
        home = self.plan.homes[self.positions[doc_id]]
        state.left[home] -= 1
        if not state.left[home]:
            del state.left[home]
            self._make_ready(state, home)

    def _stop_provider(self, state: RunState, error: Exception) -> None:
        """Nothing more is sent for the provider's runs; what is recorded of them is scored."""
        for other in self.states:
            if other.plan.run.provider == state.plan.run.provider and other.stopped is None:
                other.stopped = error
                unsent = list(other.queue)
                other.queue.clear()
                for position in unsent:
                    self._settled(other, self.plan.corpus.ids[position])

    def _make_ready(self, state: RunState, home: layout.Home) -> None:
        positions = self.plan.recorded(state.plan, home)
        if not positions:
            state.parts -= 1
            return
        items = tuple(self.plan.item(state.plan, position) for position in positions)
        cost = float(sum(self.plan.corpus.stamps[item.gt_path].size for item in items))
        cost += sum(state.plan.receipts[item.doc_id].prediction_bytes for item in items)
        task = PartTask(
            self.plan.out, state.plan.run, NAME, home.suite, home.part, items, self.plan.selection.verdicts, cost
        )
        heapq.heappush(self.ready, (-cost, next(self.order), task))

    def _take_graded(self, ended: Graded) -> None:
        self.scoring -= 1
        if ended.failed is not None:
            raise ended.failed
        receipt = ended.receipt
        assert receipt is not None
        state = self.by_name[receipt.run]
        for note in receipt.notes:
            self.progress.note(note)
        if receipt.broken:
            self._repair(state, ended.task, receipt)
            return
        state.parts_done += 1
        for item in ended.task.items:
            self.plan.golds.note(item.gt_path, self.plan.corpus.stamps[item.gt_path], receipt.gold_sha256[item.doc_id])

    def _repair(self, state: RunState, task: PartTask, receipt: PartReceipt) -> None:
        """Records whose prediction is another one are not done: read again, else asked again, once."""
        home = layout.Home(task.suite, task.part)
        for doc_id in receipt.broken:
            found = read_receipt(layout.record(self.plan.out, state.name, doc_id))
            known = state.plan.receipts[doc_id]
            if found is not None and found.prediction_sha256 != known.prediction_sha256:
                state.plan.receipts[doc_id] = found  # another driver has asked again meanwhile
                state.fresh.append(found)
            elif (state.name, doc_id) in self.repredicted or self.plan.selection.score_only:
                raise InternalError(
                    f"{state.name}: the prediction of {doc_id!r} is not the one that its record names; "
                    "delete its record and run again"
                )
            else:
                position = self.positions[doc_id]
                self.repredicted.add((state.name, doc_id))
                state.plan.again.add(position)
                state.queue.append(position)
                state.left[home] += 1
                state.done -= 1
                state.failed -= known.error is not None
        if not state.left[home]:
            self._make_ready(state, home)

    def _take_lost(self, ended: Lost) -> None:
        work = ended.work
        if isinstance(work, PartTask):
            key: tuple[str, ...] = (work.run.name, work.suite, work.part)
        else:
            key = (work.run.name, *(doc.doc_id for doc in work.docs))
        self.lost[key] += 1
        if self.lost[key] >= ATTEMPTS:
            raise InternalError(f"the worker of {' '.join(key[:3])} was lost {ATTEMPTS} times; last: {ended.reason}")
        self.progress.note(f"a worker was lost ({ended.reason}); its work is done again")
        if isinstance(work, PartTask):
            self.cluster.score(work)
        else:
            self.cluster.send(work)

    # --- ending ---------------------------------------------------------------------------------------------------

    def _finish_ended(self) -> None:
        for state in self.states:
            if state.summary is None and not state.queue and not state.in_flight and state.parts_done >= state.parts:
                self._finish(state)

    def _finish(self, state: RunState) -> None:
        plan, made = self.plan, state.plan
        expected = {home for home in plan.members if plan.recorded(made, home)}
        for table in (layout.SCORES, layout.VERDICTS):
            for home in made.part_files.get(table, set()) - expected:
                storage.delete(layout.part(plan.out, state.name, table, home))
        self._merge_receipts(state)
        plan.golds.save()
        state.seconds = time.monotonic() - state.started
        state.summary = write_summaries(plan.out, made.run, expected, made.receipts.values())

    def _flush(self, age: float) -> None:
        now = time.monotonic()
        for state in self.states:
            if state.fresh and now - state.flushed >= age:
                name = f"part-{uuid.uuid4().hex}.parquet"
                storage.put(storage.join(self.plan.out, state.name, layout.RECEIPTS, name), receipts_table(state.fresh))
                state.own_files.append(name)
                state.fresh.clear()
                state.flushed = now

    def _merge_receipts(self, state: RunState) -> None:
        """All receipts into one file, then the others go: a receipt may be there twice for a while, but never not."""
        folder = storage.join(self.plan.out, state.name, layout.RECEIPTS)
        there = storage.listed(folder)
        if not state.fresh and len(there) == 1:
            return
        name = f"part-{uuid.uuid4().hex}.parquet"
        storage.put(storage.join(folder, name), receipts_table(state.plan.receipts.values()))
        state.fresh.clear()
        for other in there:
            storage.delete(storage.join(folder, other))

    def flush_all(self) -> None:
        """Writes the receipts that are not yet written, as far as storage lets it."""
        with suppress(OebError):  # they are made again from the records
            self._flush(0)

    def stop(self) -> None:
        """Sends nothing more and waits for what is in flight, for `GRACE_SECONDS` at most or a second interrupt."""
        for state in self.states:
            state.queue.clear()
        self.ready.clear()
        until = time.monotonic() + GRACE_SECONDS
        try:
            while self.cluster.under_way and time.monotonic() < until:
                for ended in self.cluster.wait(0.5):
                    if isinstance(ended, Predicted):
                        self.by_name[ended.batch.run.name].fresh.extend(ended.receipts)
        finally:
            self.flush_all()
