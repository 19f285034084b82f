"""`oeb score`: grades predictions without a cluster."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from .base import declare, json_file, note, print_json


def add(commands: Any) -> None:
    """Declares `oeb score`."""
    parser = declare(
        commands, "score", "Grade one prediction against one gold document, or a whole table of predictions.",
        "oeb score --pred pred.json --gt gold.json --schema schema.json | jq .accuracy\n"
        "  oeb score --root benchmark --manifest jobs.parquet --out run/ --jobs 4",
    )  # fmt: skip
    parser.add_argument(
        "--order-matters", nargs="*", default=[], metavar="ARRAY", help="arrays whose order counts, such as steps"
    )
    one = parser.add_argument_group("one document; its figures are printed as JSON")
    one.add_argument("--pred", metavar="FILE", help="the prediction")
    one.add_argument("--gt", metavar="FILE", help="the gold document")
    one.add_argument("--schema", metavar="FILE", help="the JSON Schema both answer to")
    one.add_argument("--verdicts", action="store_true", help="also what happened at every address")
    table = parser.add_argument_group("a table; scores.parquet/ and verdicts.parquet/ are written")
    table.add_argument("--manifest", metavar="FILE|URL", help="Parquet: doc_id, gt_path, pred_path, schema and others")
    table.add_argument("--root", metavar="DIR|URL", help="where relative paths start; default the table's folder")
    table.add_argument("--out", metavar="DIR|URL", help="where the two tables go")
    table.add_argument("--jobs", type=int, metavar="N", help="processes; default 1. The result does not depend on it")
    table.add_argument("--no-verdicts", action="store_true", help="write scores only")
    parser.set_defaults(command=_score)


ONE, TABLE = ("pred", "gt", "schema"), ("manifest", "out")
"""What must be given for one document, and for a table."""


def _score(given: argparse.Namespace) -> int:
    one = [name for name in (*ONE, "verdicts") if getattr(given, name)]
    table = [name for name in (*TABLE, "root", "jobs", "no_verdicts") if getattr(given, name) not in (None, False)]
    if one and table:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in (*one, *table))
        raise RequestError(f"oeb score grades one document (--pred --gt --schema) or a table, not both: {flags}")
    missing = [f"--{name}" for name in (TABLE if table else ONE) if not getattr(given, name)]
    if missing:
        more = "" if one or table else "; or score a table with --manifest --out"
        raise RequestError(f"oeb score: {', '.join(missing)} must be given{more}")
    return _score_table(given) if table else _score_one(given)


def _score_one(given: argparse.Namespace) -> int:
    from ..scoring.field_matching import score

    pred, gold, schema = (json_file(path) for path in (given.pred, given.gt, given.schema))
    try:
        result = score(pred, gold, schema, order_matters=given.order_matters, verdicts=given.verdicts)
    except (TypeError, ValueError) as error:
        raise RequestError(str(error)) from error
    if given.verdicts:
        result["verdicts"] = [verdict._asdict() for verdict in result["verdicts"]]
    print_json(result)
    return 0


def _score_table(given: argparse.Namespace) -> int:
    from .. import batch, layout, storage

    tally = batch.score_table(
        given.manifest,
        given.out,
        root=given.root,
        jobs=1 if given.jobs is None else given.jobs,
        verdicts=not given.no_verdicts,
        order_matters=given.order_matters,
        say=note,
    )
    for text in tally.notes:
        note(text)
    for text, count in tally.errors.most_common(3):
        note(f"{count} x {text[:160]}")
    summary = tally.summary
    means = "".join(f"  {key} {summary[key]:.4f}" for key in ("accuracy", "precision", "recall") if summary["scored"])
    print(f"{summary['documents']} documents  {summary['scored']} scored{means}")
    for name in (layout.SCORES, layout.VERDICTS)[: 1 if given.no_verdicts else 2]:
        print(storage.join(given.out, name))
    return 0 if summary["scored"] else 1
