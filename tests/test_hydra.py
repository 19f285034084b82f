"""`python -m jobs.*`: the words of Hydra, its help, and sweeps by -m."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.helpers import KEY, SmallCorpus, make_pdf_corpus, overrides


def job(name: str, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """`python -m jobs.<name>` in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", [name, *words])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"jobs.{name}", run_name="__main__")
    return ended.value.code or 0, *capsys.readouterr()


def test_hydra_jobs_take_the_same_words(
    small: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = overrides(small, tmp_path / "out", "limit=6")
    command = [sys.executable, "-m", "jobs.benchmark", *words]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert ended.returncode == 0, ended.stderr
    assert "12/12 documents  0 failed" in ended.stdout
    code, _, err = job("benchmark", [*words, "nonsense=1"], monkeypatch, capsys)
    assert code == 2 and "nonsense: no such key" in err
    code, out, _ = job("benchmark", [*words, "--cfg", "job"], monkeypatch, capsys)
    assert code == 0 and "replay" in out


def test_jobs_of_one_half_predict_or_score_only(
    small: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = overrides(small, tmp_path / "out", "limit=6", systems=("good",))
    for name, said in (("predict", "6/6 documents  0 failed"), ("score", "1.0000")):
        code, out, _ = job(name, words, monkeypatch, capsys)
        assert code == 0 and said in out
        (folder,) = (tmp_path / "out").glob("replay-*")
        assert (folder / "scores.parquet").exists() == (name == "score")


def test_a_sweep_is_one_plan(
    small: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """-m: jobs that differ in options share the folder and the table; other differences are refused with the key."""
    words = overrides(small, tmp_path / "out", "limit=6", systems=())
    words = [word for word in words if not word.startswith("providers.replay.options")]
    sweep = ["-m", *words, "+providers.replay.system=good,bad"]
    code, out, err = job("benchmark", sweep, monkeypatch, capsys)
    assert code == 0, err
    assert "12/12 documents  0 failed" in out and "runs        2 over 1 adapter" in err
    assert len(list((tmp_path / "out").glob("replay-*"))) == 2
    code, _, err = job("benchmark", [*sweep, "timeout=60,70"], monkeypatch, capsys)
    assert code == 2 and "timeout=70.0 in one job of the sweep, 60.0 in another" in err
    root = Path(__file__).parent.parent
    assert not list(root.glob("multirun*")) and not list(root.glob("outputs"))


def test_a_sweep_of_a_vendors_settings_shares_one_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """-m: what the vendor saw proves that all jobs together never passed the cap."""
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    corpus, out = make_pdf_corpus(tmp_path / "corpus", 12), tmp_path / "out"
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs"),
               "vendors": {"datalab": {"latency": 0.1, "price": 0.03}}}  # fmt: skip
    with Simulator(Profile.from_dict(profile)) as simulator:
        words = [
            "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab]", "cluster=inline",
            f"storage.root='{out}'", f"providers.datalab.address='{simulator.url}/datalab'",
            "providers.datalab.in_flight=3", "providers.datalab.poll_interval=0.05",
        ]  # fmt: skip
        sweep = ["-m", *words, "providers.datalab.mode=fast,balanced,accurate"]
        code, shown, err = job("benchmark", [*sweep, "dry_run=true"], monkeypatch, capsys)
        assert code == 0 and "runs        3 over 1 adapter" in shown and not out.exists(), err
        code, shown, err = job("benchmark", sweep, monkeypatch, capsys)
        assert code == 0, err
        assert shown.count("┏") == 1 and "36/36 documents  0 failed  $1.08" in shown, "one table, one last line"
        assert not faults(simulator.log(), [str(out)], {"datalab": Limits(3)})
        assert simulator.stats()["datalab"]["peak_in_flight"] == 3
    runs = sorted(path.parent.name for path in out.glob("*/summary.json"))
    assert len(runs) == 3
    for name in runs:
        kept = json.loads((out / name / "config.json").read_text())
        assert [each["providers"]["datalab"]["mode"] for each in kept["jobs"]] == ["fast", "balanced", "accurate"]
        assert KEY not in json.dumps(kept)


def test_the_help_shows_an_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown, _ = job("benchmark", ["--help"], monkeypatch, capsys)
    assert code == 0 and "example: python -m jobs.benchmark" in shown and "corpus: cord" in shown


def test_a_report_is_a_job_as_well(
    small: SmallCorpus,
    finished: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = overrides(small, finished, f"pages='{tmp_path}/pages'")
    code, out, err = job("report", words, monkeypatch, capsys)
    assert code == 0, err
    assert out.strip() == f"{tmp_path}/pages/index.html"
    assert (tmp_path / "pages" / "documents" / "89.html").is_file()
