"""The commands and Python of the public benchmark's pages, as its users know them, against the simulator and its hub.

They are written as on those pages; the package's name is all that differs, and `cluster=inline` is added where Ray is
not the point. Polls do not wait the seconds that the vendors' defaults say.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import oeb_ray
from oeb_ray import MissingCredential
from oeb_ray.benchmark import BenchmarkRun, Summaries
from oeb_ray.config import sample_manifest
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import SCHEMA, SmallCorpus, called, make_pdf_corpus, manifest_rows, typed, write_manifest

BIN = Path(sys.executable).parent
REPO = "datalab-to/omni_extract_bench"
KEYS = ("DATALAB_API_KEY", "REDUCTO_API_KEY")
INLINE = ["cluster=inline"]

# Counts as in the pages' example: 9 of 17 addresses match, 16 are asserted, the gold has 11.
GOLD = {
    "waybill": "WB-20", "sent": "2025-02-03", "weight": 310.5,
    "parcels": [
        {"code": "K1", "text": "Blue kettle", "pieces": 12, "price": 8.25},
        {"code": "K7", "text": "Red lamp", "pieces": 3, "price": 40.0},
    ],
}  # fmt: skip
PRED = {
    "waybill": "wb 20", "sent": "3 February 2025", "weight": "310.50", "insured_by": "Norne", "unit": "kg",
    "parcels": [
        {"code": "K7", "text": "red lamp", "pieces": 3, "price": "40.00"},
        {"code": "K1", "pieces": 12, "price": 8.52},
        {"code": "Z9", "text": "Pallet", "pieces": 1, "price": 15.0},
    ],
}  # fmt: skip
WAYBILL = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("waybill", "sent", "insured_by")},
        "weight": {"type": "number"},
        "parcels": {"type": "array", "items": {"type": "object", "properties": {
            name: {} for name in ("code", "text", "pieces", "price")}}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    """A corpus of the page's layout: pdfs/, gold/, manifest.parquet."""
    made = make_pdf_corpus(tmp_path_factory.mktemp("hub"), documents=6)
    (made.folder / "docs").rename(made.folder / "pdfs")
    rows = [{**row, "doc_path": row["doc_path"].replace("docs/", "pdfs/")} for row in manifest_rows(made)]
    write_manifest(made.manifest, rows)
    shutil.rmtree(made.predictions / "bad")
    return made


@pytest.fixture(scope="module")
def simulator(corpus: SmallCorpus) -> Iterator[Simulator]:
    hub = {REPO: str(corpus.folder), "someone/their-corpus": str(corpus.folder)}
    profile = {"answers": str(corpus.folder / "gold"), "documents": str(corpus.folder / "pdfs"), "hub": hub,
               "vendors": {"datalab": {"price": 0.03}, "reducto": {}}}  # fmt: skip
    with Simulator(Profile.from_dict(profile)) as opened:
        yield opened


@pytest.fixture
def place(corpus: SmallCorpus, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the files that the commands name, and an environment that leads to the simulator."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("pred", PRED), ("gold", GOLD), ("schema", WAYBILL)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    shutil.copy(sorted((corpus.folder / "pdfs").iterdir())[0], tmp_path / "invoice.pdf")
    shutil.copytree(corpus.folder, tmp_path / "my" / "corpus")
    shutil.copytree(corpus.predictions / "good", tmp_path / "my-predictions")
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    monkeypatch.setenv("HF_ENDPOINT", f"{simulator.url}/hub")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hf" / "hub"))
    for vendor in ("datalab", "reducto"):
        monkeypatch.setenv(f"{vendor.upper()}_API_KEY", "canary-4711")
        monkeypatch.setenv(f"OEB_{vendor.upper()}_ADDRESS", f"{simulator.url}/{vendor}")
    monkeypatch.setattr("oeb_ray.paid.PaidCall.sleep", hurried)
    simulator.reset()
    return tmp_path


async def hurried(call: Any, seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.05))


