"""Twelve documents by six models of three makers against simulated vendors, stopped in the middle and resumed."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from oeb_ray.cli.main import main
from oeb_ray.config import listed_prices
from oeb_ray.corpus import labelled
from oeb_ray.corpus.pins import load_pins, read_pinned
from oeb_ray.prices import cost
from oeb_ray.providers.registry import PAID
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults

from .extractkit_data import CORD, DOCILE, PINS, lines_of
from .helpers import KEY, ROUNDS, contents, start_oeb

MODELS = {
    "anthropic": ("claude-sonnet-5", "claude-haiku-4-5"),
    "openai": ("gpt-5.6-luna", "gpt-5.4-mini"),
    "google": ("gemini-3.5-flash", "gemini-2.5-flash"),
}
CALLS = 12 * 6


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``corpus/`` with the pinned documents and ``answers/`` with what every model says of them."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / CORD.name).write_bytes(CORD.read_bytes())
    (tmp_path / "docile").symlink_to(DOCILE)
    labelled.make_corpus(read_pinned(load_pins(str(PINS)), str(tmp_path)).docs, str(tmp_path / "corpus"))
    (tmp_path / "answers").mkdir()
    for line in lines_of("replies.jsonl"):
        if line["model"] == "replay-alpha":
            (tmp_path / "answers" / f"{labelled.own_id(line['docId'])}.json").write_text(line["replies"][-1])
    for name in MODELS:
        for variable in PAID[name].credential:
            monkeypatch.setenv(variable, KEY)
    return tmp_path


def words_of(place: Path, out: Path, simulator: Simulator, cluster: str) -> list[str]:
    options = {name: [{"model": model, "evidence": True} for model in models] for name, models in MODELS.items()}
    return [
        "benchmark", "--providers", *MODELS, "--manifest", str(place / "corpus" / "manifest.parquet"),
        "--out", str(out), "--options", json.dumps(options), f"cluster={cluster}",
        "scorer=[field_matching,field_accuracy]",
        *(f"providers.{name}.address='{simulator.url}/{name}'" for name in MODELS),
    ]  # fmt: skip


def finish(words: list[str]) -> None:
    if "cluster=inline" in words:  # in this process, which has loaded everything
        assert main(words) == 0
        return
    driver = start_oeb(*words)
    _, err = driver.communicate(timeout=280)
    assert driver.returncode == 0, err


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("cluster", "how"),
    [
        ("inline", signal.SIGTERM),
        pytest.param("local", signal.SIGKILL, marks=[
            pytest.mark.ray, pytest.mark.skipif(ROUNDS <= 2, reason="takes minutes: make chaos")]),
    ],
)  # fmt: skip
def test_a_sweep_that_is_stopped_and_resumed_has_the_tables_of_one_that_was_not(
    place: Path, tmp_path: Path, cluster: str, how: signal.Signals
) -> None:
    profile = {"answers": str(place / "answers"), "documents": str(place / "corpus" / "docs")}
    vendors = {name: {"latency": 0.3} for name in MODELS}
    with Simulator(Profile.from_dict(profile | {"vendors": vendors})) as simulator:

        def bought() -> int:
            return sum(sum(stats["accepted"].values()) for stats in simulator.stats().values())

        words = words_of(place, tmp_path / "out", simulator, cluster)
        driver = start_oeb(*words)
        while driver.poll() is None and bought() < CALLS // 3:
            time.sleep(0.02)
        assert driver.poll() is None, driver.communicate()[1]
        driver.send_signal(how)
        driver.communicate(timeout=60)
        assert 0 < bought() < CALLS
        finish(words)
        if how == signal.SIGKILL:  # what was under way may have been carried out; it is asked again on demand alone
            finish([*words, "--retry-failed", "all"])
        else:
            assert bought() == CALLS, "nothing is bought twice"
        assert not faults(simulator.log(), [str(tmp_path / "out")], {name: Limits(PAID[name].cap) for name in MODELS})
        finish(words_of(place, tmp_path / "whole", simulator, "inline"))
    resumed = contents(str(tmp_path / "out"))
    assert resumed == contents(str(tmp_path / "whole"))
    summaries = [json.loads(data) for key, data in resumed.items() if key.endswith("field_accuracy/summary.json")]
    assert len(summaries) == 6
    for summary in summaries:
        accuracies = {suite: block["accuracy"] for suite, block in summary["per_suite"].items()}
        assert accuracies == pytest.approx({"cord": 0.764, "docile": 0.953}, abs=5e-4)
        assert summary["scored"] == 12 and summary["mean_iou"] > 0.8
    assert main(["export", str(tmp_path / "whole"), "--format", "extractkit", "--out", str(tmp_path / "results")]) == 0
    (path,) = (tmp_path / "results").iterdir()
    record = json.loads(path.read_text())
    assert record["prices"] == {"date": "2026-07-12"} and len(record["runs"]) == 6
    for run in record["runs"]:
        price = listed_prices("2026-07").of_model(run["model"])
        assert price is not None
        for doc in run["docs"]:
            usage = doc["usage"]
            listed = cost(price, usage["inputTokens"], usage["outputTokens"])
            assert usage["costUSD"] == pytest.approx(listed) and listed and "billedUSD" not in usage
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
