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
    """A heap of parts, whose documents are put together when it is their turn.

    ``room`` tells the bytes of memory of the largest node that there is.
    """

    def __init__(self, plan: Plan, room: Callable[[], int]) -> None:
        self.plan, self._room = plan, room
        self._heap: list[tuple[float, int, RunPlan, Part, int]] = []
        self._order = itertools.count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, made: RunPlan, part: Part) -> bool:
        """Takes a part of a Run; False if none of its documents is recorded, so that there is nothing to score."""
        corpus, positions = self.plan.corpus, self.plan.recorded(made, part.home)
        if not positions:
            return False
        golds = [corpus.stamps[corpus.gt_paths[position]].size for position in positions]
        predictions = [made.receipts[corpus.ids[position]].prediction_bytes for position in positions]
        costs = list(map(expected, golds, predictions))
        seconds, memory = sum(cost.seconds for cost in costs), max(cost.memory for cost in costs)
        heapq.heappush(self._heap, (-seconds, next(self._order), made, part, memory))
        return True

    def pop(self) -> PartTask:
        """The dearest part."""
        _, _, made, (scorer, home), memory = heapq.heappop(self._heap)
        plan, room = self.plan, self._room()
        items = tuple(plan.item(made, position) for position in plan.recorded(made, home))
        limit = room if memory * APART > room else None
        verdicts = plan.selection.verdicts
        return PartTask(plan.out, made.run, home.suite, home.part, items, verdicts, scorer, memory, limit)

    def clear(self) -> None:
        self._heap.clear()