@pytest.fixture(scope="module")
def dataset(simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder ``benchmark`` that the card's `hf download` makes."""
    folder = tmp_path_factory.mktemp("card")
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HF_ENDPOINT": f"{simulator.url}/hub",
           "HF_HOME": str(folder / "hf")}  # fmt: skip
    command = f"hf download {REPO} --repo-type dataset --local-dir benchmark"
    subprocess.run(["bash", "-c", command], cwd=folder, env=env, check=True, capture_output=True)
    return folder / "benchmark"


def shell(command: str, code: int = 0) -> str:
    """Standard output of a command in a process of its own."""
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=110)
    assert ended.returncode == code, ended.stderr
    return ended.stdout


def submissions(simulator: Simulator) -> int:
    stats = simulator.stats()
    return sum(sum(stats[vendor]["submissions"].values()) for vendor in ("datalab", "reducto"))


# --- the API page -------------------------------------------------------------------------------------------------


def test_the_worked_example_in_python_and_by_command(place: Path) -> None:
    from oeb_ray import score

    wanted = {"accuracy": 0.5294117647058824, "precision": 0.5625, "recall": 0.8181818181818182,
              "f1": 0.6666666666666666}  # fmt: skip
    result = score(PRED, GOLD, WAYBILL)
    assert {key: result[key] for key in wanted} == wanted
    printed = json.loads(typed("oeb score --pred pred.json --gt gold.json --schema schema.json"))
    assert {key: printed[key] for key in wanted} == wanted
    assert list(printed)[:4] == list(wanted)


def test_predict_in_python(place: Path, simulator: Simulator) -> None:
    from oeb_ray import score
    from oeb_ray.harness import predict

    record = predict("datalab", "invoice.pdf", SCHEMA, mode="accurate", poll_interval=0.1)
    assert record.keys() >= {"result", "raw", "cost", "error", "run_manifest"}
    assert record["error"] is None
    assert score(record["result"], json.loads(next(Path("my/corpus/gold").glob("*00000*")).read_text()), SCHEMA)


def test_predict_by_command(place: Path) -> None:
    record = json.loads(
        typed("""oeb predict --provider datalab --doc invoice.pdf --schema schema.json \\
    --options '{"mode": "accurate"}'""")
    )
    assert record["error"] is None and record["provider"] == "datalab" and record["cost"]["usd"] == 0.03


def test_benchmark_run_in_python(place: Path, simulator: Simulator) -> None:
    fast = {"datalab": {"poll_interval": 0.1}, "reducto": {"poll_interval": 1}}
    summary = BenchmarkRun(["datalab", "reducto"], limit=5, options=fast, overrides=INLINE).execute()
    assert [name.partition("-")[0] for name in summary] == ["datalab", "reducto"]
    assert all(one["documents"] == one["scored"] == 5 for one in summary.values())
    assert summary[next(iter(summary))]["accuracy"] > 0.5


def test_the_benchmark_as_shown(place: Path, simulator: Simulator) -> None:
    shell("oeb benchmark --out runs/ --limit 1 --providers datalab reducto")
    assert sorted(path.name for path in Path("runs").iterdir() if path.is_dir() and "-" in path.name) == [
        "datalab-f46415c9", "reducto-e54d3a1d",
    ]  # fmt: skip
    settings = json.loads(Path("runs/datalab-f46415c9/settings.json").read_text())
    assert settings["settings"] == {"mode": "balanced", "base_url": "https://www.datalab.to", "poll_interval": 5.0}
    assert (settings["timeout_s"], settings["corpus"]) == (1800.0, f"huggingface {REPO}")
    what_a_benchmark_writes(Path("runs/datalab-f46415c9"))
    before = submissions(simulator)
    typed("oeb benchmark --out runs/ --limit 1 --providers datalab reducto -y")
    assert submissions(simulator) == before, "safe to run twice"


RATES = ("accuracy precision recall misread_rate unfound_rate fabricated_rate invented_item_rate "
         "invented_field_rate").split()  # fmt: skip
SCORE = ("doc_id suite provider status accuracy precision recall f1 total matched misread unfound fabricated "
         "invented_item invented_field asserted addresses_found addresses_read_right gt_rows pred_rows matched_rows "
         "matching_exact approximated skipped_open_maps").split()  # fmt: skip
