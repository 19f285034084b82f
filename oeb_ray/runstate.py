"""How far each Run of a job is: what the driver keeps, and what progress shows.

In: what the driver takes in. Out: counts. No documents, predictions or verdicts.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import layout
from .errors import OebError
from .plan import Part, Plan, RunPlan
from .records import Lane, Receipt
from .summaries import Written, counted


class Progress(Protocol):
    """Told now and then how far the runs are."""

    def update(self, states: Sequence[RunState], force: bool = False) -> None: ...
    def note(self, text: str) -> None: ...


class GoldNotes:
    """Passes notes on golds on, each once; after `NOTES` of them it only says that there are more."""

    NOTES = 20

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._said: set[str] = set()

    def say(self, notes: Iterable[str]) -> None:
        for note in notes:
            if note not in self._said:
                self._said.add(note)
                if len(self._said) <= self.NOTES:
                    self.progress.note(note)
                elif len(self._said) == self.NOTES + 1:
                    self.progress.note("there are more notes on golds; `oeb corpus check` shows all")


@dataclass
class RunState:
    """One Run while the job goes on.

    ``total``: selected documents; ``done``, ``failed``: how many of them are recorded, and recorded as failed;
    ``parts``, ``parts_done``: to score and scored; ``scoring``: those handed out; ``queue``: positions not sent;
    ``left``: documents that each part still waits for; ``fresh``: receipts not yet in the index; ``undone``: documents
    whose record turned out not to hold; ``summarising``: what is derived is being written; ``usd``, ``credits``,
    ``seconds``: what the done ones took; ``stopped``: why nothing more is sent; ``summaries``: by scorer, once the run
    has ended; ``errors``: texts of the first one's error rows.
    """

    plan: RunPlan
    total: int
    done: int = 0
    failed: int = 0
    usd: float = 0.0
    credits: float = 0.0
    seconds: float = 0.0
    in_flight: int = 0
    parts: int = 0
    parts_done: int = 0
    scoring: Counter[Part] = field(default_factory=Counter)
    queue: deque[int] = field(default_factory=deque)
    left: Counter[layout.Home] = field(default_factory=Counter)
    fresh: list[Receipt] = field(default_factory=list)
    flushed: float = 0.0
    undone: set[str] = field(default_factory=set)
    worked: bool = False
    summarising: bool = False
    started: float | None = None
    ended: float | None = None
    stopped: OebError | None = None
    summaries: dict[str, dict[str, Any]] | None = None
    errors: Counter[str] = field(default_factory=Counter)

    def count(self, receipt: Receipt, sign: int = 1) -> None:
        """A selected document's record counts, or (-1) does not any more."""
        self.done += sign
        self.failed += sign * (receipt.error is not None)
        self.usd += sign * (receipt.usd or 0.0)
        self.credits += sign * (receipt.credits or 0.0)
        self.seconds += sign * receipt.wall_s

    def end(self, plan: Plan, derived: Sequence[Written]) -> None:
        """What is derived has been written, by each scorer of the plan; counts are what it says."""
        made = self.plan
        first = derived[0] if derived else counted(made.run, made.receipts.values())
        self.errors = Counter(first.errors.values())
        selected = [plan.corpus.ids[position] for position in plan.corpus.selected]
        self.done = sum(doc_id in made.receipts for doc_id in selected)
        self.failed = sum(doc_id in first.errors for doc_id in selected)
        named = zip(plan.selection.scorers, derived, strict=True)
        self.summaries = {name: one.summary for name, one in named} or {"": first.summary}
        self.ended = time.monotonic()

    def duration(self) -> float:
        """Seconds from the first document handed out until now, or until the summary."""
        if self.started is None:
            return 0.0
        return (self.ended or time.monotonic()) - self.started

    @property
    def name(self) -> str:
        return self.plan.run.name

    @property
    def summary(self) -> dict[str, Any] | None:
        """That of the first scorer; None before the end."""
        return next(iter(self.summaries.values())) if self.summaries else None


def asking(states: Sequence[RunState]) -> dict[str, list[RunState]]:
    """The paid runs with something to ask, by the account that they go through."""
    found: dict[str, list[RunState]] = {}
    for state in states:
        if state.plan.run.lane is not None and state.queue:
            found.setdefault(state.plan.run.lane.account, []).append(state)
    return found


def member_of(states: Sequence[RunState]) -> dict[str, Any]:
    """What a job registers at an account for these runs (see Pool.register): of each limit the smallest."""
    lanes = [lane for state in states if (lane := state.plan.run.lane) is not None]
    return {
        "cap": min(lane.cap for lane in lanes),
        "rpm": min((lane.rpm for lane in lanes if lane.rpm is not None), default=None),
        "max_usd": min((lane.max_usd for lane in lanes if lane.max_usd is not None), default=None),
        "resumed": any(state.plan.resumed for state in states),
        "spent": {state.name: spent_by(state.plan.run.lane, state.plan.receipts.values()) for state in states},
    }


def spent_by(lane: Lane | None, receipts: Collection[Receipt]) -> float:
    """Dollars that a run's recorded documents cost; where nobody stated a price, what a call may cost."""
    stated = [receipt.usd for receipt in receipts if receipt.usd is not None]
    reckoned = max([(lane and lane.usd_per_doc) or 0.0, *stated])
    return math.fsum(stated) + reckoned * sum(receipt.unpriced for receipt in receipts)


def same_account(one: RunState, other: RunState) -> bool:
    """Whether what stops one run stops the other: the same account, or the same free provider."""
    lane, others = one.plan.run.lane, other.plan.run.lane
    if lane is None or others is None:
        return one.plan.run.provider == other.plan.run.provider
    return lane.account == others.account
