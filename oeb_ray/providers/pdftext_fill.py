"""Fills a JSON Schema from a document's text layer: the offline floor that every vendor must beat.

In: a JSON Schema and a `TextLayer`. Out: the filled object, and one citation per value found on a page with geometry.
A scalar field takes the text beside (or below) the printed label that matches its name best, an array of objects the
rows of the table whose header matches its properties best. No guessing, no OCR, no network; the same input always
gives the same output, ties go to the field and the label that come first.
"""

from __future__ import annotations

import copy
import re
from collections import defaultdict
from typing import Any, NamedTuple

from .pdftext_schema import Key, Plan, Slot
from .pdftext_values import MAX_VALUE_WORDS, content_words, convert, words_of
from .textlayer_types import Box, Table, TextLayer, Word, split_cells, union

MAX_LABEL_WORDS = 8
"""Words of a cell that can be its label."""
MAX_PREFIX_VALUE_WORDS = 6
"""Longest value after a label that neither a colon nor a gap sets apart; more words are a sentence."""
MAX_COMPARISONS = 2_000_000
"""Name-to-label comparisons of one call; the rest of the document is not looked at then."""
MAX_CELLS = 500_000
"""Table cells filled by one call."""
MIN_OVERLAP = 0.5
"""Share of words a label and a name must have in common (intersection over union) to match at all."""


class _Label(NamedTuple):
    """A cell that may be a label: `words` its normalised words, `ends[n]` the printed words that n + 1 of them take."""

    line: int
    cell: int
    words: tuple[str, ...]
    ends: tuple[int, ...]
    closed: bool


class _Match(NamedTuple):
    """`score` 0..1, then what it joins; `taken` printed words of the cell belong to the label."""

    score: float
    slot: int
    label: int
    taken: int