VERDICT = "address gold_raw pred_raw gold_canon pred_canon verdict".split()
COST = "usd source tokens_in tokens_out credits wall_s attempts billed_out_of_band".split()
MANIFEST = "timeout_s settings model timed_out conventions_applied captured_at".split()


def what_a_benchmark_writes(folder: Path) -> None:
    """The files and keys of the page, of one document."""
    summary = json.loads((folder / "summary.json").read_text())
    counts = ["documents", "scored", "coverage"]
    assert list(summary) == ["run", "provider", "settings", *counts, *RATES, "per_suite"]
    assert all(list(suite) == [*counts, *RATES] for suite in summary["per_suite"].values())
    (row,) = map(json.loads, (folder / "scores.jsonl").read_text().splitlines())
    assert list(row) == SCORE and row["status"] == "scored"
    (record,) = (json.loads(path.read_text()) for path in (folder / "records").iterdir())
    assert record.keys() >= {"result", "raw", "error", "provider", "cost", "job_id", "schema_sent", "run_manifest"}
    assert record["cost"].keys() >= set(COST) and record["run_manifest"].keys() >= set(MANIFEST)
    (prediction,) = (folder / "predictions").iterdir()
    assert json.loads(prediction.read_text())["invoice_id"]
    typed(f"oeb export {folder}")
    (verdicts,) = (folder / "verdicts").iterdir()
    assert verdicts.name == f"{row['doc_id']}.jsonl"
    lines = [json.loads(line) for line in verdicts.read_text().splitlines()]
    assert len(lines) == row["total"] and all(list(line) == VERDICT for line in lines)
    assert [["k", "lines"], ["i", 0], ["k", "sku"]] in [line["address"] for line in lines]


def test_settings_per_provider_are_runs_of_their_own(place: Path) -> None:
    typed("""oeb benchmark \\
  --providers datalab reducto \\
  --options '{"datalab":  [{"mode": "balanced"}, {"mode": "accurate"}],
              "reducto": [{"agentic_table_mode": "max"},
                          {"agentic_table_mode": "default"}]}' \\
  --out runs/ --limit 1 cluster=inline""")
    runs = [path.name for path in Path("runs").iterdir() if path.name.startswith(("datalab", "reducto"))]
    assert len(runs) == 4 and {"datalab-f46415c9", "datalab-01a72762", "reducto-e54d3a1d"} < set(runs)


@pytest.mark.parametrize("corpus_words", ["--manifest my/corpus/manifest.parquet", "--repo someone/their-corpus"])
def test_a_corpus_of_ones_own(place: Path, corpus_words: str) -> None:
    typed(f"oeb benchmark --providers datalab {corpus_words} cluster=inline --limit 1 -y")
    named = json.loads(Path("runs/corpus.json").read_text())["corpus"]
    assert named in (f"{place}/my/corpus/manifest.parquet", "huggingface someone/their-corpus")
    code, _, err = called("benchmark", "--providers", "datalab")
    assert code == 2 and "choose another output" in err


def test_providers_and_their_settings(place: Path) -> None:
    from oeb_ray.harness import ALL_PROVIDERS, PROVIDERS, settings_for

    listed = typed("oeb providers").split()
    assert {*PROVIDERS, "openai/gpt-5.6-sol"} <= {name.strip(",") for name in listed}
    shown = typed("oeb providers datalab")
    for option in ("mode", "balanced", "base_url", "https://www.datalab.to", "poll_interval", "5.0"):
        assert option in shown
    assert PROVIDERS == ["azure-cu", "datalab", "extend", "llamaextract", "mistral", "reducto"]
    assert {*PROVIDERS, "anthropic", "pdftext", "replay"} < set(ALL_PROVIDERS)
    assert settings_for("datalab") == {"mode": "balanced", "base_url": "https://www.datalab.to", "poll_interval": 5.0}
    assert settings_for("datalab", {"mode": "accurate"})["mode"] == "accurate"


# --- the dataset card ---------------------------------------------------------------------------------------------

