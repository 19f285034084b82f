"""`oeb leaderboard`: what chance allows to say, ties at one rank, and no cell that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.board import Board, board, groups
from oeb_ray.cli.main import main
from oeb_ray.leaderboard import BEGIN, END, markdown
from oeb_ray.receipts import indexed
from oeb_ray.stored import runs_at
from oeb_ray.tables import receipts_table
from oeb_ray.usage import usage_file
from tests.helpers import SmallCorpus, corpus_of, manifest_rows, overrides, run_inline, write_manifest

FAILED = json.dumps({"__error__": "VendorTimeout: spent"})


def of(out: Any, **more: Any) -> Board:
    return board(groups(runs_at(str(out))), **more)


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """`oeb` in this process: exit code, standard output, standard error."""
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


def systems(made: Board) -> list[str]:
    return [one.settings["system"] for one in made.standings]


def test_the_better_run_leads_and_its_mean_is_the_summarys(out: str) -> None:
    made = of(out)
    assert systems(made) == ["good", "bad"] and [one.rank for one in made.standings] == [1, 2]
    for one in made.standings:
        summary = one.runs[0].file("summary.json")
        for name, estimate in one.figures.items():
            assert estimate.mean == pytest.approx(summary[name], abs=1e-12)
            assert estimate.interval is not None and estimate.interval.low <= summary[name] <= estimate.interval.high
        assert {f"{kind}_rate": rate for kind, rate in one.mix.items()} == pytest.approx(
            {key: value for key, value in summary.items() if key.endswith("_rate")}
        )
    behind = made.standings[1].against
    assert behind is not None and behind.documents == 90 and behind.winner == made.leader


@pytest.fixture
def tied(tmp_path: Path) -> str:
    """Two systems that err on other documents, equally often, over 40 documents; prices are put into their receipts."""
    dice = random.Random(3)
    golds = {f"d{number:02}": {key: f"{key}{number}" for key in "abcd"} for number in range(40)}

    def read(gold: dict[str, str]) -> str:
        return json.dumps({key: value if dice.random() < 0.8 else "x" for key, value in gold.items()})

    answers = {name: {doc_id: read(gold) for doc_id, gold in golds.items()} for name in ("one", "two")}
    corpus = corpus_of(tmp_path, golds, answers)
    run_inline(overrides(corpus, tmp_path / "out", systems=("one", "two")))
    return str(tmp_path / "out")


def priced(out: str, prices: dict[str, float]) -> None:
    for run in runs_at(out):
        price = prices[run.file("settings.json")["settings"]["system"]]
        receipts = [one._replace(usd=price, wall_s=2.0) for one in indexed(out, run.name).values()]
        folder = Path(run.address) / "receipts.parquet"
        for path in folder.iterdir():
            path.unlink()
        (folder / "part-0.parquet").write_bytes(receipts_table(receipts))
        (Path(run.address) / "usage.json").write_bytes(usage_file(receipts, {}, first=True))


@pytest.mark.parametrize("dear", ["one", "two"])
def test_tied_runs_share_a_rank_and_the_cheaper_stands_first(tied: str, dear: str) -> None:
    cheap = {"one": "two", "two": "one"}[dear]
    priced(tied, {dear: 0.30, cheap: 0.02})
    made = of(tied)
    assert [one.rank for one in made.standings] == [1, 1] and systems(made) == [cheap, dear]
    assert made.tied[made.standings[0].name] == [made.standings[1].name]
    text = markdown(made, tied)
    assert text.count(" | 1= | ") == 2 and " tied | " in text and "0.0200" in text
    assert made.standings[0].use.median_s == made.standings[0].use.p95_s == 2.0


def test_failing_on_what_is_hard_does_not_pay(tmp_path: Path) -> None:
    """BR-21"""
    golds = {f"{kind}{n:02}": {key: f"{key}{n}" for key in "abcd"} for kind in ("easy", "hard") for n in range(35)}
    good = {doc_id: json.dumps(gold) for doc_id, gold in golds.items()}
    half = {doc_id: json.dumps(gold | {"c": "x", "d": "y"}) for doc_id, gold in golds.items() if doc_id < "f"}
    a = good | {doc_id.replace("easy", "hard"): text for doc_id, text in half.items()}
    b = good | {doc_id: FAILED for doc_id in golds if doc_id > "f"}
    corpus = corpus_of(tmp_path, golds, {"A": a, "B": b})
    run_inline(overrides(corpus, tmp_path / "out", systems=("A", "B")))
    made = {one.settings["system"]: one for one in of(tmp_path / "out").standings}
    assert (made["A"].figures["accuracy"].mean, made["A"].coverage) == (0.75, 1.0)
    assert (made["B"].figures["accuracy"].mean, made["B"].coverage, made["B"].failed) == (1.0, 0.5, 35)
    assert made["A"].rank == made["B"].rank == 1
    pair = made["A"].against
    assert pair is not None and (pair.documents, pair.difference, pair.outcome) == (35, 0.0, "tied")
    assert "35/70" in markdown(of(tmp_path / "out"), "out")


def test_a_scorer_that_counts_failed_documents_as_zero_does_so_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-21"""
    case = json.loads((Path(__file__).parent / "data" / "report_cases" / "BR-21_two_documents.json").read_text())
    answers = {
        name: {key: json.dumps(one) for key, one in of_it.items()} for name, of_it in case["predictions"].items()
    }
    corpus = corpus_of(tmp_path, case["gold"], answers)
    run_inline(overrides(corpus, tmp_path / "out", "scorer=[field_matching,value_f1]", systems=("A", "B")))
    for scorer, wanted in (("field_matching", {"A": 0.75, "B": 1.0}), ("value_f1", case["expect"]["value_f1"])):
        made = board(groups(runs_at(str(tmp_path / "out")), scorer))
        assert {one.settings["system"]: one.headline.mean for one in made.standings} == wanted
        for one in made.standings:
            summary = one.runs[0].file("summary.json" if scorer == "field_matching" else f"{scorer}/summary.json")
            assert {name: found.mean for name, found in one.figures.items()} == pytest.approx(
                {name: summary[name] for name in one.figures}
            )
    code, text, err = ran(capsys, "leaderboard", str(tmp_path / "out"), "--scorer", "value_f1")
    assert code == 0 and "F1 is the mean over all documents, failed ones as 0" in text, err
    code, _, err = ran(capsys, "leaderboard", str(tmp_path / "out"), "--scorer", "field_accuracy")
    assert code == 2 and "weighs fields" in err


