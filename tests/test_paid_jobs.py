"""Whole jobs that pay: the driver, pools in this process and on Ray, the simulator as vendor."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import run
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from oeb_ray.errors import AccountFailure, LimitReached, MissingCredential, StorageError
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.conftest import ACCESS_KEY, SECRET_KEY
from tests.helpers import KEY, Silent, SmallCorpus, called, contents, make_pdf_corpus, start_oeb
from tests.proxies import S3Proxy, endpoint

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


def words_of(
    corpus: SmallCorpus, simulator: Simulator, out: Path, *more: str, vendors: tuple[str, ...] = VENDORS
) -> list[str]:
    addresses = [f"providers.{vendor}.address='{simulator.url}/{vendor}'" for vendor in vendors]
    return [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", f"provider=[{','.join(vendors)}]", *addresses,
        "providers.datalab.poll_interval=0.1", f"storage.root='{out}'", "cluster=inline", *more,
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
    assert isinstance(error.value, MissingCredential)
    assert not submissions(simulator, "datalab")
    assert not (tmp_path / "out").exists()


def buying(words: list[str], simulator: Simulator, sent: signal.Signals) -> tuple[Any, int]:
    """A driver that gets a signal while it buys, and how many documents were bought by then."""
    driver = start_oeb("benchmark", *words)
    while driver.poll() is None and sum(submissions(simulator, "datalab").values()) < 4:
        time.sleep(0.02)
    driver.send_signal(sent)
    return driver, sum(simulator.stats()["datalab"]["accepted"].values())


@pytest.mark.parametrize(
    ("sent", "code", "cluster"),
    [
        (signal.SIGTERM, 143, "inline"),
        (signal.SIGHUP, 129, "inline"),
        pytest.param(signal.SIGINT, 130, "local", marks=pytest.mark.ray),
    ],
)
def test_an_interrupt_records_what_is_in_flight_and_sends_nothing_more(
    corpus, simulator, tmp_path, sent, code, cluster
) -> None:
    """BR-53"""
    simulator.dials("datalab", latency=1.5)
    words = words_of(corpus, simulator, tmp_path / "out", f"cluster={cluster}", vendors=("datalab",))
    driver, bought = buying(words, simulator, sent)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == code, err
    assert err.rstrip().endswith("the same command goes on where this ended") and "Traceback" not in err
    accepted = sum(simulator.stats()["datalab"]["accepted"].values())
    assert bought <= accepted <= min(bought + 10, 19), "what had its place already may still be sent"
    assert len(list((tmp_path / "out").glob("*/records/*"))) == accepted
    assert not faults(simulator.log(), [str(tmp_path / "out")], {"datalab": Limits(10)})


def test_a_second_interrupt_ends_at_once_and_the_job_is_polled_later(corpus, simulator, tmp_path) -> None:
    """BR-53"""
    simulator.dials("datalab", latency=20.0)
    words = words_of(corpus, simulator, tmp_path / "out", "limit=6", vendors=("datalab",))
    driver, _ = buying(words, simulator, signal.SIGINT)
    time.sleep(0.5)
    driver.send_signal(signal.SIGINT)
    driver.communicate(timeout=10)
    assert driver.returncode == 130
    assert not list((tmp_path / "out").glob("*/records/*"))


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


@pytest.mark.s3
def test_keys_of_the_storage_that_expire_in_the_middle_lose_nothing(
    corpus, simulator, s3, tmp_path, monkeypatch
) -> None:
    """What was bought waits for the storage; what was not is asked for by the next job."""
    file, key = tmp_path / "credentials", "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n"
    file.write_text(key.format(ACCESS_KEY, SECRET_KEY))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    proxy = S3Proxy(os.environ["AWS_ENDPOINT_URL"])
    expired = threading.Event()
    proxy.rule = lambda request: "ExpiredToken" if expired.is_set() else ""
    for vendor in VENDORS:
        simulator.dials(vendor, latency=0.5)
    words = words_of(corpus, simulator, Path("OUT"), "limit=10")
    words = [word.replace("'OUT'", f"{s3}/{tmp_path.name}") for word in words]

    def expire() -> None:
        while sum(sum(submissions(simulator, vendor).values()) for vendor in VENDORS) < 6:
            time.sleep(0.02)
        expired.set()
        time.sleep(2)
        expired.clear()

    watching = threading.Thread(target=expire)
    with endpoint(proxy.url):
        watching.start()
        with contextlib.suppress(StorageError):
            job(words)
        watching.join()
        assert proxy.seen["ExpiredToken"]
        outcome = job(words)
    proxy.close()
    assert [summary["accuracy"] for summary in outcome.summaries.values()] == [1.0, 1.0], "none is lost or unknown"
    assert all(set(submissions(simulator, vendor).values()) == {1} for vendor in VENDORS)
    limits = {"datalab": Limits(10), "mistral": Limits(5)}
    assert not faults(simulator.log(), [f"{s3}/{tmp_path.name}"], limits)


def test_the_ledger_tells_what_was_paid_and_what_was_paid_again(corpus, simulator, tmp_path) -> None:
    simulator.dials("mistral", drop_in_answer=1.0)
    words = words_of(corpus, simulator, tmp_path / "out", "limit=5")
    job(words)
    simulator.dials("mistral", drop_in_answer=0.0)
    job([*words, "retry_failed=transient"])
    code, out, err = called("ledger", str(tmp_path / "out"))
    assert code == 0 and not err
    lines = out.splitlines()
    assert lines[0].split() == ["account", "attempts", "free", "unpriced", "usd", "credits"]
    (paid,) = (line.split()[1:] for line in lines if line.startswith("mistral@"))
    assert paid == ["10", "0", "5", "0.1500", "-"], "five answers were lost, and nobody knows their price"
    assert "asked more than once where an earlier attempt may have been billed: 5 documents" in lines
    assert sum("again after: Unreachable" in line for line in lines) == 6, "the reason's total, and a line for each"
    code, out, _ = called("ledger", str(tmp_path / "out"), "--by", "run")
    assert code == 0 and len(out.split("\n\n")) == 2 and KEY not in out
    code, out, _ = called("ledger", str(tmp_path / "out"), "--json")
    assert len([json.loads(line) for line in out.splitlines()]) == 15
    code, _, err = called("ledger", str(tmp_path / "none"))
    assert code == 2 and "there is no such folder" in err
