"""All vendors in one job, with faults on, killed twice: log and store tell the same story, and nothing is lost."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.providers.registry import PAID, paid
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.helpers import KEY, ROUNDS, SmallCorpus, make_pdf_corpus, start_oeb

MODEL = "openai/gpt-5.6-sol"
VENDORS = {**PAID, "openrouter": paid(MODEL)}
DOCUMENTS = 60 if ROUNDS > 2 else 8
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [{"model": "claude-sonnet-5"}],
    "azure-cu": [{"completion_model": "gpt-4.1-mini"}, {"completion_model": "gpt-4.1"}],
    "datalab": [{"mode": "fast"}, {"mode": "accurate"}],
    "extend": [{"array_strategy": "large_array_heuristics"}, {"array_strategy": "large_array_max_context"}],
    "google": [{"model": "gemini-3.5-flash", "evidence": True}],
    "llamaextract": [{"tier": "agentic"}, {"tier": "turbo"}],
    "mistral": [{}],
    "openai": [{"model": "gpt-5.4-mini", "evidence": True}],
    "openrouter": [{"attempts": 2}, {"attempts": 3}],
    "reducto": [{"agentic_table_mode": "max"}, {"agentic_table_mode": "default"}],
}
RUNS = sum(map(len, OPTIONS.values()))
NOISE = {"drop_in_answer": 0.01, "poll_503": 0.01, "poll_drop": 0.01, "malformed": 0.01}
DIALS = {"latency": 0.2, "latency_spread": 1.0, "price": 0.03} | NOISE


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_pdf_corpus(tmp_path / "corpus", DOCUMENTS)


@pytest.fixture
def simulator(corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    for vendor in VENDORS.values():
        for name in vendor.credential:
            monkeypatch.setenv(name, KEY)
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
    with Simulator(Profile.from_dict(profile | {"vendors": dict.fromkeys(OPTIONS, DIALS)})) as opened:
        yield opened


def words_of(corpus: SmallCorpus, simulator: Simulator, out: Path) -> list[str]:
    words = [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", f"provider=[{','.join(OPTIONS)}]", "cluster=inline",
        f"providers.openrouter.models=[{MODEL}]", "providers.azure-cu.endpoint=https://x.example",
        f"storage.root='{out}'",
    ]  # fmt: skip
    words += [f"providers.{name}.address='{simulator.url}/{name}'" for name in OPTIONS]
    words += [f"providers.{name}.poll_interval=1" for name in ("azure-cu", "datalab", "llamaextract", "reducto")]
    return [*words, "--options", json.dumps(OPTIONS)]


def bought(simulator: Simulator) -> int:
    return sum(sum(stats["accepted"].values()) for stats in simulator.stats().values())


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_a_sweep_of_all_vendors_killed_twice_is_whole_after_a_retry(corpus, simulator, tmp_path) -> None:
    words, out = words_of(corpus, simulator, tmp_path / "out"), tmp_path / "out"
    limits = {name: Limits(vendor.cap, lingers=30.0) for name, vendor in VENDORS.items()}
    for share in (0.25, 0.6):
        driver = start_oeb("benchmark", *words)
        while driver.poll() is None and bought(simulator) < share * RUNS * DOCUMENTS:
            time.sleep(0.05)
        assert driver.poll() is None, driver.communicate()[1]
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
    for more in ((), ("--retry-failed", "all")):
        driver = start_oeb("benchmark", *words, *more)
        _, err = driver.communicate(timeout=500)
        assert driver.returncode == 0, err
        assert not faults(simulator.log(), [str(out)], limits)
        for name in OPTIONS:
            simulator.dials(name, **dict.fromkeys(NOISE, 0.0))
    runs = [path.parent for path in out.glob("*/summary.json")]
    assert len(runs) == RUNS
    assert {json.loads((run / "summary.json").read_text())["scored"] for run in runs} == {DOCUMENTS}
    assert not [path for path in out.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
