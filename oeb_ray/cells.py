"""Texts of documents, vendors and people made harmless for what opens a table: a spreadsheet, or a Markdown page.

In: cells. Out: CSV or Markdown text. What a cell says stays readable; it is escaped, never cut out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from .jsontext import printable, visible

_NUMBER = re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?")  # what any spreadsheet reads as the number that it is
_NUMERIC = re.compile(r"[\s+-]*[\d.,]+([eE][+-]?\d+)?\s*")
_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|!~@&$]")


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, raw: bool = False) -> str:
    """A table as CSV with a line feed after each row.

    Texts that a spreadsheet would take for a formula, or change as a number (``00123``, 16 digits and more), get an
    apostrophe in front; numbers, and None as an empty cell, stay as they are. ``raw``: for machines, nothing is put in
    front of anything.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows([[value if raw else csv_cell(value) for value in row] for row in rows])
    return printable(stream.getvalue())


def csv_cell(value: Any) -> Any:
    """A cell that a spreadsheet does not run; see `csv_text`."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    # Signs that nobody sees, in front of a formula, are skipped by some.
    seen = re.sub(r"^(\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\s)+", "", visible(value))
    if seen[:1] in ("=", "+", "-", "@", "|", "%") or value[:1] in ("\t", "\r", "\n") or _NUMERIC.fullmatch(value):
        return f"'{value}"
    return value


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are figures, set to the right."""
    lines = [list(map(markdown_cell, headings)), ["---", *["---:"] * (len(headings) - 1)]]
    lines.extend([list(map(markdown_cell, row)) for row in rows])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def markdown_cell(text: str) -> str:
    """Text that stays text in Markdown, in a cell or outside: signs that could be markup, a link or a mention become
    character references, and what cannot be seen becomes an escape."""
    return (
        _MARKUP.sub(lambda found: f"&#{ord(found[0])};", visible(text))
        .replace("www.", "www&#46;")
        .replace("://", "&#58;//")
    )
