"""Elements as tokens, which overlap.py counts: a token is a spot together with its key, or a spot alone.

In: elements or lists of scalars. Out: Tokens, one row per element or list.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .overlap import Tokens
from .tree import Array, Element
from .view import View


class TokenMaker:
    """``width`` is above every key number. To be made when all addresses into ordered arrays have their numbers."""

    def __init__(self, view: View, width: int) -> None:
        self.view, self.width, self.base = view, width, view.extra

    def named(self, elements: list[Element]) -> Tokens:
        """The keyed leaves of the named part."""
        width, base, flat = self.width, self.base, self.view.flat
        return _tokens([(spot + base) * width + key for spot, key in flat(element).items()] for element in elements)

    def spots(self, elements: list[Element]) -> Tokens:
        """The spots of the named part, whatever stands there."""
        base, flat = self.base, self.view.flat
        return _tokens([spot + base for spot in flat(element)] for element in elements)

    def leaves(self, elements: list[Element]) -> Tokens:
        """The keyed leaves of the named part and of everything in free arrays; they may repeat within an element."""
        return _tokens(self._leaves(element) for element in elements)

    def scalars(self, arrays: list[Array | None]) -> Tokens:
        """The keys of lists of scalars; they may repeat within a list."""
        return _tokens(array.keys or [] if array is not None else [] for array in arrays)

    def _leaves(self, element: Element) -> list[int]:
        width, base = self.width, self.base
        found = [(spot + base) * width + key for spot, key in self.view.flat(element).items()]
        for array in self.view.free_arrays(element).values():
            self._add_inner(array, found)
        return found

    def _add_inner(self, array: Array, found: list[int]) -> None:
        width, base = self.width, self.base
        if array.keys is not None:
            start = (array.item.id + base) * width
            found.extend([start + key for key in array.keys])
            return
        for element in array.elements:
            found.extend([(spot + base) * width + key for spot, key in element.named.items()])
            for inner in element.arrays.values():
                self._add_inner(inner, found)


def _tokens(rows: Iterable[list[int]]) -> Tokens:
    listed = list(rows)
    lengths = np.fromiter(map(len, listed), dtype=np.int64, count=len(listed))
    token = np.fromiter((token for row in listed for token in row), dtype=np.int64, count=int(lengths.sum()))
    return Tokens(len(listed), np.repeat(np.arange(len(listed), dtype=np.int64), lengths), token)
