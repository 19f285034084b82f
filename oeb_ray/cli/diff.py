"""`oeb diff`: what has changed from one run to another."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..jsontext import visible
from .base import declare, note, print_columns, print_json

if TYPE_CHECKING:
    from ..compare import Change, Comparison


def add(commands: Any) -> None:
    """Declares `oeb diff`."""
    parser = declare(
        commands, "diff", "What changed from run A to run B, on the documents that both have.",
        "oeb diff runs/pdftext-44136fa3 new/pdftext-44136fa3 --fail-on 'accuracy<-0.5'",
    )  # fmt: skip
    parser.add_argument("run_a", metavar="RUN_A", help="the folder or URL of a run")
    parser.add_argument("run_b", metavar="RUN_B", help="the one to compare with it")
    parser.add_argument(
        "--fail-on", action="append", default=[], metavar="CONDITION",
        help="exit with 4 if it holds: the change of a figure in points, such as 'accuracy<-0.5'; may be given again",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="rows of each table; 0: all; default 20")
    parser.add_argument("--json", action="store_true", help="all of it as one JSON document")
    parser.set_defaults(command=_diff)


def _diff(given: argparse.Namespace) -> int:
    from ..compare import compare, gates
    from ..stored import run_at

    conditions = gates(given.fail_on)
    a, b = run_at(given.run_a), run_at(given.run_b)
    comparison = compare(a, b)
    met = [gate for gate in conditions if gate.is_met(comparison)]
    if given.json:
        print_json({"a": a.address, "b": b.address, **asdict(comparison)})
    else:
        print(visible(f"A  {a.address}"))
        print(visible(f"B  {b.address}"))
        _print(comparison, given.limit)
    for gate in met:
        note(f"{gate.text} holds: {gate.figure} changed by {comparison.points(gate.figure):+.2f} points")
    return 4 if met else 0


def _print(comparison: Comparison, limit: int) -> None:
    from ..compare import COUNTS, FIGURES

    print(f"{comparison.common} documents in common, {comparison.both} scored in both")
    for what, ids in (
        ("in A only", comparison.only_a),
        ("in B only", comparison.only_b),
        ("with another gold or schema, so not compared", comparison.other_gold),
        ("gained: scored in B, failed in A", comparison.gained),
        ("lost: scored in A, failed in B", comparison.lost),
    ):
        if ids:
            print(
                visible(
                    f"{len(ids)} {what}: {', '.join(ids[: limit or None])}{', ...' if 0 < limit < len(ids) else ''}"
                )
            )
    for text in comparison.notes:
        print(visible(text))
    print()
    if not comparison.both:
        print("no document is scored in both, so there is no mean to compare")
        return
    means = [(comparison.means_a[figure], comparison.means_b[figure]) for figure in FIGURES]
    print_columns(
        ("figure", "A", "B", "points"),
        [(name, f"{a:.4f}", f"{b:.4f}", f"{100 * (b - a):+.2f}") for name, (a, b) in zip(FIGURES, means, strict=True)],
    )
    better = sum(one.points > 0 for one in comparison.documents)
    worse = sum(one.points < 0 for one in comparison.documents)
    print(f"\naccuracy: {better} documents better, {worse} worse, {comparison.both - better - worse} equal")
    if comparison.documents:
        print()
        print_columns(("document", "A", "B", "points", *COUNTS), [_row(one) for one in comparison.documents], limit)
    if comparison.fields is None:
        print("\nno verdicts, so no fields; score with verdicts to see them")
    elif comparison.fields:
        print()
        fields = sorted(comparison.fields.items(), key=lambda one: (-sum(one[1][name] for name in COUNTS[:3]), one[0]))
        print_columns(("field", *COUNTS), [(name, *_counts(counts)) for name, counts in fields], limit)


def _row(change: Change) -> list[str]:
    accuracies = [f"{change.accuracy_a:.4f}", f"{change.accuracy_b:.4f}", f"{change.points:+.2f}"]
    return [change.doc_id, *accuracies, *_counts(change.counts)]


def _counts(counts: dict[str, int] | None) -> list[str]:
    """Those of COUNTS; a document that both runs read alike, or that has no verdicts, has none."""
    return list(map(str, counts.values())) if counts else ["-"] * 5
