"""How alike the repeats of a run are.

In: the runs that repeat each other. Out: the share of values that are equal in all of them, and their accuracies, on
the documents that all have scored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .compare import score_rows, values_together
from .stored import StoredRun


@dataclass(frozen=True)
class Stability:
    """``documents``: scored in every repeat; ``values``: addresses there at which any repeat states a value; ``equal``:
    those at which all state the same, as it is compared; ``accuracies``: mean of each repeat, 0 to 1; None for values
    without verdicts."""

    runs: list[str]
    documents: int
    values: int | None
    equal: int | None
    accuracies: list[float]

    @property
    def share(self) -> float | None:
        """Share of equal values; None if there are none."""
        return self.equal / self.values if self.values and self.equal is not None else None

    @property
    def spread(self) -> float | None:
        """Highest less lowest accuracy, in points."""
        return 100 * (max(self.accuracies) - min(self.accuracies)) if self.accuracies else None


def stability(runs: Sequence[StoredRun]) -> Stability:
    """Compares two or more repeats of a run, value by value."""
    rows = [score_rows(run) for run in runs]
    shared = set.intersection(*({doc_id for doc_id, row in one.items() if row["status"] == "scored"} for one in rows))
    values = equal = 0
    for by_address in values_together(runs, frozenset(shared)):
        stated = [{key: value.canon for key, value in one.items() if value.canon is not None} for one in by_address]
        addresses = set().union(*stated)
        values += len(addresses)
        equal += sum(len({one.get(address) for one in stated}) == 1 for address in addresses)
    has_verdicts = values or not any(one[doc_id]["asserted"] for one in rows for doc_id in shared)
    accuracies = (
        [math.fsum(one[doc_id]["accuracy"] for doc_id in shared) / len(shared) for one in rows] if shared else []
    )
    return Stability(
        [run.name for run in runs],
        len(shared),
        values if has_verdicts else None,
        equal if has_verdicts else None,
        accuracies,
    )
