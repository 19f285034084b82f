"""Aligns two trees: which predicted element stands for which gold one, and the counts that follow.

In: the two root Elements of one document. Out: an Alignment with the counts and, per pair of free arrays, the pairs
(METRIC_SPEC.md, "Aligning arrays"). Small arrays are priced pair by pair in plain Python; large ones go through
overlap counts and a certificate, which most often shows the best pairing to be unique without solving it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from .assign import Solution, best_assignment, best_pairing
from .overlap import Floats, Ints, Overlap, Tokens, numbered
from .tree import Array, Element, Steps, Trie, Vocabulary

SMALL = 36  # cells up to which plain Python is quicker than numpy
# Up to these sizes a pairing that is not unique is chosen as the public reference would choose it.
REFERENCE_CELLS, REFERENCE_CELLS_NESTED = 8_000_000, 1_000_000


class Limits:
    """From which sizes the reference solves an array greedily (METRIC_SPEC.md, "How much is solved exactly")."""

    dense = 64_000_000
    side = 20_000
    always = 250_000_000
    never = 500_000_000


Pairs = list[tuple[int, int]]  # positions in the two arrays' elements


class Alignment:
    """Counts of leaves and rows after alignment, and the pairs of every free array that both sides have.

    ``pairs`` maps the id of a predicted Array to its pairs; ``greedy`` are the sizes of the arrays that the reference
    would have solved greedily.
    """

    def __init__(self, trie: Trie, words: Vocabulary, scale: int, verdicts: bool, limits: type[Limits] = Limits) -> None:
        self.trie, self.words, self.scale, self.verdicts, self.limits = trie, words, scale, verdicts, limits
        self.shared = self.matched = self.matched_rows = self.invented_item = self.fabricated = 0
        self.pairs: dict[int, Pairs] = {}
        self.greedy: set[int] = set()
        self._slots = {spot.id for spot in trie.spots if spot.slot}
        self._flat_ids: dict[Steps, int] = {}
        self._flat_steps: dict[int, Steps] = {}
        self._key_rank: list[int] | None = None
        self._spot_rank: dict[int, int] = {}

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
        self._note_greedy(array, partner)
        if array.keys is not None and partner.keys is not None:
            return self._pair_scalars(array.keys, partner.keys)
        left, right = array.elements, partner.elements
        if len(left) * len(right) <= SMALL:
            worth = self._small_weights(left, right)
            pairs = _undisputed(worth) or _mutual(worth)
            return pairs if pairs is not None else self._as_reference(left, right, _dense(worth, len(left), len(right)))
        problem = _Pricing(self, left, right)
        solution = best_pairing(problem)
        limit = REFERENCE_CELLS if problem.exact else REFERENCE_CELLS_NESTED
        if solution.unique or len(left) * len(right) > limit:
            if not solution.optimal:
                self.greedy.add(max(len(left), len(right)))
            return _as_pairs(solution)
        weights = problem.weights(np.arange(len(left)), np.arange(len(right)))
        return self._as_reference(left, right, weights)

    def _as_reference(self, left: list[Element], right: list[Element], weights: Floats) -> Pairs:
        """The reference's own choice among equally good pairings: both sides sorted by content, then solved."""
        rows, columns = self._content_order(left), self._content_order(right)
        chosen_rows, chosen_columns = best_assignment(weights[np.ix_(rows, columns)])
        return list(zip(rows[chosen_rows].tolist(), columns[chosen_columns].tolist(), strict=True))

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
        texts = self.words.texts
        rows = sorted(range(len(left)), key=lambda i: texts[left[i]])
        columns = sorted(range(len(right)), key=lambda j: texts[right[j]])
        equal = np.array([left[i] for i in rows])[:, None] == np.array([right[j] for j in columns])[None, :]
        chosen_rows, chosen_columns = best_assignment(equal * float(self.scale + 1))
        return [(rows[i], columns[j]) for i, j in zip(chosen_rows, chosen_columns, strict=True)]

    # --- what a pair is worth -------------------------------------------------------------------------------------

    def flat(self, element: Element) -> dict[int, int]:
        """The named part: leaves reached without an index, and all of the arrays whose order counts."""
        if not self.trie.ordered:
            return element.named
        if element.flat is None:
            element.flat = dict(element.named)
            for array in element.arrays.values():
                if array.spot.ordered:
                    self._flatten(array, _steps(array.spot.names), element.flat)
        return element.flat

    def _flatten(self, array: Array, at: Steps, into: dict[int, int]) -> None:
        for index, element in zip(array.indices, array.elements, strict=True):
            here = (*at, ("i", index))
            for spot, key in element.named.items():
                into[self._flat_id((*here, *_steps(self.trie.spots[spot].names)))] = key
            for inner in element.arrays.values():
                self._flatten(inner, (*here, *_steps(inner.spot.names)), into)

    def _flat_id(self, steps: Steps) -> int:
        found = self._flat_ids.get(steps)
        if found is None:
            found = self._flat_ids[steps] = -1 - len(self._flat_ids)
            self._flat_steps[found] = steps
        return found

    def free_arrays(self, element: Element) -> dict[int, Array]:
        """The arrays of the nested part."""
        if not self.trie.ordered:
            return element.arrays
        return {spot: array for spot, array in element.arrays.items() if not array.spot.ordered}

    def worth(self, left: Element, right: Element) -> tuple[int, int]:
        """Matched and shared values of one pair, its inner arrays paired in the best way."""
        matched = shared = 0
        gold = self.flat(right)
        for spot, key in self.flat(left).items():
            other = gold.get(spot)
            if other is not None:
                shared += 1
                matched += other == key
        if left.arrays and right.arrays:
            partners = self.free_arrays(right)
            for spot, array in self.free_arrays(left).items():
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
            worth = self._small_weights(left, right)
            pairs = _undisputed(worth) or _mutual(worth)
            total = (
                sum(worth[pair] for pair in pairs)
                if pairs is not None
                else _total(_dense(worth, len(left), len(right)))
            )
        else:
            problem = _Pricing(self, left, right)
            solution = best_pairing(problem)
            total = int(problem.pair_weights(solution.left, solution.right).sum())
        return divmod(total, self.scale)

    def _small_weights(self, left: list[Element], right: list[Element]) -> dict[tuple[int, int], int]:
        worth = {}
        for i, element in enumerate(left):
            for j, other in enumerate(right):
                matched, shared = self.worth(element, other)
                if matched:
                    worth[i, j] = matched * self.scale + shared
        return worth

    # --- content order --------------------------------------------------------------------------------------------

    def _content_order(self, elements: list[Element]) -> Ints:
        keys = [self._content(element) for element in elements]
        return np.array(sorted(range(len(elements)), key=keys.__getitem__), dtype=np.int64)

    def _content(self, element: Element) -> Any:
        """What elements are sorted by: the sorted (address, key) of the named part, then the inner arrays' contents.

        Numbers stand for addresses and keys where that keeps their order as texts.
        """
        if self.trie.ordered:
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
        names = sorted({spot.names for spot in self.trie.spots})
        ranks = {name: rank for rank, name in enumerate(names)}
        self._spot_rank = {spot.id: ranks[spot.names] for spot in self.trie.spots}

    def _content_as_texts(self, element: Element) -> Any:
        named = []
        for spot, key in self.flat(element).items():
            steps = self._flat_steps[spot] if spot < 0 else _steps(self.trie.spots[spot].names)
            named.append((tuple((kind, str(name)) for kind, name in steps), self.words.texts[key]))
        inner = [
            (_steps(self.trie.spots[spot].names), sorted(self._content_as_texts(member) for member in array.elements))
            for spot, array in self.free_arrays(element).items()
        ]
        return sorted(named), sorted(inner)

    # --- what the reference would have solved greedily ------------------------------------------------------------

    def _note_greedy(self, array: Array, partner: Array) -> None:
        """Notes the sizes that the reference solves greedily, of inner arrays of pairs never chosen too."""
        n, m = len(array), len(partner)
        if self._is_greedy(array, partner):
            self.greedy.add(max(n, m))
        if array.keys is not None or partner.keys is not None:
            return
        inner: dict[int, tuple[list[Array], list[Array]]] = {}
        for side, elements in enumerate((array.elements, partner.elements)):
            for element in elements:
                if element.arrays:
                    for spot, member in self.free_arrays(element).items():
                        inner.setdefault(spot, ([], []))[side].append(member)
        for lefts, rights in inner.values():
            if lefts and rights and max(map(len, lefts)) * max(map(len, rights)) > self.limits.dense:
                for left in lefts:
                    for right in rights:
                        self._note_greedy(left, right)

    def _is_greedy(self, array: Array, partner: Array) -> bool:
        n, m = len(array), len(partner)
        cells, limits = n * m, self.limits
        if cells <= limits.dense or array.keys is not None or partner.keys is not None:
            return False
        left_paths = {spot for element in array.elements for spot in self.free_arrays(element)}
        right_paths = {spot for element in partner.elements for spot in self.free_arrays(element)}
        if not left_paths & right_paths:
            return False
        if min(n, m) > limits.side or cells > limits.never:
            return True
        if cells <= limits.always:
            return False
        counts = [
            Counter(item for element in side.elements for item in self.flat(element).items()) for side in (array, partner)
        ]
        equal = sum(times * counts[1][item] for item, times in counts[0].items())
        return 8 * cells > 72 * min(cells, equal)


