"""What tests of the engine are made of: generated corpora, runs in this process or another, and comparisons."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oeb_ray import run, storage
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "invoice_id": {"type": "string"},
        "issued": {"type": "string"},
        "total": {"type": "number"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}, "note": {"type": "string"}},
            },
        },
    },
}
SYSTEMS = ("good", "bad")
ROUNDS = int(os.environ.get("OEB_CHAOS_ROUNDS", "2"))  # of chaos; more than two in `make chaos`
KEY = "canary-4711"  # of every simulated vendor; it must be found nowhere
DERIVED = ("scores.jsonl", "summary.json")


@dataclass(frozen=True)
class SmallCorpus:
    """A generated corpus: where its manifest and its systems' predictions are."""

    folder: Path
    documents: int

    @property
    def manifest(self) -> Path:
        return self.folder / "manifest.parquet"

    @property
    def predictions(self) -> Path:
        return self.folder / "predictions"


def gold_of(number: int, seed: int = 0) -> dict[str, Any]:
    dice = random.Random(f"{seed}/{number}")
    lines = [
        {"sku": f"S{dice.randrange(500)}", "qty": dice.randrange(1, 9), "note": dice.choice(["ok", "late", "half"])}
        for _ in range(dice.randrange(2, 9))
    ]
    return {"invoice_id": f"INV-{number:05}", "issued": "2024-03-31", "total": dice.random() * 1000, "lines": lines}


def spoiled(gold: dict[str, Any], number: int) -> dict[str, Any]:
    dice = random.Random(f"spoil/{number}")
    lines = [{**line, "qty": line["qty"] + (dice.random() < 0.4)} for line in gold["lines"] if dice.random() < 0.9]
    dice.shuffle(lines)
    return {**gold, "issued": "03/31/2024", "lines": lines}


def make_corpus(folder: Path, documents: int, *, suites: int = 2) -> SmallCorpus:
    """Writes golds, stand-ins for documents, the predictions of SYSTEMS and the manifest."""
    for part in ("docs", "gold", *(f"predictions/{system}" for system in SYSTEMS)):
        (folder / part).mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(documents):
        doc_id, gold = f"doc {number:05} [x]", gold_of(number)
        (folder / "docs" / f"{doc_id}.txt").write_text(f"Invoice id: {gold['invoice_id']}\nTotal: {gold['total']}\n")
        (folder / "gold" / f"{doc_id}.json").write_text(json.dumps(gold))
        (folder / "predictions" / "good" / f"{doc_id}.json").write_text(json.dumps({**gold, "issued": "31 March 2024"}))
        (folder / "predictions" / "bad" / f"{doc_id}.json").write_text(json.dumps(spoiled(gold, number)))
        rows.append(
            {
                "doc_id": doc_id,
                "doc_path": f"docs/{doc_id}.txt",
                "gt_path": f"gold/{doc_id}.json",
                "schema": json.dumps(SCHEMA).encode(),
                "suite": f"suite {number % suites}",
            }
        )
    write_manifest(folder / "manifest.parquet", rows)
    return SmallCorpus(folder, documents)


def corpus_of(folder: Path, golds: dict[str, Any], predictions: dict[str, dict[str, str]]) -> SmallCorpus:
    """A corpus of golds by doc_id, and JSON texts by system and doc_id; each schema asks for its gold's keys."""
    rows = []
    for doc_id, gold in golds.items():
        name = storage.encode_id(doc_id)
        schema = {"type": "object", "properties": {key: {} for key in gold}}
        for path, text in ((f"docs/{name}.txt", doc_id), (f"gold/{name}.json", json.dumps(gold))):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        rows.append(
            {
                "doc_id": doc_id,
                "doc_path": f"docs/{name}.txt",
                "gt_path": f"gold/{name}.json",
                "schema": json.dumps(schema).encode(),
                "suite": "only",
            }
        )
    for system, texts in predictions.items():
        for doc_id, text in texts.items():
            path = folder / "predictions" / system / f"{doc_id}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    write_manifest(folder / "manifest.parquet", rows)
    return SmallCorpus(folder, len(golds))


def make_pdf_corpus(folder: Path, documents: int) -> SmallCorpus:
    """As `make_corpus`, with documents that are PDFs as far as a vendor looks at them."""
    made = make_corpus(folder, documents)
    rows = manifest_rows(made)
    for row in rows:
        old = made.folder / row["doc_path"]
        new = old.with_suffix(".pdf")
        new.write_bytes(b"%PDF-1.4\n" + old.read_bytes())
        old.unlink()
        row["doc_path"] = f"docs/{new.name}"
    write_manifest(made.manifest, rows)
    return made


def write_manifest(path: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def manifest_rows(corpus: SmallCorpus) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(corpus.manifest).to_pylist()
    return rows


def overrides(corpus: SmallCorpus, out: Any, *more: str, systems: tuple[str, ...] = SYSTEMS) -> list[str]:
    """The words of a job that replays the systems of a small corpus."""
    listed = ",".join(f"{{system: {system}}}" for system in systems)
    return [
        "corpus=manifest",
        f"corpus.manifest='{corpus.manifest}'",
        "provider=[replay]",
        f"providers.replay.options=[{listed}]",
        f"providers.replay.folder='{corpus.predictions}'",
        f"storage.root='{out}'",
        "cluster=inline",
        *more,
    ]


class Silent:
    """Progress for nobody; keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def update(self, states: Any, force: bool = False) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


def run_inline(words: list[str], cluster: Any = None) -> dict[str, dict[str, Any]]:
    """Runs a job in this process and returns its summaries."""
    outcome = run.execute(run.plan_job(read_job(composed(words))), cluster or InlineCluster(), Silent())
    if outcome.stopped:
        raise next(iter(outcome.stopped.values()))
    return outcome.summaries


def contents(out: str) -> dict[str, bytes]:
    """All that must be equal however the work was done: scores.jsonl, summary.json and the parts, by key."""
    keep = {}
    for key in sorted(storage.listed(out)):
        name = key.rsplit("/", 1)[-1]
        if name in DERIVED or "/scores.parquet/" in f"/{key}" or "/verdicts.parquet/" in f"/{key}":
            keep[key] = storage.read(storage.join(out, key))
    return keep


def called(*words: str) -> tuple[int, str, str]:
    """`oeb` in this process: exit code, standard output, standard error."""
    from oeb_ray.cli.main import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as ended:  # --help, and words that argparse refuses
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def typed(command: str, code: int = 0) -> str:
    """Standard output of an `oeb` command as people type it, in this process."""
    program, *words = shlex.split(command.replace("\\\n", " "))
    assert program == "oeb"
    ended, out, err = called(*words)
    assert ended == code, err
    return out


def start_oeb(*words: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """`oeb` in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "oeb_ray", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})},
    )  # fmt: skip


def oeb(*words: str, env: dict[str, str] | None = None, timeout: float = 110) -> tuple[int, str, str]:
    """Runs `oeb` to its end: exit code, standard output, standard error."""
    process = start_oeb(*words, env=env)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err
