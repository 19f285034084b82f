"""`oeb diff`: what one run gained and lost against another, on the documents that both have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, storage
from oeb_ray.cli.main import main
from oeb_ray.compare import compare, gates
from oeb_ray.errors import RequestError
from oeb_ray.stored import StoredRun, runs_at
from tests.helpers import SmallCorpus, corpus_of, overrides, run_inline

GOLDS: dict[str, Any] = {
    "same": {"a": 1},
    "gains": {"a": 1, "b": 2},
    "loses": {"a": 1, "b": 2},
    "other": {"a": 1, "rows": [{"n": 1}, {"n": 2}]},
    "fails in a": {"a": 1},
    "fails in b": {"a": 1},
}
FAILED = json.dumps({"__error__": "VendorTimeout: spent"})
A: dict[str, Any] = {
    "same": {"a": 1},
    "gains": {"a": 9, "b": 2},
    "loses": {"a": 1, "b": 2},
    "other": {"a": 5, "rows": [{"n": 1}, {"n": 2}, {"n": 3}]},
}
B: dict[str, Any] = {
    "same": {"a": 1},
    "gains": {"a": 1, "b": 2},
    "loses": {"a": 1},
    "other": {"a": 6, "rows": [{"n": 1}, {"n": 2}, {"n": 4}]},
}


def made(folder: Path, golds: dict[str, Any], predictions: dict[str, dict[str, str]], *more: str) -> list[StoredRun]:
    """Runs of the systems of a corpus, in the order of the systems' names."""
    corpus = corpus_of(folder / "corpus", golds, predictions)
    run_inline(overrides(corpus, folder / "out", *more, systems=tuple(predictions)))
    runs = runs_at(str(folder / "out"))
    return sorted(runs, key=lambda run: str(run.file("settings.json")["settings"]["system"]))


@pytest.fixture
def two(tmp_path: Path) -> list[StoredRun]:
    texts = {"a": {key: json.dumps(value) for key, value in A.items()}}
    texts["b"] = {key: json.dumps(value) for key, value in B.items()}
    texts["a"] |= {"fails in a": FAILED, "fails in b": json.dumps({"a": 1})}
    texts["b"] |= {"fails in b": FAILED, "fails in a": json.dumps({"a": 1})}
    return made(tmp_path, GOLDS, texts)


def test_documents_and_fields_that_gained_lost_and_changed(two: list[StoredRun]) -> None:
    found = compare(*two)
    assert (found.common, found.both) == (6, 4)
    assert (found.gained, found.lost) == (["fails in a"], ["fails in b"])
    assert {one.doc_id: (one.points, one.counts) for one in found.documents} == {
        "gains": (50, {"gained": 1, "lost": 0, "changed": 0, "extra_a": 0, "extra_b": 0}),
        "loses": (-50, {"gained": 0, "lost": 1, "changed": 0, "extra_a": 0, "extra_b": 0}),
        "other": (0, {"gained": 0, "lost": 0, "changed": 1, "extra_a": 1, "extra_b": 1}),
    }
    assert found.fields == {
        "a": {"gained": 1, "lost": 0, "changed": 1, "extra_a": 0, "extra_b": 0},
        "b": {"gained": 0, "lost": 1, "changed": 0, "extra_a": 0, "extra_b": 0},
        "rows[*].n": {"gained": 0, "lost": 0, "changed": 0, "extra_a": 1, "extra_b": 1},
    }


def test_means_are_over_the_documents_that_both_scored(two: list[StoredRun]) -> None:
    """BR-21: a run that fails on its hard documents does not climb, and says how often it failed."""
    found = compare(*two)
    assert found.means_a["coverage"] == found.means_b["coverage"] == 5 / 6
    assert found.means_a["accuracy"] == (1 + 0.5 + 1 + 2 / 4) / 4
    assert found.points("recall") == pytest.approx(0)


def test_runs_in_folders_and_buckets(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (run.address for run in runs_at(out))
    assert main(["diff", a, b, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    scores = {(row["run"], row["doc_id"]): row for row in read_scores(out).to_pylist()}
    rows = [[row for row in scores.values() if storage.join(out, row["run"]) == run] for run in (a, b)]
    gained_or_lost = {key: sum(one[key] for one in found["fields"].values()) for key in ("gained", "lost")}
    matched = [sum(row["matched"] for row in side) for side in rows]
    assert gained_or_lost["gained"] - gained_or_lost["lost"] == matched[1] - matched[0] != 0
    assert found["means_b"]["accuracy"] == pytest.approx(sum(row["accuracy"] for row in rows[1]) / 90)


@pytest.mark.parametrize(
    ("condition", "code"),
    [("accuracy<-0.5", 0), ("accuracy<0.5", 4), ("coverage<0", 0), ("coverage<=0", 4), ("misread_rate >= 0", 0)],
)
def test_a_gate_that_holds_is_code_4(
    two: list[StoredRun], condition: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", two[0].address, two[1].address, "--fail-on", condition]) == code
    shown = capsys.readouterr()
    assert ("holds" in shown.err) == (code == 4) and "accuracy" in shown.out


def test_a_gate_that_cannot_be_judged_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-22: a mean of nothing is no 0."""
    a, b = made(tmp_path, {"x": {"a": 1}}, {"a": {"x": FAILED}, "b": {"x": '{"a": 1}'}})
    assert main(["diff", a.address, b.address]) == 0
    assert "no document is scored in both" in capsys.readouterr().out
    assert main(["diff", a.address, b.address, "--fail-on", "accuracy<0"]) == 2
    assert "cannot be judged" in capsys.readouterr().err
    with pytest.raises(RequestError, match="2 problems"):
        gates(["acuracy<1", "accuracy"])


def test_a_partial_run_is_compared_on_what_it_has(small: SmallCorpus, finished: str, tmp_path: Path) -> None:
    """BR-23"""
    run_inline(overrides(small, tmp_path, "limit=25"))
    for whole in runs_at(finished):
        found = compare(whole, StoredRun(str(tmp_path), whole.name))
        assert (found.common, len(found.only_a), found.only_b) == (25, 65, [])
        assert not any(found.points(figure) for figure in found.means_a) and not found.documents


def test_documents_of_another_gold_are_kept_apart(two: list[StoredRun], tmp_path: Path) -> None:
    """BR-23"""
    golds = GOLDS | {"gains": {"a": 9, "b": 2}}
    (other,) = made(tmp_path / "other", golds, {"a": {key: json.dumps(value) for key, value in A.items()}})
    found = compare(two[0], other)
    assert found.other_gold == ["gains"]
    assert "documents are compared by gold and schema" in "".join(found.notes)
    (nothing,) = made(tmp_path / "nothing", {"elsewhere": {"a": 1}}, {"a": {"elsewhere": "{}"}})
    with pytest.raises(RequestError, match="no document in common"):
        compare(two[0], nothing)


def test_without_verdicts_there_are_documents_but_no_fields(tmp_path: Path) -> None:
    a, b = made(tmp_path, {"x": {"a": 1}}, {"a": {"x": '{"a": 1}'}, "b": {"x": '{"a": 2}'}}, "verdicts=false")
    found = compare(a, b)
    assert found.fields is None
    assert [(one.doc_id, one.points, one.counts) for one in found.documents] == [("x", -100, None)]


def test_an_output_is_no_run(finished: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", finished, finished]) == 2
    assert "is an output with 2 runs; give one of them" in capsys.readouterr().err
