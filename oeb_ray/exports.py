"""Runs in other shapes: verdicts as one file of JSON lines per document, tables as one Parquet file.

In: runs. Out: files, of the same bytes for the same run.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from . import layout, storage
from .audit import canon_of
from .errors import RequestError
from .jsontext import from_raw_json, line
from .results import parts, read_scores, with_run
from .scorers.field_matching import SCORES, VERDICTS
from .stored import StoredRun
from .tables import parquet, parquet_of

WRITERS = 16


class Exported(NamedTuple):
    """What was written: the folder, and how many documents and verdicts are in it."""

    folder: str
    documents: int
    verdicts: int


def export_verdicts(run: StoredRun, out: str | None = None) -> Exported:
    """Writes ``verdicts/<doc_id>.jsonl`` for every scored document, below ``out`` or the run itself.

    A line is an object of address, gold_raw, pred_raw, gold_canon, pred_canon and verdict: values as they came.
    In the run itself, files of documents that are not scored any more are deleted.

    Raises:
        RequestError: the run has no verdicts, or not of every document.
    """
    folder = storage.join(storage.absolute(out) if out else run.address, "verdicts")
    counts = {
        row["doc_id"]: row["total"] + len(row["skipped_open_maps"])
        for table in parts(run, layout.SCORES, SCORES)
        for row in table.to_pylist()
        if row["status"] == "scored"
    }
    left = dict(counts)
    with ThreadPoolExecutor(WRITERS) as threads:
        for table in parts(run, layout.VERDICTS, VERDICTS):
            files = dict(_files(table))
            for doc_id, (_, count) in files.items():
                if left.pop(doc_id, 0) != count:
                    raise RequestError(
                        f"{run.address}: verdicts of {doc_id!r} are not those of its score; score it again"
                    )
            list(threads.map(lambda one: _write(folder, one[0], one[1][0]), files.items()))
        if without := [doc_id for doc_id, count in left.items() if count]:
            some = f"{len(without)} documents, such as {without[0]!r}"
            raise RequestError(f"{run.address} has no verdicts of {some}; it was scored without them")
        list(threads.map(lambda doc_id: _write(folder, doc_id, b""), left))  # documents that state nothing
    if not out:
        for name in storage.listed(folder).keys() - {_file(doc_id) for doc_id in counts}:
            storage.delete(storage.join(folder, name))
    return Exported(folder, len(counts), sum(counts.values()))


def _files(table: Any) -> Iterator[tuple[str, tuple[bytes, int]]]:
    for doc_id, rows in itertools.groupby(table.to_pylist(), key=lambda row: row["doc_id"]):
        lines = [line(_entry(row)) + "\n" for row in rows]
        yield doc_id, ("".join(lines).encode(), len(lines))


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "address": json.loads(row["address"]),
        "gold_raw": row["gold_raw"] and from_raw_json(row["gold_raw"]),
        "pred_raw": row["pred_raw"] and from_raw_json(row["pred_raw"]),
        "gold_canon": canon_of(row["gold_canon"], row["gold_raw"]),
        "pred_canon": canon_of(row["pred_canon"], row["pred_raw"]),
        "verdict": row["verdict"],
    }


def _write(folder: str, doc_id: str, data: bytes) -> None:
    storage.put(storage.join(folder, _file(doc_id)), data)


def _file(doc_id: str) -> str:
    return f"{storage.encode_id(doc_id)}.jsonl"


def compact(runs: Sequence[StoredRun], *, verdicts: bool) -> bytes:
    """All score rows of the runs, or all verdicts, as one Parquet file: the rows of `read_scores`, `read_verdicts`."""
    if verdicts:
        tables = (with_run(table, run) for run in runs for table in parts(run, layout.VERDICTS, VERDICTS))
        schema = with_run(VERDICTS.empty_table(), runs[0]).schema
        return parquet_of(tables, schema, ["run", "doc_id", "suite", "field", "verdict"])
    scores = read_scores(runs[0].out, [run.name for run in runs])
    return parquet(scores, None, ["suite", "provider", "status", "run"])
