"""Exact weights of all pairs of two arrays at once, where their elements hold lists of scalars or of flat rows.

In: elements of both sides. Out: the matrix of weights, or None where an inner array is of another shape; then pairs are
priced one by one. All inner elements meet all others in one count of overlaps; the few groups in which they compete
for each other are solved on their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .overlap import BLOCK_CELLS, Floats, Ints, Overlap, numbered
from .pricing import FEW
from .table import Table, table_of
from .tokens import TokenMaker
from .tree import Array, Element

Solver = Callable[[dict[tuple[int, int], int]], int]  # the best total of some weighted pairs


def all_weights(
    make: TokenMaker, left: list[Element], right: list[Element], scale: int, solve: Solver
) -> Floats | None:
    """Weights as assign.Problem defines them: ``matched * scale + shared``, 0 where nothing matches."""
    paths = _common_paths(make, left, right)
    shapes = [_shape(make, *sides) for sides in paths]
    if None in shapes:
        return None
    table = table_of([make.view.flat(element) for element in left], [make.view.flat(element) for element in right])
    if table is not None:
        weights = table.sums(scale)
    else:
        weights = _whole(Overlap(make.named(left), make.named(right))) * scale
        weights += _whole(Overlap(make.spots(left), make.spots(right)))
    for (lefts, rights), shape in zip(paths, shapes, strict=True):
        if shape == "scalars":
            counts = Overlap(*numbered(make.scalars(lefts), make.scalars(rights)))
            weights += _whole(counts) * (scale + 1)
        else:
            _add_rows(make, lefts, rights, scale, weights, solve)
    weights[weights < scale] = 0.0  # shared values alone are no match; all of them are fewer than scale
    return weights


def _common_paths(
    make: TokenMaker, left: list[Element], right: list[Element]
) -> list[tuple[list[Array | None], list[Array | None]]]:
    sides = [[make.view.free_arrays(element) for element in elements] for elements in (left, right)]
    spots = [{spot for arrays in side for spot in arrays} for side in sides]
    return [
        ([arrays.get(spot) for arrays in sides[0]], [arrays.get(spot) for arrays in sides[1]])
        for spot in sorted(spots[0] & spots[1])
    ]


def _shape(make: TokenMaker, lefts: list[Array | None], rights: list[Array | None]) -> str | None:
    arrays = [array for array in (*lefts, *rights) if array is not None]
    if all(array.keys is not None for array in arrays):
        return "scalars"
    if any(make.view.free_arrays(element) for array in arrays for element in array.elements):
        return None
    return "rows"


def _whole(counts: Overlap) -> Floats:
    out = np.zeros((counts.n, counts.m))
    for start, block in counts.blocks():
        out[start : start + len(block)] = block
    return out


def _add_rows(
    make: TokenMaker,
    lefts: list[Array | None],
    rights: list[Array | None],
    scale: int,
    weights: Floats,
    solve: Solver,
) -> None:
    """Adds the best pairing of the inner rows to every outer pair."""
    (left, left_owner), (right, right_owner) = _inner(lefts), _inner(rights)
    matched, worth = _inner_counts(make, left, right, scale)
    step = max(1, BLOCK_CELLS // max(len(right), 1))
    start = 0
    while start < len(left):
        stop = min(len(left), start + step)
        if stop < len(left):  # blocks end where an outer element ends, unless one alone is larger
            boundary = int(np.searchsorted(left_owner, left_owner[stop]))
            stop = boundary if boundary > start else int(np.searchsorted(left_owner, left_owner[stop], "right"))
        counts = matched.block(start, stop)
        rows, columns = np.nonzero(counts)
        if len(rows):
            group = left_owner[start + rows] * weights.shape[1] + right_owner[columns]
            _add_best(weights, group, rows, columns, worth(start, counts, rows, columns), solve)
        start = stop


def _inner_counts(
    make: TokenMaker, left: list[Element], right: list[Element], scale: int
) -> tuple[Table | Overlap, Callable[[int, NDArray[Any], Ints, Ints], Floats]]:
    """Equal values of all inner pairs, and the weights of those listed in a block."""
    table = table_of([make.view.flat(element) for element in left], [make.view.flat(element) for element in right])
    if table is not None:
        return table, lambda start, counts, rows, columns: table.pair_weights(rows + start, columns, scale)
    matched = Overlap(make.named(left), make.named(right))
    shared = Overlap(make.spots(left), make.spots(right))

    def worth(start: int, counts: NDArray[Any], rows: Ints, columns: Ints) -> Floats:
        both = shared.block(start, start + len(counts))[rows, columns]
        return counts[rows, columns].astype(np.float64) * scale + both

    return matched, worth


def _inner(arrays: list[Array | None]) -> tuple[list[Element], Ints]:
    elements: list[Element] = []
    owner: list[int] = []
    for place, array in enumerate(arrays):
        if array is not None:
            elements.extend(array.elements)
            owner.extend([place] * len(array))
    return elements, np.array(owner, dtype=np.int64)


def _add_best(weights: Floats, group: Ints, rows: Ints, columns: Ints, worth: Floats, solve: Solver) -> None:
    """Adds to each outer pair (a group) the best total of its inner pairs, no inner element used twice."""
    several = np.bincount(group, minlength=weights.size)[group] > 1
    alone = ~several
    weights.reshape(-1)[group[alone]] += worth[alone]
    if not several.any():
        return
    group, rows, columns, worth = group[several], rows[several], columns[several], worth[several]
    order = np.argsort(group, kind="stable")
    group, rows, columns, worth = group[order], rows[order], columns[order], worth[order]
    starts = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
    clash = np.zeros(len(group), dtype=bool)
    clash[1:] = (group[1:] == group[:-1]) & (rows[1:] == rows[:-1])
    by_column = np.lexsort((columns, group))
    twice = (np.diff(group[by_column]) == 0) & (np.diff(columns[by_column]) == 0)
    clash[by_column[1:][twice]] = True
    clashing = np.logical_or.reduceat(clash, starts)
    totals = np.add.reduceat(worth, starts)
    ends = np.append(starts[1:], len(group))
    sizes = ends - starts
    for size in range(2, FEW + 1):
        few = np.flatnonzero(clashing & (sizes == size))
        places = starts[few, None] + np.arange(size)
        totals[few] = _best_of_few(rows[places], columns[places], worth[places])
    for place in np.flatnonzero(clashing & (sizes > FEW)):
        part = slice(int(starts[place]), int(ends[place]))
        pairs = zip(rows[part].tolist(), columns[part].tolist(), strict=True)
        totals[place] = solve(dict(zip(pairs, map(int, worth[part].tolist()), strict=True)))
    weights.reshape(-1)[group[starts]] += totals


def _best_of_few(rows: Ints, columns: Ints, worth: Floats) -> Floats:
    """Of each group of a few pairs (a line of each matrix) the best total without using an element twice.

    All choices of pairs are tried at once: a choice is a column, and of no worth where two of its pairs clash.
    """
    count, size = worth.shape
    choices = (np.arange(1 << size) >> np.arange(size)[:, None]) & 1
    one, other = np.triu_indices(size, 1)
    both = (choices[one] & choices[other]).astype(np.float32)
    best = np.empty(count)
    step = max(1, BLOCK_CELLS >> size)
    for start in range(0, count, step):
        part = slice(start, start + step)
        clash = (rows[part, one] == rows[part, other]) | (columns[part, one] == columns[part, other])
        totals = worth[part] @ choices.astype(np.float64)
        totals[clash.astype(np.float32) @ both > 0] = 0.0
        best[part] = totals.max(axis=1)
    return best
