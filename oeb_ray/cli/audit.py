"""`oeb audit`: verdict rows, to be looked at."""

from __future__ import annotations

import argparse
import json
from itertools import islice
from typing import Any

from ..jsontext import visible
from .base import declare, note

NOTED = 5  # failed documents that are named


def add(commands: Any) -> None:
    """Declares `oeb audit`."""
    parser = declare(
        commands, "audit", "What happened at every value of a run: both as they came, and as they were compared.",
        "oeb audit runs/ pdftext-44136fa3 --verdict misread --field line_items",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    parser.add_argument("run", metavar="RUN", help="a run in it; see oeb show OUT")
    parser.add_argument("--doc", nargs="+", metavar="DOC_ID", help="these documents only")
    parser.add_argument(
        "--field", nargs="+", metavar="FIELD", help="fields such as lines[*].qty, lines for all below, or lines[0].qty"
    )
    parser.add_argument("--verdict", nargs="+", metavar="KIND", help="such as misread unfound")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the first N rows; default all")
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with every digit")
    parser.set_defaults(command=_audit)


def _audit(given: argparse.Namespace) -> int:
    from ..audit import as_json, failures, verdict_rows
    from ..results import chosen
    from ..stored import runs_at

    (run,) = runs_at(given.out, [given.run])
    wanted = chosen(doc_id=given.doc, field=given.field, verdict=given.verdict)
    rows = verdict_rows(run, wanted)
    for row in islice(rows, given.limit) if given.limit else rows:
        print(json.dumps(as_json(row)) if given.json else _line(row))
    failed = failures(run, wanted)
    for doc_id, error in failed[:NOTED]:
        note(f"{doc_id}: failed, so it has no verdicts: {error}")
    if len(failed) > NOTED:
        note(f"and {len(failed) - NOTED} more documents failed")
    return 0


def _line(row: dict[str, Any]) -> str:
    """``doc 7: lines[0].qty: misread: gold 3, pred "4 pcs" (4pcs)``"""
    return visible(
        f"{row['doc_id']}: {row['path']}: {row['verdict']}: gold {_side(row, 'gold')}, pred {_side(row, 'pred')}"
    )


def _side(row: dict[str, Any], side: str) -> str:
    """The value as it came, and in parentheses what it was compared as, where that is another text."""
    raw, canon = row[f"{side}_raw"], row[f"{side}_canon"]
    if raw is None:
        return "nothing"
    return raw if canon in (raw, raw[1:-1]) else f"{raw} ({canon})"
