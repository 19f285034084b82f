"""Content order: how the reference sorts the elements of an array before it solves it.

In: elements. Out: their order by (address, key) of the named part, then by the contents of inner arrays. Which of
several equally good pairings the solver finds depends on it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .tree import Element, Vocabulary
from .view import View

MANY = 40  # elements from which sorting by columns is quicker than element by element


class ContentOrder:
    """See the module's text. To be made after both documents have been read, since it ranks their keys."""

    def __init__(self, view: View, words: Vocabulary) -> None:
        self.view, self.words = view, words
        self._key_rank: list[int] | None = None
        self._spot_rank: dict[int, int] = {}

    def order(self, elements: list[Element]) -> list[int]:
        """The positions of the elements, sorted."""
        if self.view.plain and len(elements) >= MANY:
            from .table import content_classes

            spots = self.view.trie.spots
            classes = content_classes(
                [element.named for element in elements], lambda spot: spots[spot].names, self.words.texts
            )
            if classes is not None:
                return self._order_within(elements, classes)
        keys = [self._content(element) for element in elements]
        return sorted(range(len(elements)), key=keys.__getitem__)

    def _order_within(self, elements: list[Element], classes: list[int]) -> list[int]:
        """By class, and elements of one class by their inner arrays."""
        if not any(element.arrays for element in elements):
            return sorted(range(len(elements)), key=classes.__getitem__)
        times = Counter(classes)
        keys = [
            (number, self._content(element)[1] if times[number] > 1 else [])
            for number, element in zip(classes, elements, strict=True)
        ]
        return sorted(range(len(elements)), key=keys.__getitem__)

    def _content(self, element: Element) -> Any:
        """What elements are sorted by: the sorted (address, key) of the named part, then the inner arrays' contents.

        Numbers stand for addresses and keys where that keeps their order as texts.
        """
        if not self.view.plain:
            return self._content_as_texts(element)
        if self._key_rank is None:
            self._rank()
        assert self._key_rank is not None
        keys, spots, width = self._key_rank, self._spot_rank, len(self._key_rank)
        named = sorted([spots[spot] * width + keys[key] for spot, key in element.named.items()])
        if not element.arrays:
            return named, []
        inner = [
            (spots[spot], sorted(self._content(member) for member in array.elements))
            for spot, array in element.arrays.items()
        ]
        return named, sorted(inner)

    def _rank(self) -> None:
        texts = self.words.texts
        self._key_rank = [0] * len(texts)
        for rank, number in enumerate(sorted(range(len(texts)), key=texts.__getitem__)):
            self._key_rank[number] = rank
        names = sorted({spot.names for spot in self.view.trie.spots})
        ranks = {name: rank for rank, name in enumerate(names)}
        self._spot_rank = {spot.id: ranks[spot.names] for spot in self.view.trie.spots}

    def _content_as_texts(self, element: Element) -> Any:
        named = []
        for spot, key in self.view.flat(element).items():
            steps = tuple((kind, str(name)) for kind, name in self.view.steps_of(spot))
            named.append((steps, self.words.texts[key]))
        inner = [
            (self.view.steps_of(spot), sorted(self._content_as_texts(member) for member in array.elements))
            for spot, array in self.view.free_arrays(element).items()
        ]
        return sorted(named), sorted(inner)
