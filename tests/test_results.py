"""Tables over the runs of an output: what they hold, what is read for them, and who can take them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import layout, read_scores, read_verdicts, storage, tables
from oeb_ray.cli.main import main
from oeb_ray.errors import RequestError
from oeb_ray.stored import runs_at
from tests.helpers import SmallCorpus, make_corpus, manifest_rows, overrides, run_inline, write_manifest

FIRST, DOC = "suite 0", "doc 00002 [x]"


def lines(out: str, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in storage.read(storage.join(out, run, "scores.jsonl")).splitlines()]


def test_scores_are_those_of_scores_jsonl(out: str) -> None:
    table = read_scores(out)
    runs = [stored.name for stored in runs_at(out)]
    assert len(runs) == 2
    for run in runs:
        rows = [row for row in table.to_pylist() if row["run"] == run]
        expected = lines(out, run)
        assert [{key: row[key] for key in expected[0]} for row in rows] == expected
    assert read_scores(storage.join(out, runs[1])) == read_scores(out, runs[1])


def test_verdicts_add_up_to_the_scores(out: str) -> None:
    scores = {(row["run"], row["doc_id"]): row for row in read_scores(out).to_pylist()}
    counts: dict[tuple[str, str], dict[str, int]] = {key: {} for key in scores}
    for row in read_verdicts(out, columns=["run", "doc_id", "verdict"]).to_pylist():
        count = counts[row["run"], row["doc_id"]]
        count[row["verdict"]] = count.get(row["verdict"], 0) + 1
    for key, count in counts.items():
        assert {kind: scores[key][kind] for kind in count} == count
        assert sum(count.values()) == scores[key]["total"]


def test_rows_are_selected_by_every_column_that_can(out: str) -> None:
    run = runs_at(out)[0].name
    everything = read_verdicts(out).to_pylist()
    for chosen, kept in (
        ({"run": run}, lambda row: row["run"] == run),
        ({"doc_id": DOC}, lambda row: row["doc_id"] == DOC),
        ({"suite": FIRST, "verdict": ["misread", "unfound"]},
         lambda row: row["suite"] == FIRST and row["verdict"] in ("misread", "unfound")),
        ({"field": "lines[*].qty", "run": [run]}, lambda row: row["field"] == "lines[*].qty" and row["run"] == run),
        ({"run": []}, lambda row: False),
    ):  # fmt: skip
        assert read_verdicts(out, **chosen).to_pylist() == [row for row in everything if kept(row)]
    assert read_verdicts(out, verdict="misread", columns=["path"]).column_names == ["path"]
    assert {row["doc_id"] for row in read_scores(out, doc_id=DOC).to_pylist()} == {DOC}


def test_only_parts_that_can_hold_what_is_wanted_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make_corpus(tmp_path / "corpus", documents=140, suites=2)
    run_inline(overrides(corpus, tmp_path / "out"))
    out, read = str(tmp_path / "out"), []
    whole = tables.storage.read
    monkeypatch.setattr(tables.storage, "read", lambda address: (read.append(address), whole(address))[1])
    run = runs_at(out)[0].name
    assert read_verdicts(out, run, DOC).num_rows
    assert 1 <= len(read) <= 2, "one part of each suite"
    read.clear()
    assert read_verdicts(out, run, suite=FIRST).num_rows
    assert {Path(address).parent.name for address in read} == {"suite=suite 0"} and len(read) == 2


def test_a_document_that_lies_in_two_parts_for_a_while_is_given_once(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", documents=200, suites=1)
    rows = manifest_rows(corpus)
    write_manifest(corpus.manifest, rows[:60])
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    run = runs_at(str(tmp_path / "out"))[0]
    shutil.copytree(run.address, tmp_path / "small")
    write_manifest(corpus.manifest, rows)
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    for table in (layout.SCORES, layout.VERDICTS):
        shutil.copytree(tmp_path / "small" / table, Path(run.address) / table, dirs_exist_ok=True)
    ids = read_scores(run.address).column("doc_id").to_pylist()
    assert len(ids) == len(set(ids)) == 200
    verdicts = read_verdicts(run.address, columns=["doc_id", "path"]).to_pylist()
    assert len(verdicts) == len({tuple(row.values()) for row in verdicts})


def test_polars_pandas_and_duckdb_take_them_as_they_are(finished: str) -> None:
    import duckdb
    import polars as pl

    scores, verdicts = read_scores(finished), read_verdicts(finished, verdict="misread")
    assert scores.schema.field("suite").type == verdicts.schema.field("suite").type == "string"
    frame = pl.from_arrow(scores)
    assert isinstance(frame, pl.DataFrame)
    assert frame.height == 180 and frame.schema["suite"] == pl.String
    assert verdicts.to_pandas().groupby("suite").size().sum() == verdicts.num_rows
    assert duckdb.sql("select count(distinct suite) from scores where accuracy < 1").fetchall() == [(2,)]


@pytest.mark.parametrize("place", ["folder", pytest.param("s3", marks=pytest.mark.s3)])
def test_what_is_not_there_is_named_with_the_nearest_right_name(
    place: str, finished: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    out = finished if place == "folder" else request.getfixturevalue("finished_on_s3")
    run = runs_at(out)[0].name
    for call, said in (
        (lambda: read_scores(f"{out}x"), f"there are no runs at {out}x; did you mean {out}?"),
        (lambda: read_scores(out, f"{run}x"), f"no run '{run}x'; did you mean {run}?"),
        (lambda: read_scores(storage.join(out, run), run), "is a run itself; give the folder that holds it"),
        (lambda: read_scores(out, columns=["acuracy"]), "did you mean accuracy?"),
        (lambda: read_verdicts(out, verdict="misred"), "did you mean misread?"),
        (lambda: read_verdicts(out, columns=["raw"]), "no column 'raw'"),
        (lambda: read_scores(str(tmp_path / "none" / "nothing")), "there are no runs at"),
    ):
        with pytest.raises(RequestError) as refused:
            call()
        assert said in str(refused.value)


def test_a_table_of_predictions_scored_alone_reads_like_a_run(
    small: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No suite, no provider, no record; further columns ride along."""
    rows = [
        {key: row[key] for key in ("doc_id", "gt_path", "schema")}
        | {"pred_path": str(small.predictions / "bad" / f"{row['doc_id']}.json"), "batch": number % 3}
        for number, row in enumerate(manifest_rows(small))
    ]
    write_manifest(tmp_path / "jobs.parquet", rows)
    words = ["--root", str(small.folder), "--manifest", str(tmp_path / "jobs.parquet"), "--out", str(tmp_path / "run")]
    assert main(["score", *words]) == 0
    scores, verdicts = read_scores(str(tmp_path / "run")), read_verdicts(str(tmp_path / "run"), doc_id=DOC)
    assert scores.num_rows == 90 and scores.column_names[-1] == "batch"
    assert set(scores.column("run").to_pylist()) == set(verdicts.column("run").to_pylist()) == {"run"}
    assert set(verdicts.column("doc_id").to_pylist()) == {DOC} and verdicts.column("suite").null_count == len(verdicts)
    capsys.readouterr()
    assert main(["show", str(tmp_path / "run"), "--suites"]) == 0
    assert "90/90" in capsys.readouterr().out
    assert main(["audit", str(tmp_path), "run", "--doc", DOC]) == 0
    assert main(["diff", str(tmp_path / "run"), str(tmp_path / "run")]) == 0
    assert "90 scored in both" in capsys.readouterr().out


def test_a_folder_of_tables_alone_is_a_run(small: SmallCorpus, finished: str, tmp_path: Path) -> None:
    run = runs_at(finished)[0]
    shutil.copytree(Path(run.address) / layout.SCORES, tmp_path / "run" / layout.SCORES)
    assert read_scores(str(tmp_path / "run")) == read_scores(finished, run.name)
    assert read_verdicts(str(tmp_path / "run")).num_rows == 0
