"""The best one-to-one pairing of two large arrays (METRIC_SPEC.md, "The best pairing").

In: a Problem, which bounds and prices pairs. Out: the pairs of the largest total weight, and whether they are the
only such pairing.

Most pairs of real tables are each other's best by far, and a certificate shows that no best pairing can do without
them: values u, v >= 0 of the elements with u + v equal to the weight of each chosen pair and above that of any
other. What the certificate does not cover is the core; it is solved by scipy, its values are found by relaxation,
and it grows until nothing outside contradicts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ..solver import linear_sum_assignment
from .overlap import Floats, Ints

CORE_CELLS = 100_000_000  # a core beyond this (0.8 GB) is solved greedily, and said so
PART_CELLS = 4_000_000
WIDE = 4  # a core of more than one in so many cells is wide


class Bound(Protocol):
    """Upper bounds of the matched values of all pairs, small integers; see overlap.py and table.py."""

    n: int
    m: int

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]: ...
    def part(self, rows: Ints, columns: Ints) -> NDArray[Any]: ...


class Problem(Protocol):
    """Two arrays to pair: ``bound`` gives an upper bound of matched values per pair, the rest exact weights.

    A weight is ``matched * scale + shared``, or 0 where nothing matches. ``exact``: the bound is the matched count.
    ``left_leaves``, ``right_leaves``: leaves per element, which bound the shared count.
    """

    bound: Bound
    scale: int
    exact: bool
    left_leaves: Ints
    right_leaves: Ints

    def weights(self, rows: Ints, columns: Ints) -> Floats: ...
    def pair_weights(self, rows: Ints, columns: Ints) -> Floats: ...


class Solution(NamedTuple):
    """``left[k]`` is paired with ``right[k]``; ``unique``: no other pairing is as good; ``optimal``: none is better."""

    left: Ints
    right: Ints
    unique: bool
    optimal: bool = True


def best_assignment(weights: Floats, *, keep: bool = True) -> tuple[Ints, Ints]:
    """Pairs of positive weight of a best assignment; the first side's elements are the rows unless there are more.

    ``keep``: leave the weights as they are; otherwise they are negated in place, which saves their memory once more.
    """
    costs = np.negative(weights, out=None if keep else weights)
    if costs.shape[0] <= costs.shape[1]:
        rows, columns = linear_sum_assignment(costs)
    else:
        columns, rows = linear_sum_assignment(costs.T)
    positive = costs[rows, columns] < 0
    return rows[positive], columns[positive]


@overload
def best_pairing(problem: Problem) -> Solution: ...
@overload
def best_pairing(problem: Problem, *, narrow: bool) -> Solution | None: ...


def best_pairing(problem: Problem, *, narrow: bool = False) -> Solution | None:
    """A pairing of the largest total weight, exact unless its core is beyond ``CORE_CELLS``.

    ``narrow``: give up (None) once solving the core would take about as long as solving all.
    """
    bound = problem.bound
    n, m = bound.n, bound.m
    state = _Certificate(problem)
    core_left, core_right = state.contradicted()
    if not core_left.any() and not core_right.any():
        return Solution(*state.pairs(), unique=True)
    while True:
        rows, columns = np.flatnonzero(core_left), np.flatnonzero(core_right)
        if narrow and len(rows) * len(columns) * WIDE > n * m:
            return None
        if len(rows) * len(columns) > CORE_CELLS:
            return _greedy(problem)
        weights = problem.weights(rows, columns)
        inner_left, inner_right = best_assignment(weights)
        if len(rows) == n and len(columns) == m:
            return Solution(rows[inner_left], columns[inner_right], unique=False)
        u, v, unique = _dual_values(weights, inner_left, inner_right)
        more_left, more_right = state.contradicting(rows, columns, u, v)
        if not more_left.any() and not more_right.any():
            outer_left, outer_right = state.pairs()
            outside = ~core_left[outer_left]
            left = np.concatenate((outer_left[outside], rows[inner_left]))
            right = np.concatenate((outer_right[outside], columns[inner_right]))
            return Solution(left, right, unique)
        core_left |= more_left
        core_right |= more_right
        state.close(core_left, core_right)


class _Certificate:
    """Pairs that are each other's best, with the values u and v that would prove them, in matched values."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        bound = problem.bound
        best, where, column_best = self._maxima(bound)
        self.most = int(best.max(initial=0))
        candidates = np.flatnonzero((best > 0) & (column_best[where] == best))
        _, first = np.unique(where[candidates], return_index=True)
        left = candidates[np.sort(first)]
        right = where[left]
        self.pair_weight = problem.pair_weights(left, right)
        kept = self.pair_weight > 0
        self.left, self.right, self.pair_weight = left[kept], right[kept], self.pair_weight[kept]
        self.matched = np.floor(self.pair_weight / problem.scale)
        self.partner_of_left = np.full(bound.n, -1, dtype=np.int64)
        self.partner_of_right = np.full(bound.m, -1, dtype=np.int64)
        self.partner_of_left[self.left] = self.right
        self.partner_of_right[self.right] = self.left
        self._set_values()

    @staticmethod
    def _maxima(bound: Bound) -> tuple[NDArray[np.float32], Ints, NDArray[np.float32]]:
        best = np.zeros(bound.n, dtype=np.float32)
        where = np.zeros(bound.n, dtype=np.int64)
        column_best = np.zeros(bound.m, dtype=np.float32)
        for start, counts in bound.blocks():
            stop = start + len(counts)
            where[start:stop] = counts.argmax(axis=1)
            best[start:stop] = counts[np.arange(len(counts)), where[start:stop]]
            np.maximum(column_best, counts.max(axis=0), out=column_best)
        return best, where, column_best

    def _set_values(self) -> None:
        """u and v: halfway between what the unpaired elements demand of either side of a pair."""
        bound = self.problem.bound
        lone_left = self.partner_of_left < 0
        lone_right = self.partner_of_right < 0
        least_left = np.zeros(bound.n)
        least_right = np.zeros(bound.m)
        if lone_left.any() or lone_right.any():
            lone_columns = np.flatnonzero(lone_right)
            for start, counts in bound.blocks():
                stop = start + len(counts)
                if len(lone_columns):
                    least_left[start:stop] = counts[:, lone_columns].max(axis=1)
                lone_rows = lone_left[start:stop]
                if lone_rows.any():
                    np.maximum(least_right, counts[lone_rows].max(axis=0), out=least_right)
        self.u, self.v = np.zeros(bound.n), np.zeros(bound.m)
        self.u[self.left] = (least_left[self.left] + self.matched - least_right[self.right]) / 2
        self.u[self.left] = np.clip(self.u[self.left], 0, self.matched)
        self.v[self.right] = self.matched - self.u[self.left]

    def pairs(self) -> tuple[Ints, Ints]:
        return self.left, self.right

    def contradicted(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Elements of both sides in a pair that the values do not rule out, and the partners of those."""
        problem, bound = self.problem, self.problem.bound
        core_left, core_right = np.zeros(bound.n, dtype=bool), np.zeros(bound.m, dtype=bool)
        widest = int(min(problem.left_leaves.max(), problem.right_leaves.max()))
        if problem.scale <= 2 * widest:  # shared values could outweigh half a match: no certificate
            return ~core_left, ~core_right
        twice_u, twice_v = np.rint(2 * self.u), np.rint(2 * self.v)  # values are halves at the finest
        kind = np.min_scalar_type(int(2 * max(twice_u.max(), twice_v.max(), self.most)))
        twice_u, twice_v = twice_u.astype(kind), twice_v.astype(kind)
        for start, counts in bound.blocks():
            stop = start + len(counts)
            twice = counts.astype(kind)
            twice += twice
            open_pairs = twice >= twice_u[start:stop, None] + twice_v[None, :]
            idle = np.flatnonzero(twice_u[start:stop] == 0)
            open_pairs[idle] &= counts[idle] > 0
            chosen = self.partner_of_left[start:stop]
            paired = np.flatnonzero(chosen >= 0)
            open_pairs[paired, chosen[paired]] = False
            if not problem.exact:
                self._refute(start, open_pairs)
            core_left[start:stop] = open_pairs.any(axis=1)
            core_right |= open_pairs.any(axis=0)
        self.close(core_left, core_right)
        return core_left, core_right

    def _refute(self, start: int, open_pairs: NDArray[np.bool_]) -> None:
        """Prices the pairs that only their bound keeps open, unless there are too many."""
        rows, columns = np.nonzero(open_pairs)
        if not 0 < len(rows) <= 4 * sum(open_pairs.shape):
            return
        weights = self.problem.pair_weights(rows + start, columns)
        matched = np.floor(weights / self.problem.scale)
        ruled_out = (matched < self.u[rows + start] + self.v[columns]) | (matched == 0)
        open_pairs[rows[ruled_out], columns[ruled_out]] = False

    def close(self, core_left: NDArray[np.bool_], core_right: NDArray[np.bool_]) -> None:
        """Partners join the core together."""
        either = core_left[self.left] | core_right[self.right]
        core_left[self.left[either]] = True
        core_right[self.right[either]] = True

    def contradicting(
        self, rows: Ints, columns: Ints, u: Floats, v: Floats
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Elements outside the core that would do as well with one inside; u, v: the core's values, full weights."""
        problem, bound = self.problem, self.problem.bound
        scale = problem.scale
        outside_left, outside_right = np.ones(bound.n, dtype=bool), np.ones(bound.m, dtype=bool)
        outside_left[rows] = False
        outside_right[columns] = False
        shared = self.pair_weight - self.matched * scale
        full_u, full_v = self.u * scale, self.v * scale
        full_u[self.left] += shared / 2
        full_v[self.right] += shared / 2
        more_left, more_right = np.zeros(bound.n, dtype=bool), np.zeros(bound.m, dtype=bool)
        others = np.flatnonzero(outside_left)
        step = max(1, PART_CELLS // max(len(columns), 1))
        for place in range(0, len(others), step):
            listed = others[place : place + step]
            most = self._most(listed, columns)
            more_left[listed] = (most >= full_u[listed, None] + v[None, :]).any(axis=1)
        others = np.flatnonzero(outside_right)
        if len(others):
            step = max(1, PART_CELLS // len(others))
            for place in range(0, len(rows), step):
                most = self._most(rows[place : place + step], others)
                more_right[others] |= (most >= u[place : place + step, None] + full_v[None, others]).any(axis=0)
        return more_left, more_right

    def _most(self, rows: Ints, columns: Ints) -> Floats:
        """The largest weight that the pairs can have; -1 where it is 0."""
        counts = self.problem.bound.part(rows, columns).astype(np.float64)
        shared = np.minimum(self.problem.left_leaves[rows][:, None], self.problem.right_leaves[columns][None, :])
        return np.where(counts > 0, counts * self.problem.scale + shared, -1.0)


def _dual_values(weights: Floats, left: Ints, right: Ints) -> tuple[Floats, Floats, bool]:
    """Values that prove an assignment best, midway between their extremes, and whether they prove it the only one.

    For chosen pairs k: u[k] lies between what unpaired elements demand, and u[k] - u[l] >= w[k, l] - w[l, l].
    """
    n, m = weights.shape
    lone_left, lone_right = np.delete(np.arange(n), left), np.delete(np.arange(m), right)
    own = weights[left, right]
    least = weights[np.ix_(left, lone_right)].max(axis=1, initial=0.0)
    most = own - weights[np.ix_(lone_left, right)].max(axis=0, initial=0.0)
    gap = weights[np.ix_(left, right)] - own[None, :]
    low, high = least.copy(), most.copy()
    for _ in range(len(left) + 1):
        raised = np.maximum(low, (low[None, :] + gap).max(axis=1, initial=-np.inf))
        if np.array_equal(raised, low):
            break
        low = raised
    for _ in range(len(left) + 1):
        lowered = np.minimum(high, (high[:, None] - gap).min(axis=0, initial=np.inf))
        if np.array_equal(lowered, high):
            break
        high = lowered
    u, v = np.zeros(n), np.zeros(m)
    u[left] = (low + high) / 2
    v[right] = own - u[left]
    slack = u[:, None] + v[None, :] - weights
    slack[left, right] = 1
    tight = (slack <= 0) & (weights > 0)
    return u, v, not tight.any()


def _greedy(problem: Problem) -> Solution:
    """Pairs by falling weight, then by position; for what no exact method can hold in memory."""
    n, m = problem.bound.n, problem.bound.m
    free_left, free_right = np.ones(n, dtype=bool), np.ones(m, dtype=bool)
    left: list[int] = []
    right: list[int] = []
    top = max((int(counts.max()) for _, counts in problem.bound.blocks()), default=0)
    for level in range(top, 0, -1):
        for start, counts in problem.bound.blocks():
            rows, columns = np.nonzero((counts == level) & free_left[start : start + len(counts), None] & free_right)
            if not len(rows):
                continue
            weights = problem.pair_weights(rows + start, columns)
            for place in np.lexsort((columns, rows, -weights)):
                row, column = int(rows[place]) + start, int(columns[place])
                if weights[place] > 0 and free_left[row] and free_right[column]:
                    free_left[row] = free_right[column] = False
                    left.append(row)
                    right.append(column)
    return Solution(np.array(left, dtype=np.int64), np.array(right, dtype=np.int64), unique=False, optimal=False)
