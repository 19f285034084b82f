"""Elements as they are priced: a named part and free arrays (METRIC_SPEC.md, "Aligning arrays").

In: an Element. Out: its leaves reached without an index, together with all leaves of arrays whose order counts, since
those are compared by position; and its other arrays. Without such arrays both are the element's own.
"""

from __future__ import annotations

from .schema import Trie
from .tree import Array, Element, Steps


class View:
    """See the module's text. Addresses into ordered arrays get negative numbers, beside those of spots."""

    def __init__(self, trie: Trie) -> None:
        self.trie = trie
        self.plain = not trie.ordered
        self._ids: dict[Steps, int] = {}
        self._steps: dict[int, Steps] = {}

    @property
    def extra(self) -> int:
        """How many negative numbers are in use."""
        return len(self._ids)

    def flat(self, element: Element) -> dict[int, int]:
        """The named part: leaves reached without an index, and all of the arrays whose order counts."""
        if self.plain:
            return element.named
        if element.flat is None:
            element.flat = dict(element.named)
            for array in element.arrays.values():
                if array.spot.ordered:
                    self._flatten(array, steps_to(array.spot.names), element.flat)
        return element.flat

    def _flatten(self, array: Array, at: Steps, into: dict[int, int]) -> None:
        for index, element in zip(array.indices, array.elements, strict=True):
            here = (*at, ("i", index))
            for spot, key in element.named.items():
                into[self._flat_id((*here, *steps_to(self.trie.spots[spot].names)))] = key
            for inner in element.arrays.values():
                self._flatten(inner, (*here, *steps_to(inner.spot.names)), into)

    def _flat_id(self, steps: Steps) -> int:
        found = self._ids.get(steps)
        if found is None:
            found = self._ids[steps] = -1 - len(self._ids)
            self._steps[found] = steps
        return found

    def steps_of(self, number: int) -> Steps:
        """The steps of an address within its element."""
        return self._steps[number] if number < 0 else steps_to(self.trie.spots[number].names)

    def free_arrays(self, element: Element) -> dict[int, Array]:
        """The arrays of the nested part."""
        if self.plain:
            return element.arrays
        return {spot: array for spot, array in element.arrays.items() if not array.spot.ordered}


def steps_to(names: tuple[str, ...]) -> Steps:
    """Key steps."""
    return tuple(("k", name) for name in names)