def test_a_mean_of_nothing_is_no_zero(tmp_path: Path) -> None:
    """BR-22"""
    corpus = corpus_of(tmp_path, {"x": {"a": 1}, "y": {"a": 1}}, {"good": {"x": FAILED, "y": FAILED}})
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    (one,) = of(tmp_path / "out").standings
    assert one.figures["accuracy"] == (None, None, 0, 0) and one.coverage == 0.0 and one.mix["misread"] is None
    assert "NaN" not in markdown(of(tmp_path / "out"), "out")


def test_partial_runs_have_no_rank(small: SmallCorpus, tmp_path: Path, finished: str) -> None:
    """BR-23"""
    run_inline(overrides(small, tmp_path, "limit=40", systems=("good",)))
    run_inline(overrides(small, tmp_path, systems=("bad",)))
    made = of(tmp_path)
    assert systems(made) == ["bad", "good"] and [one.rank for one in made.standings] == [1, None]
    partial = made.standings[1]
    assert partial.against is not None and partial.against.documents == 40, "compared on the common documents"
    text = markdown(made, "out")
    assert "40/40 recorded of 90" in text and "is partial, 40 of 90 documents, so it has no rank" in text
    shutil.copytree(runs_at(finished)[0].address, tmp_path / "moved")
    corpus = corpus_of(tmp_path / "other", {"x": {"a": 1}}, {"good": {"x": '{"a": 1}'}})
    run_inline(overrides(corpus, tmp_path / "second", systems=("good",)))
    shutil.copytree(runs_at(finished)[0].address, tmp_path / "second" / "moved")
    moved = next(one for one in of(tmp_path / "second").standings if one.name == "moved")
    assert moved.rank is None and moved.against is None and moved.other_corpus == str(small.manifest)


