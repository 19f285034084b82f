"""`oeb import`: a run folder of the public tool becomes a run here, with its evidence, and the same figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, score, settings_for, storage
from oeb_ray.cli.main import main
from oeb_ray.providers.registry import run_name
from oeb_ray.stored import StoredRun, runs_at
from tests.helpers import SCHEMA, SmallCorpus, make_pdf_corpus

NAME = run_name("datalab")
COST = {
    "usd": 1.4, "source": "cost_breakdown.final_cost_cents", "tokens_in": None, "tokens_out": None, "credits": None,
    "wall_s": 172.4, "attempts": 1, "billed_out_of_band": False,
}  # fmt: skip
FAILED = "doc 00001 [x]"


def record_of(result: Any, error: dict[str, Any] | None) -> dict[str, Any]:
    """A record as the public tool writes it."""
    return {
        "result": result,
        "raw": {"status": "complete"},
        "error": error,
        "provider": "datalab",
        "cost": COST if error is None else COST | {"usd": None, "billed_out_of_band": True},
        "job_id": "32RBrjAbYxN0yDlOF__lDQ" if error is None else None,
        "schema_sent": SCHEMA,
        "run_manifest": {
            "timeout_s": 1800, "settings": settings_for("datalab"), "model": None, "timed_out": error is not None,
            "conventions_applied": False, "captured_at": "2026-09-18T15:06:13",
        },
    }  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_pdf_corpus(tmp_path / "corpus", documents=12)


@pytest.fixture
def old(corpus: SmallCorpus, tmp_path: Path) -> Path:
    """A finished run folder over the corpus; one document failed, all others read as the system ``bad`` did."""
    folder = tmp_path / "old" / NAME
    for name in ("predictions", "records"):
        (folder / name).mkdir(parents=True)
    settings = {"run": NAME, "provider": "datalab", "settings": settings_for("datalab"), "timeout_s": 1800.0}
    (folder / "settings.json").write_text(
        json.dumps(settings | {"corpus": "huggingface datalab-to/omni_extract_bench"})
    )
    rows = []
    for path in sorted((corpus.predictions / "bad").iterdir()):
        doc_id, prediction = path.stem, json.loads(path.read_text())
        head = {"doc_id": doc_id, "suite": f"suite {int(doc_id[4:9]) % 2}", "provider": "datalab"}
        error = None
        if doc_id == FAILED:
            message = "no answer within 1800 s"
            prediction = {"__error__": f"VendorTimeout: {message}"}
            error = {"type": "VendorTimeout", "status": None, "transient": False, "message": message}
            rows.append(head | {"status": "error", "error": prediction["__error__"]})
        else:
            gold = json.loads((corpus.folder / "gold" / path.name).read_text())
            rows.append(head | {"status": "scored"} | score(prediction, gold, SCHEMA))
        (folder / "predictions" / path.name).write_text(json.dumps(prediction, indent=2))
        (folder / "records" / path.name).write_text(json.dumps(record_of(prediction, error)))
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def imported(old: Path, corpus: SmallCorpus, out: str) -> int:
    return main(["import", str(old), "--out", out, "--manifest", str(corpus.manifest)])


@pytest.mark.parametrize("place", ["folder", pytest.param("s3", marks=pytest.mark.s3)])
def test_a_run_folder_becomes_a_run_with_the_same_figures(
    place: str, old: Path, corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    out = str(tmp_path / "out") if place == "folder" else f"{request.getfixturevalue('s3')}/imported"
    assert imported(old, corpus, out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["12 documents taken over, 12 of them compared, 0 figures differ", f"{out}/{NAME}"]
    (run,) = runs_at(out)
    rows = {row["doc_id"]: row for row in map(json.loads, (old / "scores.jsonl").read_text().splitlines())}
    for row in read_scores(out).to_pylist():
        assert {key: row[key] for key in rows[row["doc_id"]]} == rows[row["doc_id"]]
    assert run.file("summary.json")["scored"] == 11
    assert run.file("usage.json")["usd"] == pytest.approx(11 * 1.4)
    kept = json.loads(storage.read(storage.join(run.address, "records", "doc 00002 [x].json")))
    assert (kept["job_id"], kept["raw"]) == ("32RBrjAbYxN0yDlOF__lDQ", {"status": "complete"})
    assert kept["run_manifest"]["captured_at"] == "2026-09-18T15:06:13"
    assert kept["run_manifest"]["imported_from"] == str(old)
    prediction = storage.read(storage.join(run.address, "predictions", "doc 00002 [x].json"))
    assert prediction == (old / "predictions" / "doc 00002 [x].json").read_bytes(), "byte for byte"
    assert main(["verify", out]) == 0
    assert main(["show", out]) == 0
    assert "$15.40 + 1 unknown" in capsys.readouterr().out


def test_an_imported_run_goes_on_here(old: Path, corpus: SmallCorpus, tmp_path: Path) -> None:
    """Nothing that was paid for is asked again: the same benchmark finds it all done, but for what never was."""
    (old / "records" / "doc 00003 [x].json").unlink()
    assert imported(old, corpus, str(tmp_path / "out")) == 0
    words = ["benchmark", "--providers", "datalab", "--manifest", str(corpus.manifest), "--out", str(tmp_path / "out")]
    assert main([*words, "--score-only", "cluster=inline"]) == 0
    (run,) = runs_at(str(tmp_path / "out"))
    assert run.name == NAME and run.file("usage.json")["documents"] == 11


def test_figures_that_differ_are_reported(
    old: Path, corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(line) for line in (old / "scores.jsonl").read_text().splitlines()]
    rows[0]["accuracy"] += 0.25
    rows[2]["matched_rows"] += 1
    rows[3] = {key: rows[3][key] for key in ("doc_id", "suite", "provider")} | {"status": "error", "error": "x"}
    (old / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert imported(old, corpus, str(tmp_path / "out")) == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"doc 00000 [x]: accuracy: {rows[0]['accuracy']} there, ")
    assert lines[1].startswith("doc 00002 [x]: matched_rows: ") and "more than one way" in lines[1]
    assert lines[2] == "doc 00003 [x]: status: 'error' there, 'scored' here"
    assert lines[3].endswith("3 figures differ")


def test_only_ties_are_no_reason_to_fail(old: Path, corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (old / "scores.jsonl").read_text().splitlines()]
    rows[2]["matched_rows"] += 1
    (old / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert imported(old, corpus, str(tmp_path / "out")) == 0


def test_what_is_left_out_is_named(
    old: Path, corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (old / "records" / "doc 00003 [x].json").unlink()
    for name in ("predictions", "records"):
        (old / name / "elsewhere.json").write_text("{}")
    assert imported(old, corpus, str(tmp_path / "out")) == 0
    shown = capsys.readouterr()
    assert "1 documents are not in the corpus, such as 'elsewhere.json'" in shown.err
    assert "1 predictions have no record, such as 'doc 00003 [x].json'" in shown.err
    assert shown.out.splitlines()[0] == "11 documents taken over, 11 of them compared, 0 figures differ"


def test_the_same_import_again_changes_nothing(old: Path, corpus: SmallCorpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert imported(old, corpus, str(out)) == 0
    before = {path: path.read_bytes() for path in out.rglob("*.json*")}
    assert imported(old, corpus, str(out)) == 0
    assert main(["import", str(old), "--out", str(out)]) == 0, "the output knows its corpus"
    assert {path: path.read_bytes() for path in out.rglob("*.json*")} == before


def test_evidence_of_any_shape_is_taken_over(old: Path, corpus: SmallCorpus, tmp_path: Path) -> None:
    """Records are another tool's: what is missing or of another type stays unknown."""
    odd: list[Any] = [
        {},
        [],
        {"error": "cut off", "cost": 7},
        {"cost": {"usd": "dear", "attempts": 1.5}, "error": None},
    ]
    odd.append({"error": {"type": 5, "status": "x", "message": None}, "result": {"__error__": 5}, "run_manifest": []})
    for number, record in enumerate(odd):
        (old / "records" / f"doc {number:05} [x].json").write_text(json.dumps(record))
    (old / "records" / "doc 00005 [x].json").write_text("{")
    (old / "predictions" / "doc 00006 [x].json").unlink()
    assert imported(old, corpus, str(tmp_path / "out")) in (0, 4)
    run = StoredRun(str(tmp_path / "out"), NAME)
    assert run.file("usage.json")["documents"] == 12
    rows = {row["doc_id"]: row for row in read_scores(run.address).to_pylist()}
    assert rows["doc 00002 [x]"]["error"] == "VendorError: no prediction recorded"
    assert rows["doc 00004 [x]"]["status"] == "error" and rows["doc 00000 [x]"]["status"] == "scored"
    assert rows["doc 00006 [x]"]["status"] == "scored", "its record holds the result"
    assert main(["verify", str(tmp_path / "out")]) == 0


