"""Which of many texts are near which of many others.

Letters alone rule out most pairs; what texts have in common at both ends settles many of the rest; for the others the
longest common subsequence is counted bit by bit, for thousands of pairs at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .texts import Nearness, common, near

FEW, FEW_OPEN = 100, 20  # pairs that are compared one by one, of all and of those that letters do not settle
FEW_SIGNS = 4_000  # of all texts, up to which that is quicker
CELLS_AT_ONCE = 2_000_000  # of a table of letters
CELLS_IN_CACHE = 30_000
LETTERS_AT_ONCE = 200_000  # of small tables, compared at once
SIGNS_AT_ONCE = 4_000_000  # of texts laid side by side
WORD = 64  # bits
LONGEST = 2048  # signs; longer texts are compared pair by pair, which is quicker then
MOST_PLACES = 20_000_000
MOST_SHORT = 16_000  # signs of a text whose letters are counted in two bytes, and the sum of two such counts too
MOST_LETTERS = 64  # counted apart; others share places, which rules out a little less
Numbers = NDArray[Any]


def near_table(ours: Sequence[str | None], theirs: Sequence[str | None], nearness: Nearness) -> NDArray[np.bool_]:
    """For each text of ``ours`` (None for what is no text) which of ``theirs`` is near.

    Texts are compared with those of about their length: near ones are never half as long.
    """
    if len(ours) * len(theirs) <= FEW and sum(len(text or "") for text in (*ours, *theirs)) <= FEW_SIGNS:
        few = [_are_near(one, other, nearness) for one in ours for other in theirs]
        return np.array(few, bool).reshape(len(ours), len(theirs))
    table = np.zeros((len(ours), len(theirs)), bool)
    left, right = _by_length(ours), _by_length(theirs)
    for size, mine in left.items():
        others = [at for near_size in (size - 1, size, size + 1) for at in right.get(near_size, ())]
        if others:
            _fill(table, ours, theirs, np.array(mine), np.array(others), nearness)
    return table


def _are_near(one: str | None, other: str | None, nearness: Nearness) -> bool:
    return one is not None and other is not None and near(one, other, nearness)


def _by_length(texts: Sequence[str | None]) -> dict[int, list[int]]:
    """Which texts have a length of so many bits."""
    found: dict[int, list[int]] = {}
    for at, text in enumerate(texts):
        if text is not None:
            found.setdefault(len(text).bit_length(), []).append(at)
    return found


def _fill(
    table: NDArray[np.bool_],
    ours: Sequence[str | None],
    theirs: Sequence[str | None],
    left: Numbers,
    right: Numbers,
    nearness: Nearness,
) -> None:
    both = _Both([ours[at] or "" for at in left], [theirs[at] or "" for at in right], nearness)
    for one, other in both.candidates():
        for start in range(0, len(one), both.at_once):
            part = slice(start, start + both.at_once)
            hits = both.near(one[part], other[part])
            table[left[one[part][hits]], right[other[part][hits]]] = True


class _Side(NamedTuple):
    """Texts as rows of sign numbers from 1, 0 behind their ends; their lengths; how often a letter (row) is in each."""

    signs: Numbers
    lengths: Numbers
    letters: Numbers


class _Both:
    """Two lists of texts."""

    def __init__(self, ours: Sequence[str], theirs: Sequence[str], nearness: Nearness) -> None:
        alphabet = _signs(sorted({*"".join(ours), *"".join(theirs)}))
        self._ours, self._theirs = _side(ours, alphabet), _side(theirs, alphabet)
        self._nearness, self._texts = nearness, (ours, theirs)
        self._kinds = len(alphabet) + 1
        self.at_once = max(1, SIGNS_AT_ONCE // max(1, self._ours.signs.shape[1], self._theirs.signs.shape[1]))

    def candidates(self) -> Iterator[tuple[Numbers, Numbers]]:
        """Numbers of texts that their letters do not keep apart, as two arrays at a time."""
        ours, theirs = self._ours, self._theirs
        tile = max(1, CELLS_AT_ONCE // len(theirs.lengths))
        for start in range(0, len(ours.lengths), tile):
            part = slice(start, start + tile)
            together = ours.lengths[part, None] + theirs.lengths[None, :]
            slack = self._nearness.edits * together // self._nearness.of
            apart = _apart(ours.letters[:, part], theirs.letters)
            both = (ours.lengths[part, None] > 0) == (theirs.lengths[None, :] > 0)
            one, other = np.nonzero((apart <= slack) & both)
            yield one + start, other

    def near(self, one: Numbers, other: Numbers) -> Numbers:
        """Whether the texts of each pair are near."""
        mine, theirs = self._ours.lengths[one], self._theirs.lengths[other]
        together = mine + theirs
        slack = self._nearness.edits * together // self._nearness.of
        ends = np.minimum(self._common_start(one, other), np.minimum(mine, theirs))
        hits: Numbers = together - 2 * ends <= slack
        open_ = np.flatnonzero(~hits)
        if len(open_):
            shared = self._common(one[open_], other[open_])
            hits[open_] = together[open_] - 2 * shared <= slack[open_]
        return hits

    def _common_start(self, one: Numbers, other: Numbers) -> Numbers:
        """How many signs each pair has in common from its start."""
        width = min(self._ours.signs.shape[1], self._theirs.signs.shape[1])
        differ = self._ours.signs[one, :width] != self._theirs.signs[other, :width]
        starts: Numbers = np.where(differ.any(1), differ.argmax(1), width)
        return starts

    @cached_property
    def _places(self) -> Numbers | None:
        """`_places` of our texts; None where it would be too large."""
        texts, width = self._ours.signs.shape
        fits = width <= LONGEST and texts * self._kinds * -(-width // WORD) <= MOST_PLACES
        return _places(self._ours.signs, self._kinds) if fits else None

    def _common(self, one: Numbers, other: Numbers) -> Numbers:
        """Length of the longest common subsequence of each pair: one step per sign of the other text, all at once.

        A bit per sign of our text stays set as long as the sign is in no subsequence; carries go from word to word.
        """
        known = self._places if len(one) > FEW_OPEN else None
        if known is None:
            ours, theirs = self._texts
            return np.array([common(ours[i], theirs[j]) for i, j in zip(one, other, strict=True)])
        words = known.shape[2]
        rows = [np.full(len(one), ~np.uint64(0)) for _ in range(words)]
        lengths = self._theirs.lengths[other]
        for at in range(int(lengths.max(initial=0))):
            places = known[one, self._theirs.signs[other, at]]
            carry = np.zeros(len(one), np.uint64)
            for word in range(words):
                row = rows[word]
                hits = row & places[:, word]
                total = row + hits
                over = total < row
                total += carry
                carry = (over | (total < carry)).astype(np.uint64)
                rows[word] = total | (row & ~hits)
        shared = np.zeros(len(one), np.int64)
        mine = self._ours.lengths[one]
        for word, row in enumerate(rows):
            bits = np.clip(mine - WORD * word, 0, WORD).astype(np.uint64)
            mask = np.where(bits == WORD, ~np.uint64(0), (np.uint64(1) << (bits % np.uint64(WORD))) - np.uint64(1))
            shared += np.bitwise_count(~row & mask)
        return shared


def _signs(texts: Sequence[str]) -> Numbers:
    """The characters of all texts, one after the other, as numbers."""
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)


def _side(texts: Sequence[str], alphabet: Numbers) -> _Side:
    lengths = np.array([len(text) for text in texts], np.int32)
    signs = np.zeros((len(texts), max(1, int(lengths.max(initial=0)))), np.int32)
    signs[np.arange(signs.shape[1]) < lengths[:, None]] = np.searchsorted(alphabet, _signs(texts)) + 1
    kinds = max(1, min(len(alphabet), MOST_LETTERS))
    rows, columns = np.nonzero(signs)
    places = signs[rows, columns] % kinds * len(texts) + rows
    letters = np.bincount(places, minlength=kinds * len(texts)).reshape(kinds, len(texts))
    return _Side(signs, lengths, letters.astype(np.int16 if signs.shape[1] <= MOST_SHORT else np.int32))


def _apart(ours: Numbers, theirs: Numbers) -> Numbers:
    """In how many letters each of our texts differs from each of theirs; a few rows at a time, which a cache holds."""
    kind = np.promote_types(ours.dtype, theirs.dtype)
    if ours.size * theirs.shape[1] <= LETTERS_AT_ONCE:
        at_once: Numbers = np.abs(ours[:, :, None] - theirs[:, None, :]).sum(0, dtype=kind)
        return at_once
    apart = np.zeros((ours.shape[1], theirs.shape[1]), kind)
    tile = max(1, CELLS_IN_CACHE // theirs.shape[1])
    for start in range(0, len(apart), tile):
        part = apart[start : start + tile]
        differing = np.empty_like(part)
        for mine, other in zip(ours[:, start : start + tile], theirs, strict=True):
            np.subtract(mine[:, None], other[None, :], out=differing)
            part += np.abs(differing, out=differing)
    return apart


def _places(signs: Numbers, count: int) -> Numbers:
    """For each text and sign where it stands, as bits in words: texts x signs x words. Sign 0 stands nowhere."""
    texts, width = signs.shape
    words = -(-width // WORD)
    places = np.zeros((texts, count, words), np.uint64)
    for at in range(width):
        bit = np.uint64(1) << np.uint64(at % WORD)
        places[np.arange(texts), signs[:, at], at // WORD] |= bit
    places[:, 0] = 0
    return places
