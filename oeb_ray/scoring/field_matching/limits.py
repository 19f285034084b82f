"""Which arrays the reference solves greedily, because of their size (METRIC_SPEC.md, "How much is solved exactly").

In: two arrays that are paired. Out: the sizes that count as approximated, whatever we do with them ourselves.
"""

from __future__ import annotations

from collections import Counter

from .tree import Array
from .view import View


class Limits:
    """From which sizes the reference solves an array greedily (METRIC_SPEC.md, "How much is solved exactly")."""

    dense = 64_000_000
    side = 20_000
    always = 250_000_000
    never = 500_000_000


class GreedyNotes:
    """``sizes``: of all arrays noted so far that the reference would have solved greedily."""

    def __init__(self, view: View, limits: type[Limits]) -> None:
        self.view, self.limits = view, limits
        self.sizes: set[int] = set()

    def note(self, array: Array, partner: Array) -> None:
        """Notes the sizes that the reference solves greedily, of inner arrays of pairs never chosen too."""
        n, m = len(array), len(partner)
        if self._is_greedy(array, partner):
            self.sizes.add(max(n, m))
        if array.keys is not None or partner.keys is not None:
            return
        inner: dict[int, tuple[list[Array], list[Array]]] = {}
        for side, elements in enumerate((array.elements, partner.elements)):
            for element in elements:
                if element.arrays:
                    for spot, member in self.view.free_arrays(element).items():
                        inner.setdefault(spot, ([], []))[side].append(member)
        for lefts, rights in inner.values():
            if lefts and rights and max(map(len, lefts)) * max(map(len, rights)) > self.limits.dense:
                for left in lefts:
                    for right in rights:
                        self.note(left, right)

    def _is_greedy(self, array: Array, partner: Array) -> bool:
        n, m = len(array), len(partner)
        cells, limits = n * m, self.limits
        if cells <= limits.dense or array.keys is not None or partner.keys is not None:
            return False
        left_paths = {spot for element in array.elements for spot in self.view.free_arrays(element)}
        right_paths = {spot for element in partner.elements for spot in self.view.free_arrays(element)}
        if not left_paths & right_paths:
            return False
        if min(n, m) > limits.side:
            return True
        if cells <= limits.always or cells > limits.never:
            return cells > limits.always
        counts = [
            Counter(item for element in side.elements for item in self.view.flat(element).items())
            for side in (array, partner)
        ]
        equal = sum(times * counts[1][item] for item, times in counts[0].items())
        return 8 * cells > 72 * min(cells, equal)
