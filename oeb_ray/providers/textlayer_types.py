"""The shapes every text-layer reader shares: words, lines, tables, the limits, and how a line splits into cells.

In: words with boxes (from a PDF page or a virtual grid of lines and columns).
Out: `Line`, `Table` and `TextLayer` values, and `find_tables`, which reads tables from aligned columns.
Everything here is deterministic and linear in the number of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

MAX_PAGES = 2_000
"""Pages read of one document; later pages are left unread."""
MAX_WORDS = 2_000_000
"""Words read of one document (an empty table cell counts as one); reading stops there."""
MAX_TEXT_BYTES = 64 * 1024 * 1024
"""Largest text, CSV, HTML or XML document, and largest uncompressed `word/document.xml` of a DOCX, in bytes."""
MAX_LINE_CHARS = 1_000_000
"""Characters kept of one physical line of a text or CSV file."""
MAX_COLUMNS = 200
"""Widest line that can be part of a table found by alignment; wider lines are only text."""
CELL_GAP = 1.5
"""Two words belong to different cells when the gap between them exceeds this many average character widths."""

Box = tuple[float, float, float, float]


class Word(NamedTuple):
    """One printed word.

    `page` counts from 1. `box` is (x0, y0, x1, y1): for a layer with geometry fractions 0..1 of the page, origin top
    left; for one without (`TextLayer.geometry` is false) a virtual grid: x is the character column counted from 0,
    y0 the line number counted from 1, y1 = y0 + 1.
    """

    text: str
    page: int
    box: Box


class Line(NamedTuple):
    """The words on one visual line, in reading order (right to left for a right-to-left line)."""

    page: int
    words: tuple[Word, ...]

    @property
    def text(self) -> str:
        """The words joined by single spaces."""
        return " ".join(word.text for word in self.words)


class Table(NamedTuple):
    """A header and its rows; a row may be shorter than the header (missing cells are empty), never longer.

    `boxes` is parallel to `rows` for tables found on a page with geometry (None for an empty cell), else ().
    """

    page: int
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    boxes: tuple[tuple[Box | None, ...], ...] = ()


class TextLayer(NamedTuple):
    """A document's text: `pages` is 0 without pages (an image), 1 for formats that have no pages of their own.

    `geometry` is true when word boxes are positions on a printed page, false when they are a virtual grid.
    """

    pages: int
    lines: tuple[Line, ...]
    tables: tuple[Table, ...]
    geometry: bool = False


class GridBuilder:
    """Collects lines for formats without geometry, placing words on a virtual grid until the word budget is spent."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.left = MAX_WORDS
        self.row = 0

    def add(self, cells: Iterable[str]) -> bool:
        """Append one line made of `cells`, three columns apart from each other; false once the budget is spent."""
        self.row += 1
        column = 0
        words: list[Word] = []
        for cell in cells:
            parts = cell.split()
            self.left -= len(parts) or 1
            for part in parts if self.left > 0 else ():
                words.append(Word(part, 1, (column, self.row, column + len(part), self.row + 1)))
                column += len(part) + 1
            column += 3
        return self._finish(words)

    def add_text(self, text: str) -> bool:
        """Append one line that keeps the columns of `text` as printed; false once the budget is spent."""
        self.row += 1
        words: list[Word] = []
        for match in re.finditer(r"\S+", text[:MAX_LINE_CHARS].expandtabs(8)):
            self.left -= 1
            if self.left <= 0:
                break
            words.append(Word(match.group(), 1, (match.start(), self.row, match.end(), self.row + 1)))
        return self._finish(words)

    def _finish(self, words: list[Word]) -> bool:
        if words:
            self.lines.append(Line(1, tuple(words)))
        return self.left > 0


def union(words: Iterable[Word]) -> Box:
    """The smallest box around `words` (at least one)."""
    boxes = [word.box for word in words]
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )


def split_cells(line: Line) -> list[tuple[Word, ...]]:
    """The words of `line` grouped into cells: a new cell starts after a gap wider than `CELL_GAP` characters."""
    words = line.words
    width = sum(word.box[2] - word.box[0] for word in words) / max(1, sum(len(word.text) for word in words))
    cells: list[list[Word]] = []
    for index, word in enumerate(words):
        before = words[index - 1].box if index else word.box
        # A right-to-left line runs the other way, so the gap is whichever side is positive.
        gap = max(word.box[0] - before[2], before[0] - word.box[2])
        if index and gap <= CELL_GAP * width:
            cells[-1].append(word)
        else:
            cells.append([word])
    return [tuple(cell) for cell in cells]
