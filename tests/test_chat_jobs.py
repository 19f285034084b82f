"""Jobs that ask chat models: a killed driver, useless answers and lost ones, held against the vendor's own log."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest

from oeb_ray import storage
from oeb_ray.ledger import entries, total
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.helpers import KEY, make_pdf_corpus, start_oeb

DOCS = 24
DIALS = {
    "latency": 0.3, "latency_spread": 1.0, "price": 0.03, "talk": 0.1, "empty": 0.05, "cut_short": 0.05,
    "drop_in_answer": 0.05, "error_400": 0.05,
}  # fmt: skip


@pytest.mark.chaos
def test_what_a_killed_job_paid_for_is_in_its_records_and_bought_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    corpus = make_pdf_corpus(tmp_path / "corpus", DOCS)
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
    out = str(tmp_path / "out")
    with Simulator(Profile.from_dict(profile | {"vendors": {"openrouter": DIALS}})) as simulator:
        words = [
            "--providers", "org/one", "org/two", "--manifest", str(corpus.manifest), "--out", out, "cluster=inline",
            f"providers.openrouter.address='{simulator.url}/openrouter'",
        ]  # fmt: skip
        driver = start_oeb("benchmark", *words)
        while driver.poll() is None and sum(simulator.stats()["openrouter"]["accepted"].values()) < DOCS:
            time.sleep(0.02)
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        driver = start_oeb("benchmark", *words)
        _, err = driver.communicate(timeout=110)
        assert driver.returncode == 0, err
        assert faults(simulator.log(), [out], {"openrouter": Limits(5)}) == []
        billed = simulator.stats()["openrouter"]["billed"]
    made = entries(out)
    paid = total(entry.attempt for entry in made)
    assert paid.usd is not None and paid.usd <= billed + 1e-9 <= paid.usd + 0.03 * paid.unpriced + 1e-6
    asked_again = {(e.run, e.attempt.doc_id) for e in made if e.attempt.outcome == "no usable answer"}
    assert asked_again, "useless answers are asked for again"
    keys = [key for key in storage.listed(out) if "/records/" in key]
    assert len(keys) == 2 * DOCS
    for key in keys:
        record = json.loads(storage.read(storage.join(out, key)))
        stated = sum(attempt["usd"] or 0 for attempt in record["attempts"])
        assert (record["cost"]["usd"] or 0) == pytest.approx(stated)
