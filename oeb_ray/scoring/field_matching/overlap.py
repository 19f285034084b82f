"""How many equal values any two elements of two arrays share, for arrays too large to compare pair by pair.

In: for each side the tokens of its elements (a token is a spot with its key, numbered where it repeats inside inner
arrays). Out: dense blocks of the count of common tokens. For flat rows that count is the number of matched values;
with inner arrays it is an upper bound of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Block = NDArray[np.float32]

BLOCK_CELLS = 4_000_000  # cells compared at once
KEPT_CELLS = 64_000_000  # up to here the counts are kept between passes, above they are counted again
_DENSE_SHARE = (
    50  # a token common to more than 1/50 of all pairs is multiplied out, a rarer one is counted pair by pair
)


class Tokens:
    """The tokens of one side: parallel arrays ``row`` and ``token``, no pair twice; ``rows`` elements in all."""

    def __init__(self, rows: int, row: Ints, token: Ints) -> None:
        self.rows, self.row, self.token = rows, row, token


def numbered(left: Tokens, right: Tokens) -> tuple[Tokens, Tokens]:
    """Both sides with repeated tokens told apart: the second 7 of an element meets only another second 7."""
    counted = [_occurrences(side) for side in (left, right)]
    most = max((int(times.max()) for _, times in counted if len(times)), default=0)
    if most:
        for side, times in counted:
            side.token = side.token * (most + 1) + times
    return counted[0][0], counted[1][0]


def _occurrences(side: Tokens) -> tuple[Tokens, Ints]:
    """The tokens sorted by element and token, and how often each came before in its element."""
    order = np.lexsort((side.token, side.row))
    row, token = side.row[order], side.token[order]
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (token[1:] != token[:-1])
    starts = np.flatnonzero(new)
    times = np.arange(len(row)) - np.repeat(starts, np.diff(np.append(starts, len(row))))
    return Tokens(side.rows, row, token), times


class Overlap:
    """Counts of common tokens between every element of one side and every element of the other."""

    def __init__(self, left: Tokens, right: Tokens) -> None:
        self.n, self.m = left.rows, right.rows
        self._match(left, right)
        self._kept: NDArray[Any] | None = None
        widest = max((int(np.bincount(side.row).max()) for side in (left, right) if len(side.row)), default=0)
        self._small = np.uint8 if widest <= 255 else np.uint16 if widest <= 65_535 else None

    def _match(self, left: Tokens, right: Tokens) -> None:
        # Asked for an index as well, unique does not load numpy.ma, which would take longer than most documents.
        one, other = (np.unique(side.token, return_index=True)[0] for side in (left, right))
        common = np.intersect1d(one, other, assume_unique=True)
        sides = []
        for side in (left, right):
            at = np.searchsorted(common, side.token)
            at[at == len(common)] = 0
            known = common[at] == side.token if len(common) else np.zeros(len(at), dtype=bool)
            token, row = at[known], side.row[known]
            order = np.argsort(token, kind="stable")
            sides.append((token[order], row[order], np.bincount(token, minlength=len(common))))
        (_, left_rows, left_counts), (_, right_rows, right_counts) = sides
        left_starts = np.append(0, np.cumsum(left_counts))
        right_starts = np.append(0, np.cumsum(right_counts))
        dense = left_counts * right_counts > max(self.n * self.m // _DENSE_SHARE, 64)
        chosen = np.flatnonzero(dense)
        self._left_dense = np.zeros((self.n, len(chosen)), dtype=np.float32)
        self._right_dense = np.zeros((len(chosen), self.m), dtype=np.float32)
        for place, token in enumerate(chosen):
            self._left_dense[left_rows[left_starts[token] : left_starts[token + 1]], place] = 1
            self._right_dense[place, right_rows[right_starts[token] : right_starts[token + 1]]] = 1
        # Rare tokens: every occurrence on the left with the run of its occurrences on the right.
        rare = np.repeat(~dense, left_counts)
        token_of = np.repeat(np.arange(len(common)), left_counts)[rare]
        order = np.argsort(left_rows[rare], kind="stable")
        token_of = token_of[order]
        self._rare_row = left_rows[rare][order]
        self._rare_start = right_starts[token_of]
        self._rare_count = right_counts[token_of]
        self._rare_columns = right_rows

    def _rare_pairs(self, start: int, stop: int) -> tuple[Ints, Ints]:
        first, last = np.searchsorted(self._rare_row, (start, stop))
        counts = self._rare_count[first:last]
        total = int(counts.sum())
        ends = np.cumsum(counts)
        within = np.arange(total) - np.repeat(ends - counts, counts)
        columns = self._rare_columns[np.repeat(self._rare_start[first:last], counts) + within]
        return np.repeat(self._rare_row[first:last], counts), columns

    def block(self, start: int, stop: int) -> Block:
        """Counts of the elements ``start`` to ``stop`` of the left side with all of the right; float32, exact."""
        if self._kept is not None:
            return self._kept[start:stop].astype(np.float32, copy=False)
        if self._left_dense.shape[1]:
            counts = self._left_dense[start:stop] @ self._right_dense
        else:
            counts = np.zeros((stop - start, self.m), dtype=np.float32)
        rows, columns = self._rare_pairs(start, stop)
        if len(rows):
            flat = (rows - start) * self.m + columns
            if len(flat) * 8 > counts.size:
                counts += np.bincount(flat, minlength=counts.size).reshape(counts.shape).astype(np.float32)
            else:
                cells, times = np.unique(flat, return_counts=True)
                counts.reshape(-1)[cells] += times
        return counts

    def blocks(self) -> Iterator[tuple[int, Block]]:
        """All blocks in order, each with the number of its first row; kept for the next pass while they are small."""
        step = max(1, BLOCK_CELLS // max(self.m, 1))
        if step >= self.n:
            self._kept = counts = self.block(0, self.n)
            yield 0, counts
            return
        kept = None
        if self._kept is None and self._small is not None and self.n * self.m <= KEPT_CELLS:
            kept = np.empty((self.n, self.m), dtype=self._small)
        for start in range(0, self.n, step):
            counts = self.block(start, min(start + step, self.n))
            if kept is not None:
                kept[start : start + step] = counts
            yield start, counts
        if kept is not None:
            self._kept = kept

    def part(self, rows: Ints, columns: Ints) -> Block:
        """Counts of the listed elements alone."""
        out = np.empty((len(rows), len(columns)), dtype=np.float32)
        step = max(1, BLOCK_CELLS // max(self.m, 1))
        for start in range(0, len(rows), step):
            listed = rows[start : start + step]
            if self._kept is not None:
                out[start : start + step] = self._kept[np.ix_(listed, columns)]
                continue
            first, last = int(listed.min()), int(listed.max()) + 1
            if last - first <= 4 * len(listed) and (last - first) * self.m <= 4 * BLOCK_CELLS:
                out[start : start + step] = self.block(first, last)[np.ix_(listed - first, columns)]
            else:
                for place, row in enumerate(listed, start):
                    out[place] = self.block(int(row), int(row) + 1)[0, columns]
        return out
