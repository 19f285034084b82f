"""Runs in other shapes: verdicts as the scorer itself gives them, tables as one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from oeb_ray import read_scores, read_verdicts, score, storage
from oeb_ray.cli.main import main
from oeb_ray.stored import runs_at
from tests.helpers import SCHEMA, SmallCorpus, corpus_of, overrides, run_inline
from tests.test_audit import GOLDS, PREDICTIONS


def scored(pred: str, gold: Any, schema: Any) -> list[dict[str, Any]]:
    """The verdicts of `score` as JSON has them."""
    verdicts = score(json.loads(pred), gold, schema, verdicts=True)["verdicts"]
    return [json.loads(json.dumps(verdict._asdict())) for verdict in verdicts]


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines()]


def test_exported_verdicts_are_those_of_score(
    small: SmallCorpus, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in runs_at(out):
        system = run.file("settings.json")["settings"]["system"]
        assert main(["export", run.address, "--out", str(tmp_path / system)]) == 0
        assert capsys.readouterr().out == f"{tmp_path}/{system}/verdicts\n"
        files = {path.name: path.read_bytes() for path in (tmp_path / system / "verdicts").iterdir()}
        assert len(files) == small.documents
        for path in (small.predictions / system).iterdir():
            gold = json.loads((small.folder / "gold" / path.name).read_text())
            assert lines(files[f"{path.name}l"]) == scored(path.read_text(), gold, SCHEMA)


@pytest.mark.s3
def test_a_bucket_takes_them_beside_the_run(finished_on_s3: str, s3: str) -> None:
    run = runs_at(finished_on_s3)[0]
    assert main(["export", run.address, "--out", f"{s3}/exported"]) == 0
    assert len(storage.listed(f"{s3}/exported/verdicts")) == 90
    assert main(["compact", finished_on_s3, f"{s3}/compact/all.parquet", "--verdicts"]) == 0
    assert storage.stat(f"{s3}/compact/all.parquet").size


def test_every_value_is_exported_as_it_came(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-08, BR-09, BR-11: digits, NaN and half pairs; a failed document has no file, a silent one an empty file."""
    golds, texts = GOLDS | {"silent": {}}, PREDICTIONS | {"silent": '{"x": null}'}
    rows = corpus_of(tmp_path, golds | {"silent": {"y": None}}, {"good": texts})
    run_inline(overrides(rows, tmp_path / "out", systems=("good",)))
    run = runs_at(str(tmp_path / "out"))[0]
    stale = Path(run.address) / "verdicts" / "gone.jsonl"
    stale.parent.mkdir()
    stale.write_text("{}\n")
    for _ in range(2):
        assert main(["export", run.address]) == 0
    files = {path.name: path.read_bytes() for path in stale.parent.iterdir()}
    assert set(files) == {storage.encode_id(doc_id) + ".jsonl" for doc_id in golds} - {"failed.jsonl"}
    assert files["silent.jsonl"] == b""
    for doc_id in ("half", "long", "[red] closing"):
        schema = {"properties": {key: {} for key in GOLDS[doc_id]}}
        expected = scored(PREDICTIONS[doc_id], GOLDS[doc_id], schema)
        assert lines(files[storage.encode_id(doc_id) + ".jsonl"]) == expected
    assert b'"pred_raw": NaN, ' in files["numbers.jsonl"]


def test_verdicts_that_are_not_there_cannot_be_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = corpus_of(tmp_path, {"a": {"x": 1}}, {"good": {"a": '{"x": 1}'}})
    run_inline(overrides(corpus, tmp_path / "out", "verdicts=false", systems=("good",)))
    assert main(["export", runs_at(str(tmp_path / "out"))[0].address]) == 2
    assert "has no verdicts of 1 documents, such as 'a'; it was scored without them" in capsys.readouterr().err


def test_one_file_holds_all_rows(finished: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs_at(finished)[1]
    for words, expected in (
        ([finished, "--verdicts"], read_verdicts(finished)),
        ([run.address, "--verdicts"], read_verdicts(finished, run.name)),
        ([finished], read_scores(finished)),
    ):
        files = [str(tmp_path / "a" / "one.parquet"), str(tmp_path / "a" / "two.parquet")]
        for path in files:
            assert main(["compact", words[0], path, *words[1:]]) == 0
        assert Path(files[0]).read_bytes() == Path(files[1]).read_bytes()
        found = duckdb.sql(f"select * from '{files[0]}'").arrow().read_all()
        assert found.select(expected.column_names).cast(expected.schema).to_pylist() == expected.to_pylist()
    assert capsys.readouterr().out.splitlines()[-1] == files[1]
