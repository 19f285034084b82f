"""The board as text: a Markdown table or CSV, into a file or between two markers of one.

In: a Board. Out: text; every line with the digest from which `oeb verify` makes its figures again.
"""

from __future__ import annotations

from typing import Any

from . import storage
from .board import Board, Standing
from .cells import csv_text, markdown_cell, markdown_table
from .errors import RequestError
from .scoring.summary import BETTER, FEWEST, Estimate, Pair

BEGIN, END = "<!-- oeb leaderboard -->", "<!-- /oeb leaderboard -->"
SHORT = 12  # characters of a digest in a table


def markdown(board: Board, out: str) -> str:
    """The board as a Markdown table with its notes."""
    rows = [_cells(board, one) for one in board.standings]
    return (
        markdown_table(list(rows[0]), [list(row.values()) for row in rows])
        + "\n"
        + "".join(f"{note}\n" for note in _notes(board, out))
    )


def csv(board: Board, *, raw: bool = False) -> str:
    """The board as CSV, numbers with every digit; ``raw`` as in `csv_text`."""
    rows = [_values(board, one) for one in board.standings]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows], raw=raw)


def put_between_markers(address: str, text: str) -> None:
    """Replaces what stands between the markers of a text file.

    Raises:
        RequestError: there is no such file, or it does not hold each marker once, in order.
    """
    try:
        before = storage.read(address).decode("utf-8")
    except FileNotFoundError:
        raise RequestError(f"there is no file {address}") from None
    except UnicodeDecodeError as error:
        raise RequestError(f"{address} is no UTF-8 text: {error}") from None
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in head + tail:
        raise RequestError(f"{address} needs each of these lines once, in this order: {BEGIN} and {END}")
    storage.put(address, f"{head}{BEGIN}\n{text}{END}{tail}".encode())


def rank_of(board: Board, one: Standing) -> str:
    """``1``, ``2=`` where others share the rank, ``-`` without one."""
    if one.rank is None:
        return "-"
    shared = sum(other.rank == one.rank for other in board.standings) > 1
    return f"{one.rank}{'=' if shared else ''}"


def mean_of(estimate: Estimate) -> str:
    """``0.8123 (0.7901 to 0.8345)``; the interval only where it holds."""
    if estimate.mean is None:
        return "-"
    interval = f" ({estimate.interval.low:.4f} to {estimate.interval.high:.4f})" if estimate.interval else ""
    return f"{estimate.mean:.4f}{interval}"


def against_of(board: Board, one: Standing) -> str:
    """``-3.21 points on 60, worse``: the difference to the leader on the documents that both have, and what it is."""
    if one.name == board.leader:
        return "leader"
    pair = one.against
    if pair is None or pair.difference is None:
        return "no common document" if pair else "-"
    return f"{100 * pair.difference:+.2f} points on {pair.documents}, {outcome_of(pair)}"


def outcome_of(pair: Pair) -> str:
    """What the first Run of a pair is beside the other."""
    if pair.outcome != BETTER:
        return pair.outcome
    return "better" if pair.winner == pair.a else "worse"


def figure(value: float | None, digits: int) -> str:
    """A number, or ``-`` where nobody knows it."""
    return "-" if value is None else f"{value:.{digits}f}"


def _cells(board: Board, one: Standing) -> dict[str, str]:
    """A line of the Markdown table, by heading."""
    repeats = f" x{len(one.runs)}" if len(one.runs) > 1 else ""
    of = one.recorded if not one.partial else f"{one.recorded} recorded of {one.documents or '?'}"
    headline, *others = one.figures.items()
    return {
        "run": f"{one.name}{repeats}",
        "rank": rank_of(board, one),
        headline[0]: mean_of(headline[1]),
        "against the leader": against_of(board, one),
        "scored": f"{one.scored}/{of}",
        "coverage": f"{one.coverage:.4f}",
        **{name: figure(estimate.mean, 4) for name, estimate in others},
        "$ per document": figure(one.use.usd, 4),
        "s per document": figure(one.use.median_s, 1),
        "made from": " ".join(digest[:SHORT] for digest in one.digests),
    }


def _values(board: Board, one: Standing) -> dict[str, Any]:
    """A line of the CSV, by heading."""
    headline, *others = one.figures.items()
    low, high = headline[1].interval or (None, None)
    pair = one.against
    apart_low, apart_high = (pair.interval if pair else None) or (None, None)
    return {
        "run": one.name,
        "provider": one.provider,
        "settings": one.described,
        "repeats": len(one.runs),
        "rank": one.rank,
        "tied_with": " ".join(board.tied.get(one.name, [])) or None,
        headline[0]: headline[1].mean,
        f"{headline[0]}_low": low,
        f"{headline[0]}_high": high,
        "against_leader": "leader" if one.name == board.leader else outcome_of(pair) if pair else None,
        "difference": pair.difference if pair else None,
        "difference_low": apart_low,
        "difference_high": apart_high,
        "common_documents": pair.documents if pair else None,
        "documents": one.documents,
        "recorded": one.recorded,
        "scored": one.scored,
        "failed": one.failed,
        "coverage": one.coverage,
        **{name: estimate.mean for name, estimate in others},
        **{f"{kind}_rate": rate for kind, rate in one.mix.items()},
        "usd_per_document": one.use.usd,
        "usd_per_1000_pages": one.use.usd_per_1000_pages,
        "median_s": one.use.median_s,
        "p95_s": one.use.p95_s,
        "scorer": one.scorer,
        "made_from": " ".join(one.digests),
    }


def _notes(board: Board, out: str) -> list[str]:
    """What the table cannot say, as Markdown lines."""
    headline = next(iter(board.standings[0].figures))
    notes = [
        f"{headline.capitalize()} is the mean over {board.over}, with its 95 % interval from {FEWEST} documents on."
        " Rank is 1 + the number of runs that are better beyond chance (paired on common "
        "documents, family-wise 5 %); `=` marks a shared rank, and runs that share it are in order of price.",
    ]
    notes += [f"- {markdown_cell(one.name)}: {markdown_cell(one.described)}" for one in board.standings]
    for one in board.standings:
        if one.other_corpus is not None:
            notes.append(f"- {markdown_cell(one.name)} is of another corpus, {markdown_cell(one.other_corpus)}")
        elif one.partial:
            of = "an unknown number" if one.documents is None else str(one.documents)
            notes.append(f"- {markdown_cell(one.name)} is partial, {one.recorded} of {of} documents, so it has no rank")
    scorers = sorted({one.scorer for one in board.standings if one.scorer})
    notes.append("")
    notes.append(
        f"Scored by {markdown_cell(', '.join(scorers) or '-')}. `made from` is the digest of golds, schemas, "
        f"predictions and scorer; `oeb verify` of {markdown_cell(out)} makes all again and prints the same."
    )
    return notes
