"""`oeb verify`: whatever was changed since is named, and what was not is not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oeb_ray import layout, tables
from oeb_ray.cli.main import main
from oeb_ray.folders import corpus_at
from oeb_ray.receipts import add_to_index, indexed
from oeb_ray.scorers import field_matching
from oeb_ray.stored import runs_at
from oeb_ray.verify import verify
from tests.helpers import SmallCorpus, make_corpus, overrides, run_inline

DOC = "doc 00003 [x]"


def test_an_output_that_nobody_touched_is_as_it_was(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", out]) == 0
    assert capsys.readouterr().out == "2 runs, 180 documents, 4 parts: no differences\n"


class Place:
    """A corpus and the folder of its one run, to be tampered with."""

    def __init__(self, corpus: SmallCorpus, run: Path) -> None:
        self.corpus, self.run = corpus, run

    def part(self, table: str) -> Path:
        """The part that the document lies in."""
        (found,) = [
            path
            for path in (self.run / table).glob("*/*.parquet")
            if DOC in pq.ParquetFile(path).read()["doc_id"].to_pylist()
        ]
        return found

    def change(self, table: str, column: str, value: object) -> None:
        """Changes a column of the document's last row, and keeps the stamp."""
        path = self.part(table)
        rows = pq.ParquetFile(path).read().to_pylist()
        next(row for row in reversed(rows) if row["doc_id"] == DOC)[column] = value
        schema = field_matching.SCORES if table == layout.SCORES else field_matching.VERDICTS
        path.write_bytes(tables.parquet(pa.Table.from_pylist(rows, schema), tables.stamp_at(str(path))))


@pytest.fixture
def place(small: SmallCorpus, tmp_path: Path) -> Place:
    folder = tmp_path / "corpus"
    corpus = make_corpus(folder, documents=8)
    run_inline(overrides(corpus, tmp_path / "out", systems=("bad",)))
    return Place(corpus, Path(runs_at(str(tmp_path / "out"))[0].address))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def _another_receipt(place: Place) -> None:
    receipt = indexed(str(place.run.parent), place.run.name)[DOC]
    shutil.rmtree(place.run / layout.RECEIPTS)
    add_to_index(str(place.run.parent), place.run.name, [receipt._replace(usd=1.0)])


TAMPERINGS: dict[str, tuple[Callable[[Place], object], str]] = {
    "a prediction": (
        lambda place: edit(place.run / "predictions" / f"{DOC}.json", "INV-", "INV_"),
        f"{DOC}: its prediction is not the one that its record names",
    ),
    "no prediction": (
        lambda place: (place.run / "predictions" / f"{DOC}.json").unlink(),
        f"{DOC}: its prediction is gone",
    ),
    "a record": (
        lambda place: (place.run / "records" / f"{DOC}.json").write_text("{}"),
        f"{DOC}: its record cannot be read",
    ),
    "another's record": (
        lambda place: shutil.copy(
            place.run / "records" / "doc 00000 [x].json", place.run / "records" / f"{DOC}.json"
        ),
        f"{DOC}: its record is that of 'doc 00000 [x]'",
    ),
    "no record": (
        lambda place: (place.run / "records" / f"{DOC}.json").unlink(),
        "should have no rows",
    ),
    "a foreign record": (
        lambda place: (place.run / "records" / "foreign.json").write_text("{}"),
        "records/foreign.json: no document of the corpus",
    ),
    "what was served": (
        lambda place: edit(place.corpus.predictions / "bad" / f"{DOC}.json", "INV-", "INV_"),
        "is not the one that was asked with",
    ),
    "a gold": (
        lambda place: edit(place.corpus.folder / "gold" / f"{DOC}.json", '"INV-', '"XNV-'),
        "was made from other golds, predictions, schemas or by another scorer",
    ),
    "a score": (
        lambda place: place.change(layout.SCORES, "accuracy", 0.999),
        "accuracy: 0.999, should be ",
    ),
    "a verdict": (
        lambda place: place.change(layout.VERDICTS, "verdict", "fabricated"),
        "verdict: 'fabricated', should be ",
    ),
    "a digest in a row": (
        lambda place: place.change(layout.SCORES, "gold_sha256", "0" * 64),
        "gold_sha256: '0000",
    ),
    "no part": (
        lambda place: place.part(layout.SCORES).unlink(),
        "is not there; the same benchmark makes it",
    ),
    "a damaged part": (
        lambda place: place.part(layout.VERDICTS).write_bytes(b"PAR1"),
        "is damaged",
    ),
    "a stray part": (
        lambda place: place.part(layout.SCORES).with_name("part-00007-of-00008.parquet").write_bytes(b""),
        "part-00007-of-00008.parquet: no recorded document lies in it",
    ),
    "a summary": (
        lambda place: edit(place.run / "summary.json", '"scored": 8', '"scored": 9'),
        "summary.json: line 8 is '  \"scored\": 9,', should be '  \"scored\": 8,'",
    ),
    "no scores.jsonl": (
        lambda place: (place.run / "scores.jsonl").unlink(),
        "scores.jsonl: is not there",
    ),
    "a line of scores.jsonl": (
        lambda place: edit(place.run / "scores.jsonl", '"status": "scored"', '"status": "Scored"'),
        "scores.jsonl: line 1 is ",
    ),
    "usage": (
        lambda place: edit(place.run / "usage.json", '"attempts": 8', '"attempts": 7'),
        "usage.json: line 4 is '  \"attempts\": 7,'",
    ),
    "the index": (_another_receipt, f"{DOC}: the index of receipts says something else"),
}  # fmt: skip


