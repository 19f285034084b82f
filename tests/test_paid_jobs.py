"""Whole jobs that pay: the driver, pools in this process and on Ray, the simulator as vendor."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import run
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from oeb_ray.errors import AccountFailure, LimitReached, MissingCredential
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import KEY, Silent, SmallCorpus, contents, make_pdf_corpus, start_oeb

ROUNDS = int(os.environ.get("OEB_CHAOS_ROUNDS", "1"))
VENDORS = ("datalab", "mistral")


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_pdf_corpus(tmp_path / "corpus", documents=20)


@pytest.fixture
def simulator(corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    dials = {"latency": 0.1, "price": 0.03}
    profile = {
        "answers": str(corpus.predictions / "good"),
        "documents": str(corpus.folder / "docs"),
        "vendors": {"datalab": dials, "mistral": dials | {"state_cost": True}},
    }
    with Simulator(Profile.from_dict(profile)) as opened:
        yield opened


def words_of(corpus: SmallCorpus, simulator: Simulator, out: Path, *more: str) -> list[str]:
    return [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab,mistral]",
        f"providers.datalab.address='{simulator.url}/datalab'", "providers.datalab.poll_interval=0.1",
        f"providers.mistral.address='{simulator.url}/mistral'", f"storage.root='{out}'", "cluster=inline", *more,
    ]  # fmt: skip


def job(words: list[str], cluster: Any = None) -> run.Outcome:
    plan = run.plan_job(read_job(composed(words)))
    own = cluster or InlineCluster()
    try:
        return run.execute(plan, own, Silent())
    finally:
        if cluster is None:
            own.close()


def submissions(simulator: Simulator, vendor: str) -> Counter[str]:
    return Counter(simulator.stats()[vendor]["submissions"])


def test_a_job_pays_once_for_each_document_and_tells_what_it_cost(corpus, simulator, tmp_path) -> None:
    outcome = job(words_of(corpus, simulator, tmp_path / "out"))
    assert not outcome.stopped
    assert [summary["accuracy"] for summary in outcome.summaries.values()] == [1.0, 1.0]
    for vendor in VENDORS:
        assert set(submissions(simulator, vendor).values()) == {1}
    usage = [(tmp_path / "out" / name / "usage.json").read_text() for name in outcome.summaries]
    assert all('"usd": 0.6' in text for text in usage)
    job(words_of(corpus, simulator, tmp_path / "out"))
    assert all(set(submissions(simulator, vendor).values()) == {1} for vendor in VENDORS)
    assert simulator.stats()["datalab"]["peak_in_flight"] <= 10
    assert simulator.stats()["mistral"]["peak_in_flight"] <= 5
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_two_option_sets_share_one_account_and_its_cap(corpus, simulator, tmp_path) -> None:
    more = ["providers.datalab.options=[{mode: fast},{mode: balanced}]", "providers.datalab.in_flight=3"]
    outcome = job(words_of(corpus, simulator, tmp_path / "out", *more))
    assert len(outcome.summaries) == 3
    assert simulator.stats()["datalab"]["peak_in_flight"] <= 3
    assert set(submissions(simulator, "datalab").values()) == {2}


def test_a_refused_account_stops_alone_and_its_documents_are_not_recorded(corpus, simulator, tmp_path) -> None:
    simulator.dials("datalab", key="another")
    outcome = job(words_of(corpus, simulator, tmp_path / "out"))
    ((name, error),) = outcome.stopped.items()
    assert name.startswith("datalab") and isinstance(error, AccountFailure)
    assert not list((tmp_path / "out" / name).glob("records/*"))
    assert sum(submissions(simulator, "datalab").values()) <= 1
    assert next(s for n, s in outcome.summaries.items() if n.startswith("mistral"))["scored"] == 20
    simulator.dials("datalab", key="")
    assert not job(words_of(corpus, simulator, tmp_path / "out")).stopped


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_limit_in_dollars_stops_its_run(corpus, simulator, tmp_path, vendor) -> None:
    """Also where the vendor states no price and what was spent can only be reckoned."""
    simulator.dials("mistral", state_cost=False)
    more = [f"providers.{vendor}.max_usd=0.15", f"providers.{vendor}.usd_per_doc=0.03"]
    outcome = job(words_of(corpus, simulator, tmp_path / "out", *more))
    (error,) = outcome.stopped.values()
    assert isinstance(error, LimitReached)
    assert simulator.stats()[vendor]["billed"] == pytest.approx(0.15)
    again = job(words_of(corpus, simulator, tmp_path / "out", *more))
    assert again.stopped and simulator.stats()[vendor]["billed"] == pytest.approx(0.15), "what was spent counts"


def test_a_pair_that_disagrees_is_polled_or_named_and_never_bought_again(corpus, simulator, tmp_path) -> None:
    words = words_of(corpus, simulator, tmp_path / "out")
    names = list(job(words).summaries)
    for name in names:
        next((tmp_path / "out" / name / "predictions").iterdir()).write_text('{"edited": "by hand"}')
    first = job([*words, "rescore=true"])
    assert [summary["documents"] for summary in first.summaries.values()] == [19, 19]
    second = job(words)
    scored = {name.partition("-")[0]: summary["scored"] for name, summary in second.summaries.items()}
    assert scored == {"datalab": 20, "mistral": 19}, "a known job is polled; what one call answered is gone"
    assert all(set(submissions(simulator, vendor).values()) == {1} for vendor in VENDORS)
    (kept,) = (tmp_path / "out").glob("mistral-*/predictions-before/*.json")
    assert "edited" in kept.read_text()


def test_a_missing_key_is_said_before_any_call(corpus, simulator, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY")
    with pytest.raises(Exception, match="MISTRAL_API_KEY") as error:
        job(words_of(corpus, simulator, tmp_path / "out"))
    assert error.value.exit_code == 2 and MissingCredential
    assert not submissions(simulator, "datalab")
    assert not (tmp_path / "out").exists()


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("cluster", ["inline", "local"] if ROUNDS > 1 else ["inline"])  # on Ray in `make chaos`
def test_killed_drivers_buy_nothing_twice(corpus, simulator, tmp_path, cluster, seed) -> None:
    """What was in flight is polled by its job id, or named as unknown; one retry makes the tables whole."""
    words = words_of(corpus, simulator, tmp_path / "out", f"cluster={cluster}")
    words += ["cluster.cpus=1"] if cluster == "local" else []
    for vendor in VENDORS:
        simulator.dials(vendor, latency=1.0)
    for number in range(1 if ROUNDS == 1 else 2):
        driver = start_oeb("benchmark", *words)
        asked = sum(sum(submissions(simulator, vendor).values()) for vendor in VENDORS)
        while driver.poll() is None and sum(sum(submissions(simulator, v).values()) for v in VENDORS) < asked + 3:
            time.sleep(0.05)
        time.sleep(0.3 + 0.4 * ((seed + number) % 3))
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        if cluster == "local":
            time.sleep(6)  # until Ray's own processes have noticed
    for vendor in VENDORS:
        simulator.dials(vendor, latency=0.1)
    driver = start_oeb("benchmark", *words)
    _, err = driver.communicate(timeout=110)
    assert driver.returncode == 0, err
    for vendor in VENDORS:
        assert set(submissions(simulator, vendor).values()) == {1}, vendor
    unknown = [path for path in (tmp_path / "out").glob("*/records/*.json") if '"Unreachable"' in path.read_text()]
    driver = start_oeb("benchmark", *words, "--retry-failed")
    _, err = driver.communicate(timeout=110)
    assert driver.returncode == 0, err
    bought = sum(sum(submissions(simulator, vendor).values()) for vendor in VENDORS)
    assert 40 <= bought <= 40 + len(unknown), "what was unknown may never have arrived; all else is bought once"
    job(words_of(corpus, simulator, tmp_path / "whole"))
    assert contents(str(tmp_path / "out")) == contents(str(tmp_path / "whole"))


@pytest.mark.ray
def test_ray_gives_the_same_bytes_and_keeps_the_cap(corpus, simulator, tmp_path) -> None:
    from oeb_ray.cluster.rays import RayCluster

    cluster = RayCluster(cpus=1)
    try:
        outcome = job(words_of(corpus, simulator, tmp_path / "ray"), cluster)
    finally:
        cluster.close()
    assert not outcome.stopped
    assert simulator.stats()["datalab"]["peak_in_flight"] <= 10
    assert all(set(submissions(simulator, vendor).values()) == {1} for vendor in VENDORS)
    simulator.reset()
    job(words_of(corpus, simulator, tmp_path / "inline"))
    assert contents(str(tmp_path / "ray")) == contents(str(tmp_path / "inline"))
