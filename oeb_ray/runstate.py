"""How far each Run of a job is: what the driver keeps, and what progress shows.

In: what the driver takes in. Out: counts. No documents, predictions or verdicts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import layout
from .errors import OebError
from .plan import RunPlan
from .records import Receipt


class Progress(Protocol):
    """Told now and then how far the runs are."""

    def update(self, states: Sequence[RunState], force: bool = False) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass
class RunState:
    """One Run while the job goes on.

    ``total``: selected documents; ``done``, ``failed``: how many of them are recorded, and recorded as failed;
    ``parts``, ``parts_done``: to score and scored; ``queue``: positions not sent; ``left``: documents that each part
    still waits for; ``fresh``: receipts not yet in the index; ``undone``: documents whose record turned out not to
    hold; ``stopped``: why nothing more is sent; ``errors``: texts of the error rows, once there is a summary.
    """

    plan: RunPlan
    total: int
    done: int = 0
    failed: int = 0
    in_flight: int = 0
    parts: int = 0
    parts_done: int = 0
    queue: deque[int] = field(default_factory=deque)
    left: Counter[layout.Home] = field(default_factory=Counter)
    fresh: list[Receipt] = field(default_factory=list)
    flushed: float = 0.0
    undone: set[str] = field(default_factory=set)
    worked: bool = False
    stopped: OebError | None = None
    summary: dict[str, Any] | None = None
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def name(self) -> str:
        return self.plan.run.name
