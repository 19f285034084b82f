"""`oeb predict --manifest`: a table that `oeb score` takes, of one run, resumed, and never over something else."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from oeb_ray.cli.main import main
from tests.helpers import SmallCorpus, contents, make_corpus, manifest_rows, overrides, run_inline, write_manifest


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    made = make_corpus(tmp_path / "corpus", documents=12)
    write_manifest(made.manifest, [{**row, "pages": 2} for row in manifest_rows(made)])
    return made


def predict(corpus: SmallCorpus, out: Path, *more: str, system: str = "good") -> int:
    options = json.dumps({"system": system, "folder": str(corpus.predictions)})
    return main(["predict", "--provider", "replay", "--options", options, "--manifest", str(corpus.manifest),
                 "--out", str(out), "cluster=inline", *more])  # fmt: skip


def score(corpus: SmallCorpus, out: Path, run: Path) -> pl.DataFrame:
    words = ["score", "--root", str(corpus.folder), "--manifest", str(out / "manifest.parquet"), "--out", str(run)]
    assert main(words) == 0
    return pl.read_parquet(f"{run}/scores.parquet").sort("doc_id")


def test_predicted_then_scored_equals_a_benchmark(corpus, tmp_path, capsys) -> None:
    assert predict(corpus, tmp_path / "preds") == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("12/12 documents  0 failed")
    assert shown[-1] == f"{tmp_path}/preds/manifest.parquet"
    scores = score(corpus, tmp_path / "preds", tmp_path / "run")
    assert set(scores["pages"]) == {2}, "the manifest's columns ride through"
    (name,) = run_inline(overrides(corpus, tmp_path / "bench", systems=("good",)))
    benchmark = pl.read_parquet(f"{tmp_path}/bench/{name}/scores.parquet").sort("doc_id")
    assert scores.select(benchmark.columns).equals(benchmark)
    assert not list((tmp_path / "preds").rglob("scores*")), "nothing was scored"


def test_failed_documents_keep_their_reason(corpus, tmp_path) -> None:
    sorted((corpus.predictions / "good").iterdir())[4].unlink()
    assert predict(corpus, tmp_path / "preds", "providers.replay.failures=0.4") == 0
    scores = score(corpus, tmp_path / "preds", tmp_path / "run")
    assert set(scores["error"].drop_nulls()) == {
        "no prediction on disk", "VendorError: a failure by the dial `failures`"
    }  # fmt: skip
    assert set(scores["provider"]) == {"replay"} and scores["run"].n_unique() == 1


def test_it_is_resumed_and_extends(corpus, tmp_path) -> None:
    assert predict(corpus, tmp_path / "preds", "--limit", "5") == 0
    assert len(pl.read_parquet(f"{tmp_path}/preds/manifest.parquet")) == 5
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("preds/*/records/*")}
    assert predict(corpus, tmp_path / "preds") == 0
    assert len(pl.read_parquet(f"{tmp_path}/preds/manifest.parquet")) == 12
    assert {path: path.stat().st_mtime_ns for path in records} == records


def test_a_benchmark_goes_on_where_it_ended(corpus, tmp_path) -> None:
    assert predict(corpus, tmp_path / "out") == 0
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    run_inline(overrides(corpus, tmp_path / "whole", systems=("good",)))
    assert contents(str(tmp_path / "out")) == contents(str(tmp_path / "whole"))


def test_another_run_or_the_corpus_itself_is_not_overwritten(corpus, tmp_path, capsys) -> None:
    assert predict(corpus, tmp_path / "preds") == 0
    before = corpus.manifest.read_bytes()
    for out, said in ((tmp_path / "preds", "holds replay-ac3948f5, not replay-"), (corpus.folder, "something else")):
        assert predict(corpus, out, system="bad") == 2
        err = capsys.readouterr().err
        assert said in err and "choose another --out" in err
    assert corpus.manifest.read_bytes() == before
    assert predict(corpus, tmp_path / "new", "providers.replay.grid={seed: [1]}") == 2
    assert main(["predict", "--provider", "replay", "--manifest", "a", "--doc", "b"]) == 2
    assert "not both: --doc, --manifest" in capsys.readouterr().err


def test_all_failed_is_code_1(corpus, tmp_path) -> None:
    assert predict(corpus, tmp_path / "preds", "providers.replay.failures=1.0") == 1
    assert pl.read_parquet(f"{tmp_path}/preds/manifest.parquet")["pred_path"].null_count() == 12