JOIN = """
import pathlib
import polars as pl

mine = pathlib.Path("my-predictions").resolve()
files = sorted(mine.glob("*.json"))
preds = pl.DataFrame({"doc_id": [f.stem for f in files],
                      "pred_path": [str(f) for f in files]})

(pl.read_parquet("benchmark/manifest.parquet")
   .join(preds, on="doc_id")
   .write_parquet("jobs.parquet"))
"""
READ = """
import polars as pl

scores = pl.read_parquet("run/scores.parquet")
graded = scores.filter(pl.col("status") == "scored")
print(f"{graded['accuracy'].mean():.2f} over {len(graded)} of {len(scores)} documents")
"""


def test_score_your_own_predictions(place: Path, dataset: Path) -> None:
    Path("benchmark").symlink_to(dataset)
    sorted(Path("my-predictions").iterdir())[2].unlink()  # an inner join scores the subset that is there
    exec(JOIN, {})
    typed("oeb score --root benchmark --manifest jobs.parquet --out run/ --jobs 4")
    assert run_python(READ) == "1.00 over 5 of 5 documents\n"
    scores = pl.read_parquet("run/scores.parquet")
    assert scores["suite"].n_unique() == 2, "suite rides through"
    assert pl.read_parquet("run/verdicts.parquet").height > 50


