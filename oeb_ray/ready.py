"""The parts that wait to be scored, dearest first.

In: parts whose documents are all recorded. Out: PartTasks for the cluster. Dearest first, since a large part that
begins last is what everybody waits for.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from .cost import APART, expected
from .plan import Part, Plan, RunPlan
from .records import PartTask


class Ready:
    """A heap of PartTasks. ``room`` tells the bytes of memory of the largest node that there is."""

    def __init__(self, plan: Plan, room: Callable[[], int]) -> None:
        self.plan, self._room = plan, room
        self._heap: list[tuple[float, int, PartTask]] = []
        self._order = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, made: RunPlan, part: Part) -> bool:
        """Takes a part of a Run; False if none of its documents is recorded, so that there is nothing to score."""
        plan, (scorer, home) = self.plan, part
        items = tuple(plan.item(made, position) for position in plan.recorded(made, home))
        if not items:
            return False
        sizes = [(plan.corpus.stamps[item.gt_path].size, made.receipts[item.doc_id].prediction_bytes) for item in items]
        costs = [expected(*size) for size in sizes]
        memory = max(cost.memory for cost in costs)
        room = self._room()
        limit = room if memory * APART > room else None
        verdicts = plan.selection.verdicts
        task = PartTask(plan.out, made.run, home.suite, home.part, items, verdicts, scorer, memory, limit)
        heapq.heappush(self._heap, (-sum(cost.seconds for cost in costs), next(self._order), task))
        return True

    def pop(self) -> PartTask:
        """The dearest part."""
        return heapq.heappop(self._heap)[2]

    def clear(self) -> None:
        self._heap.clear()
