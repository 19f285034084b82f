"""Arrays that are too large, or too ambiguous, for plain Python: numpy and the solver.

In: elements or scalars of both sides. Out: an ArrayPair, the Problem that assign.py solves, and the pairs that the
reference would choose among equally good ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .assign import Bound, Solution, best_assignment, best_pairing
from .batch import all_weights
from .content import ContentOrder
from .overlap import Floats, Ints, Overlap, numbered
from .pricing import Pairs, Prices, Weights, best_total
from .table import table_of
from .tokens import TokenMaker
from .tree import Element

ONE_BY_ONE = 200  # pairs with inner arrays up to which pricing them one by one is quicker than all at once


class ArrayPair:
    """Two arrays as a Problem (see assign.py): bounds from tokens, exact weights by spots or by recursion."""

    def __init__(self, prices: Prices, left: list[Element], right: list[Element]) -> None:
        self.prices, self.view, self.left, self.right = prices, prices.view, left, right
        self.scale = prices.scale
        self.left_leaves = np.array([element.leaves for element in left], dtype=np.int64)
        self.right_leaves = np.array([element.leaves for element in right], dtype=np.int64)
        self.exact = not self._common_paths()
        for element in () if self.view.plain else (*left, *right):
            self.view.flat(element)  # addresses into ordered arrays get their numbers before tokens are made of them
        self._make = TokenMaker(self.view, len(prices.words.texts))
        named = [[self.view.flat(element) for element in side] for side in (left, right)] if self.exact else []
        self._table = table_of(*named) if self.exact else None
        if self._table is not None:
            self.bound: Bound = self._table
        elif self.exact:
            self.bound = Overlap(self._make.named(left), self._make.named(right))
        else:
            self.bound = Overlap(*numbered(self._make.leaves(left), self._make.leaves(right)))
        self._shared: Overlap | None = None
        self._worth: dict[tuple[int, int], int] = {}

    def solve(self) -> Solution:
        """The best pairing; notes the array if it is not proven the best."""
        return self._noted(best_pairing(self))

    def solve_as_reference(self, content: ContentOrder) -> Pairs:
        """The best pairing; if there are several, the one that the reference would choose."""
        solution = best_pairing(self, narrow=True)
        if solution is not None and self._noted(solution).unique:
            return as_pairs(solution)
        return _solved_by_content(content, self.left, self.right, self.weights)

    def _noted(self, solution: Solution) -> Solution:
        if not solution.optimal:
            self.prices.greedy.sizes.add(max(len(self.left), len(self.right)))
        return solution

    def total(self) -> int:
        """The weight of the best pairing."""
        solution = self.solve()
        return int(self.pair_weights(solution.left, solution.right).sum())

    def _common_paths(self) -> bool:
        paths = [
            {spot for element in side if element.arrays for spot in self.view.free_arrays(element)}
            for side in (self.left, self.right)
        ]
        return bool(paths[0] & paths[1])

    def weights(self, rows: Ints, columns: Ints) -> Floats:
        if self._table is not None:
            return self._table.weights(rows, columns, self.scale)
        counts = self.bound.part(rows, columns).astype(np.float64)
        positive = counts > 0
        if self.exact:
            if self._shared is None:
                self._shared = Overlap(self._make.spots(self.left), self._make.spots(self.right))
            counts *= self.scale
            counts += self._shared.part(rows, columns)
            counts *= positive
            return counts
        if np.count_nonzero(positive) > ONE_BY_ONE:
            left, right = [self.left[i] for i in rows], [self.right[j] for j in columns]
            weights = all_weights(self._make, left, right, self.scale, best_total)
            if weights is not None:
                return weights
        for i, j in np.argwhere(positive).tolist():
            counts[i, j] = self._exact_weight(int(rows[i]), int(columns[j]))
        return counts

    def pair_weights(self, rows: Ints, columns: Ints) -> Floats:
        if self._table is not None:
            return self._table.pair_weights(rows, columns, self.scale)
        return np.array(
            [self._exact_weight(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)], dtype=np.float64
        )

    def _exact_weight(self, i: int, j: int) -> int:
        found = self._worth.get((i, j))
        if found is None:
            matched, shared = self.prices.worth(self.left[i], self.right[j])
            found = self._worth[i, j] = matched * self.scale + shared if matched else 0
        return found


def dense(worth: Weights, n: int, m: int) -> Floats:
    """Weights as a matrix."""
    weights = np.zeros((n, m))
    for (i, j), weight in worth.items():
        weights[i, j] = weight
    return weights


def solved_total(worth: Weights) -> int:
    """The largest total weight of pairs that share no element, by the solver."""
    rows, columns = ({place: n for n, place in enumerate(sorted(set(side)))} for side in zip(*worth, strict=True))
    weights = dense({(rows[i], columns[j]): weight for (i, j), weight in worth.items()}, len(rows), len(columns))
    chosen = best_assignment(weights)
    return int(weights[chosen].sum())


def as_reference(content: ContentOrder, left: list[Element], right: list[Element], weights: Floats) -> Pairs:
    """The reference's own choice among equally good pairings: both sides sorted by content, then solved."""
    return _solved_by_content(content, left, right, lambda rows, columns: weights[np.ix_(rows, columns)])


def _solved_by_content(
    content: ContentOrder, left: list[Element], right: list[Element], weights: Callable[[Ints, Ints], Floats]
) -> Pairs:
    rows, columns = np.array(content.order(left)), np.array(content.order(right))
    chosen_rows, chosen_columns = best_assignment(weights(rows, columns), keep=False)
    return list(zip(rows[chosen_rows].tolist(), columns[chosen_columns].tolist(), strict=True))


def scalars_as_reference(left: list[int], right: list[int], texts: list[str], weight: float) -> Pairs:
    """As `as_reference`, for lists of scalars by the numbers of their keys."""
    rows = sorted(range(len(left)), key=lambda i: texts[left[i]])
    columns = sorted(range(len(right)), key=lambda j: texts[right[j]])
    equal = np.array([left[i] for i in rows])[:, None] == np.array([right[j] for j in columns])[None, :]
    chosen_rows, chosen_columns = best_assignment(equal * weight)
    return [(rows[i], columns[j]) for i, j in zip(chosen_rows, chosen_columns, strict=True)]


def as_pairs(solution: Solution) -> Pairs:
    return list(zip(solution.left.tolist(), solution.right.tolist(), strict=True))
