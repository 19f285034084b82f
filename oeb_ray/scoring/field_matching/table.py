"""Flat rows as columns of key numbers, and how many equal values any two rows share.

In: the named parts of the elements of two arrays. Out: counts of equal values, and of values that both state, for any
pairs of rows. A common value (a unit, a flag) is compared column against column; a rare one (an invoice number) adds
to just the pairs that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .overlap import BLOCK_CELLS, KEPT_CELLS, Floats, Ints

Named = dict[int, int]  # spot number to key number
Keys = NDArray[np.int32]
Counts = NDArray[Any]  # small unsigned integers

TILE_CELLS = 500_000  # compared at once: what the processor's cache holds
_RARE = 32  # a column in which fewer than one of so many pairs agree is added pair by pair
_ROOM = 4  # cells per value above which a matrix of keys is mostly holes


def key_matrix(rows: Sequence[Named], spots: Sequence[int]) -> Keys:
    """The keys of ``rows`` at ``spots``, one column each; 0 where a row states nothing."""
    place = {spot: column for column, spot in enumerate(spots)}
    shapes: dict[tuple[int, ...], list[int]] = {}
    for number, row in enumerate(rows):
        shapes.setdefault(tuple(row), []).append(number)
    matrix = np.zeros((len(rows), len(spots)), dtype=np.int32)
    for shape, members in shapes.items():
        known = [(at, place[spot]) for at, spot in enumerate(shape) if spot in place]
        if known:
            values = chain.from_iterable([rows[number].values() for number in members])
            keys = np.fromiter(values, dtype=np.int32, count=len(shape) * len(members)).reshape(len(members), -1)
            taken, columns = zip(*known, strict=True)
            matrix[np.array(members)[:, None], columns] = keys[:, taken]
    return matrix


class _Column:
    """One spot: the keys of both sides, renumbered so that those common to both are small and no other agree."""

    def __init__(self, left: Keys, right: Keys, left_times: Ints, right_times: Ints) -> None:
        common = np.flatnonzero(left_times[1:] * right_times[1:]) + 1
        last = len(common) + 1
        kind: Any = np.uint8 if last <= 255 else np.uint16 if last <= 65_535 else np.int32
        number = np.zeros(len(left_times), dtype=kind)
        number[common] = np.arange(1, last)
        self.left, self.right = number[left], number[right]
        self.right[self.right == 0] = last
        pairs = int(left_times[common] @ right_times[common])
        self.rare = pairs * _RARE <= len(left) * len(right)
        if self.rare:  # every left row that has a partner, with the run of its partners among the sorted right rows
            self.row = np.flatnonzero(self.left)
            self.partners = np.argsort(self.right, kind="stable")
            times = np.bincount(self.right, minlength=last + 1)
            key = self.left[self.row]
            self.times = times[key]
            self.start = (np.cumsum(times) - times)[key]

    def add_pairs(self, counts: Counts, start: int, stop: int) -> None:
        first, last = np.searchsorted(self.row, (start, stop))
        times = self.times[first:last]
        ends = np.cumsum(times)
        if len(ends):
            within = np.arange(ends[-1]) - np.repeat(ends - times - self.start[first:last], times)
            counts[np.repeat(self.row[first:last] - start, times), self.partners[within]] += 1


class Table:
    """Two arrays of flat rows. An Overlap (overlap.py) whose counts are those of equal values, exactly."""

    def __init__(self, left: Keys, right: Keys) -> None:
        self.n, self.m = len(left), len(right)
        self.left, self.right = left, right
        self._kind: Any = np.uint8 if left.shape[1] <= 255 else np.uint16
        self._kept: Counts | None = None
        self._columns = list(self._agreeing(left, right))
        self._shared: tuple[Ints, NDArray[np.float32]] | None = None

    @staticmethod
    def _agreeing(left: Keys, right: Keys) -> Iterator[_Column]:
        highest = max(int(left.max(initial=0)), int(right.max(initial=0)))
        if highest > 8 * (left.size + right.size):  # few rows of a large document
            _, numbers = np.unique(np.concatenate(([0], left.ravel(), right.ravel())), return_inverse=True)
            renumbered = numbers.astype(np.int32)
            left, right = (
                renumbered[1 : left.size + 1].reshape(left.shape),
                renumbered[left.size + 1 :].reshape(right.shape),
            )
            highest = int(numbers.max())
        for one, other in zip(left.T, right.T, strict=True):
            times, other_times = np.bincount(one, minlength=highest + 1), np.bincount(other, minlength=highest + 1)
            if (times[1:] * other_times[1:]).any():
                yield _Column(one, other, times, other_times)

    def _count(self, out: Counts, columns: Iterable[_Column], rows: Any, others: Any) -> None:
        """Adds to ``out`` what the listed rows of both sides have in common in the columns."""
        pairs = [(column.left[rows], column.right[others][None, :]) for column in columns]
        step = max(1, TILE_CELLS // max(out.shape[1], 1))
        for start in range(0, len(out), step):
            tile = out[start : start + step]
            for left, right in pairs:
                np.add(tile, (left[start : start + step, None] == right).view(np.uint8), out=tile)

    def block(self, start: int, stop: int) -> Counts:
        """Counts of the rows ``start`` to ``stop`` of the left side with all of the right."""
        if self._kept is not None:
            return self._kept[start:stop]
        counts = np.zeros((stop - start, self.m), dtype=self._kind)
        self._count(counts, (column for column in self._columns if not column.rare), slice(start, stop), slice(None))
        for column in self._columns:
            if column.rare:
                column.add_pairs(counts, start, stop)
        return counts

    def blocks(self) -> Iterator[tuple[int, Counts]]:
        """All blocks in order, each with the number of its first row; kept for the next pass while they are small."""
        if self._kept is None and self.n * self.m <= KEPT_CELLS:
            self._kept = self.block(0, self.n)
        step = max(1, BLOCK_CELLS // max(self.m, 1))
        for start in range(0, self.n, step):
            yield start, self.block(start, min(start + step, self.n))

    def part(self, rows: Ints, columns: Ints) -> Counts:
        """Counts of the listed rows alone."""
        if self._kept is not None:
            return self._kept[rows[:, None], columns]
        counts = np.zeros((len(rows), len(columns)), dtype=self._kind)
        self._count(counts, self._columns, rows, columns)
        return counts

    def weights(self, rows: Ints, columns: Ints, scale: int) -> Floats:
        """Weights (assign.py) of the listed rows, ``count * scale + shared``, 0 where nothing is equal."""
        return self._sums(rows, columns, scale, only_equal=True)

    def sums(self, scale: int) -> Floats:
        """``count * scale + shared`` of all pairs, also where nothing is equal."""
        return self._sums(np.arange(self.n), np.arange(self.m), scale, only_equal=False)

    def _sums(self, rows: Ints, columns: Ints, scale: int, *, only_equal: bool) -> Floats:
        counts = self.part(rows, columns)
        shape, shared = self._shared_by_shape()
        shared = shared[:, columns]
        sums = np.empty(counts.shape)
        step = max(1, TILE_CELLS // max(len(columns), 1))
        for start in range(0, len(rows), step):
            tile, here = counts[start : start + step], sums[start : start + step]
            np.multiply(tile, float(scale), out=here)
            here += shared[shape[rows[start : start + step]]]
            if only_equal:
                here *= tile > 0
        return sums

    def pair_weights(self, rows: Ints, columns: Ints, scale: int) -> Floats:
        """Weights of single pairs."""
        left, right = self.left[rows], self.right[columns]
        stated = left > 0
        equal = ((left == right) & stated).sum(axis=1)
        shared = (stated & (right > 0)).sum(axis=1)
        return np.where(equal > 0, equal * float(scale) + shared, 0.0)

    def _shared_by_shape(self) -> tuple[Ints, NDArray[np.float32]]:
        """The shape of each left row (the spots that it states), and per shape the spots shared with each right row."""
        if self._shared is None:
            (shapes, shape), (others, other) = _shapes(self.left > 0), _shapes(self.right > 0)
            self._shared = shape, (shapes @ others.T)[:, other]
        return self._shared


def _shapes(stated: NDArray[np.bool_]) -> tuple[NDArray[np.float32], Ints]:
    """The distinct rows, and which of them each row is."""
    packed = np.ascontiguousarray(np.packbits(stated, axis=1))
    if not packed.shape[1]:
        return np.zeros((1, 0), dtype=np.float32), np.zeros(len(stated), dtype=np.int64)
    _, first, shape = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return stated[first].astype(np.float32), shape


def table_of(left: Sequence[Named], right: Sequence[Named]) -> Table | None:
    """The table of two arrays' named parts; None where their rows state so different spots that it would be holes."""
    spots = sorted(_spots(left) & _spots(right))
    if _is_mostly_holes((*left, *right), spots):
        return None
    return Table(key_matrix(left, spots), key_matrix(right, spots))


