"""`oeb import`: a run folder of another tool becomes a run here."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..errors import RequestError
from ..jsontext import visible
from .base import declare, note

SHOWN = 50  # differences in full


def add(commands: Any) -> None:
    """Declares `oeb import`."""
    parser = declare(
        commands, "import",
        "Take over a run folder of omni_extract_bench, graded again, or a run record of extractkit. Asks nobody.",
        "oeb import old-runs/datalab-f46415c9 --out runs/ --manifest my/manifest.parquet\n"
        "  oeb import results/run-2026-08-01T09-30-00-000Z.json --out predictions/",
    )  # fmt: skip
    parser.add_argument(
        "folder",
        metavar="DIR|FILE",
        help="with settings.json, predictions/, records/ and scores.jsonl; or a record",
    )
    parser.add_argument("--out", default="runs", metavar="DIR|URL", help="where runs go; default runs")
    parser.add_argument("--manifest", metavar="FILE|URL", help="the corpus; default the one that --out is of")
    parser.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    parser.set_defaults(command=_import)


def _import(given: argparse.Namespace) -> int:
    if given.folder.endswith(".json"):
        return _import_record(given)
    from .. import progress
    from ..folders import corpus_at
    from ..imports import import_run

    screen = progress.Screen(sys.stderr)
    corpus = corpus_at(given.out, given.manifest, given.data_root)
    with screen:
        imported = import_run(given.folder, given.out, corpus, screen)
    for text in imported.notes:
        note(text)
    for one in imported.differences[:SHOWN]:
        tied = " (rows can be paired in more than one way)" if one.tied else ""
        print(visible(f"{one.doc_id}: {one.figure}: {one.there!r} there, {one.here!r} here{tied}"))
    if len(imported.differences) > SHOWN:
        print(f"and {len(imported.differences) - SHOWN} more figures differ")
    print(
        f"{imported.documents} documents taken over, {imported.compared} of them compared, "
        f"{len(imported.differences)} figures differ"
    )
    print(imported.run.address)
    return 4 if any(not one.tied for one in imported.differences) else 0


def _import_record(given: argparse.Namespace) -> int:
    from .. import storage
    from ..extractkit.exchange import predictions_of
    from ..extractkit.record import read_record

    try:
        record = read_record(storage.read(given.folder), given.folder)
    except FileNotFoundError:
        raise RequestError(f"no file at {given.folder}") from None
    predictions = list(predictions_of(record))
    for model, doc_id, data in predictions:
        storage.put(storage.join(given.out, model, f"{storage.encode_id(doc_id)}.json"), data)
    models = ", ".join(dict.fromkeys(model for model, _, _ in predictions))
    note(f"{len(predictions)} predictions of {models}; provider=replay scores them on the corpus they are of")
    print(given.out)
    return 0
