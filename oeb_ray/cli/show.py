"""`oeb show`: runs side by side."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..jsontext import visible
from .base import declare, print_columns, print_json

if TYPE_CHECKING:
    from ..overview import Overview
    from ..stability import Stability
    from ..stored import StoredRun

MEANS = ("accuracy", "precision", "recall")
USE = ("cost", "$/page", "s/doc", "p90")


def add(commands: Any) -> None:
    """Declares `oeb show`."""
    parser = declare(
        commands, "show", "The runs of an output side by side: how far they are, what they came to, what they cost.",
        "oeb show runs/\n  oeb show runs/ pdftext-44136fa3 --suites",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="these runs only")
    parser.add_argument("--suites", action="store_true", help="also every suite")
    parser.add_argument("--json", action="store_true", help="all that is known of each run, as one JSON list")
    parser.set_defaults(command=_show)


def _show(given: argparse.Namespace) -> int:
    from ..overview import overviews
    from ..stored import runs_at

    found = overviews(runs_at(given.out, given.runs))
    groups = [
        [one.run for one in found if one.repeat_of == base] for base in dict.fromkeys(one.repeat_of for one in found)
    ]
    repeats = _stability([group for group in groups if len(group) > 1])
    if given.json:
        print_json([_as_json(one, repeats) for one in found])
        return 0
    print_columns(("run", "documents", "scored", "failed", "pending", "coverage", *MEANS, *USE),
                  [_row(one) for one in found])  # fmt: skip
    if given.suites:
        print()
        print_columns(("run", "suite", "scored", "failed", "coverage", *MEANS, *USE[1:]), list(_suite_rows(found)))
    if repeats:
        print()
        print_columns(
            ("repeats", "runs", "documents", "values", "equal", "accuracy", "spread"), list(map(_repeat, repeats))
        )
    print()
    for line in _notes(found):
        print(visible(line))
    return 0


def _stability(groups: Sequence[Sequence[StoredRun]]) -> list[Stability]:
    if not groups:
        return []
    from ..stability import stability  # loads pyarrow

    return [stability(group) for group in groups]


def _row(one: Overview) -> list[str]:
    total = one.documents
    documents = f"{one.recorded} of {'?' if total is None else total}" if one.partial else str(one.recorded)
    pending = "?" if one.pending is None else str(one.pending)
    if one.summary is None:
        return [one.run.name, documents, "-", "-", pending, *["-"] * (len(MEANS) + 1), *_use(one.usage)]
    figures = _figures(one.summary)
    return [one.run.name, documents, *figures[:2], pending, *figures[2:], *_use(one.usage)]


def _figures(summary: dict[str, Any]) -> list[str]:
    """Scored, failed, coverage and the means of one summary or one suite of it; a mean of nothing is ``-``."""
    documents, scored = summary["documents"], summary["scored"]
    means = [f"{summary[key]:.4f}" if scored else "-" for key in MEANS]
    return [f"{scored}/{documents}", str(documents - scored), f"{summary['coverage']:.4f}", *means]


def _suite_rows(found: Iterable[Overview]) -> Iterable[list[str]]:
    for one in found:
        for suite, block in (one.summary["per_suite"] if one.summary else {}).items():
            used = (one.usage or {}).get("per_suite", {}).get(suite, {})
            yield [one.run.name, suite, *_figures(block), *_per(used)]


def _use(usage: dict[str, Any] | None) -> list[str]:
    """Cost, dollars per page and seconds per document; what no vendor stated is not zero."""
    if usage is None:
        return ["-"] * len(USE)
    stated = []
    if usage["usd"] is not None:
        unknown = f" + {usage['usd_unknown']} unknown" if usage["usd_unknown"] else ""
        stated.append(f"${usage['usd']:,.2f}{unknown}")
    if usage["credits"] is not None:
        stated.append(f"{usage['credits']:,.0f} cr")
    return [" + ".join(stated) or "-", *_per(usage)]


def _per(used: dict[str, Any]) -> list[str]:
    """Dollars per page; mean and 90th percentile of the seconds of a document."""
    per_page, seconds = used.get("usd_per_page"), used.get("seconds")
    times = ["-", "-"] if seconds is None else [f"{seconds['avg']:.1f}", f"{seconds['p90']:.1f}"]
    return ["-" if per_page is None else f"{per_page:.4f}", *times]


def _repeat(found: Stability) -> list[str]:
    share = "-" if found.share is None else f"{found.share:.4f}"
    values = "-" if found.values is None else str(found.values)
    lowest_and_highest, spread = "-", "-"
    if found.spread is not None:
        lowest_and_highest = f"{min(found.accuracies):.4f} to {max(found.accuracies):.4f}"
        spread = f"{found.spread:.2f} points"
    return [found.runs[0], str(len(found.runs)), str(found.documents), values, share, lowest_and_highest, spread]


def _notes(found: Sequence[Overview]) -> Iterable[str]:
    for one in found:
        settings = ", ".join(f"{key}={value!r}" for key, value in one.settings.items())
        yield f"{one.run.name}: {one.provider or 'a table of predictions'}{' ' if settings else ''}{settings}"
    for one in found:
        name = one.run.name
        if one.other_corpus is not None:
            yield f"{name}: of another corpus, {one.other_corpus}; its means say nothing beside those of the others"
        elif one.documents is not None and one.recorded < one.documents:
            yield f"{name}: partial, {one.recorded} of {one.documents} documents; oeb diff compares what two have"
        if one.unsettled:
            yield f"{name}: {one.unsettled} documents are recorded and not scored yet; the same benchmark goes on"
    scorers = sorted({one.usage["scorer"] for one in found if one.usage and "scorer" in one.usage})
    if scorers:
        yield f"scored by {', '.join(scorers)}"


def _as_json(one: Overview, repeats: Sequence[Stability]) -> dict[str, Any]:
    stable = next((found for found in repeats if one.run.name in found.runs), None)
    return {
        "run": one.run.name,
        "provider": one.provider,
        "settings": one.settings,
        "corpus_documents": one.documents,
        "recorded": one.recorded,
        "pending": one.pending,
        "failed": one.failed,
        "unscored": one.unsettled,
        "partial": one.partial,
        "other_corpus": one.other_corpus,
        "summary": one.summary,
        "usage": one.usage,
        "stability": stable and {
            "runs": stable.runs, "documents": stable.documents, "values": stable.values, "equal": stable.equal,
            "share": stable.share, "accuracies": stable.accuracies, "spread_points": stable.spread,
        },
    }  # fmt: skip