def _spots(rows: Iterable[Named]) -> set[int]:
    return set().union(*{tuple(row) for row in rows})


def _is_mostly_holes(rows: Sequence[Named], spots: Sequence[int]) -> bool:
    return len(spots) * len(rows) > _ROOM * sum(map(len, rows)) + 10_000


def content_classes(rows: Sequence[Named], name: Callable[[int], Any], texts: Sequence[str]) -> list[int] | None:
    """Per row its place among the distinct rows, sorted as lists of (name of spot, text of key); None as `table_of`."""
    spots = sorted(_spots(rows), key=name)
    if _is_mostly_holes(rows, spots):
        return None
    keys = key_matrix(rows, spots)
    last = np.where(keys > 0, np.arange(len(spots)), -1).max(axis=1, initial=-1)
    classes = np.zeros(len(rows), dtype=np.int64)
    for column in range(len(spots)):
        tied = np.flatnonzero(np.bincount(classes)[classes] > 1)
        if not len(tied):
            break
        known, key = np.unique(keys[tied, column], return_inverse=True)
        rank = np.empty(len(known), dtype=np.int64)
        rank[sorted(range(len(known)), key=[texts[number] for number in known.tolist()].__getitem__)] = np.arange(
            1, len(known) + 1
        )
        # A row that goes on without this spot comes after all that have it, a row that ends here before them.
        absent = keys[tied, column] == 0
        place = np.zeros(len(rows), dtype=np.int64)
        place[tied] = np.where(absent, np.where(last[tied] > column, len(known) + 1, 0), rank[key])
        classes = np.unique(classes * (len(known) + 2) + place, return_inverse=True)[1]
    return classes.tolist()
