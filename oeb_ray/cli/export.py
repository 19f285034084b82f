"""`oeb export` and `oeb compact`: a run in other shapes."""

from __future__ import annotations

import argparse
from typing import Any

from .base import declare, note


def add(commands: Any) -> None:
    """Declares `oeb export` and `oeb compact`."""
    parser = declare(
        commands, "export", "Write a run's verdicts as JSON lines, verdicts/<doc_id>.jsonl, or runs as a run record.",
        "oeb export runs/pdftext-44136fa3 --out shared/\n"
        "  oeb export runs/ --format extractkit --pins pins.json --out results/",
    )  # fmt: skip
    parser.add_argument("run", metavar="RUN", help="the folder or URL of a run; for extractkit also of all runs")
    parser.add_argument("--out", metavar="DIR|URL",
                        help="where verdicts/ goes, default beside the run's other files; or the record")  # fmt: skip
    parser.add_argument("--format", choices=("verdicts", "extractkit"), default="verdicts",
                        help="extractkit: one run record of runs with scorer=field_accuracy")  # fmt: skip
    parser.add_argument("--pins", metavar="FILE|URL", help="extractkit: the pins that the corpus was made of")
    parser.add_argument("--prices", metavar="NAME", default="2026-07",
                        help="extractkit: the price list of conf/prices that tokens are reckoned by")  # fmt: skip
    parser.set_defaults(command=_export)
    parser = declare(
        commands, "compact", "Write the scores of a run, or its verdicts, as one Parquet file.",
        "oeb compact runs/pdftext-44136fa3 verdicts.parquet --verdicts",
    )  # fmt: skip
    parser.add_argument("run", metavar="RUN", help="the folder or URL of a run, or of an output for all its runs")
    parser.add_argument("file", metavar="FILE", help="path or URL of the file")
    parser.add_argument("--verdicts", action="store_true", help="the verdicts instead of the scores")
    parser.set_defaults(command=_compact)


def _export(given: argparse.Namespace) -> int:
    from ..exports import export_verdicts
    from ..stored import run_at

    if given.format == "extractkit":
        return _export_record(given)
    exported = export_verdicts(run_at(given.run), given.out)
    note(f"{exported.documents} documents, {exported.verdicts} verdicts")
    print(exported.folder)
    return 0


def _export_record(given: argparse.Namespace) -> int:
    from .. import storage
    from ..config import listed_prices
    from ..corpus.pins import load_pins
    from ..extractkit.exchange import record_of_runs
    from ..extractkit.record import file_name, record_file
    from ..folders import corpus_at
    from ..stored import runs_at

    runs = runs_at(given.run)
    corpus = corpus_at(runs[0].out, None, None)
    prices = listed_prices(given.prices)
    by_name = {}
    for run in runs:
        settings = (run.file("settings.json") or {}).get("settings") or {}
        if price := prices.of_model(settings.get("model", "")):
            by_name[run.name] = by_name[settings["model"]] = (price.given, price.made)
    record = record_of_runs(runs, corpus, by_name, load_pins(given.pins) if given.pins else None)
    record["prices"] = {"date": prices.date}
    address = storage.join(given.out or "results", file_name(record["startedAt"]))
    storage.put(address, record_file(record))
    note(f"{sum(len(run['docs']) for run in record['runs'])} documents in {len(record['runs'])} runs")
    print(address)
    return 0


def _compact(given: argparse.Namespace) -> int:
    from .. import storage
    from ..exports import compact
    from ..stored import runs_at

    storage.put(storage.absolute(given.file), compact(runs_at(given.run), verdicts=given.verdicts))
    print(storage.absolute(given.file))
    return 0
