"""Who is paired with whom: equal rows first, the rest by the solver (METRIC_SPEC.md, "Rows")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..solver import linear_sum_assignment


def equal_pairs(ours: Sequence[tuple[int, ...]], theirs: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """Each reference row with the first output row not yet taken that is equal to it, where there is one."""
    free: dict[tuple[int, ...], list[int]] = {}
    for at in range(len(theirs) - 1, -1, -1):
        free.setdefault(theirs[at], []).append(at)
    pairs = {}
    for at, row in enumerate(ours):
        if rows := free.get(row):
            pairs[at] = rows.pop()
    return pairs


def solved(costs: Any) -> dict[int, int]:
    """The pairs of least total cost, as scipy's solver breaks ties: reference row to output row."""
    height, width = costs.shape
    if height == 1 or width == 1:
        at = int(costs.argmin())  # the solver takes the first of equals, too
        return {at: 0} if height == 1 else {0: at}
    lines, columns = linear_sum_assignment(costs)
    return dict(zip(columns.tolist(), lines.tolist(), strict=True))
