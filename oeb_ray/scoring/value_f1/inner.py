"""What tables inside rows add to the cost of pairing these rows (METRIC_SPEC.md, "Rows")."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from .assign import solved
from .leaves import row_leaves
from .schema import Entry, Node
from .values import NOTHING

if TYPE_CHECKING:
    from .costs import Costs, Pricing, Rows


def inner_costs(
    pricing: Pricing, entry: Entry, ours: Sequence[Any], theirs: Sequence[Any], paths: Sequence[str]
) -> Costs:
    """The cost of one inner table for every pair of outer rows."""
    table = entry.node
    mine, other = [_rows(entry, row) for row in ours], [_rows(entry, row) for row in theirs]
    inner_paths = [
        f"{path}{entry.suffix}[{at}]" for path, rows in zip(paths, mine, strict=False) for at in range(len(rows))
    ]
    reference = pricing.read(table, [row for rows in mine for row in rows], inner_paths)
    output = pricing.read(table, [row for rows in other for row in rows])
    columns, lines = _spans(mine), _spans(other)
    own_leaves, found_leaves = _leaves(table, reference), _leaves(table, output)
    own, found = [own_leaves[column] for column in columns], [found_leaves[line] for line in lines]
    result: Costs = np.add.outer([float(sum(n)) for n in found], [float(sum(n)) for n in own])  # all rows left over
    if not reference.rows or not output.rows:
        return result
    costs = pricing.matrix(table, reference, output, inner_paths)
    filled = [i for i, leaves in enumerate(own) if leaves]
    for j, line in enumerate(lines):
        for i in filled if found[j] else ():
            result[j, i] = _best(costs[line, columns[i]], found[j], own[i])
    return result


def _leaves(table: Node, rows: Rows) -> list[int]:
    """What each row is worth alone."""
    if table.is_plain:
        return [len(codes) - codes.count(NOTHING) for codes in rows.codes]
    return [row_leaves(table, row) for row in rows.rows]


def _best(costs: Costs, found_leaves: list[int], own_leaves: list[int]) -> float:
    """The cost of the best pairing of two rows' inner rows, neither without any; leaves of those left over included.

    Equal rows are not paired first here: where rows of unlike size are left over, ties fall by the solver alone.
    """
    height, width = costs.shape
    if height == width == 1:
        return costs.item()
    longer = found_leaves if height > width else own_leaves
    if height == width or longer.count(longer[0]) == len(longer):
        return float(_least(costs) + abs(height - width) * longer[0])
    pairs, block = solved(costs), costs.tolist()
    paired = sum([block[j][i] - own_leaves[i] - found_leaves[j] for i, j in pairs.items()])
    return float(sum(own_leaves) + sum(found_leaves) + paired)


def _least(costs: Costs) -> float:
    """The least sum of a pairing; it does not depend on ties."""
    height, width = costs.shape
    if height == 1 or width == 1:
        return float(min(costs.ravel().tolist()))  # quicker than numpy's, since it is most often short
    if height == width == 2:
        (a, b), (c, d) = costs.tolist()
        return float(min(a + d, b + c))
    block = costs.tolist()
    return float(sum([block[j][i] for i, j in solved(costs).items()]))


def _rows(entry: Entry, row: Any) -> list[Any]:
    value = entry.value(row)
    return value if isinstance(value, list) else []


def _spans(lists: list[list[Any]]) -> list[slice]:
    ends = [0, *accumulate(map(len, lists))]
    return [slice(start, stop) for start, stop in pairwise(ends)]
