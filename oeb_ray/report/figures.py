"""The numbers behind each plot, and how they are written as CSV.

In: Facts and boards. Out: Figures: a table each, which the page draws, shows and offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..board import Board
from ..cells import csv_text
from ..scoring.summary import quantile
from .facts import Document, Facts

PAGE_BINS = ((1, 1), (2, 5), (6, 20), (21, 50), (51, 100), (101, None))
ROW_BINS = ((0, 0), (1, 10), (11, 50), (51, 200), (201, 1000), (1001, None))


@dataclass(frozen=True)
class Figure:
    """A plot: its name in addresses, its title, what it says in words, and its table.

    ``none``: what stands in its place where there is nothing to draw.
    """

    name: str
    title: str
    says: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    none: str = "No document is scored yet."

    @property
    def csv(self) -> str:
        return csv_text(self.columns, self.rows)


def figures(facts: Facts, boards: Sequence[tuple[str, Board]], pages: Mapping[str, int]) -> list[Figure]:
    """All plots. ``boards``: by the name of the selection, all documents first, then the suites; ``pages``: of
    documents, as far as known."""
    whole = boards[0][1]
    return [
        _cost(whole),
        _suites(boards[1:]),
        _errors(whole),
        _binned(facts, "length", "Accuracy against document length", "pages", PAGE_BINS,
                lambda one: pages.get(one.doc_id)),
        _binned(facts, "arrays", "Accuracy against array size", "rows of the gold's arrays", ROW_BINS,
                lambda one: one.gold_rows),
        _latency(facts),
    ]  # fmt: skip


def _cost(whole: Board) -> Figure:
    rows = [
        (one.name, one.headline.mean, *(one.headline.interval or (None, None)), one.use.usd, one.use.priced)
        for one in whole.standings
        if one.headline.mean is not None and one.use.usd is not None
    ]
    columns = ("run", "accuracy", "low", "high", "usd per document", "documents with a price")
    return Figure(
        "cost", "Accuracy against cost",
        "Mean accuracy with its 95 % interval against dollars per document. Up and to the left is better.",
        columns, rows, none="No vendor stated a price for these runs.",
    )  # fmt: skip


def _suites(boards: Sequence[tuple[str, Board]]) -> Figure:
    rows = [
        (suite, one.name, one.headline.mean, *(one.headline.interval or (None, None)), one.scored, one.recorded)
        for suite, found in boards
        for one in found.standings
        if one.headline.mean is not None
    ]
    columns = ("suite", "run", "accuracy", "low", "high", "scored", "recorded")
    return Figure("suites", "Accuracy by suite", "Mean accuracy of each run in each suite, with 95 % intervals where "
                  "there are enough documents.", columns, rows)  # fmt: skip


def _errors(whole: Board) -> Figure:
    rows = [
        (one.name, kind, rate)
        for one in whole.standings
        for kind, rate in one.mix.items()
        if rate is not None
    ]  # fmt: skip
    return Figure("errors", "Error mix", "Share of a document's values that are in error, by kind, as a mean over "
                  "scored documents. One panel per kind.", ("run", "kind", "share"), rows)  # fmt: skip


def _binned(
    facts: Facts,
    name: str,
    title: str,
    what: str,
    bins: Sequence[tuple[int, int | None]],
    size: Callable[[Document], int | None],
) -> Figure:
    rows: list[tuple[Any, ...]] = []
    for position, run in enumerate(facts.names):
        for low, high in bins:
            found = [
                one.accuracies[position]
                for one in facts.documents
                if (amount := size(one)) is not None and amount >= low and (high is None or amount <= high)
            ]
            scored = [value for value in found if value is not None]
            if scored:
                rows.append((run, _label(low, high), math.fsum(scored) / len(scored), len(scored)))
    return Figure(name, title, f"Mean accuracy by {what}, one panel per run; the number of documents is at each dot.",
                  ("run", what, "accuracy", "documents"), rows,
                  none=f"The {what} of these documents are not known.")  # fmt: skip


def _label(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else str(low) if low == high else f"{low}-{high}"


def _latency(facts: Facts) -> Figure:
    rows: list[tuple[Any, ...]] = []
    for position, run in enumerate(facts.names):
        seconds = sorted(one.wall_s for one in facts.receipts[position].values() if one.error is None)
        if seconds:
            shares = [quantile(seconds, share) for share in (0.05, 0.25, 0.5, 0.75, 0.95)]
            rows.append((run, len(seconds), seconds[0], *shares, seconds[-1]))
    columns = ("run", "documents", "least", "p5", "p25", "median", "p75", "p95", "most")
    return Figure("latency", "Latency", "Seconds per answered document: the box holds the middle half, its line is the "
                  "median, whiskers reach from 5 to 95 %.", columns, rows,
                  none="No document was answered yet.")  # fmt: skip
