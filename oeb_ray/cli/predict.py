"""`oeb predict`: one document to standard output, or a whole manifest to a table that `oeb score` takes."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError
from .base import declare, json_file, json_object, note, print_json, take_overrides
from .job import run_and_print


def add(commands: Any) -> None:
    """Declares `oeb predict`."""
    parser = declare(
        commands, "predict", "Ask a provider for one document, or for all of a manifest. This may cost money.",
        "oeb predict --provider datalab --doc invoice.pdf --schema schema.json --options '{\"mode\": \"accurate\"}'\n"
        "  oeb predict --provider datalab --root benchmark --manifest benchmark/manifest.parquet --out preds/",
    )  # fmt: skip
    parser.add_argument("--provider", required=True, metavar="NAME", help="see oeb providers")
    parser.add_argument("--options", metavar="JSON|FILE", help='of the provider, such as {"mode": "accurate"}')
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds one document may take; default 1800")
    parser.add_argument("--no-overlay", action="store_true",
                        help="do not state the benchmark's conventions in the schema that is sent")  # fmt: skip
    one = parser.add_argument_group("one document; its record is printed as JSON")
    one.add_argument("--doc", metavar="FILE|URL", help="the document")
    one.add_argument("--schema", metavar="FILE", help="the JSON Schema to extract against")
    table = parser.add_argument_group("a manifest; a table that oeb score takes is written, and resumed")
    table.add_argument("--manifest", metavar="FILE|URL", help="Parquet: doc_id, suite, doc_path, gt_path, schema")
    table.add_argument("--root", metavar="DIR|URL", help="where relative paths start; default the manifest's folder")
    table.add_argument("--out", metavar="DIR|URL", help="where predictions, records and manifest.parquet go")
    table.add_argument("--limit", type=int, metavar="N", help="the first N documents; 0: all")
    table.add_argument("--retry-failed", nargs="?", const="transient", metavar="transient|all",
                       help="ask documents again that failed")  # fmt: skip
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="any value of the config, with --manifest")
    parser.set_defaults(command=_predict, take=take_overrides)


ONE, TABLE = ("doc", "schema"), ("manifest", "out")
"""What must be given for one document, and for a manifest."""


def _predict(given: argparse.Namespace) -> int:
    one = [name for name in ONE if getattr(given, name)]
    table = [name for name in (*TABLE, "root", "limit", "retry_failed", "overrides") if getattr(given, name)]
    if one and table:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in (*one, *table))
        raise RequestError(f"oeb predict asks for one document (--doc --schema) or for a manifest, not both: {flags}")
    missing = [f"--{name}" for name in (TABLE if table else ONE) if not getattr(given, name)]
    if missing:
        more = "" if one or table else "; or ask for a manifest with --manifest --out"
        raise RequestError(f"oeb predict: {', '.join(missing)} must be given{more}")
    options = json_object("--options", given.options, 'of the provider, such as {"mode": "accurate"}')
    return _predict_table(given, options) if table else _predict_one(given, options)


def _predict_one(given: argparse.Namespace, options: dict[str, Any]) -> int:
    import warnings

    from ..harness import predict

    if wrong := [name for name in ("provider", "pdf", "schema", "timeout", "overlay") if name in options]:
        raise RequestError(f"--options: {', '.join(wrong)}: no settings of a provider, but flags of this command")
    schema = json_file(given.schema)
    timeout = 1800.0 if given.timeout is None else given.timeout
    with warnings.catch_warnings(record=True) as unusual:
        warnings.simplefilter("always")
        record = predict(given.provider, given.doc, schema, timeout, not given.no_overlay, **options)
    for warning in unusual:
        note(f"warning: {warning.message}")
    print_json(record)
    return 1 if record["error"] else 0


def _predict_table(given: argparse.Namespace, options: dict[str, Any]) -> int:
    from ..handover import table_job, write_table

    job = table_job(
        given.provider,
        options,
        given.out,
        manifest=given.manifest,
        root=given.root,
        timeout=given.timeout,
        overlay=not given.no_overlay,
        limit=given.limit,
        retry_failed=given.retry_failed,
        overrides=given.overrides,
    )
    return run_and_print(job, after=lambda plan: print(write_table(job, plan)))
