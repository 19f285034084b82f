"""What a pair of elements is worth (METRIC_SPEC.md, "The best pairing").

In: elements of both sides. Out: weights, ``matched * scale + shared`` where anything matches, with inner arrays paired
in the best way. Small arrays are priced pair by pair in plain Python; large.py, and with it numpy, is loaded when it is
first needed.
"""

from __future__ import annotations

from collections import Counter

from .limits import GreedyNotes
from .tree import Array, Element, Vocabulary
from .view import View

SMALL = 36  # cells up to which plain Python is quicker than numpy
FEW = 6  # pairs up to which trying all choices is quicker than the solver

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
            from .large import ArrayPair

            total = ArrayPair(self, left, right).total()
        return divmod(total, self.scale)

    def small_weights(self, left: list[Element], right: list[Element]) -> Weights:
        worth = {}
        for i, element in enumerate(left):
            for j, other in enumerate(right):
                matched, shared = self.worth(element, other)
                if matched:
                    worth[i, j] = matched * self.scale + shared
        return worth


def certain_pairs(worth: Weights) -> Pairs | None:
    """The best pairing, where it is plainly the only one; None where it takes a solver to tell."""
    return _undisputed(worth) or _mutual(worth)


def best_total(worth: Weights) -> int:
    """The largest total weight of pairs that share no element."""
    pairs = certain_pairs(worth)
    if pairs is not None:
        return sum(worth[pair] for pair in pairs)
    if len(worth) <= FEW:
        return _most([(i, j, weight) for (i, j), weight in worth.items()], 0, frozenset(), frozenset())
    from .large import solved_total

    return solved_total(worth)


def _most(pairs: list[tuple[int, int, int]], at: int, left: frozenset[int], right: frozenset[int]) -> int:
    """The largest total of the pairs from ``at`` on without the elements taken: each is left out, then put in."""
    if at == len(pairs):
        return 0
    i, j, weight = pairs[at]
    without = _most(pairs, at + 1, left, right)
    if i in left or j in right:
        return without
    return max(without, weight + _most(pairs, at + 1, left | {i}, right | {j}))


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
