"""Aligns two trees: which predicted element stands for which gold one, and the counts that follow.

In: the two root Elements of one document. Out: an Alignment with the counts and, per pair of free arrays, the pairs
(METRIC_SPEC.md, "Aligning arrays"). Small arrays are priced pair by pair in plain Python; large ones go through
overlap counts and a certificate, which most often shows the best pairing to be unique without solving it. What takes
numpy lies in large.py, loaded when first needed: a document with small arrays is scored before it is.
"""

from __future__ import annotations

from . import pricing
from .content import ContentOrder
from .limits import GreedyNotes, Limits
from .pricing import Pairs, Prices, certain_pairs
from .schema import Trie
from .tree import Array, Element, Vocabulary
from .view import View

# Up to these sizes a pairing that is not unique is chosen as the public reference would choose it.
REFERENCE_CELLS, REFERENCE_CELLS_NESTED = 8_000_000, 1_000_000


class Alignment:
    """Counts of leaves and rows after alignment, and the pairs of every free array that both sides have.

    ``pairs`` maps the id of a predicted Array to its pairs; ``greedy`` are the sizes of the arrays that the reference
    would have solved greedily.
    """

    def __init__(
        self, trie: Trie, words: Vocabulary, scale: int, verdicts: bool, limits: type[Limits] = Limits
    ) -> None:
        self.trie, self.words, self.scale, self.verdicts = trie, words, scale, verdicts
        self.shared = self.matched = self.matched_rows = self.invented_item = self.fabricated = 0
        self.pairs: dict[int, Pairs] = {}
        view = View(trie)
        self._greedy = GreedyNotes(view, limits)
        self._prices, self._content = Prices(view, words, scale, self._greedy), ContentOrder(view, words)
        self._slots = {spot.id for spot in trie.spots if spot.slot}

    @property
    def greedy(self) -> set[int]:
        return self._greedy.sizes

    # --- the aligned walk, which counts ---------------------------------------------------------------------------

    def align(self, left: Element, right: Element) -> None:
        """Counts one predicted element against the gold one it stands for, and everything inside."""
        gold = right.named
        for spot, key in left.named.items():
            other = gold.get(spot)
            if other is None:
                self.fabricated += spot in self._slots
            else:
                self.shared += 1
                self.matched += other == key
        for spot, array in left.arrays.items():
            partner = right.arrays.get(spot)
            if partner is None:
                self._alone(array)
            elif array.spot.ordered:
                self._align_ordered(array, partner)
            else:
                self._align_free(array, partner)

    def _alone(self, array: Array) -> None:
        """A predicted array that the gold lacks: no item is invented, since nothing could be paired."""
        if array.keys is not None:
            self.fabricated += len(array.keys) * (array.item.id in self._slots)
            return
        for element in array.elements:
            self._alone_element(element)

    def _alone_element(self, element: Element) -> None:
        for spot in element.named:
            self.fabricated += spot in self._slots
        for inner in element.arrays.values():
            self._alone(inner)

    def _align_ordered(self, array: Array, partner: Array) -> None:
        gold = dict(zip(partner.indices, partner.elements, strict=True))
        for index, element in zip(array.indices, array.elements, strict=True):
            other = gold.get(index)
            if other is None:
                self._alone_element(element)
            else:
                self.matched_rows += element.row and other.row
                self.align(element, other)

    def _align_free(self, array: Array, partner: Array) -> None:
        pairs = self.pairs[id(array)] = self._pair(array, partner)
        if array.keys is not None and partner.keys is not None:
            self.shared += len(pairs)
            self.matched += len(pairs)
            self.invented_item += len(array) - len(pairs)
            return
        left, right = array.elements, partner.elements
        paired = 0
        for i, j in pairs:
            paired += left[i].leaves
            self.matched_rows += left[i].row and right[j].row
            self.align(left[i], right[j])
        self.invented_item += array.leaves - paired

    # --- pairing two free arrays ----------------------------------------------------------------------------------

    def _pair(self, array: Array, partner: Array) -> Pairs:
        self._greedy.note(array, partner)
        if array.keys is not None and partner.keys is not None:
            return self._pair_scalars(array.keys, partner.keys)
        left, right = array.elements, partner.elements
        if len(left) * len(right) <= pricing.SMALL:
            worth = self._prices.small_weights(left, right)
            pairs = certain_pairs(worth)
            if pairs is not None:
                return pairs
            from .large import as_reference, dense

            return as_reference(self._content, left, right, dense(worth, len(left), len(right)))
        return self._pair_large(left, right)

    def _pair_large(self, left: list[Element], right: list[Element]) -> Pairs:
        from .large import ArrayPair, as_pairs

        problem = ArrayPair(self._prices, left, right)
        limit = REFERENCE_CELLS if problem.exact else REFERENCE_CELLS_NESTED
        if len(left) * len(right) <= limit:
            return problem.solve_as_reference(self._content)
        return as_pairs(problem.solve())

    def _pair_scalars(self, left: list[int], right: list[int]) -> Pairs:
        """Equal values pair; which of several equal ones do only shows in the list of verdicts."""
        places: dict[int, list[int]] = {}
        for j, key in enumerate(right):
            places.setdefault(key, []).append(j)
        pairs = []
        repeats = False
        seen: set[int] = set()
        for i, key in enumerate(left):
            waiting = places.get(key)
            if waiting is not None:
                repeats = repeats or key in seen or len(waiting) > 1
                seen.add(key)
                if waiting:
                    pairs.append((i, waiting.pop(0)))
        if not (repeats and self.verdicts and len(left) * len(right) <= REFERENCE_CELLS):
            return pairs
        from .large import scalars_as_reference

        return scalars_as_reference(left, right, self.words.texts, float(self.scale + 1))
