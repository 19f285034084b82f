"""`oeb show`: every run with how far it is, what it came to and what it cost; missing is never zero."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import storage
from oeb_ray.cli.main import main
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.overview import overviews
from oeb_ray.stability import stability
from oeb_ray.stored import StoredRun, runs_at
from tests.helpers import (
    SmallCorpus,
    called,
    corpus_of,
    make_corpus,
    manifest_rows,
    oeb,
    overrides,
    run_inline,
    write_manifest,
)

FAILED = json.dumps({"__error__": "VendorTimeout: spent"})


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, dict[str, str]]:
    """The first table by run and heading."""
    assert main(["show", *words]) == 0
    head, *lines = capsys.readouterr().out.split("\n\n")[0].splitlines()
    ends = [head.index(name) + len(name) for name in head.split()]  # figures stand below the ends of their headings
    rows = []
    for line in lines:
        name, rest = line.split("  ", 1)[0], line
        cells = [rest[start:end].strip() for start, end in zip([len(name), *ends[1:]], ends[1:], strict=False)]
        rows.append((name, dict(zip(head.split()[1:], cells, strict=True))))
    return dict(rows)


def test_summaries_stand_side_by_side(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = shown(capsys, out)
    assert list(table) == [run.name for run in runs_at(out)]
    for run in runs_at(out):
        row, summary = table[run.name], run.file("summary.json")
        assert (row["documents"], row["scored"], row["failed"], row["pending"]) == ("90", "90/90", "0", "0")
        assert [row[key] for key in ("accuracy", "precision", "recall")] == [
            f"{summary[key]:.4f}" for key in ("accuracy", "precision", "recall")
        ]
    (one,) = shown(capsys, out, runs_at(out)[1].name)
    assert one == runs_at(out)[1].name


def test_failed_documents_stand_beside_the_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-21"""
    golds = {"easy": {key: key for key in "abcd"}, "hard": {key: key for key in "efgh"}}
    good = {doc_id: json.dumps(gold) for doc_id, gold in golds.items()}
    a = good | {"hard": json.dumps(golds["hard"] | {"g": "x", "h": "y"})}
    corpus = corpus_of(tmp_path, golds, {"A": a, "B": good | {"hard": FAILED}})
    run_inline(overrides(corpus, tmp_path / "out", systems=("A", "B")))
    table = {
        next(
            run.file("settings.json")["settings"]["system"]
            for run in runs_at(str(tmp_path / "out"))
            if run.name == name
        ): row
        for name, row in shown(capsys, str(tmp_path / "out")).items()
    }
    assert [table["A"][key] for key in ("accuracy", "scored", "failed", "coverage")] == ["0.7500", "2/2", "0", "1.0000"]
    assert [table["B"][key] for key in ("accuracy", "scored", "failed", "coverage")] == ["1.0000", "1/2", "1", "0.5000"]


