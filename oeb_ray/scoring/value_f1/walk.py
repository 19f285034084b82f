"""The walk over both documents that makes and counts every cell (METRIC_SPEC.md, "Walking", "Rows").

One pass makes the counts, the grounding and, if wanted, the feedback, so they cannot disagree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from .assign import equal_pairs, solved
from .costs import Pricing, Rows
from .grounding import Grounding
from .normalizers import marks
from .rules import Place, Rule
from .schema import ABSENT, Kind, Node, plain
from .values import NOTHING, Vocabulary

OUTCOMES = ("matched", "value_differs", "reference_only", "prediction_only")
MATCHED, DIFFERS, REFERENCE_ONLY, PREDICTION_ONLY = range(4)


class Cells:
    """The cells in the order of the walk, column by column; ``outcome`` numbers OUTCOMES. A value may be ABSENT."""

    def __init__(self) -> None:
        self.reference_path: list[str | None] = []
        self.output_path: list[str | None] = []
        self.outcome: list[int] = []
        self.expected: list[Any] = []
        self.predicted: list[Any] = []

    def __len__(self) -> int:
        return len(self.outcome)

    def add(self, ours: str | None, theirs: str | None, outcome: int, expected: Any, predicted: Any) -> None:
        self.reference_path.append(ours)
        self.output_path.append(theirs)
        self.outcome.append(outcome)
        self.expected.append(plain(expected))
        self.predicted.append(plain(predicted))


class Walker:
    """Walks one document.

    Args:
        rules: of the reference. cited: places by path of the output. most_pairs: rows of a plain table are paired up
            to so many pairs. cells: where every cell goes, or None.
    """

    def __init__(
        self,
        words: Vocabulary,
        rules: dict[str, Rule],
        cited: dict[str, tuple[Place, ...]],
        most_pairs: int,
        cells: Cells | None,
    ) -> None:
        self._words, self._rules, self._cited, self._most_pairs, self._cells = words, rules, cited, most_pairs, cells
        self._rule_paths, self._cited_paths = sorted(rules), sorted(cited)
        self._pricing = Pricing(words, rules)
        self.grounding = Grounding()
        self.matched = self.expected = self.predicted = self.expected_rows = self.predicted_rows = 0
        self.incomplete = False

    def walk(self, ours: str, theirs: str, expected: Any, predicted: Any, node: Node) -> None:
        """One place of both documents. ``ours`` and ``theirs``: its paths in reference and output."""
        if expected is ABSENT:
            if predicted is not ABSENT:
                self._one_side(theirs, predicted, node, PREDICTION_ONLY)
        elif predicted is ABSENT:
            self._one_side(ours, expected, node, REFERENCE_ONLY)
        elif node.kind is Kind.CELL:
            self._cell(ours, theirs, expected, predicted, node)
        elif node.kind is Kind.OBJECT:
            self._children(ours, theirs, expected, predicted, node)
        elif node.children:
            self._table(ours, theirs, expected, predicted, node)

    def _children(self, ours: str, theirs: str, expected: Any, predicted: Any, node: Node) -> None:
        left = expected if isinstance(expected, dict) else {}
        right = predicted if isinstance(predicted, dict) else {}
        for child in node.children:
            name = child.name
            self.walk(f"{ours}.{name}", f"{theirs}.{name}", child.value(left), child.value(right), child)

    def _one_side(self, path: str, value: Any, node: Node, side: int) -> None:
        if node.kind is Kind.CELL:
            self._lone_cell(path, value, side)
        elif node.kind is Kind.OBJECT:
            self._lone_children(path, value, node, side)
        elif isinstance(value, list):
            for at, row in enumerate(value):
                self._lone_children(f"{path}[{at}]", row, node, side)

    def _lone_children(self, path: str, value: Any, node: Node, side: int) -> None:
        holder = value if isinstance(value, dict) else {}
        for child in node.children:
            found = child.value(holder)
            if found is not ABSENT:
                self._one_side(f"{path}.{child.name}", found, child, side)

    def _lone_cell(self, path: str, value: Any, side: int) -> None:
        if side == REFERENCE_ONLY:
            self.expected += 1
            if rule := self._rules.get(path):
                self.grounding.reference_only(rule.places)
            if self._cells is not None:
                self._cells.add(path, None, side, value, ABSENT)
        else:
            self.predicted += 1
            if self._cells is not None:
                self._cells.add(None, path, side, ABSENT, value)

    def _cell(self, ours: str, theirs: str, expected: Any, predicted: Any, node: Node) -> None:
        rule = self._rules.get(ours)
        matched = self._agree(expected, predicted, node, rule)
        self.expected += 1
        self.predicted += 1
        self.matched += matched
        if rule:
            self.grounding.pair(rule.places, self._cited.get(theirs, ()), matched)
        if self._cells is not None:
            self._cells.add(ours, theirs, MATCHED if matched else DIFFERS, expected, predicted)

    def _agree(self, expected: Any, predicted: Any, node: Node, rule: Rule | None) -> bool:
        words = self._words
        code = words.code(predicted)
        if words.agree(words.code(expected), code, node.near):
            return True
        if rule is None:
            return False
        if any(words.agree(words.code(reading), code, node.near) for reading in rule.readings):
            return True
        found = words.exact(predicted)
        for name in rule.normalizers:
            allowed = marks(name, found, words.today)
            if allowed and any(
                allowed & marks(name, words.exact(value), words.today) for value in (expected, *rule.readings)
            ):
                return True
        return False

    def _table(self, ours: str, theirs: str, expected: Any, predicted: Any, node: Node) -> None:
        reference = expected if isinstance(expected, list) else []
        output = predicted if isinstance(predicted, list) else []
        self.expected_rows += len(reference)
        self.predicted_rows += len(output)
        ruled, cited = _has_prefix(self._rule_paths, f"{ours}["), _has_prefix(self._cited_paths, f"{theirs}[")
        paths = [f"{ours}[{at}]" for at in range(len(reference))] if ruled else []
        plain, pairs = node.is_plain and not ruled, self._obvious(reference, output)
        if plain or pairs is None:
            left, right = self._pricing.read(node, reference, paths), self._pricing.read(node, output)
        if pairs is None:
            pairs = self._paired(node, left, right, paths, theirs if cited else None)
        if plain:
            self._count(node, left.codes, right.codes, pairs)
            if self._cells is not None:
                _list_cells(self._cells, _Plain(node, ours, theirs, left, right, pairs, self._words))
            return
        for at, row in enumerate(reference):
            if (found := pairs.get(at)) is None:
                self._lone_children(f"{ours}[{at}]", row, node, REFERENCE_ONLY)
            else:
                self._children(f"{ours}[{at}]", f"{theirs}[{found}]", row, output[found], node)
        taken = set(pairs.values())
        for at, row in enumerate(output):
            if at not in taken:
                self._lone_children(f"{theirs}[{at}]", row, node, PREDICTION_ONLY)

    def _obvious(self, reference: list[Any], output: list[Any]) -> dict[int, int] | None:
        """The pairs of rows that leave no choice; None if there is one."""
        if not reference or not output:
            return {}
        return {0: 0} if len(reference) == len(output) == 1 <= self._most_pairs else None

    def _paired(
        self, table: Node, reference: Rows, output: Rows, paths: Sequence[str], theirs: str | None
    ) -> dict[int, int]:
        """Reference row to output row. ``theirs``: the table's path in the output, if anything in it is cited."""
        placed = table.is_plain and (paths or theirs) and self._are_placed(table, reference, output, paths, theirs)
        if reference.extras or not table.is_plain or placed:
            return solved(self._pricing.matrix(table, reference, output, paths))
        pairs = {} if table.columns.near else equal_pairs(reference.codes, output.codes)
        taken = set(pairs.values())
        rest = [at for at in range(len(reference.rows)) if at not in pairs]
        free = [at for at in range(len(output.rows)) if at not in taken]
        if not rest or not free:
            return pairs
        if len(rest) * len(free) > self._most_pairs:
            self.incomplete = True
            return pairs
        costs = self._pricing.matrix(table, reference.only(rest), output.only(free))
        return pairs | {rest[i]: free[j] for i, j in solved(costs).items()}

    def _are_placed(self, table: Node, reference: Rows, output: Rows, paths: Sequence[str], theirs: str | None) -> bool:
        """Whether both sides say where cells of a plain table stand; of a table too large nobody asks."""
        names = [child.name for child in table.children]
        stated = any((rule := self._rules.get(f"{path}.{name}")) and rule.places for path in paths for name in names)
        lines = range(len(output.rows)) if theirs is not None else ()
        cited = any(f"{theirs}[{at}].{name}" in self._cited for at in lines for name in names)
        if len(reference.rows) * len(output.rows) > self._most_pairs:
            self.grounding.incomplete |= stated or cited
            return False
        return stated and cited

    def _count(
        self, table: Node, left: list[tuple[int, ...]], right: list[tuple[int, ...]], pairs: dict[int, int]
    ) -> None:
        """Counts the cells of a plain table without rules."""
        width = len(table.children)
        self.expected += sum(width - row.count(NOTHING) for row in left)
        self.predicted += sum(width - row.count(NOTHING) for row in right)
        nears = [child.near for child in table.children]
        for at, found in pairs.items():
            mine, other = left[at], right[found]
            if mine == other:
                self.matched += width - mine.count(NOTHING)
                continue
            for one, two, nearness in zip(mine, other, nears, strict=True):
                if one == two:
                    self.matched += one != NOTHING
                elif nearness is not None and one and two:
                    self.matched += self._words.agree(one, two, nearness)