def fill(schema: dict[str, Any], layer: TextLayer) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(prediction, citations) for `schema`, whose root must be an object (any other root gives {}).

    Every property is present: null, [] or an object of such where nothing was found. A citation is {"path", "page",
    "box" (4 fractions of the page), "text" (as printed)}; a layer without geometry gives none. Raises nothing for any
    schema or layer.
    """
    plan = Plan(schema)
    result = copy.deepcopy(plan.skeleton)
    citations: list[dict[str, Any]] = []
    filler = _Filler(plan, layer, result, citations)
    filler.fill_scalars()
    filler.fill_rows()
    return result, citations if layer.geometry else []


def name_score(name: tuple[str, ...], label: tuple[str, ...]) -> float:
    """How well a complete label matches a name, 0..1: 1 the same words in order, 0 too little in common."""
    if name == label:
        return 1.0
    ours, theirs = set(name), set(label)
    overlap = len(ours & theirs) / (len(ours | theirs) or 1)
    return 0.4 + 0.5 * overlap if overlap >= MIN_OVERLAP else 0.0


def hint_score(hint: tuple[str, ...], label: tuple[str, ...]) -> float:
    """How well a label matches a description: 0.3 when two or more of its words stand in it in the same order."""
    words = content_words(" ".join(label))
    if len(words) < 2:
        return 0.0
    size = len(words)
    return 0.3 if any(hint[at : at + size] == words for at in range(len(hint) - size + 1)) else 0.0


class _Filler:
    """One call's state: the indexed labels, what is already taken, and the result being filled."""

    def __init__(self, plan: Plan, layer: TextLayer, result: dict[str, Any], citations: list[dict[str, Any]]) -> None:
        self.slots = plan.slots
        self.layer = layer
        self.result = result
        self.citations = citations
        self.cells = [split_cells(line) for line in layer.lines]
        self.comparisons = MAX_COMPARISONS
        self.labels: list[_Label] = []
        self.index: dict[str, list[int]] = defaultdict(list)
        self._index_labels()

    def _index_labels(self) -> None:
        for line, cells in enumerate(self.cells):
            for number, cell in enumerate(cells):
                colon = next((i + 1 for i, word in enumerate(cell[:MAX_LABEL_WORDS]) if word.text[-1] in ":\uff1a"), 0)
                words: list[str] = []
                ends: list[int] = []
                for count, word in enumerate(cell[: colon or MAX_LABEL_WORDS], 1):
                    parts = words_of(word.text)
                    words.extend(parts)
                    ends.extend([count] * len(parts))
                if words:
                    closed = bool(colon) or len(cell) <= MAX_LABEL_WORDS
                    if colon:
                        ends[-1] = colon
                    for word_text in dict.fromkeys(words):
                        self.index[word_text].append(len(self.labels))
                    self.labels.append(_Label(line, number, tuple(words), tuple(ends), closed))

    def fill_scalars(self) -> None:
        """Give labels to fields, best match first; a label serves one field only."""
        matches: list[_Match] = []
        for number, slot in enumerate(self.slots):
            if slot.kind != "rows":
                matches.extend(self._matches(number, slot))
        matches.sort(key=lambda match: (-match.score, match.slot, match.label))
        filled: set[int] = set()
        used: set[tuple[int, int]] = set()
        for match in matches:
            label = self.labels[match.label]
            if match.slot in filled or (label.line, label.cell) in used:
                continue
            slot = self.slots[match.slot]
            words = self._value(label, match.taken, slot.kind)
            text = " ".join(word.text for word in words)
            value = _list(text, slot.schema) if slot.kind == "list" else convert(text, slot.schema, slot.kind)
            if value is None or value == []:
                continue
            filled.add(match.slot)
            used.add((label.line, label.cell))
            _put(self.result, slot.key, value)
            self._cite(_path(slot.key), words[0].page, union(words), text)

    def _matches(self, number: int, slot: Slot) -> list[_Match]:
        """The labels that may name a field, each with its best score."""
        best: dict[int, _Match] = {}
        if self.comparisons <= 0:
            return []
        tokens = dict.fromkeys(token for name in slot.names for token in name)
        candidates = sorted({at for token in (*tokens, *slot.hint) for at in self.index.get(token, ())})
        for at in candidates:
            self.comparisons -= 1
            if self.comparisons <= 0:
                break
            label = self.labels[at]
            for rank, name in enumerate(slot.names):
                score, taken = _label_score(name, label)
                # The field's own first name counts a little more than its second and its title.
                score -= 0.02 * rank
                if score > 0 and (at not in best or score > best[at].score):
                    best[at] = _Match(score, number, at, taken)
            if at not in best and label.closed and slot.hint:
                score = hint_score(slot.hint, label.words)
                if score:
                    best[at] = _Match(score, number, at, label.ends[-1])
        return list(best.values())

    def _value(self, label: _Label, taken: int, kind: str) -> tuple[Word, ...]:
        """The printed words a label names: the rest of its cell, else the next cell, else the cell below."""
        cells = self.cells[label.line]
        cell = cells[label.cell]
        if cell[taken:]:
            set_apart = cell[taken - 1].text[-1] in ":\uff1a"
            rest = cell[taken:]
            return rest[:MAX_VALUE_WORDS] if set_apart or len(rest) <= MAX_PREFIX_VALUE_WORDS else ()
        if kind == "boolean" and label.cell and convert(cells[label.cell - 1][0].text, {}, kind) is not None:
            return cells[label.cell - 1]  # a tick box stands before its label
        if label.cell + 1 < len(cells) and not _is_label(cells[label.cell + 1]):
            return cells[label.cell + 1][:MAX_VALUE_WORDS]
        return self._below(label)

    def _below(self, label: _Label) -> tuple[Word, ...]:
        here = union(self.cells[label.line][label.cell])
        below = label.line + 1
        if below >= len(self.cells) or self.layer.lines[below].page != self.layer.lines[label.line].page:
            return ()
        for cell in self.cells[below]:
            box = union(cell)
            if min(box[2], here[2]) > max(box[0], here[0]):
                return () if _is_label(cell) else cell[:MAX_VALUE_WORDS]
        return ()

    def fill_rows(self) -> None:
        """Give tables to arrays of objects, best match first; tables with the same header are one table."""
        groups: dict[tuple[tuple[str, ...], ...], list[Table]] = {}
        for table in self.layer.tables:
            groups.setdefault(tuple(words_of(cell) for cell in table.header), []).append(table)
        found = []
        for number, slot in enumerate(self.slots):
            for order, header in enumerate(groups if slot.kind == "rows" else ()):
                columns = self._columns(slot.items, header)
                if len(columns) >= 2 or 0 < len(slot.items) <= 2 * len(columns):
                    score = sum(score for score, _ in columns.values())
                    found.append((-len(columns), -score, number, order, header, columns))
        found.sort(key=lambda entry: entry[:4])
        filled: set[int] = set()
        used: set[int] = set()
        left = MAX_CELLS
        for _, _, number, order, header, columns in found:
            if number in filled or order in used:
                continue
            places = {item: column for item, (_, column) in columns.items()}
            left = self._rows(self.slots[number], groups[header], places, left)
            filled.add(number)
            used.add(order)

    def _columns(self, items: tuple[Slot, ...], header: tuple[tuple[str, ...], ...]) -> dict[int, tuple[float, int]]:
        """{item: (score, column)}: each column goes to one item and the other way round, best match first."""
        pairs = []
        if self.comparisons <= 0:
            return {}
        for item, slot in enumerate(items):
            for column, label in enumerate(header):
                self.comparisons -= 1
                if self.comparisons <= 0:
                    break
                score = max((name_score(name, label) - 0.02 * rank for rank, name in enumerate(slot.names)), default=0)
                score = max(score, hint_score(slot.hint, label))
                if score > 0:
                    pairs.append((-score, item, column))
        chosen: dict[int, tuple[float, int]] = {}
        taken: set[int] = set()
        for score, item, column in sorted(pairs):
            if item not in chosen and column not in taken:
                chosen[item] = (-score, column)
                taken.add(column)
        return chosen

    def _rows(self, slot: Slot, tables: list[Table], places: dict[int, int], left: int) -> int:
        """Append the tables' rows to an array; returns how many cells may still be filled."""
        out: list[dict[str, Any]] = []
        cost = _size(slot.blank)
        for table in tables:
            for number, row in enumerate(table.rows):
                left -= cost
                if left < 0:
                    break
                filled = copy.deepcopy(slot.blank or {})
                any_value = False
                for item, column in places.items():
                    field = slot.items[item]
                    text = row[column] if column < len(row) else ""
                    value = convert(text, field.schema, field.kind)
                    if value is None:
                        continue
                    any_value = True
                    _put(filled, field.key, value)
                    box = table.boxes[number][column] if number < len(table.boxes) else None
                    self._cite(f"{_path(slot.key)}[{len(out)}].{_path(field.key)}", table.page, box, text)
                if any_value:
                    out.append(filled)
        _put(self.result, slot.key, out)
        return left

    def _cite(self, path: str, page: int, box: Box | None, text: str) -> None:
        if box is not None and self.layer.geometry:
            self.citations.append({"path": path, "page": page, "box": list(box), "text": text})


