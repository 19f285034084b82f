"""`oeb score`: grades predictions without a cluster."""

from __future__ import annotations

import argparse
import datetime as dt
from typing import Any

from ..errors import RequestError
from .base import declare, json_file, note, print_json


def add(commands: Any) -> None:
    """Declares `oeb score`."""
    parser = declare(
        commands, "score", "Grade one prediction against one gold document, or a whole table of predictions.",
        "oeb score --pred pred.json --gt gold.json --schema schema.json | jq .accuracy\n"
        "  oeb score --scorer value_f1 --pred pred.json --gt gold.json --schema schema.json --verdicts\n"
        "  oeb score --root benchmark --manifest jobs.parquet --out run/ --jobs 4",
    )  # fmt: skip
    parser.add_argument(
        "--scorer", default="field_matching", choices=("field_matching", "value_f1"), help="default field_matching"
    )
    parser.add_argument(
        "--order-matters", nargs="*", default=[], metavar="ARRAY", help="arrays whose order counts, such as steps"
    )
    one = parser.add_argument_group("one document; its figures are printed as JSON")
    one.add_argument("--pred", metavar="FILE", help="the prediction")
    one.add_argument("--gt", metavar="FILE", help="the gold document")
    one.add_argument("--schema", metavar="FILE", help="the JSON Schema both answer to")
    one.add_argument("--verdicts", action="store_true", help="also what happened at every address or cell")
    one.add_argument("--field-rules", metavar="FILE", help="value_f1: readings, places and normalizers by path")
    one.add_argument("--citations", metavar="FILE", help="value_f1: where the prediction says it read its values")
    one.add_argument(
        "--today", metavar="DATE", help="value_f1: the day by which two-digit years are read; default 2026-12-01"
    )
    table = parser.add_argument_group("a table; scores.parquet/ and verdicts.parquet/ are written")
    table.add_argument("--manifest", metavar="FILE|URL", help="Parquet: doc_id, gt_path, pred_path, schema and others")
    table.add_argument("--root", metavar="DIR|URL", help="where relative paths start; default the table's folder")
    table.add_argument("--out", metavar="DIR|URL", help="where the two tables go")
    table.add_argument("--jobs", type=int, metavar="N", help="processes; default 1. The result does not depend on it")
    table.add_argument("--no-verdicts", action="store_true", help="write scores only")
    parser.set_defaults(command=_score)


ONE, TABLE = ("pred", "gt", "schema"), ("manifest", "out")
"""What must be given for one document, and for a table."""
VALUE_F1 = ("field_rules", "citations", "today")
"""What only value_f1 takes."""


def _score(given: argparse.Namespace) -> int:
    one = [name for name in (*ONE, "verdicts", *VALUE_F1) if getattr(given, name)]
    table = [name for name in (*TABLE, "root", "jobs", "no_verdicts") if getattr(given, name) not in (None, False)]
    if one and table:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in (*one, *table))
        raise RequestError(f"oeb score grades one document (--pred --gt --schema) or a table, not both: {flags}")
    missing = [f"--{name}" for name in (TABLE if table else ONE) if not getattr(given, name)]
    if missing:
        more = "" if one or table else "; or score a table with --manifest --out"
        raise RequestError(f"oeb score: {', '.join(missing)} must be given{more}")
    foreign = VALUE_F1 if given.scorer == "field_matching" else ("order_matters",)
    if wrong := [f"--{name.replace('_', '-')}" for name in foreign if getattr(given, name)]:
        raise RequestError(f"oeb score: {', '.join(wrong)} means nothing to {given.scorer}; leave it out")
    if table:
        return _score_table(given)
    return _score_one(given) if given.scorer == "field_matching" else _value_f1(given)


def _value_f1(given: argparse.Namespace) -> int:
    from ..scoring.value_f1 import TODAY, OutputNotObject, Ungradable, score
    from ..scoring.value_f1.written import written_cell

    try:
        today = dt.date.fromisoformat(given.today) if given.today else TODAY
    except ValueError as error:
        raise RequestError(f"--today {given.today!r}: {error}; write it as 2026-12-01") from error
    output, reference, schema = (json_file(path) for path in (given.pred, given.gt, given.schema))
    rules, citations = (json_file(path) if path else None for path in (given.field_rules, given.citations))
    try:
        result = score(
            output, reference, schema, today=today, field_rules=rules, citations=citations, feedback=given.verdicts
        )
    except OutputNotObject as error:
        raise RequestError(f"{given.pred}: {error}, so it earns nothing") from error
    except (Ungradable, TypeError) as error:
        raise RequestError(f"{given.pred} cannot be graded: {error}") from error
    if given.verdicts:
        result["feedback"] = [written_cell(cell) for cell in result["feedback"]]
    print_json(result | {"today": today.isoformat()})
    return 0


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
    from ..scorers import find

    tally = batch.score_table(
        given.manifest,
        given.out,
        root=given.root,
        jobs=1 if given.jobs is None else given.jobs,
        verdicts=not given.no_verdicts,
        order_matters=given.order_matters,
        scorer=given.scorer,
        say=note,
    )
    for text in tally.notes:
        note(text)
    for text, count in tally.errors.most_common(3):
        note(f"{count} x {text[:160]}")
    summary = tally.summary
    means = "".join(f"  {key} {summary[key]:.4f}" for key in find(given.scorer).means if summary["scored"])
    print(f"{summary['documents']} documents  {summary['scored']} scored{means}")
    for name in (layout.SCORES, layout.VERDICTS)[: 1 if given.no_verdicts else 2]:
        print(storage.join(given.out, layout.below(given.scorer, name)))
    return 0 if summary["scored"] else 1