def test_partial_runs_are_marked(small: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-23: by a limit, one suite, or a job that was stopped."""
    out = str(tmp_path)
    run_inline(overrides(small, out, "limit=40", systems=("good",)))
    (limited,) = runs_at(out)
    run_inline(overrides(small, out, "suites=[suite 1]", systems=("bad",)))
    table = shown(capsys, out)
    assert table[limited.name]["documents"] == "40 of 90" and table[limited.name]["pending"] == "50"
    assert {row["documents"] for row in table.values()} == {"40 of 90", "45 of 90"}
    assert main(["show", out, limited.name]) == 0
    assert f"{limited.name}: partial, 40 of 90 documents" in capsys.readouterr().out

    class Stopped(InlineCluster):
        def wait(self, seconds: float) -> Any:
            if len(storage.listed(storage.join(out, limited.name, "records"))) >= 60:
                raise MemoryError("killed")
            return super().wait(seconds)

    with pytest.raises(MemoryError):
        run_inline(overrides(small, out, systems=("good",)), Stopped())
    row = shown(capsys, out)[limited.name]
    recorded = len(storage.listed(storage.join(out, limited.name, "records")))
    assert 60 <= recorded < 90
    assert (row["documents"], row["pending"]) == (f"{recorded} of 90", str(90 - recorded))
    assert row["scored"] == "40/40", "what the last summary says"


def test_a_run_before_its_first_summary(small: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_inline(overrides(small, tmp_path, "limit=7", systems=("good",)))
    (run,) = runs_at(str(tmp_path))
    for name in ("summary.json", "usage.json"):
        (Path(run.address) / name).unlink()
    row = shown(capsys, str(tmp_path))[run.name]
    assert (row["documents"], row["scored"], row["accuracy"], row["cost"]) == ("7 of 90", "-", "-", "-")
    assert main(["show", str(tmp_path)]) == 0
    assert "7 documents are recorded and not scored yet" in capsys.readouterr().out


def test_a_mean_of_nothing_is_no_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-22: strict JSON, no figure, no warning."""
    corpus = corpus_of(tmp_path, {"x": {"a": 1}, "y": {"a": 1}}, {"good": {"x": FAILED, "y": FAILED}})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
        (row,) = shown(capsys, str(tmp_path / "out"), "--suites").values()
    assert (row["scored"], row["failed"], row["coverage"], row["accuracy"]) == ("0/2", "2", "0.0000", "-")
    assert main(["show", str(tmp_path / "out"), "--json"]) == 0

    def no_number(text: str) -> None:
        raise AssertionError(text)

    (one,) = json.loads(capsys.readouterr().out, parse_constant=no_number)
    assert one["summary"]["accuracy"] == 0.0 and one["stability"] is None


def test_cost_is_what_vendors_stated(tmp_path: Path, finished: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = runs_at(finished)[0]
    shutil.copytree(run.address, tmp_path / run.name)
    shutil.copy(Path(finished) / "corpus.json", tmp_path)
    usage = run.file("usage.json")
    for changed, text in (
        ({"usd": 12.4, "usd_unknown": 0, "credits": 5820.0, "wall_s": 180.0}, "$12.40 + 5,820 cr"),
        ({"usd": 0.0, "usd_unknown": 3}, "$0.00 + 3 unknown"),
        ({"usd": None, "usd_unknown": 90}, "-"),
    ):
        (tmp_path / run.name / "usage.json").write_text(json.dumps(usage | changed))
        assert main(["show", str(tmp_path)]) == 0
        assert f"  {text}  " in capsys.readouterr().out.splitlines()[1]


def test_a_run_of_another_corpus_is_kept_apart(
    finished: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-23"""
    corpus = make_corpus(tmp_path / "corpus", 3)
    run_inline(overrides(corpus, tmp_path / "out", systems=("bad",)))
    run = runs_at(finished)[0]
    shutil.copytree(run.address, tmp_path / "out" / "moved here")
    assert main(["show", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "moved here: of another corpus, " in text and "90 of ?" in text


def test_documents_added_later_are_pending(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", 12)
    rows = manifest_rows(corpus)
    write_manifest(corpus.manifest, rows[:8])
    run_inline(overrides(corpus, tmp_path / "out"))
    write_manifest(corpus.manifest, rows)
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    found = overviews(runs_at(str(tmp_path / "out")))
    assert sorted((one.recorded, one.documents, one.pending) for one in found) == [(8, 12, 4), (12, 12, 0)]


@pytest.fixture
def repeats(tmp_path: Path) -> list[StoredRun]:
    """Three repeats of one run: one value differs in one of them, one document fails in another."""
    golds = {"x": {"a": 1, "b": 2}, "y": {"a": 1}, "z": {"a": 1}, "silent": {"a": None}}
    good = {doc_id: json.dumps(gold) for doc_id, gold in golds.items()}
    systems = {
        "r1": good, "r2": good | {"x": '{"a": "1.0", "b": 3}', "silent": '{"a": 5}'}, "r3": good | {"z": FAILED}
    }  # fmt: skip
    corpus = corpus_of(tmp_path, golds, systems)
    run_inline(overrides(corpus, tmp_path / "runs", systems=tuple(systems)))
    out = tmp_path / "out"
    for run in runs_at(str(tmp_path / "runs")):
        system = run.file("settings.json")["settings"]["system"]
        shutil.copytree(run.address, out / ("base" if system == "r1" else f"base~{system[1:]}"))
    shutil.copy(tmp_path / "runs" / "corpus.json", out)
    return runs_at(str(out))


def test_stability_of_repeats(repeats: list[StoredRun], capsys: pytest.CaptureFixture[str]) -> None:
    assert [run.name for run in repeats] == ["base", "base~2", "base~3"]
    found = stability(repeats)
    assert (found.documents, found.values, found.equal) == (3, 4, 2), "x: a alike, b not; y alike; silent: one speaks"
    assert found.share == 0.5
    assert found.accuracies == pytest.approx([2 / 3, 1.5 / 3, 2 / 3]) and found.spread == pytest.approx(100 / 6)
    assert main(["show", repeats[0].out]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("base ") and "points" in line]
    assert line.split() == ["base", "3", "3", "4", "0.5000", "0.5000", "to", "0.6667", "16.67", "points"]


def test_stability_in_a_bucket_and_a_folder_is_the_same(out: str) -> None:
    found = stability(runs_at(out))
    accuracies = [run.file("summary.json")["accuracy"] for run in runs_at(out)]
    assert found.documents == 90 and found.accuracies == pytest.approx(accuracies)
    assert found.share is not None and 0.5 < found.share < 1 and math.isfinite(found.share)


def test_what_is_not_there_is_refused(finished: str) -> None:
    code, out, err = called("show", f"{finished}x")
    assert (code, out) == (2, "") and f"did you mean {finished}?" in err
    code, out, err = called("show", finished, "replay")
    assert (code, out) == (2, "") and "no run 'replay'; did you mean replay-" in err
    code, out, err = oeb("show", finished, env={"COLUMNS": "20", "TERM": "dumb"})
    assert (code, err) == (0, "") and len(out.splitlines()[0]) > 80, "never wrapped"


def test_it_is_instant(finished: str) -> None:
    """Summaries are small files: no library is loaded for tables that are not read."""
    program = (
        "import sys; from oeb_ray.cli.main import main; code = main(sys.argv[1:]);"
        "print([name for name in ('pyarrow', 'numpy', 'ray', 'rich') if name in sys.modules], code, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program, "show", finished], capture_output=True, text=True)
    assert ended.stderr.strip() == "[] 0"
