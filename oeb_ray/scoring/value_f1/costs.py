"""What it costs to pair rows: the cells in which they differ (METRIC_SPEC.md, "Rows").

A matrix has output rows as rows and reference rows as columns, which is how the solver gets it: ties fall with the
orientation. Codes are compared column by column, a tile of the matrix at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import ne
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import Ungradable
from .inner import inner_costs
from .near import near_table
from .normalizers import marks
from .rules import Rule
from .schema import Columns, Entry, Node
from .values import NOTHING, Vocabulary

MOST_PAIRS = 250_000_000  # 2 GB as the solver wants them
TILE = 1_000_000
TINY = 150  # cells compared one by one
SMALL = 20_000  # cells compared at once, as they are
Costs = NDArray[np.float64]


class Extra(NamedTuple):
    """A cell of a reference row that agrees with more than its value: readings, or normalizers."""

    row: int
    column: int
    rule: Rule


class Rows(NamedTuple):
    """Rows of one table and one side, with the code of every cell; ``extras`` of the reference alone."""

    rows: Sequence[Any]
    codes: list[tuple[int, ...]]
    extras: list[Extra]

    def only(self, kept: list[int]) -> Rows:
        """Some of the rows, in the order given; rows with extras cannot be picked from."""
        return Rows([self.rows[at] for at in kept], [self.codes[at] for at in kept], [])


class Pricing:
    """Prices the pairs of rows of one document."""

    def __init__(self, words: Vocabulary, rules: dict[str, Rule]) -> None:
        self._words, self._rules = words, rules

    def read(self, table: Node, rows: Sequence[Any], paths: Sequence[str] = ()) -> Rows:
        """The rows with their codes. ``paths``: of the rows in the reference, if any rule may be about them."""
        return Rows(rows, self._codes(table, rows), self._extras(table, rows, paths) if paths else [])

    def _codes(self, table: Node, rows: Sequence[Any]) -> list[tuple[int, ...]]:
        codes, columns = self._words.codes, table.columns
        if columns.deep:
            return [codes([entry.value(row) for entry in table.cells]) for row in rows]
        names, defaults = columns.names, columns.defaults
        return [codes([*map(row.get, names, defaults)] if isinstance(row, dict) else [*defaults]) for row in rows]

    def _extras(self, table: Node, rows: Sequence[Any], paths: Sequence[str]) -> list[Extra]:
        found = []
        for number, path in enumerate(paths):
            for column, entry in enumerate(table.cells):
                rule = self._rules.get(path + entry.suffix)
                if rule and (rule.normalizers or self._has_other_reading(rule, entry.value(rows[number]))):
                    found.append(Extra(number, column, rule))
        return found

    def _has_other_reading(self, rule: Rule, value: Any) -> bool:
        stated = self._words.exact(value)
        return any(self._words.exact(reading) != stated for reading in rule.readings)

    def matrix(self, table: Node, reference: Rows, output: Rows, paths: Sequence[str] = ()) -> Costs:
        """The cost of every pair.

        Args:
            paths: of the reference rows, if any rule may be about them.

        Raises:
            Ungradable: there are more pairs than memory could hold.
        """
        check_size(len(reference.rows), len(output.rows))
        costs = self._differing(table, reference, output)
        if reference.extras:
            self._allow_extras(table.cells, reference, output, costs)
        for entry in table.inner:
            costs += inner_costs(self, entry, reference.rows, output.rows, paths)
        return costs

    def _differing(self, table: Node, reference: Rows, output: Rows) -> Costs:
        cells, height, width = table.cells, len(output.rows), len(reference.rows)
        if not cells or not height or not width:
            return np.zeros((height, width))
        if height * width * len(cells) <= TINY:
            return self._differing_one_by_one(table.columns, reference, output)
        costs = np.empty((height, width))
        ours, theirs = np.array(reference.codes, np.int32), np.array(output.codes, np.int32)
        if height * width * len(cells) <= SMALL:
            plain = [at for at, entry in enumerate(cells) if entry.node.pair_near is None]
            np.sum(theirs[:, None, plain] != ours[None, :, plain], axis=2, out=costs)
            for at in range(len(cells)):
                if at not in plain:
                    mine, other, same = self._column(cells[at], ours[:, at], theirs[:, at])
                    costs += ~same[other][:, mine]
            return costs
        columns = [self._column(entry, ours[:, at], theirs[:, at]) for at, entry in enumerate(cells)]
        tile = max(1, TILE // width)
        kind = np.uint8 if len(cells) < 256 else np.uint16
        for start in range(0, height, tile):
            part = slice(start, min(start + tile, height))
            equal = np.zeros((part.stop - start, width), kind)
            for mine, other, same in columns:
                equal += other[part, None] == mine[None, :] if same is None else same[other[part]][:, mine]
            np.subtract(len(cells), equal, out=costs[part])
        return costs

    def _differing_one_by_one(self, columns: Columns, reference: Rows, output: Rows) -> Costs:
        """As `_differing`, without what numpy takes to begin."""
        costs = [[sum(map(ne, mine, other)) for mine in reference.codes] for other in output.codes]
        for at, nearness in columns.near:
            for line, other in zip(costs, output.codes, strict=True):
                for place, mine in enumerate(reference.codes):
                    if mine[at] != other[at] and self._words.agree(mine[at], other[at], nearness):
                        line[place] -= 1
        return np.array(costs, np.float64)

    def _column(self, entry: Entry, ours: NDArray[np.int32], theirs: NDArray[np.int32]) -> tuple[Any, Any, Any]:
        """A column of both sides in small numbers; for near texts, also which of them agree."""
        nearness = entry.node.pair_near
        if nearness is None:
            distinct, numbers = np.unique(np.concatenate((ours, theirs)), return_inverse=True)
            small = numbers.astype(np.uint16 if len(distinct) < 65536 else np.int32)
            return small[: len(ours)], small[len(ours) :], None
        left, mine = _numbered(ours.tolist())
        right, other = _numbered(theirs.tolist())
        text = self._words.loose_text
        near = near_table([text(code) for code in right], [text(code) for code in left], nearness)
        return mine, other, near | (np.array(right)[:, None] == np.array(left)[None, :])

    def _allow_extras(self, cells: tuple[Entry, ...], reference: Rows, output: Rows, costs: Costs) -> None:
        """Takes back the cost of cells that agree by a reading or a normalizer."""
        by_column: dict[int, list[Extra]] = {}
        for extra in reference.extras:
            by_column.setdefault(extra.column, []).append(extra)
        for column, extras in by_column.items():
            entry = cells[column]
            found = _Found(self._words, [entry.value(row) for row in output.rows], [c[column] for c in output.codes])
            for extra in extras:
                value = entry.value(reference.rows[extra.row])
                own = reference.codes[extra.row][column]
                if own == NOTHING:
                    continue
                equal = found.equal(own, entry.node)
                for at in found.allowed(value, own, extra.rule, entry.node) - equal:
                    costs[at, extra.row] -= 1


class _Found:
    """The values of one column of the output, by code and by mark."""

    def __init__(self, words: Vocabulary, values: list[Any], codes: list[int]) -> None:
        self._words, self._values, self._codes = words, values, codes
        self._by_code: dict[int, set[int]] = {}
        for at, code in enumerate(codes):
            if code != NOTHING:
                self._by_code.setdefault(code, set()).add(at)
        self._by_mark: dict[str, dict[Any, set[int]]] = {}

    def equal(self, code: int, node: Node) -> set[int]:
        """The rows that agree with a code by the base rule."""
        found = self._by_code.get(code, set())
        if node.pair_near is not None:
            for other, rows in self._by_code.items():
                if self._words.agree(code, other, node.pair_near):
                    found = found | rows
        return found

    def allowed(self, value: Any, own: int, rule: Rule, node: Node) -> set[int]:
        """The rows that agree with a reading, or by a normalizer."""
        readings = [self._words.code(reading) for reading in rule.readings]
        found: set[int] = set()
        for code in readings:
            found |= self.equal(code, node)
        for name in rule.normalizers:
            marked = self._marked(name)
            for stated in (value, *rule.readings):
                for mark in marks(name, self._words.exact(stated), self._words.today):
                    found |= marked.get(mark, set())
        return found

    def _marked(self, name: str) -> dict[Any, set[int]]:
        if name not in self._by_mark:
            marked = self._by_mark[name] = {}
            for at, value in enumerate(self._values):
                if self._codes[at] != NOTHING:
                    for mark in marks(name, self._words.exact(value), self._words.today):
                        marked.setdefault(mark, set()).add(at)
        return self._by_mark[name]


def _numbered(codes: list[int]) -> tuple[list[int], NDArray[np.intp]]:
    """Each code once, and for every code the place of its like there."""
    places = {code: place for place, code in enumerate(dict.fromkeys(codes))}
    return list(places), np.array([places[code] for code in codes], np.intp)


def check_size(ours: int, theirs: int) -> None:
    """Raises Ungradable if so many rows on both sides cannot be paired in memory."""
    if ours * theirs > MOST_PAIRS:
        raise Ungradable(
            f"{ours} x {theirs} rows would need {ours * theirs * 8 / 1e9:.1f} GB to be paired; "
            f"tables that hold tables, or have further readings, are paired up to {MOST_PAIRS / 1e6:.0f} million pairs"
        )
