"""Who is paired with whom: equal rows first, the rest by the solver (METRIC_SPEC.md, "Rows")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

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


def paired(costs: Any, pairs: dict[int, int]) -> dict[int, int]:
    """The given pairs, and of all other rows those of least cost. ``costs`` has a line per output row."""
    height, width = costs.shape
    if pairs:
        taken = set(pairs.values())
        lines = [j for j in range(height) if j not in taken]
        columns = [i for i in range(width) if i not in pairs]
        if not lines or not columns:
            return pairs
        costs = costs[np.ix_(lines, columns)]
        return pairs | {columns[i]: lines[j] for i, j in solved(costs).items()}
    return solved(costs)


def solved(costs: Any) -> dict[int, int]:
    """The pairs of least total cost, as scipy's solver breaks ties: reference row to output row."""
    height, width = costs.shape
    if height == 1 or width == 1:
        at = int(costs.argmin())  # the solver takes the first of equals, too
        return {at: 0} if height == 1 else {0: at}
    lines, columns = linear_sum_assignment(costs)
    return dict(zip(columns.tolist(), lines.tolist(), strict=True))
