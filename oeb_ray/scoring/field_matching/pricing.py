"""What a pair of elements is worth (METRIC_SPEC.md, "The best pairing").

In: elements of both sides. Out: weights, ``matched * scale + shared`` where anything matches, with inner arrays paired
in the best way. Small arrays are priced pair by pair in plain Python; two large ones are an ArrayPair, the Problem that
assign.py solves.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from .assign import Solution, best_assignment, best_pairing
from .batch import all_weights
from .limits import GreedyNotes
from .overlap import Floats, Ints, Overlap, numbered
from .tokens import TokenMaker
from .tree import Array, Element, Vocabulary
from .view import View

SMALL = 36  # cells up to which plain Python is quicker than numpy
ONE_BY_ONE = 200  # pairs with inner arrays up to which pricing them one by one is quicker than all at once

Pairs = list[tuple[int, int]]  # positions in the two arrays' elements
Weights = dict[tuple[int, int], int]  # of the pairs that are worth anything


class Prices:
    """Weights for one document; ``scale`` is one more than the leaves of the whole prediction."""

    def __init__(self, view: View, words: Vocabulary, scale: int, greedy: GreedyNotes) -> None:
        self.view, self.words, self.scale, self.greedy = view, words, scale, greedy

    def worth(self, left: Element, right: Element) -> tuple[int, int]:
        """Matched and shared values of one pair, its inner arrays paired in the best way."""
        matched = shared = 0
        gold = self.view.flat(right)
        for spot, key in self.view.flat(left).items():
            other = gold.get(spot)
            if other is not None:
                shared += 1
                matched += other == key
        if left.arrays and right.arrays:
            partners = self.view.free_arrays(right)
            for spot, array in self.view.free_arrays(left).items():
                partner = partners.get(spot)
                if partner is not None:
                    inner = self._array_worth(array, partner)
                    matched += inner[0]
                    shared += inner[1]
        return matched, shared

    def _array_worth(self, array: Array, partner: Array) -> tuple[int, int]:
        if array.keys is not None and partner.keys is not None:
            equal = sum((Counter(array.keys) & Counter(partner.keys)).values())
            return equal, equal
        left, right = array.elements, partner.elements
        if len(left) * len(right) <= SMALL:
            total = best_total(self.small_weights(left, right))
        else:
            problem = ArrayPair(self, left, right)
            solution = problem.solve()
            total = int(problem.pair_weights(solution.left, solution.right).sum())
        return divmod(total, self.scale)

    def small_weights(self, left: list[Element], right: list[Element]) -> Weights:
        worth = {}
        for i, element in enumerate(left):
            for j, other in enumerate(right):
                matched, shared = self.worth(element, other)
                if matched:
                    worth[i, j] = matched * self.scale + shared
        return worth


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
        if self.exact:
            self.bound = Overlap(self._make.named(left), self._make.named(right))
        else:
            self.bound = Overlap(*numbered(self._make.leaves(left), self._make.leaves(right)))
        self._shared: Overlap | None = None
        self._worth: dict[tuple[int, int], int] = {}

    def solve(self) -> Solution:
        """The best pairing; notes the array if it is not proven the best."""
        solution = best_pairing(self)
        if not solution.optimal:
            self.prices.greedy.sizes.add(max(len(self.left), len(self.right)))
        return solution

    def _common_paths(self) -> bool:
        paths = [
            {spot for element in side if element.arrays for spot in self.view.free_arrays(element)}
            for side in (self.left, self.right)
        ]
        return bool(paths[0] & paths[1])

    def weights(self, rows: Ints, columns: Ints) -> Floats:
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
        return np.array(
            [self._exact_weight(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)], dtype=np.float64
        )

    def _exact_weight(self, i: int, j: int) -> int:
        found = self._worth.get((i, j))
        if found is None:
            matched, shared = self.prices.worth(self.left[i], self.right[j])
            found = self._worth[i, j] = matched * self.scale + shared if matched else 0
        return found


def certain_pairs(worth: Weights) -> Pairs | None:
    """The best pairing, where it is plainly the only one; None where it takes a solver to tell."""
    return _undisputed(worth) or _mutual(worth)


def dense(worth: Weights, n: int, m: int) -> Floats:
    """Weights as a matrix."""
    weights = np.zeros((n, m))
    for (i, j), weight in worth.items():
        weights[i, j] = weight
    return weights


def best_total(worth: Weights) -> int:
    """The largest total weight of pairs that share no element."""
    pairs = certain_pairs(worth)
    if pairs is not None:
        return sum(worth[pair] for pair in pairs)
    rows, columns = ({place: n for n, place in enumerate(sorted(set(side)))} for side in zip(*worth, strict=True))
    weights = dense({(rows[i], columns[j]): weight for (i, j), weight in worth.items()}, len(rows), len(columns))
    chosen = best_assignment(weights)
    return int(weights[chosen].sum())


def _undisputed(worth: Weights) -> Pairs | None:
    """All positive pairs, if no element is in two of them."""
    pairs = list(worth)
    if len({i for i, _ in pairs}) == len(pairs) == len({j for _, j in pairs}):
        return pairs
    return None


def _mutual(worth: Weights) -> Pairs | None:
    """The pairs that are each other's best, if halves of their weights prove them the only best pairing."""
    best_left: dict[int, int] = {}
    best_right: dict[int, int] = {}
    for (i, j), weight in worth.items():
        if weight > best_left.get(i, 0):
            best_left[i] = weight
        if weight > best_right.get(j, 0):
            best_right[j] = weight
    pairs = [pair for pair, weight in worth.items() if weight == best_left[pair[0]] == best_right[pair[1]]]
    lefts, rights = dict(pairs), {j: i for i, j in pairs}
    if not len(lefts) == len(pairs) == len(rights):
        return None
    own_left = {i: worth[i, j] for i, j in pairs}
    own_right = {j: worth[i, j] for i, j in pairs}
    for (i, j), weight in worth.items():
        if lefts.get(i) != j and 2 * weight >= own_left.get(i, 0) + own_right.get(j, 0):
            return None
    return pairs