def _label_score(name: tuple[str, ...], label: _Label) -> tuple[float, int]:
    """(score, printed words taken): the whole label when it is set apart, else the start of the cell."""
    whole = name_score(name, label.words) if label.closed else 0.0
    if whole == 1.0 or len(label.words) <= len(name) or label.words[: len(name)] != name:
        return whole, label.ends[-1]
    taken = label.ends[len(name) - 1]
    if label.ends[len(name)] == taken:
        return whole, label.ends[-1]  # the name would end inside a printed word
    prefix = 0.8 if len(name) > 1 else 0.6
    return (prefix, taken) if prefix > whole else (whole, label.ends[-1])


def _is_label(cell: tuple[Word, ...]) -> bool:
    return cell[-1].text[-1] in ":\uff1a"


def _list(text: str, schema: dict[str, Any]) -> list[Any]:
    """`text` split at commas and semicolons, each part converted to the items' type; parts that are not it are left."""
    kind = str(schema.get("type"))
    parts = (convert(part, schema, kind) for part in re.split(r"[,;]", text))
    return [value for value in parts if value is not None]


def _size(node: Any) -> int:
    """Values in a blank row, null ones included; its depth is bounded by the schema walk."""
    return 1 + sum(_size(child) for child in node.values()) if isinstance(node, dict) else 1


def _put(target: dict[str, Any], key: Key, value: Any) -> None:
    for name in key[:-1]:
        target = target[name]
    target[key[-1]] = value


def _path(key: Key) -> str:
    return ".".join(key)
