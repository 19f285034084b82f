"""A complete run of very many documents that was never worked on: what it takes to find that nothing is to do.

    python -m tests.bench.million --documents 1000000 --folder /dev/shm/million

One document is predicted and scored for real; its receipt and its rows, under other names, stand for all. The
documents share a thousand files and records are empty, since a resume reads receipts, listings and parts' stamps.
"""

from __future__ import annotations

import argparse
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from oeb_ray import layout, storage
from oeb_ray.corpus.manifest import load
from oeb_ray.plan import Plan, Selection, expand, make_plan
from oeb_ray.receipts import add_to_index, stored_receipts
from oeb_ray.scorers import find
from oeb_ray.tables import part_stamp, read_part, score_part, verdict_part

from .pairs import ROOT
from .scale import SCHEMA, timed, values_of

FILES, SUITES = 1000, 4
PROVIDER: dict[str, Any] = {"pdftext": {}}


def make_corpus(folder: Path, documents: int) -> None:
    for part in ("docs", "gold"):
        (folder / part).mkdir(parents=True)
    pages = min((ROOT / "oeb_ray" / "sample" / "docs").glob("*.pdf")).read_bytes()
    for number in range(FILES):
        (folder / "docs" / f"{number}.pdf").write_bytes(pages)
        (folder / "gold" / f"{number}.json").write_text(json.dumps(values_of(7, "")))
    table = {
        "doc_id": [f"d{number:08}" for number in range(documents)],
        "suite": [f"suite {number % SUITES}" for number in range(documents)],
        "doc_path": [f"docs/{number % FILES}.pdf" for number in range(documents)],
        "gt_path": [f"gold/{number % FILES}.json" for number in range(documents)],
    }
    columns = {**table, "schema": pa.DictionaryArray.from_arrays(pa.array([0] * documents, pa.int32()), [SCHEMA])}
    pq.write_table(pa.table(columns), folder / "manifest.parquet")


def job(folder: Path, *more: str) -> list[str]:
    return [
        "corpus=manifest", f"corpus.manifest={folder / 'manifest.parquet'}", "provider=[pdftext]",
        f"storage.root={folder / 'out'}", "cluster=inline", *more,
    ]  # fmt: skip


def planned(folder: Path) -> Plan:
    runs, _ = expand(PROVIDER, 1800.0)
    corpus = load(str(folder / "manifest.parquet"))
    return make_plan(str(folder / "out"), corpus, runs, Selection())


def record_all(folder: Path) -> None:
    """An empty record and a receipt for each document, as the first one's."""
    plan = planned(folder)
    run, corpus = plan.runs[0].run.name, plan.corpus
    first = stored_receipts(plan.out, run, {corpus.ids[0]})[corpus.ids[0]]
    records = Path(plan.out, run, "records")
    receipts = []
    for position, doc_id in enumerate(corpus.ids):
        (records / f"{storage.encode_id(doc_id)}.json").touch()
        doc_size, doc_stamp = corpus.stamps[corpus.doc_paths[position]]
        receipts.append(first._replace(doc_id=doc_id, doc_size=doc_size, doc_stamp=doc_stamp))
    add_to_index(plan.out, run, receipts)


def write_parts(out: str, run: str, rows: pa.Table, verdicts: pa.Table, parts: list[tuple[layout.Home, Any]]) -> None:
    """Parts with the rows of one document under the names of theirs."""
    scorer = find(layout.FIRST_SCORER)
    (row,) = rows.to_pylist()
    for home, (ids, stamp) in parts:
        named = [row | {"doc_id": doc_id, "suite": home.suite} for doc_id in ids]
        storage.put(layout.part(out, run, layout.SCORES, home), score_part(scorer, named, stamp))
        tables = [
            verdicts.set_column(0, "doc_id", pc.fill_null(pa.nulls(len(verdicts), pa.string()), doc_id))
            for doc_id in ids
        ]
        storage.put(layout.part(out, run, layout.VERDICTS, home), verdict_part(scorer, tables, stamp))


def score_all(folder: Path) -> None:
    """All parts with the stamps that a driver looks for."""
    plan = planned(folder)
    made, scorer, ids = plan.runs[0], find(layout.FIRST_SCORER), plan.corpus.ids
    home = plan.homes[0]
    rows, verdicts = (
        read_part(layout.part(plan.out, made.run.name, table, home), schema)
        for table, schema in ((layout.SCORES, scorer.scores), (layout.VERDICTS, scorer.verdicts))
    )
    parts = []
    for at, members in plan.members.items():
        items = [plan.item(made, position) for position in plan.recorded(made, at)]
        digests = {item.gt_path: plan.files.get(item.gt_path, plan.corpus.stamps[item.gt_path]) for item in items}
        parts.append((at, ([item.doc_id for item in items], part_stamp(scorer, items, digests))))
        assert len(items) == len(members), ids
    plan.files.save()
    with ProcessPoolExecutor() as processes:
        shares = [parts[start :: 2 * SUITES] for start in range(2 * SUITES)]
        list(processes.map(partial(write_parts, plan.out, made.run.name, rows, verdicts), shares))


def main() -> None:
    """Prints what each step took, and the process's own peak memory."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--documents", type=int, default=1_000_000)
    read.add_argument("--folder", type=Path, default=Path("/dev/shm/oeb-million"))
    read.add_argument("--keep", action="store_true")
    given = read.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    make_corpus(given.folder, given.documents)
    timed("benchmark", *job(given.folder, "limit=1"))
    record_all(given.folder)
    score_all(given.folder)
    for name, words in (
        ("summaries made from the parts", ["benchmark", *job(given.folder)]),
        ("nothing to do", ["benchmark", *job(given.folder)]),
        ("show", ["show", str(given.folder / "out")]),
    ):
        took = timed(*words)
        told = {"documents": given.documents, name: round(took.seconds, 2), "MB": took.memory}
        print(json.dumps(told | {"requests": took.requests}), flush=True)
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