def run_python(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(text, {})
    return out.getvalue()


def test_or_predict_with_the_harness(place: Path, dataset: Path, simulator: Simulator) -> None:
    Path("benchmark").symlink_to(dataset)
    predict = """oeb predict --root benchmark --manifest benchmark/manifest.parquet \\
            --out preds/ --provider datalab"""
    typed(predict)
    typed("oeb score   --root benchmark --manifest preds/manifest.parquet --out run/")
    assert run_python(READ) == "1.00 over 6 of 6 documents\n"
    scores = pl.read_parquet("run/scores.parquet")
    assert set(scores["provider"]) == {"datalab"} and set(scores["run"]) == {"datalab-f46415c9"}
    carried = pl.read_parquet("benchmark/manifest.parquet").select("doc_id", "gt_path", "suite").sort("doc_id")
    assert pl.read_parquet("preds/manifest.parquet").select("doc_id", "gt_path", "suite").sort("doc_id").equals(carried)
    assert submissions(simulator) == 6
    typed(predict)
    assert submissions(simulator) == 6, "resumed, not bought again"


# --- before any call ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "oeb predict --provider datalab --doc invoice.pdf --schema schema.json",
        "oeb predict --root my/corpus --manifest my/corpus/manifest.parquet --out preds/ --provider datalab",
        "oeb benchmark --out runs/ --limit 1 --providers datalab reducto",
        "oeb benchmark --providers datalab --manifest my/corpus/manifest.parquet",
        "oeb benchmark --providers datalab --repo someone/their-corpus",
        "oeb benchmark --providers datalab openai/gpt-5.6-sol claude",
        "oeb predict --provider gpt --doc invoice.pdf --schema schema.json",
    ],
)
def test_without_keys_commands_refuse_before_any_call(
    place: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    for key in (*KEYS, "OPENROUTER_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    code, out, err = called(*shlex.split(command)[1:])
    assert (code, out) == (2, "")
    assert re.search(r"set \w+_API_KEY", err)
    assert submissions(simulator) == 0 and not simulator.stats()["hub"]
    assert not Path("runs").exists() and not Path("preds").exists()


def test_without_keys_python_refuses_before_any_call(
    place: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATALAB_API_KEY")
    with pytest.raises(MissingCredential):
        oeb_ray.predict("datalab", "invoice.pdf", SCHEMA)
    with pytest.raises(MissingCredential):
        BenchmarkRun(["datalab"]).execute()
    assert submissions(simulator) == 0 and not simulator.stats()["hub"]


# --- BenchmarkRun, where the pages say less -----------------------------------------------------------------------


def test_provider_runs_share_a_pool_of_the_providers_size(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sets = {"datalab": [{"mode": "fast"}, {"mode": "accurate"}]}
    for keys in (True, False):
        if not keys:
            monkeypatch.delenv("DATALAB_API_KEY")
        made = BenchmarkRun(
            ["datalab", "reducto", "pdftext"], options=sets, predict_workers={"datalab": 4}, score_only=not keys
        )
        pools = {pool.provider: pool for pool in made.provider_runs}
        assert {name: (pool.cap, len(pool.runs)) for name, pool in pools.items()} == {
            "datalab": (4, 2), "reducto": (3, 1), "pdftext": (None, 1),
        }  # fmt: skip


def test_describe_calls_nobody_and_downloads_nothing(
    place: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in KEYS:
        monkeypatch.delenv(key)
    made = BenchmarkRun(["datalab", "reducto"], limit=2)
    text = made.describe()
    assert "datalab-f46415c9" in text and "mode='balanced'" in text and f"huggingface {REPO}, not fetched yet" in text
    here = BenchmarkRun(["datalab"], manifest="my/corpus/manifest.parquet", limit=2).describe()
    assert "datalab-f46415c9" in here and "2 documents selected of 6" in here and "\x1b" not in here
    assert submissions(simulator) == 0 and not simulator.stats()["hub"]
    assert not Path("runs").exists()
    monkeypatch.setenv("DATALAB_API_KEY", "canary-4711")
    BenchmarkRun(["pdftext"], out="other", limit=1, overrides=INLINE).execute()
    fetched = simulator.stats()["hub"]["file"]
    assert "2 documents selected of 6" in made.describe()
    assert simulator.stats()["hub"]["file"] == fetched


def test_confirm_sees_the_plan_and_may_decline(place: Path, simulator: Simulator) -> None:
    seen: list[str] = []
    made = BenchmarkRun(["datalab"], manifest="my/corpus/manifest.parquet", overrides=INLINE)
    assert made.execute(confirm=lambda text: bool(seen.append(text))) == {}
    assert "datalab-f46415c9" in seen[0]
    assert submissions(simulator) == 0 and not Path("runs").exists()


def test_a_notebook_runs_a_benchmark_and_shows_a_table(
    place: Path, simulator: Simulator, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where a loop runs in the thread that a cell runs in, with a vendor and without."""

    async def cell() -> tuple[Any, Any, Any]:
        made = BenchmarkRun(["pdftext", "datalab"], manifest="my/corpus/manifest.parquet", limit=3, overrides=INLINE)
        return made.execute(), oeb_ray.read_scores("runs"), oeb_ray.read_verdicts("runs", verdict="unfound")

    summary, scores, verdicts = asyncio.run(cell())
    table = summary._repr_html_()
    assert "<td>datalab-f46415c9</td><td>3</td><td>3</td><td>1.0000</td><td>1.0000</td>" in table
    assert "<th>accuracy</th><th>precision</th><th>recall</th>" in table
    assert isinstance(summary, dict) and summary["datalab-f46415c9"]["accuracy"] == 1.0
    assert (scores.num_rows, submissions(simulator)) == (6, 3) and verdicts.num_rows == 0
    shown = capfd.readouterr()
    assert "\x1b" not in shown.out + shown.err and "\r" not in shown.out + shown.err


def test_a_table_in_a_notebook_shows_names_as_they_are() -> None:
    """BR-24: nothing in it is markup."""
    table = Summaries({"<img src=x onerror=alert(1)>": {"documents": 1, "scored": 0, "coverage": 0.0}})._repr_html_()
    assert "<img" not in table and "&lt;img src=x" in table and "<th>accuracy" not in table


def test_a_stopped_account_raises_once_all_else_is_done(place: Path, simulator: Simulator) -> None:
    simulator.dials("datalab", key="another")
    try:
        made = BenchmarkRun(["datalab", "pdftext"], manifest=sample_manifest(), limit=2, overrides=INLINE)
        with pytest.raises(oeb_ray.AccountFailure):
            made.execute()
    finally:
        simulator.dials("datalab", key="")
    assert json.loads(Path("runs/pdftext-44136fa3/summary.json").read_text())["scored"] == 2
