"""Drivers that are killed, and drivers that meet: nothing recorded is asked again, and the bytes are the same."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from oeb_ray import storage
from tests.helpers import ROUNDS, SYSTEMS, SmallCorpus, contents, make_corpus, oeb, overrides, run_inline, start_oeb

LONG = pytest.mark.skipif(ROUNDS <= 2, reason="starts two Rays; make chaos runs it, and test_chaos kills on Ray too")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_corpus(tmp_path_factory.mktemp("corpus"), documents=120)


@pytest.fixture(scope="module")
def undisturbed(corpus: SmallCorpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    run_inline(overrides(corpus, out))
    return contents(str(out))


def words_of(corpus: SmallCorpus, out: Path, tally: Path, cluster: str) -> list[str]:
    latency = 0.2 if cluster == "local" else 0.03  # so that the work outlasts the wait before a kill
    words = overrides(corpus, out, f"providers.replay.tally='{tally}'", f"providers.replay.latency={latency}")
    return ["benchmark", *words, f"cluster={cluster}", *(["cluster.cpus=2"] if cluster == "local" else [])]


def served(tally: Path) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for key in storage.listed(str(tally)):
        system, _, name = key.partition("/")
        counts[system, storage.decode_id(name.rsplit(".", 1)[0])] += 1
    return counts


def recorded(out: Path) -> set[tuple[str, str]]:
    """System and doc_id of every record that is there."""
    found = set()
    for run in out.glob("replay-*"):
        system = next(s for s in SYSTEMS if f'"system": "{s}"' in (run / "settings.json").read_text())
        found |= {(system, storage.decode_id(path.stem)) for path in (run / "records").glob("*.json")}
    return found


@pytest.mark.chaos
@pytest.mark.parametrize("cluster", ["inline", pytest.param("local", marks=[pytest.mark.ray, LONG])])
@pytest.mark.parametrize("seed", range(1 if ROUNDS <= 2 else 10))
def test_killed_again_and_again_then_finished(corpus, undisturbed, tmp_path, seed, cluster) -> None:
    dice = random.Random(seed)
    out, tally = tmp_path / "out", tmp_path / "tally"
    words = words_of(corpus, out, tally, cluster)
    kills = (4 if cluster == "inline" else 1) if ROUNDS <= 2 else 10
    longest = 0.7 if cluster == "inline" else 0.3
    seen: list[tuple[set[tuple[str, str]], Counter[tuple[str, str]]]] = []
    for number in range(kills):
        before = len(recorded(out))
        driver = start_oeb(*words)
        at_work = (
            number == 0 or dice.random() < 0.8
        )  # most kills come while documents are recorded, a few while it starts
        while at_work and driver.poll() is None and len(recorded(out)) == before:
            time.sleep(0.05)
        time.sleep(dice.uniform(0, longest))
        driver.send_signal(signal.SIGKILL)
        driver.communicate()
        there = recorded(out)
        seen.append((there, served(tally)))
    partly = [there for there, _ in seen if 0 < len(there) < len(SYSTEMS) * corpus.documents]
    assert partly, "no kill came in the middle of the work"
    code, _, err = oeb(*words)
    assert code == 0, err
    assert contents(str(out)) == undisturbed
    final = served(tally)
    again = {
        document: (final[document], counts[document])
        for there, counts in seen
        for document in there
        if final[document] > counts[document]
    }
    assert not again, "recorded before a kill, and served after it"
    assert recorded(out) == set(final)
    assert not [
        path for path in out.rglob("*") if path.is_file() and path.suffix == ".json" and not path.stat().st_size
    ]


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(1 if ROUNDS <= 2 else 10))
def test_two_drivers_on_one_folder(corpus, undisturbed, tmp_path, seed) -> None:
    out, tally = tmp_path / "out", tmp_path / "tally"
    words = words_of(corpus, out, tally, "inline")
    first = start_oeb(*words)
    time.sleep(random.Random(seed).uniform(0, 0.5))
    second = start_oeb(*words)
    for driver in (first, second):
        _, err = driver.communicate(timeout=110)
        assert driver.returncode == 0, err
    assert contents(str(out)) == undisturbed
    assert len(recorded(out)) == len(SYSTEMS) * corpus.documents


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_says_how_to_go_on_and_loses_nothing(corpus, undisturbed, tmp_path, sent, code) -> None:
    out, tally = tmp_path / "out", tmp_path / "tally"
    words = words_of(corpus, out, tally, "inline")
    driver = start_oeb(*words)
    while not recorded(out):
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(sent)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == code, err
    assert "the same command goes on" in err
    assert "Traceback" not in err
    before = recorded(out)
    assert oeb(*words)[0] == 0
    assert contents(str(out)) == undisturbed
    assert all(served(tally)[document] == 1 for document in before)