def test_repeats_are_one_line_and_no_further_documents(finished: str, tmp_path: Path) -> None:
    run = runs_at(finished)[0]
    for name in ("base", "base~2", "base~3"):
        shutil.copytree(run.address, tmp_path / name)
    shutil.copy(Path(finished) / "corpus.json", tmp_path)
    (one,) = of(tmp_path).standings
    (alone,) = [other for other in of(finished).standings if other.name == run.name]
    assert len(one.runs) == 3 and one.figures == alone.figures and one.digests == alone.digests * 3
    assert "base&#126;2" not in markdown(of(tmp_path), "out") and "base x3" in markdown(of(tmp_path), "out")


def test_documents_are_clustered_by_a_column(
    small: SmallCorpus, finished: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{**row, "customer": f"c{number // 3}"} for number, row in enumerate(manifest_rows(small))]
    write_manifest(tmp_path / "manifest.parquet", rows)
    words = ["leaderboard", finished, "--csv", "--manifest", str(tmp_path / "manifest.parquet")]
    code, clustered, err = ran(capsys, *words, "--cluster", "customer")
    assert code == 0, err
    assert clustered != ran(capsys, *words)[1]
    code, out, err = ran(capsys, *words, "--cluster", "custommer")
    assert (code, out) == (2, "") and "did you mean customer?" in err


def test_every_line_has_the_digest_that_verify_makes_again(finished: str, capsys: pytest.CaptureFixture[str]) -> None:
    digests = {one.name: one.digests[0] for one in of(finished).standings}
    assert len(set(digests.values())) == 2
    assert main(["verify", finished]) == 0
    said = capsys.readouterr().err
    assert all(f"{name}: field_matching made from {digest}\n" in said for name, digest in digests.items())
    assert main(["leaderboard", finished]) == 0
    text = capsys.readouterr().out
    assert all(digest[:12] in text for digest in digests.values())


def test_a_table_of_predictions_alone_can_stand_there(
    small: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        {**row, "pred_path": str(small.predictions / "bad" / f"{row['doc_id']}.json")} for row in manifest_rows(small)
    ]
    write_manifest(tmp_path / "jobs.parquet", rows)
    words = ("--root", str(small.folder), "--manifest", str(tmp_path / "jobs.parquet"))
    assert ran(capsys, "score", *words, "--out", str(tmp_path / "out" / "mine"))[0] == 0
    (one,) = of(tmp_path / "out").standings
    assert (one.name, one.scored, one.use.usd) == ("mine", 90, None)


def test_it_goes_between_the_markers_of_a_readme(
    finished: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# Ours\n\n{BEGIN}\nold\n{END}\n\ntail\n")
    for _ in range(2):
        code, out, err = ran(capsys, "leaderboard", finished, "--into", str(readme))
        assert (code, out.strip()) == (0, str(readme)), err
    text = readme.read_text()
    assert text.startswith(f"# Ours\n\n{BEGIN}\n| run |")
    assert text.endswith(f"\n{END}\n\ntail\n") and "\nold\n" not in text
    readme.write_text(f"{END}\n{BEGIN}\n")
    code, out, err = ran(capsys, "leaderboard", finished, "--into", str(readme))
    assert (code, out) == (2, "") and BEGIN in err and readme.read_text() == f"{END}\n{BEGIN}\n"
    assert ran(capsys, "leaderboard", finished, "--into", str(tmp_path / "none.md"))[0] == 2


def test_csv_has_every_digit_and_no_formula(finished: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-25"""
    run = runs_at(finished)[0]
    shutil.copytree(run.address, tmp_path / "=1+1")
    shutil.copy(Path(finished) / "corpus.json", tmp_path)
    code, _, err = ran(capsys, "leaderboard", str(tmp_path), "--csv", "-o", str(tmp_path / "board.csv"))
    assert code == 0, err
    (row,) = csv.DictReader(io.StringIO((tmp_path / "board.csv").read_text()))
    assert row["run"] == "'=1+1" and float(row["accuracy"]) == run.file("summary.json")["accuracy"]
    assert ran(capsys, "leaderboard", str(tmp_path), "--raw")[1].splitlines()[1].startswith("=1+1,")
