"""Several scorers over the same predictions in one job: each with its own parts and summary, at any time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oeb_ray import read_scores, read_verdicts, scorers, storage
from oeb_ray.cli.main import main
from oeb_ray.errors import RequestError
from tests.helpers import SmallCorpus, make_corpus, manifest_rows, overrides, run_inline, write_manifest

BOTH = "+scorers.halved={}"
ANOTHER = "~scorers.field_matching"


@pytest.fixture(autouse=True)
def _another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scorers.SCORERS, "halved", "tests.halved")


@pytest.fixture
def annotated(tmp_path: Path) -> SmallCorpus:
    corpus = make_corpus(tmp_path / "corpus", 70)
    rows = manifest_rows(corpus)
    for number, row in enumerate(rows):
        row["annotations_path"] = f"{number}.json" if number % 2 else None
        (corpus.folder / f"{number}.json").write_text(json.dumps({"factor": 0.5}))
    write_manifest(corpus.manifest, rows)
    return corpus


OTHERS = ("config.json", "digests.parquet", "usage.json", "settled.json")


def files(out: str) -> dict[str, bytes]:
    """All that is derived, but for what a job notes of itself."""
    keys = [key for key in storage.listed(out) if not key.endswith(OTHERS)]
    return {key: storage.read(storage.join(out, key)) for key in keys if "receipts" not in key and "records" not in key}


def test_each_scorer_has_its_own_tables_and_summary(annotated: SmallCorpus, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    ended = run_inline([*overrides(annotated, out), BOTH])
    first, second = read_scores(out), read_scores(out, scorer="halved")
    assert first.num_rows == second.num_rows == 2 * 70
    ratios = {
        b / a
        for a, b in zip(first.column("accuracy").to_pylist(), second.column("accuracy").to_pylist(), strict=True)
        if a
    }
    assert ratios == {0.5, 1.0}, "every second document has annotations"
    assert read_verdicts(out, scorer="halved").equals(read_verdicts(out))
    for name, summary in ended.items():
        other = json.loads(storage.read(f"{out}/{name}/halved/summary.json"))
        assert other["scorer"] == "halved 1" and "scorer" not in summary and other["accuracy"] < summary["accuracy"]
    with pytest.raises(RequestError, match="no scorer 'halfed'; did you mean halved"):
        read_scores(out, scorer="halfed")


def test_a_scorer_that_comes_later_asks_nobody_and_gives_the_same_bytes(annotated: SmallCorpus, tmp_path: Path) -> None:
    together, later = str(tmp_path / "together"), str(tmp_path / "later")
    run_inline([*overrides(annotated, together), BOTH])
    run_inline(overrides(annotated, later))
    records = {key for key in storage.listed(later) if "/records/" in key}
    before = storage.stat_many(f"{later}/{key}" for key in records)
    run_inline([*overrides(annotated, later), BOTH, ANOTHER])
    assert files(together) == files(later)
    assert storage.stat_many(f"{later}/{key}" for key in records) == before


def test_what_an_annotation_says_now_counts(
    annotated: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    words = [*overrides(annotated, out), BOTH]
    run_inline(words)
    (annotated.folder / "1.json").write_text(json.dumps({"factor": 0.25}))
    assert main(["verify", out]) == 4
    told = capsys.readouterr().out
    assert "was made from other golds" in told and ": scores.parquet" not in told, "the other scorer does not look"
    run_inline(words)
    assert main(["verify", out]) == 0


def test_the_table_on_the_screen_names_the_scorers(
    annotated: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", *overrides(annotated, str(tmp_path / "out")), BOTH]) == 0
    shown = capsys.readouterr().out
    assert shown.count("accuracy") == 2 and "halved:" in shown and "field_matching:" in shown


def test_missing_annotations_and_unknown_scorers_are_refused(annotated: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(annotated, str(tmp_path / "out"))
    with pytest.raises(RequestError, match=r"scorers.halfed: did you mean halved"):
        run_inline([*words, "+scorers.halfed={}"])
    (annotated.folder / "3.json").unlink()
    with pytest.raises(RequestError, match=r"row 3, doc_id .*: no annotations at"):
        run_inline(words)
