"""`oeb score` over a table of predictions: what rides through, what is refused, and that the result is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oeb_ray import storage
from oeb_ray.batch import score_table
from oeb_ray.cli.main import main
from oeb_ray.errors import RequestError
from tests.helpers import (
    SmallCorpus,
    called,
    contents,
    make_corpus,
    manifest_rows,
    overrides,
    run_inline,
    write_manifest,
)


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_corpus(tmp_path / "corpus", documents=12)


def rows_of(corpus: SmallCorpus, system: str = "bad") -> list[dict[str, Any]]:
    """A table of a system's predictions with nothing but what must be there."""
    return [
        {
            "doc_id": row["doc_id"],
            "gt_path": row["gt_path"],
            "pred_path": str(corpus.predictions / system / f"{row['doc_id']}.json"),
            "schema": row["schema"],
        }
        for row in manifest_rows(corpus)
    ]


def table(corpus: SmallCorpus, rows: list[dict[str, Any]]) -> str:
    path = corpus.folder / "jobs.parquet"
    write_manifest(path, rows)
    return str(path)


def files(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


def scores(out: Path) -> list[dict[str, Any]]:
    return pl.read_parquet(f"{out}/scores.parquet").sort("doc_id").to_dicts()


def test_a_table_gives_the_rows_of_a_benchmark(small: SmallCorpus, tmp_path: Path) -> None:
    rows = [{**row, "suite": other["suite"]} for row, other in zip(rows_of(small), manifest_rows(small), strict=True)]
    write_manifest(tmp_path / "jobs.parquet", [{**row, "provider": "replay"} for row in rows])
    tally = score_table(str(tmp_path / "jobs.parquet"), str(tmp_path / "run"), root=str(small.folder))
    (name, summary), *_ = run_inline(overrides(small, tmp_path / "out", systems=("bad",))).items()
    keys = tally.summary.keys() & summary.keys()
    assert {key: tally.summary[key] for key in keys} == {key: summary[key] for key in keys}
    benchmark = pl.read_parquet(f"{tmp_path}/out/{name}/scores.parquet").sort("doc_id")
    mine = pl.read_parquet(f"{tmp_path}/run/scores.parquet").sort("doc_id")
    assert mine.drop("run").equals(benchmark.drop("run"))
    verdicts = [pl.read_parquet(f"{tmp_path}/{place}/verdicts.parquet").sort("doc_id", "address")
                for place in ("run", f"out/{name}")]  # fmt: skip
    assert verdicts[0].equals(verdicts[1])


def test_value_f1_grades_a_table_as_a_benchmark_does_and_beside_the_other(
    corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a scorer may know beside the gold is a column, as in a manifest."""
    about = json.dumps({"field_rules": {}, "tags": ["length:short"]})
    (corpus.folder / "about.json").write_text(about)
    manifest = [{**row, "annotations_path": "about.json"} for row in manifest_rows(corpus)]
    write_manifest(corpus.manifest, manifest)
    rows = [
        {**row, "suite": other["suite"], "provider": "replay", "annotations_path": "about.json"}
        for row, other in zip(rows_of(corpus), manifest, strict=True)
    ]
    words = ["--manifest", table(corpus, rows), "--out", str(tmp_path / "run"), "--jobs", "2"]
    for scorer in ("field_matching", "value_f1"):
        assert main(["score", "--scorer", scorer, *words]) == 0
    assert "  f1 0." in capsys.readouterr().out
    (name,) = run_inline([*overrides(corpus, tmp_path / "out", systems=("bad",)), "scorer=[field_matching,value_f1]"])
    for at in ("", "value_f1/"):
        mine, theirs = (
            pl.read_parquet(f"{tmp_path}/{place}/{at}scores.parquet")
            .sort("doc_id")
            .drop("run", "annotations_path", strict=False)
            for place in ("run", f"out/{name}")
        )
        assert mine.equals(theirs)
        verdicts = [pl.read_parquet(f"{tmp_path}/{place}/{at}verdicts.parquet") for place in ("run", f"out/{name}")]
        assert verdicts[0].sort(pl.all()).equals(verdicts[1].sort(pl.all()))
    assert pl.read_parquet(f"{tmp_path}/run/value_f1/scores.parquet")["tags"].to_list() == [["length:short"]] * 12


@pytest.mark.parametrize(
    ("path", "said"), [("../secret.json", "annotations_path"), (3, "column 'annotations_path' holds int64, not text")]
)
def test_annotations_that_cannot_be_read_are_refused(corpus: SmallCorpus, tmp_path: Path, path: Any, said: str) -> None:
    rows = [{**row, "annotations_path": path} for row in rows_of(corpus)]
    with pytest.raises(RequestError, match=said):
        score_table(table(corpus, rows), str(tmp_path / "run"), scorer="value_f1")


def test_the_bytes_depend_on_neither_processes_nor_the_order_of_rows(small: SmallCorpus, tmp_path: Path) -> None:
    rows = rows_of(small)
    for name, jobs, listed in (("one", 1, rows), ("two", 2, rows[::-1])):
        words = ["--manifest", table(small, listed), "--out", str(tmp_path / name), "--jobs", str(jobs)]
        assert called("score", *words)[0] == 0
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) == 4, "90 documents make two parts of each table"


def test_further_columns_ride_through_and_missing_ones_are_null(corpus: SmallCorpus, tmp_path: Path) -> None:
    more = {"pages": 3, "tags": ["a", "b"], "price": None, "doc_path": "docs/x"}
    score_table(table(corpus, [{**row, **more} for row in rows_of(corpus)]), str(tmp_path / "run"))
    for row in scores(tmp_path / "run"):
        assert {key: row[key] for key in more} == more
        assert row["suite"] is None and row["provider"] is None and row["run"] is None


def test_every_reader_takes_the_folders_in_one_call(corpus: SmallCorpus, tmp_path: Path) -> None:
    """BR-59: parts in which a column is always null read together with the others."""
    rows = rows_of(corpus)
    for number, row in enumerate(rows):
        row["kind"] = None if number % 2 else "odd"
    score_table(table(corpus, rows), str(tmp_path / "run"))
    for name, count in (("scores", 12), ("verdicts", None)):
        folder = f"{tmp_path}/run/{name}.parquet"
        counts = {
            pl.read_parquet(folder).height,
            pq.read_table(folder).num_rows,
            duckdb.sql(f"select count(*) from '{folder}/*.parquet'").fetchall()[0][0],
        }
        assert len(counts) == 1 and count in (*counts, None)


def test_missing_broken_and_failed_predictions_are_rows_with_a_reason(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = [{**row, "error": None} for row in rows_of(corpus)]
    given = [None, "none.json", "{", "7", "{}", '{"__error__": "VendorError: no"}', None]
    for row, text in zip(rows, given, strict=False):
        row["pred_path"] = None
        if text is not None:
            (tmp_path / f"{row['doc_id']}.json").write_text(text)
            row["pred_path"] = str(tmp_path / f"{row['doc_id']}.json") if text != "none.json" else "none.json"
    rows[6]["error"] = "VendorTimeout: no answer within 5 s"
    rows[7]["gt_path"] = "gold/none.json"
    code, out, err = called("score", "--manifest", table(corpus, rows), "--out", str(tmp_path / "run"))
    assert code == 0 and out.startswith("12 documents  4 scored  accuracy ")
    none = "no prediction on disk"
    assert [row["error"] for row in scores(tmp_path / "run")] == [
        none, none, none, "not an object", "empty prediction", "VendorError: no", "VendorTimeout: no answer within 5 s",
        "FileNotFoundError: no gold on disk", None, None, None, None,
    ]  # fmt: skip
    assert f"3 x {none}" in err


def test_nothing_scored_is_code_1_and_says_where_it_looked(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = [{**row, "pred_path": Path(row["pred_path"]).name} for row in rows_of(corpus)]
    code, out, err = called("score", "--manifest", table(corpus, rows), "--out", str(tmp_path / "run"))
    assert (code, out.splitlines()[0]) == (1, "12 documents  0 scored")
    assert f"none of the 12 predictions is there; looked for {corpus.folder}/doc 00000 [x].json" in err


def test_all_faults_of_a_table_come_in_one_message(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = rows_of(corpus)
    rows[0]["doc_id"] = None
    rows[1]["doc_id"] = rows[2]["doc_id"]
    rows[3]["gt_path"] = ""
    rows[4]["pred_path"] = "../x.json"
    rows[5]["schema"] = b"schema.json"
    rows[6]["schema"] = None
    with pytest.raises(RequestError, match="6 problems") as error:
        score_table(table(corpus, rows), str(tmp_path / "run"))
    for number in (0, 2, 3, 4, 5, 6):
        assert f"row {number}, doc_id" in str(error.value)
    with pytest.raises(RequestError, match="column 'accuracy' is one that scoring writes"):
        score_table(table(corpus, [{**row, "accuracy": 1} for row in rows_of(corpus)]), str(tmp_path / "run"))
    with pytest.raises(RequestError, match="column 'suite' holds int64, not text"):
        score_table(table(corpus, [{**row, "suite": 1} for row in rows_of(corpus)]), str(tmp_path / "run"))
    with pytest.raises(RequestError, match="no column 'pred_path'; it has"):
        score_table(str(corpus.manifest), str(tmp_path / "run"))
    with pytest.raises(RequestError, match="no table at"):
        score_table(str(tmp_path / "none.parquet"), str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_column_with_two_types_is_kept_as_text_and_said(corpus: SmallCorpus, tmp_path: Path) -> None:
    """BR-59: a folder of files is one table."""
    folder = corpus.folder / "jobs"
    folder.mkdir()
    rows = rows_of(corpus)
    write_manifest(folder / "a.parquet", [{**row, "pages": 3, "lang": None, "size": 1} for row in rows[:6]])
    write_manifest(folder / "b.parquet", [{**row, "pages": "iv", "lang": "de", "size": None} for row in rows[6:]])
    tally = score_table(str(folder), str(tmp_path / "run"), root=str(corpus.folder))
    assert tally.notes == ["column 'pages' holds int64 and string: it is kept as text"]
    found = pl.read_parquet(f"{tmp_path}/run/scores.parquet").sort("doc_id")
    assert found["pages"].to_list() == ["3"] * 6 + ["iv"] * 6
    assert found["lang"].to_list() == [None] * 6 + ["de"] * 6
    assert found["size"].to_list() == [1] * 6 + [None] * 6


def test_order_counts_where_a_document_has_the_array(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = rows_of(corpus)
    (corpus.folder / "gold" / "flat.json").write_text('{"a": 1}')
    flat = {"gt_path": "gold/flat.json", "pred_path": "gold/flat.json", "schema": b'{"properties": {"a": {}}}'}
    path = table(corpus, [*rows, {"doc_id": "flat", **flat}])
    free = score_table(path, str(tmp_path / "free")).summary
    ordered = score_table(path, str(tmp_path / "ordered"), order_matters=["lines"]).summary
    assert ordered["scored"] == free["scored"] == 13
    assert ordered["accuracy"] < free["accuracy"]
    with pytest.raises(RequestError, match="no schema of the table has an array 'linse'; did you mean lines"):
        score_table(path, str(tmp_path / "free"), order_matters=["linse"])


def test_another_table_takes_the_place_of_the_first_and_of_nothing_else(corpus: SmallCorpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    score_table(table(corpus, rows_of(corpus, "good")), str(out))
    score_table(table(corpus, rows_of(corpus)[:5]), str(out), verdicts=False)
    assert len(scores(out)) == 5
    assert not list(out.glob("verdicts.parquet/*"))
    (name,) = run_inline(overrides(corpus, tmp_path / "bench", systems=("bad",)))
    before = contents(str(tmp_path / "bench"))
    with pytest.raises(RequestError, match="no part of such a table; choose another --out"):
        score_table(table(corpus, rows_of(corpus)), str(tmp_path / "bench" / name))
    assert contents(str(tmp_path / "bench")) == before


@pytest.mark.s3
@pytest.mark.parametrize("place", ["memory", "s3"])
def test_any_storage_will_do(place: str, corpus: SmallCorpus, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    base = f"{request.getfixturevalue('s3') if place == 's3' else 'memory:/'}/{tmp_path.name}"
    for path in (corpus.folder / "gold").iterdir():
        storage.put(storage.join(base, "gold", path.name), path.read_bytes())
    score_table(table(corpus, rows_of(corpus)), f"{base}/run", root=base)
    score_table(table(corpus, rows_of(corpus)), str(tmp_path / "run"))
    local = files(tmp_path / "run")
    assert {key: storage.read(f"{base}/run/{key}") for key in storage.listed(f"{base}/run")} == local


def test_one_document_or_a_table(corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        ([], "--pred, --gt, --schema must be given; or score a table"),
        (["--gt", "a"], "--pred, --schema must be given"),
        (["--manifest", "a"], "--out must be given"),
        (["--manifest", "a", "--pred", "b"], "not both: --pred, --manifest"),
        (["--manifest", table(corpus, rows_of(corpus)), "--out", str(tmp_path / "x"), "--jobs", "0"], "jobs=0: wants"),
    ):
        assert main(["score", *words]) == 2
        assert said in capsys.readouterr().err


def test_a_table_of_one_document_equals_the_command_for_one(corpus: SmallCorpus, tmp_path: Path) -> None:
    row = rows_of(corpus)[0]
    score_table(table(corpus, [row]), str(tmp_path / "run"))
    (tmp_path / "schema.json").write_bytes(row["schema"])
    words = ["--pred", row["pred_path"], "--gt", str(corpus.folder / row["gt_path"]), "--schema"]
    one = json.loads(called("score", *words, str(tmp_path / "schema.json"))[1])
    (whole,) = scores(tmp_path / "run")
    assert {key: whole[key] for key in one} == one


def test_dictionaries_and_large_texts_are_texts(corpus: SmallCorpus, tmp_path: Path) -> None:
    made = pa.Table.from_pylist(rows_of(corpus))
    for name, kind in (("doc_id", pa.large_string()), ("pred_path", pa.large_string())):
        made = made.set_column(made.column_names.index(name), name, made.column(name).cast(kind))
    made = made.append_column("group", pa.array(["a", "b"] * 6).dictionary_encode())
    pq.write_table(made, corpus.folder / "jobs.parquet")
    assert score_table(f"{corpus.folder}/jobs.parquet", str(tmp_path / "run")).summary["scored"] == 12
    assert [row["group"] for row in scores(tmp_path / "run")] == ["a", "b"] * 6
