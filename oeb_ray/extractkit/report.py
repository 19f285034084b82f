"""The tables of a run record, as Markdown: nothing but the record goes into them.

In: a checked record. Out: per schema a main table, a table of fields and a line on items that were made up; a page with
all of them; a README with the main tables between its marks. Shares have one decimal, dollars two, ties go away from
zero; what is not known is a dash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

from ..cells import markdown_cell
from ..errors import RequestError
from ..scoring.field_accuracy import per_thousand, summarize
from .record import Json

ORDER = ("invoice", "receipt")
HEADINGS = ("Model", "Docs", "Field accuracy", "Grounding hit@0.5", "Mean IoU", "Cost / 1k docs")
START, END = "<!-- benchmark:start -->", "<!-- benchmark:end -->"
NONE = "\u2014"
_PLAIN = re.compile(r"[\w.\[\]-]+", re.ASCII)
TITLES = {"invoice": "Invoices (DocILE)", "receipt": "Receipts (CORD)"}
MEANING = """\
- **Field accuracy**: the share of fields whose value is right, items in printed order. A field that the document does
  not have is right when nothing is said of it. All fields of a document that failed are wrong.
- **Grounding hit@0.5, mean IoU**: of the fields with a right value and a marked place, how many are placed with an
  overlap (intersection over union) of at least one half, and the mean. A missing box or a wrong page is 0.
- **Cost / 1k docs**: measured tokens at list prices. What a vendor states that it has billed stands in a column of its
  own and enters no other figure.

Mind that the documents are public, so that models may have been trained on them; that the receipts are Indonesian; and
that a right item in a wrong place of the list is wrong.
"""
SOURCES = """\
Receipts: CORD, a Consolidated Receipt Dataset for Post-OCR Parsing (NAVER CLOVA), CC BY 4.0. Invoices: DocILE (Rossum);
its documents are not passed on, a token is free of charge at docile.rossum.ai.
"""


class Block(NamedTuple):
    """The summaries of the models that have documents of one schema, and all models in the record's order."""

    schema: str
    by_model: dict[str, dict[str, Any]]


def blocks(record: Json) -> list[Block]:
    """Per schema that any model has documents of, invoices first: the summaries."""
    found = {run["model"]: summarize(run["docs"]) for run in record["runs"]}
    there = {schema for summary in found.values() for schema in summary}
    order = [*ORDER, *sorted(there - set(ORDER))]
    return [
        Block(schema, {model: summary[schema] for model, summary in found.items() if schema in summary})
        for schema in order
        if schema in there
    ]


def main_table(block: Block) -> list[str]:
    """A row per model."""
    return _table(HEADINGS, [(markdown_cell(model), *_figures(summary)) for model, summary in block.by_model.items()])


def field_table(block: Block) -> list[str]:
    """A row per field of the first model, a column per model."""
    columns = [{entry["field"]: entry for entry in summary["perField"]} for summary in block.by_model.values()]
    rows = [(_field_name(name), *(_share_of(column.get(name)) for column in columns)) for name in (columns or [{}])[0]]
    return _table(("Field", *map(markdown_cell, block.by_model)), rows)


def extras_line(block: Block) -> str | None:
    """The models that made up items, and how many; None if none did."""
    made_up = [
        f"{markdown_cell(model)}: {summary['extraLineItems']}"
        for model, summary in block.by_model.items()
        if summary["extraLineItems"]
    ]
    return ", ".join(made_up) or None


def cost_table(record: Json) -> list[str]:
    """Per model over all its documents: tokens and cost by list prices, beside what vendors state that they billed."""
    headings = (
        "Model", "Docs", "Tokens in", "Tokens out", "List price / doc", "List price / 1k docs", "Billed / doc",
        "Billed / 1k docs",
    )  # fmt: skip
    return _table(headings, [_cost_row(run["model"], run["docs"]) for run in record["runs"]])


def page(record: Json) -> str:
    """A whole page."""
    parts = [
        "# Benchmark",
        f"Run of {record['startedAt']}, manifest {record['manifestChecksum'][:12]}.",
        *map(markdown_cell, record.get("conditions", ())),
    ]
    for block in blocks(record):
        parts += [f"## {TITLES.get(block.schema, markdown_cell(block.schema))}", _lines(main_table(block))]
        parts += ["### By field", _lines(field_table(block))]
        if made_up := extras_line(block):
            parts.append(f"Line items that no document has: {made_up}.")
    parts += ["## Cost", _lines(cost_table(record)), *_prices(record)]
    return "\n\n".join([*parts, "## What the figures mean", MEANING + "\n" + SOURCES])


def main_tables(record: Json) -> str:
    """The main tables alone, each with its heading."""
    parts = []
    for block in blocks(record):
        parts += [f"**{TITLES.get(block.schema, markdown_cell(block.schema))}**", _lines(main_table(block))]
    return "\n\n".join(parts)


def into_readme(readme: str, tables: str) -> str:
    """The README with tables in place of what stands between its marks.

    Raises:
        RequestError: it has not each mark once, in order, on lines of their own.
    """
    lines = readme.split("\n")
    at = [[number for number, line in enumerate(lines) if line.strip() == mark] for mark in (START, END)]
    if [len(found) for found in at] != [1, 1] or at[0][0] > at[1][0]:
        raise RequestError(f"the README has not the lines {START} and {END} once each, in this order")
    return "\n".join([*lines[: at[0][0] + 1], "", *tables.split("\n"), "", *lines[at[1][0] :]])


def percent(share: float | None) -> str:
    """``6.3%``"""
    return NONE if share is None else f"{_rounded(share * 100, '0.1')}%"


def dollars(amount: float | None, step: str = "0.01") -> str:
    """``$57.99``"""
    return NONE if amount is None else f"${_rounded(amount, step)}"


def _rounded(value: float, step: str) -> Decimal:
    return Decimal(value).quantize(Decimal(step), ROUND_HALF_UP)


def _figures(summary: dict[str, Any]) -> tuple[str, ...]:
    failed = f" ({summary['failedDocs']} failed)" if summary["failedDocs"] else ""
    grounding = summary["grounding"]
    return (
        f"{summary['docs']}{failed}",
        percent(summary["fieldAccuracy"]),
        percent(grounding["hitAt50"]),
        percent(grounding["meanIoU"]),
        dollars(summary["cost"]["per1kDocsUSD"]),
    )


def _share_of(entry: dict[str, Any] | None) -> str:
    return NONE if entry is None else f"{percent(entry['accuracy'])} ({entry['count']})"


def _cost_row(model: str, docs: Sequence[Json]) -> tuple[str, ...]:
    usages = [doc["usage"] or {} for doc in docs]
    row = [markdown_cell(model), str(len(docs))]
    row += [f"{sum(usage.get(key, 0) for usage in usages):,}" for key in ("inputTokens", "outputTokens")]
    for key in ("costUSD", "billedUSD"):
        known = [usage[key] for usage in usages if usage.get(key) is not None]
        thousand = per_thousand(sum(known) if known else None, len(docs))
        row += [dollars(None if thousand is None else thousand / 1000, "0.0001"), dollars(thousand)]
    return tuple(row)


def _prices(record: Json) -> list[str]:
    """What the list prices are, where the record says."""
    prices = record.get("prices")
    if not isinstance(prices, dict):
        return []
    return [f"List prices as of {markdown_cell(str(prices.get('date')))}."]


def _field_name(name: str) -> str:
    return f"`{name}`" if _PLAIN.fullmatch(name) else markdown_cell(name)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(headings), f"|{'---|' * len(headings)}", *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _lines(lines: Sequence[str]) -> str:
    return "\n".join(lines)
