"""Scoring and memory: giants are scored apart and in turn, and one that does not fit costs nobody else a row."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, records, storage
from oeb_ray.cluster.contract import Ended, Lost
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.cost import APART, expected
from tests.helpers import SmallCorpus, corpus_of, gold_of, overrides, run_inline

GIANT = "giant"


def rows(seed: int, count: int) -> dict[str, Any]:
    """A table whose rows all resemble each other."""
    dice, names = random.Random(seed), ("first", "second", "third", "fourth")
    return {"rows": [{name: dice.choice("abcde") for name in names} for _ in range(count)]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    """200 documents, and one that is larger than all of them."""
    golds = {f"doc {number:03}": gold_of(number) for number in range(200)} | {GIANT: rows(1, 1500)}
    texts = {doc_id: json.dumps(gold) for doc_id, gold in golds.items()} | {GIANT: json.dumps(rows(2, 1500))}
    return corpus_of(tmp_path_factory.mktemp("corpus"), golds, {"good": texts})


class Small(InlineCluster):
    """A place with little memory, which keeps what it was asked to score."""

    def __init__(self, memory: int) -> None:
        super().__init__()
        self.memory, self.asked = memory, list[records.PartTask]()

    def score(self, task: records.PartTask) -> None:
        self.asked.append(task)
        super().score(task)


def figures(out: str) -> dict[str, Any]:
    table = read_scores(out, columns=["doc_id", "status", "error", "accuracy"])
    return {row["doc_id"]: row for row in table.to_pylist()}


def test_one_document_that_does_not_fit_is_one_error_row(corpus: SmallCorpus, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    place = Small(20_000_000)
    run_inline(overrides(corpus, out, systems=("good",)), place)
    found = figures(out)
    assert {found[doc_id]["accuracy"] for doc_id in found if doc_id != GIANT} == {1.0} and len(found) == 201
    memory = expected(*2 * [(corpus.folder / "gold" / f"{GIANT}.json").stat().st_size]).memory
    assert found[GIANT]["error"] == f"scoring it takes about {memory / 1e9:.1f} GB of memory, more than there is"
    apart = [task for task in place.asked if task.limit is not None]
    assert len(apart) == 1 and len(place.asked) > 1, "no second try, and the others are scored as always"
    run_inline(overrides(corpus, out, "rescore=true", systems=("good",)))
    assert figures(out)[GIANT]["accuracy"] > 0.5, "where there is room it is scored"


def test_documents_scored_apart_give_the_same_bytes(small: SmallCorpus, tmp_path: Path) -> None:
    words = ["suites=['suite 0']", "verdicts=true"]
    for name, place in (("together", InlineCluster()), ("apart", Lossy())):
        run_inline(overrides(small, str(tmp_path / name), *words, systems=("good",)), place)
    together, apart = (
        {
            key: storage.read(str(tmp_path / name / key))
            for key in storage.listed(str(tmp_path / name))
            if "scores" in key
        }
        for name in ("together", "apart")
    )
    assert together == apart and together


class Lossy(InlineCluster):
    """Every part's first worker is lost, as one that runs out of memory is."""

    def wait(self, seconds: float) -> list[Ended]:
        task = self._waiting[0] if self._waiting else None
        if isinstance(task, records.PartTask) and task.limit is None:
            self._waiting.popleft()
            return [Lost(task, "OutOfMemoryError")]
        return super().wait(seconds)


def test_the_dearest_is_scored_first_and_says_what_it_takes(corpus: SmallCorpus, tmp_path: Path) -> None:
    place = Small(10**10)
    run_inline(overrides(corpus, str(tmp_path / "out"), "score_only=false", systems=("good",)), place)
    run_inline(overrides(corpus, str(tmp_path / "out"), "rescore=true", systems=("good",)), place := Small(10**10))
    first = place.asked[0]
    assert GIANT in {item.doc_id for item in first.items} and first.limit is None
    assert first.memory == max(task.memory for task in place.asked) > 0
    assert first.memory * APART < 10**10 and dataclasses.replace(first, limit=1).limit == 1


@pytest.mark.parametrize("size", [0, 1_000, 1_000_000])
def test_what_is_larger_costs_more(size: int) -> None:
    smaller, larger = expected(size, size), expected(size + 1_000, size + 1_000)
    assert smaller.seconds < larger.seconds and smaller.memory < larger.memory