class _Plain(NamedTuple):
    """A plain table without rules, its rows paired; ``ours`` and ``theirs`` are its paths."""

    node: Node
    ours: str
    theirs: str
    left: Rows
    right: Rows
    pairs: dict[int, int]
    words: Vocabulary


def _list_cells(cells: Cells, table: _Plain) -> None:
    """The cells of a plain table, by the codes that its rows have already."""
    children = [(child, f".{child.name}") for child in table.node.children]
    add, agree, left, right = cells.add, table.words.agree, table.left, table.right
    for at, row in enumerate(left.rows):
        holder, ours = row if isinstance(row, dict) else {}, f"{table.ours}[{at}]"
        found = table.pairs.get(at)
        codes, other_codes = left.codes[at], None
        other: dict[str, Any] = {}
        if found is not None:
            theirs, other_codes = f"{table.theirs}[{found}]", right.codes[found]
            other = right.rows[found] if isinstance(right.rows[found], dict) else {}
        for place, (child, name) in enumerate(children):
            code, other_code = codes[place], NOTHING if other_codes is None else other_codes[place]
            if code and other_code:
                outcome = MATCHED if code == other_code or agree(code, other_code, child.near) else DIFFERS
                add(ours + name, theirs + name, outcome, child.value(holder), child.value(other))
            elif code:
                add(ours + name, None, REFERENCE_ONLY, child.value(holder), ABSENT)
            elif other_code:
                add(None, theirs + name, PREDICTION_ONLY, ABSENT, child.value(other))
    taken = set(table.pairs.values())
    for at, row in enumerate(right.rows):
        if at not in taken:
            holder, theirs = row if isinstance(row, dict) else {}, f"{table.theirs}[{at}]"
            for code, (child, name) in zip(right.codes[at], children, strict=True):
                if code:
                    add(None, theirs + name, PREDICTION_ONLY, ABSENT, child.value(holder))


def _has_prefix(paths: list[str], prefix: str) -> bool:
    at = bisect_left(paths, prefix)
    return at < len(paths) and paths[at].startswith(prefix)
