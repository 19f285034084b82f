"""Finds tables by alignment: a header line whose cells line up in x with the cells of the lines below it.

In: the lines of one page (or one plain-text document). Out: `Table` values, top to bottom.
Deliberately simple: no ruling lines, no spanning cells; each line is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .textlayer_types import MAX_COLUMNS, Box, Line, Table, split_cells, union

MAX_SKIPPED = 3
"""Lines in a row that do not fit the columns (notes under a row) before the table ends."""
WRAP_GAP = 1.7
"""A line further below than this many line heights is not the continuation of a wrapped header or cell."""
PITCH_GAP = 1.5
"""A line further below than this many row pitches may start the next table."""
MAX_WRAPPED_CHARS = 2_000
"""A cell this long takes no more continuation lines."""

_DIGIT = re.compile(r"\d")


class _Cell(NamedTuple):
    text: str
    box: Box


_Row = list[_Cell]


def find_tables(lines: Sequence[Line]) -> list[Table]:
    """The tables of one page, in reading order; a line belongs to at most one of them."""
    rows = [_cells(line) for line in lines]
    tables: list[Table] = []
    index = 0
    while index < len(rows):
        header, first = _header(rows, index)
        table, after = _read_rows(rows, header, first, lines[index].page) if header else (None, index)
        if table is None:
            index += 1
        else:
            tables.append(table)
            index = after
    return tables


def _cells(line: Line) -> _Row:
    cells = split_cells(line)
    if len(cells) > MAX_COLUMNS:
        return []
    return [_Cell(" ".join(word.text for word in cell), union(cell)) for cell in cells]


def _header(rows: Sequence[_Row], index: int) -> tuple[_Row, int]:
    """The header that starts at line `index` (empty when there is none) and the index of the line after it."""
    top = rows[index]
    if not _like_header(top):
        return [], index
    below = rows[index + 1] if index + 1 < len(rows) else []
    # A header wrapped over two lines: the lower line has more cells, and those of the upper one sit above them.
    if len(below) > len(top) and _like_header(below) and not _digits(below) and _close(top, below):
        columns = [_column(below, cell) for cell in top]
        if None not in columns and len(set(columns)) == len(columns):
            above = {column: cell.text for column, cell in zip(columns, top, strict=True)}
            merged = [_Cell(f"{above.get(i, '')} {cell.text}".strip(), cell.box) for i, cell in enumerate(below)]
            return merged, index + 2
    return top, index + 1


def _like_header(row: _Row) -> bool:
    return len(row) >= 2 and _digits(row) * 3 <= len(row) and not any(cell.text.endswith(":") for cell in row)


def _digits(row: _Row) -> int:
    return sum(bool(_DIGIT.search(cell.text)) for cell in row)


def _close(upper: _Row, lower: _Row) -> bool:
    height = max(cell.box[3] - cell.box[1] for cell in upper)
    return lower[0].box[1] - upper[0].box[1] <= WRAP_GAP * height


def _column(header: _Row, cell: _Cell) -> int | None:
    """The column `cell` overlaps most, None when it overlaps none; the leftmost wins a tie."""
    best, best_overlap = None, 0.0
    for index, head in enumerate(header):
        overlap = min(head.box[2], cell.box[2]) - max(head.box[0], cell.box[0])
        if overlap > best_overlap:
            best, best_overlap = index, overlap
    return best


def _span(header: _Row, cell: _Cell) -> int:
    """The column whose heading starts last before the middle of `cell`: numbers flush right under a heading flush left
    may not overlap it at all."""
    middle = (cell.box[0] + cell.box[2]) / 2
    starts = [(head.box[0], index) for index, head in enumerate(header) if head.box[0] <= middle]
    return max(starts)[1] if starts else min((head.box[0], index) for index, head in enumerate(header))[1]


def _read_rows(rows: Sequence[_Row], header: _Row, first: int, page: int) -> tuple[Table | None, int]:
    """The table below `header` and the index of the line after it; None when no line below fits the columns."""
    body: list[list[_Cell | None]] = []
    last_index, last = first - 1, header
    skipped = 0
    pitch = 0.0
    for index in range(first, len(rows)):
        row = rows[index]
        apart = row and pitch and row[0].box[1] - last[0].box[1] > PITCH_GAP * pitch
        if (skipped or apart) and _like_header(row) and not _digits(row):
            break  # after a gap, a line of words alone is the next table's header
        if [cell.text for cell in row] == [cell.text for cell in header]:
            break
        placed = _place(header, row)
        if placed is not None:
            body.append(placed)
        elif not (body and not skipped and len(row) == 1 and _wrap(header, body[-1], row[0], last)):
            skipped += 1
            if not body or skipped > MAX_SKIPPED:
                break
            continue
        pitch = pitch or row[0].box[1] - header[0].box[1]
        last_index, last, skipped = index, row, 0
    if not body:
        return None, first
    return (
        Table(
            page,
            tuple(cell.text for cell in header),
            tuple(tuple(cell.text if cell else "" for cell in row) for row in body),
            tuple(tuple(cell.box if cell else None for cell in row) for row in body),
        ),
        last_index + 1,
    )


def _place(header: _Row, row: _Row) -> list[_Cell | None] | None:
    """`row` spread over the columns; None unless it has two cells, one sits right under a heading, and half of them
    fall into different columns."""
    direct = [_column(header, cell) for cell in row]
    if len(row) < 2 or all(column is None for column in direct):
        return None
    columns = [_span(header, cell) if column is None else column for column, cell in zip(direct, row, strict=True)]
    different = len(set(columns))
    if different < 2 or different * 2 < len(row):
        return None
    placed: list[_Cell | None] = [None] * len(header)
    for column, cell in zip(columns, row, strict=True):
        _put(placed, column, cell)
    return placed


def _put(placed: list[_Cell | None], column: int, cell: _Cell) -> None:
    old = placed[column]
    if old is not None:
        a, b = old.box, cell.box
        box = (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))
        cell = _Cell(f"{old.text} {cell.text}", box)
    placed[column] = cell


def _wrap(header: _Row, placed: list[_Cell | None], cell: _Cell, above: _Row) -> bool:
    """Append `cell` to the row above when it continues one of its cells: same single column, directly below."""
    columns = [i for i, head in enumerate(header) if min(head.box[2], cell.box[2]) > max(head.box[0], cell.box[0])]
    old = placed[columns[0]] if len(columns) == 1 else None
    if old is None or len(old.text) > MAX_WRAPPED_CHARS or not _close(above, [cell]):
        return False
    _put(placed, columns[0], cell)
    return True