class _Pricing:
    """Two arrays as a Problem (see assign.py): bounds from tokens, exact weights by spots or by recursion."""

    def __init__(self, alignment: Alignment, left: list[Element], right: list[Element]) -> None:
        self.alignment, self.left, self.right = alignment, left, right
        self.scale = alignment.scale
        self.left_leaves = np.array([element.leaves for element in left], dtype=np.int64)
        self.right_leaves = np.array([element.leaves for element in right], dtype=np.int64)
        self.exact = not self._common_paths()
        self._base = len(alignment._flat_ids)
        if alignment.trie.ordered:  # flattened addresses get their numbers before tokens are made of them
            for element in (*left, *right):
                alignment.flat(element)
            self._base = len(alignment._flat_ids)
        tokens = self._tokens(left, keyed=True), self._tokens(right, keyed=True)
        self.bound = Overlap(*(tokens if self.exact else numbered(*tokens)))
        self._shared: Overlap | None = None
        self._worth: dict[tuple[int, int], int] = {}

    def _common_paths(self) -> bool:
        paths = [
            {spot for element in side if element.arrays for spot in self.alignment.free_arrays(element)}
            for side in (self.left, self.right)
        ]
        return bool(paths[0] & paths[1])

    def _tokens(self, side: list[Element], *, keyed: bool) -> Tokens:
        width, base = len(self.alignment.words.texts), self._base
        row: list[int] = []
        token: list[int] = []
        for element in side:
            before = len(token)
            named = self.alignment.flat(element)
            if keyed:
                token.extend([(spot + base) * width + key for spot, key in named.items()])
                if not self.exact:
                    for array in self.alignment.free_arrays(element).values():
                        self._inner_tokens(array, token)
            else:
                token.extend(spot + base for spot in named)
            row.append(len(token) - before)
        rows = np.repeat(np.arange(len(side), dtype=np.int64), np.array(row, dtype=np.int64))
        tokens = np.array(token, dtype=np.int64)
        return Tokens(len(side), rows, tokens)

    def _inner_tokens(self, array: Array, into: list[int]) -> None:
        width, base = len(self.alignment.words.texts), self._base
        if array.keys is not None:
            start = (array.item.id + base) * width
            into.extend([start + key for key in array.keys])
            return
        for element in array.elements:
            into.extend([(spot + base) * width + key for spot, key in element.named.items()])
            for inner in element.arrays.values():
                self._inner_tokens(inner, into)

    def weights(self, rows: Ints, columns: Ints) -> Floats:
        counts = self.bound.part(rows, columns).astype(np.float64)
        if self.exact:
            if self._shared is None:
                self._shared = Overlap(*(self._tokens(side, keyed=False) for side in (self.left, self.right)))
            positive = counts > 0
            counts *= self.scale
            counts += self._shared.part(rows, columns)
            counts *= positive
            return counts
        for i, j in np.argwhere(counts > 0).tolist():
            counts[i, j] = self._exact_weight(int(rows[i]), int(columns[j]))
        return counts

    def pair_weights(self, rows: Ints, columns: Ints) -> Floats:
        return np.array(
            [self._exact_weight(i, j) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)], dtype=np.float64
        )

    def _exact_weight(self, i: int, j: int) -> int:
        found = self._worth.get((i, j))
        if found is None:
            matched, shared = self.alignment.worth(self.left[i], self.right[j])
            found = self._worth[i, j] = matched * self.scale + shared if matched else 0
        return found


def _steps(names: tuple[str, ...]) -> Steps:
    return tuple(("k", name) for name in names)


def _as_pairs(solution: Solution) -> Pairs:
    return list(zip(solution.left.tolist(), solution.right.tolist(), strict=True))


def _dense(worth: dict[tuple[int, int], int], n: int, m: int) -> Floats:
    weights = np.zeros((n, m))
    for (i, j), weight in worth.items():
        weights[i, j] = weight
    return weights


def _total(weights: Floats) -> int:
    rows, columns = best_assignment(weights)
    return int(weights[rows, columns].sum())


def _undisputed(worth: dict[tuple[int, int], int]) -> Pairs | None:
    """All positive pairs, if no element is in two of them."""
    pairs = list(worth)
    if len({i for i, _ in pairs}) == len(pairs) == len({j for _, j in pairs}):
        return pairs
    return None


def _mutual(worth: dict[tuple[int, int], int]) -> Pairs | None:
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
