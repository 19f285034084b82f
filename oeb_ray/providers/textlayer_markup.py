"""Reads the text of HTML as lines and tables, in one linear pass; `Flow` collects them, for DOCX too.

In: hostile text. Out: a `TextLayer` on a virtual grid (no geometry).
No tree is built, so nesting costs no stack and little memory; nothing is fetched, run or written.
"""

from __future__ import annotations

import re
from html import unescape

from .textlayer_types import MAX_COLUMNS, GridBuilder, Table, TextLayer

MAX_TABLE_DEPTH = 50
"""Deepest nesting of tables in HTML and DOCX; deeper tables count as text."""
MAX_ROW_CELLS = 1_000
"""Cells kept of one table row of HTML or DOCX, give or take one spanning cell."""

_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br caption center dd div dl dt fieldset figcaption footer form h1 h2 h3"
        " h4 h5 h6 head header hr html legend li main nav ol option p pre section summary title td th tr ul",
    )
)
# A comment's start, a declaration or instruction, or a whole tag: (closing slash, name, attributes).
_MARKUP = re.compile(r"<!--|<[!?][^>]*>|<(/?)([a-zA-Z][a-zA-Z0-9:-]*)([^>]*)>")
_COLSPAN = re.compile(r"\bcolspan\s*=\s*[\"']?([1-9][0-9]{0,5})", re.IGNORECASE)
_HIDDEN = {tag: re.compile(f"</{tag}", re.IGNORECASE) for tag in ("script", "style", "template")}


class _Rows:
    """A table being read: its finished rows and the cells of the current one."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []
        self.cells: list[str] = []


class Flow:
    """Text blocks and (nested) tables in document order, as HTML and DOCX both have them."""

    def __init__(self) -> None:
        self.grid = GridBuilder()
        self.tables: list[Table] = []
        self.stack: list[_Rows] = []
        self.too_deep = 0
        self.text: list[str] = []

    def block(self) -> None:
        """End a paragraph; inside a table cell it is only white space, so that a cell stays one line."""
        if self.stack:
            self.text.append(" ")
        else:
            self._flush()

    def _flush(self) -> str:
        text = " ".join("".join(self.text).split())
        self.text = []
        if text and not self.stack:
            self.grid.add([text])
        return text

    def open_table(self) -> None:
        if len(self.stack) >= MAX_TABLE_DEPTH:
            self.too_deep += 1
            return
        self._flush() if not self.stack else self.end_cell(0)
        self.stack.append(_Rows())

    def end_cell(self, span: int = 1) -> None:
        """End a table cell `span` columns wide; a span of 0 keeps the text only when there is some."""
        if self.stack:
            text = self._flush()
            # Cut, or a few bytes of colspan would grow into hundreds of cells over and over.
            if (text or span) and len(self.stack[-1].cells) < MAX_ROW_CELLS:
                self.stack[-1].cells.extend([text] + [""] * (span - 1))

    def end_row(self) -> None:
        if self.stack and self.stack[-1].cells:
            cells = tuple(self.stack[-1].cells)
            self.stack[-1].cells = []
            if self.grid.left > 0:
                self.stack[-1].rows.append(cells)
                self.grid.add(cells)

    def close_table(self) -> None:
        if self.too_deep:
            self.too_deep -= 1
        elif self.stack:
            if "".join(self.text).strip():
                self.end_cell()
            self.text = []
            self.end_row()
            table = table_of(self.stack.pop().rows)
            if table:
                self.tables.append(table)

    def finish(self) -> TextLayer:
        while self.stack:
            self.close_table()
        self._flush()
        return TextLayer(1, tuple(self.grid.lines), tuple(self.tables))


def table_of(rows: list[tuple[str, ...]]) -> Table | None:
    """A table whose first row is the header, rows cut to its width; None without a row below the header."""
    if len(rows) < 2:
        return None
    width = len(rows[0])
    return Table(1, rows[0], tuple(row[:width] for row in rows[1:]))


class _Html:
    """Feeds `Flow` from tags; tag soup and any nesting are fine because only open tables are remembered."""

    def __init__(self) -> None:
        self.flow = Flow()
        self.span = 0

    def start(self, tag: str, attributes: str) -> None:
        flow = self.flow
        if tag == "table":
            self.close_cell()
            flow.open_table()
        elif tag in ("td", "th") and flow.stack and not flow.too_deep:
            self.close_cell()
            span = _COLSPAN.search(attributes[:1_000])
            self.span = min(int(span.group(1)), MAX_COLUMNS) if span else 1
            flow.text = []
        elif tag == "tr" and flow.stack and not flow.too_deep:
            self.close_cell()
            flow.end_row()
        elif tag in _BLOCKS:
            flow.block()

    def end(self, tag: str) -> None:
        flow = self.flow
        if tag == "table":
            self.close_cell()
            flow.close_table()
        elif tag in ("td", "th", "tr") and flow.stack and not flow.too_deep:
            self.close_cell()
            if tag == "tr":
                flow.end_row()
        elif tag in _BLOCKS:
            flow.block()

    def close_cell(self) -> None:
        """End the open cell, if any: closing tags are optional in HTML."""
        if self.span and not self.flow.too_deep:
            self.flow.end_cell(self.span)
            self.span = 0

    def data(self, text: str) -> None:
        if self.flow.grid.left > 0:
            self.flow.text.append(unescape(text))


def read_html(text: str) -> TextLayer:
    """The visible text of an HTML page: one line per block or table row, and its tables.

    html.parser is not used: it is quadratic in unclosed markup ("<a<a<a..." of 400 kB takes minutes). This scan is
    linear; the price is that a ">" inside a quoted attribute ends the tag early.
    """
    html = _Html()
    at, last = 0, text.rfind(">") + 1  # after the last ">" nothing can be a tag
    while match := _MARKUP.search(text, at, last):
        html.data(text[at : match.start()])
        at = match.end()
        if match.group() == "<!--":
            at = text.find("-->", at) + 3
            if at < 3:
                return _finished(html, "")  # an unclosed comment hides the rest, as in a browser
        elif name := match.group(2):
            tag = name.lower()
            if match.group(1):
                html.end(tag)
            elif tag in _HIDDEN:
                end = _HIDDEN[tag].search(text, at)
                if end is None:
                    return _finished(html, "")
                at = end.end()
            else:
                html.start(tag, match.group(3))
    return _finished(html, text[at:])


def _finished(html: _Html, rest: str) -> TextLayer:
    html.data(rest)
    html.close_cell()
    return html.flow.finish()