@pytest.mark.parametrize("what", TAMPERINGS)
def test_what_was_changed_is_named(place: Place, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    tamper, said = TAMPERINGS[what]
    assert main(["verify", str(place.run.parent)]) == 0
    capsys.readouterr()
    tamper(place)
    before = {path: path.read_bytes() for path in place.run.rglob("*") if path.is_file()}
    assert main(["verify", str(place.run.parent), place.run.name]) == 4
    shown = capsys.readouterr()
    assert said in shown.out, shown.out
    assert all(line.startswith(f"{place.run.name}: ") for line in shown.out.splitlines()[:-1])
    assert "Traceback" not in shown.err
    assert before == {path: path.read_bytes() for path in place.run.rglob("*") if path.is_file()}, "nothing is written"


def test_the_same_benchmark_mends_what_is_derived(place: Place) -> None:
    for name in ("a score", "no scores.jsonl", "usage"):
        TAMPERINGS[name][0](place)
    place.part(layout.SCORES).unlink()
    run_inline(overrides(place.corpus, place.run.parent, systems=("bad",)))
    assert main(["verify", str(place.run.parent)]) == 0


def test_records_without_scores_are_named(small: SmallCorpus, tmp_path: Path) -> None:
    run_inline(overrides(small, tmp_path, "limit=5", systems=("good",)))
    (run,) = runs_at(str(tmp_path))
    for path in (Path(run.address) / layout.SCORES).rglob("*.parquet"):
        path.unlink()
    found = verify(run, corpus_at(str(tmp_path), None, None))
    assert found.documents == 5
    assert {one.why for one in found.differences} == {"is not there; the same benchmark makes it"}


def test_a_corpus_that_has_moved_is_given(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(place.corpus.folder, moved)
    shutil.rmtree(place.corpus.folder)
    assert main(["verify", str(place.run.parent)]) == 2
    assert "no manifest file at" in capsys.readouterr().err
    corpus = json.loads((place.run.parent / "corpus.json").read_text())
    (place.run.parent / "corpus.json").write_text(json.dumps({"corpus": corpus["corpus"]}))
    assert main(["verify", str(place.run.parent)]) == 2
    assert "does not say where its corpus is; give --manifest" in capsys.readouterr().err
    assert main(["verify", str(place.run.parent), "--manifest", str(moved / "manifest.parquet")]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert all(line.endswith("is gone") for line in lines[:-1]), "what replay served lay there too"