def test_what_cannot_be_taken_over_is_refused_before_anything_is_written(
    old: Path, corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(said: str, folder: Path, out: str = "out") -> None:
        assert imported(folder, corpus, str(tmp_path / out)) == 2
        shown = capsys.readouterr()
        assert said in shown.err and shown.out == ""

    refused("settings.json is not there; give the folder of one run", old.parent)
    settings = (old / "settings.json").read_text()
    (old / "settings.json").write_text('{"run": 5, "timeout_s": "x"}')
    refused("4 problems", old)
    (old / "settings.json").write_text(settings.replace('"datalab"', '"datlab"'))
    refused("did you mean datalab?", old)
    (old / "settings.json").write_text(settings)
    assert not (tmp_path / "out").exists()
    assert imported(old, corpus, str(tmp_path / "out")) == 0
    capsys.readouterr()
    (old / "predictions" / "doc 00002 [x].json").write_text("{}")
    refused("holds other predictions of 1 documents, such as 'doc 00002 [x]'", old)
    other = make_pdf_corpus(tmp_path / "other", documents=2)
    assert main(["import", str(old), "--out", str(tmp_path / "out"), "--manifest", str(other.manifest)]) == 2
    assert "is of corpus" in capsys.readouterr().err
    assert main(["import", str(old), "--out", str(tmp_path / "none")]) == 2
    assert "does not say where its corpus is; give --manifest" in capsys.readouterr().err


def test_settings_that_this_version_does_not_know_are_kept(
    old: Path, corpus: SmallCorpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = json.loads((old / "settings.json").read_text())
    settings["settings"]["tier"] = "gold"
    settings["run"] = "datalab-00000000"
    (old / "settings.json").write_text(json.dumps(settings))
    assert imported(old, corpus, str(tmp_path / "out")) == 0
    assert "this version would not run it so" in capsys.readouterr().err
    (run,) = runs_at(str(tmp_path / "out"))
    assert (run.name, run.file("summary.json")["settings"]["tier"]) == ("datalab-00000000", "gold")
