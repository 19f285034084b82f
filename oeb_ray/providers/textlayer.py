"""Reads the text layer of a document: its words with positions, its lines, and the tables its format declares.

In: the bytes of a document and its media type; the bytes are hostile. Out: a `TextLayer`.
PDF (positions on the page), HTML, XML, CSV, plain text and DOCX (positions on a virtual grid) are read; an image or
any other type has no text layer, so its result has no lines. There is no OCR. Broken input raises ValueError.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator

from .textlayer_markup import read_html, table_of
from .textlayer_pdf import read_pdf
from .textlayer_tables import find_tables
from .textlayer_types import (
    MAX_LINE_CHARS,
    MAX_PAGES,
    MAX_TEXT_BYTES,
    MAX_WORDS,
    Box,
    GridBuilder,
    Line,
    Table,
    TextLayer,
    Word,
    split_cells,
    union,
)
from .textlayer_xml import read_docx, read_xml

__all__ = [
    "MAX_LINE_CHARS",
    "MAX_PAGES",
    "MAX_TEXT_BYTES",
    "MAX_WORDS",
    "Box",
    "Line",
    "Table",
    "TextLayer",
    "Word",
    "read_text_layer",
    "split_cells",
    "union",
]

DELIMITERS = ",;\t|"
SNIFFED_ROWS = 50
"""Rows looked at to choose the CSV delimiter."""

_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def read_text_layer(data: bytes, media_type: str) -> TextLayer:
    """The text layer of `data`; `media_type` may carry parameters ("text/html; charset=utf-8"), which are ignored.

    Reading stops at `MAX_PAGES` pages or `MAX_WORDS` words. Raises ValueError, with a message that starts with "not a
    readable ..." or "encrypted PDF", when the bytes are not what the media type says or exceed a size limit.
    """
    kind = media_type.partition(";")[0].strip().lower()
    if kind == "application/pdf":
        return read_pdf(data)
    if kind == _DOCX:
        return read_docx(data)
    if kind not in ("text/html", "application/xml", "text/xml", "text/csv", "text/plain"):
        return TextLayer(0, (), ())
    if len(data) > MAX_TEXT_BYTES:
        raise ValueError(f"not a readable {kind} document: larger than {MAX_TEXT_BYTES} bytes")
    if kind in ("application/xml", "text/xml"):
        return read_xml(data)
    text = decode(data)
    if kind == "text/html":
        return read_html(text)
    return _read_csv(text) if kind == "text/csv" else _read_plain(text)


def decode(data: bytes) -> str:
    """UTF-8 with or without a byte order mark, else cp1252; NUL characters are dropped."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    return text.replace("\0", "")


def _physical_lines(text: str) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        yield line[:MAX_LINE_CHARS]


def _read_plain(text: str) -> TextLayer:
    grid = GridBuilder()
    for line in _physical_lines(text):
        if not grid.add_text(line):
            break
    return TextLayer(1, tuple(grid.lines), tuple(find_tables(grid.lines)))


def _read_csv(text: str) -> TextLayer:
    """Each row is a line; the first row that is not blank is the header of the only table."""
    grid = GridBuilder()
    rows: list[tuple[str, ...]] = []
    try:
        for row in csv.reader(_physical_lines(text), delimiter=_delimiter(text)):
            cells = tuple(cell.strip() for cell in row)
            if not any(cells):
                continue
            rows.append(cells)
            if not grid.add(cells):
                break
    except csv.Error as error:
        raise ValueError(f"not a readable CSV: {error}") from error
    table = table_of(rows)
    return TextLayer(1, tuple(grid.lines), (table,) if table else ())


def _delimiter(text: str) -> str:
    """The delimiter whose most frequent row width covers the most cells of the first rows; a comma when none splits."""
    best, best_score = ",", 0
    for delimiter in DELIMITERS:
        widths: Counter[int] = Counter()
        for number, row in enumerate(csv.reader(_physical_lines(text), delimiter=delimiter)):
            if number >= SNIFFED_ROWS:
                break
            if len(row) > 1:
                widths[len(row)] += 1
        # Row count first: a delimiter that splits every row the same way beats one that splits a few rows often.
        score = max((count * 1_000 + min(width, 999) for width, count in widths.items()), default=0)
        if score > best_score:
            best, best_score = delimiter, score
    return best
