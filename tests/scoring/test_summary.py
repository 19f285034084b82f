"""Intervals hold the truth as often as they say, and no more than one family of ties in twenty has a winner."""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oeb_ray.scoring import summary
from oeb_ray.scoring.summary import BETTER, FEWEST, TIED, TOO_FEW, averaged, estimate, half_widths, pairs, ranks

CORPORA = 10_000
all_of_them = pytest.mark.skipif(
    not os.environ.get("OEB_STATISTICS"), reason="takes a minute; make statistics, or OEB_STATISTICS=1"
)


def _ones(dice: Any, shape: Any) -> Any:
    return np.where(dice.random(shape) < 0.3, 1.0, dice.beta(5, 2, shape))


def _zeros(dice: Any, shape: Any) -> Any:
    u = dice.random(shape)
    return np.where(u < 0.1, 0.0, np.where(u < 0.3, 1.0, dice.beta(6, 2, shape)))


POPULATIONS: dict[str, tuple[Callable[[Any, Any], Any], float]] = {
    "near one": (lambda dice, shape: dice.beta(9, 1, shape), 0.9),
    "many ones": (_ones, 0.3 + 0.7 * 5 / 7),
    "a tenth zeros": (_zeros, 0.2 + 0.7 * 0.75),
    "two humps": (lambda dice, shape: dice.beta(0.5, 0.5, shape), 0.5),
    "low": (lambda dice, shape: dice.beta(2, 5, shape), 2 / 7),
    "few values": (lambda dice, shape: dice.binomial(8, 0.7, shape) / 8, 0.7),
}


def covered(sums: Any, counts: Any, truth: float) -> float:
    """Share of the corpora whose interval holds the truth."""
    blocks = [slice(start, start + 500) for start in range(0, len(sums), 500)]  # what the processor's cache holds
    held = [abs(sums[one].sum(1) / counts[one].sum(1) - truth) <= half_widths(sums[one], counts[one]) for one in blocks]
    return float(np.concatenate(held).mean())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "a tenth zeros" else all_of_them) for name in POPULATIONS]
)
def test_intervals_hold_the_truth_in_94_to_96_percent_from_the_fewest_documents_on(name: str) -> None:
    draw, truth = POPULATIONS[name]
    sums = draw(np.random.default_rng(1), (CORPORA, FEWEST))
    assert 0.94 <= covered(sums, np.ones_like(sums), truth) <= 0.96


@all_of_them
def test_they_do_with_more_documents_and_in_clusters_and_repeats() -> None:
    dice = np.random.default_rng(2)
    more = _zeros(dice, (CORPORA, 100))
    assert 0.94 <= covered(more, np.ones_like(more), 0.725) <= 0.96
    # Clusters of 1 to 5 documents that share what is hard about them, each read in three repeats.
    counts = dice.integers(1, 6, (CORPORA, 40)).astype(float)
    shared = dice.beta(4, 2, (CORPORA, 40, 1))
    documents = np.clip(shared + dice.normal(0, 0.1, (CORPORA, 40, 5)), 0, 1)
    repeats = (documents[..., None] + dice.normal(0, 0.05, (CORPORA, 40, 5, 3))).mean(-1)
    there = np.arange(5) < counts[..., None]
    truth = float(documents.mean())
    assert 0.94 <= covered((repeats * there).sum(-1), counts, truth) <= 0.96
    alone = (repeats * there).reshape(CORPORA, -1), there.reshape(CORPORA, -1).astype(float)
    means = alone[0].sum(1) / alone[1].sum(1)
    error = np.sqrt((((alone[0] - means[:, None]) * alone[1]) ** 2).sum(1)) / alone[1].sum(1)
    assert (np.abs(means - truth) <= 1.96 * error).mean() < 0.85, "as documents of their own they would be too sure"


def test_below_the_fewest_documents_there_is_none_for_it_would_not_hold() -> None:
    sums = _zeros(np.random.default_rng(1), (2_000, 12))
    assert covered(sums, np.ones_like(sums), 0.725) < 0.94
    assert estimate({f"d{n}": 0.5 + n / 100 for n in range(FEWEST - 1)}).interval is None


def test_of_six_equal_runs_one_family_in_twenty_at_most_has_a_winner() -> None:
    dice = np.random.default_rng(3)
    hard = dice.beta(6, 2, (CORPORA, FEWEST, 1))
    runs = np.where(dice.random((CORPORA, FEWEST, 6)) < 0.4, 1.0, np.clip(hard + dice.normal(0, 0.1, hard.shape), 0, 1))
    ones = np.ones((CORPORA, FEWEST))
    least = np.min(
        [summary.p_values(runs[..., a] - runs[..., b], ones) for a in range(6) for b in range(a + 1, 6)], axis=0
    )
    assert 0.02 <= (least <= 0.05 / 15).mean() <= 0.05, "Holm's first step decides whether there is any winner"


def figures(values: Any) -> dict[str, float]:
    return {f"d{number:03}": float(value) for number, value in enumerate(values)}


def test_pairs_are_better_tied_or_too_few() -> None:
    dice = random.Random(5)
    base = [dice.betavariate(6, 2) for _ in range(60)]
    runs = {
        "low": figures(value * 0.8 for value in base),
        "high": figures(base),
        "same": figures(value + dice.gauss(0, 0.01) for value in base),
        "short": dict(list(figures(base).items())[: FEWEST - 1]),
    }
    found = {(one.a, one.b): one for one in pairs(runs)}
    assert found["low", "high"].outcome == BETTER and found["low", "high"].winner == "high"
    assert found["high", "same"].outcome == TIED and found["high", "same"].winner is None
    short = found["low", "short"]
    assert (short.outcome, short.documents, short.p, short.interval) == (TOO_FEW, FEWEST - 1, None, None)
    assert short.difference is not None and short.difference < 0
    assert ranks(list(runs), list(found.values())) == {"low": 3, "high": 1, "same": 1, "short": None}


def test_a_pair_is_compared_on_the_documents_that_both_have() -> None:
    """BR-21: failing on what is hard does not pay."""
    a = figures([1.0] * 40 + [0.5] * 40)
    b = figures([1.0] * 40)
    assert estimate(a).mean == 0.75 and estimate(b).mean == 1.0
    (pair,) = pairs({"A": a, "B": b})
    assert (pair.documents, pair.difference, pair.p, pair.outcome) == (40, 0.0, 1.0, TIED)
    assert ranks(["A", "B"], [pair]) == {"A": 1, "B": 1}


def test_holm_goes_on_after_the_first_and_stops_at_the_first_that_fails() -> None:
    dice = np.random.default_rng(7)
    base = dice.beta(6, 2, 50)
    runs = {f"r{n}": figures(base - 0.2 * (n == 2) - dice.normal(0, 0.02, 50)) for n in range(3)}
    found = {(one.a, one.b): one.outcome for one in pairs(runs)}
    assert found == {("r0", "r1"): TIED, ("r0", "r2"): BETTER, ("r1", "r2"): BETTER}


def test_means_of_little_are_told_without_a_warning() -> None:
    """BR-22"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate({}) == (None, None, 0, 0)
        assert estimate({"x": 0.5}) == (0.5, None, 1, 1)
        assert estimate(figures([0.75] * 40)) == (0.75, (0.75, 0.75), 40, 40)
        assert estimate(figures([1.0] * 39 + [0.0])).interval is not None
        assert pairs({"a": {}, "b": figures([1.0])})[0][2:] == (0, 0, None, None, None, TOO_FEW, None)
        (alike,) = pairs({"a": figures([0.75] * 40), "b": figures([0.5] * 40)})
        assert (alike.difference, alike.p, alike.winner) == (0.25, 0.0, "a")
        assert pairs({"only": {}}) == [] and ranks(["only"], []) == {"only": 1}


def test_intervals_depend_on_the_documents_alone() -> None:
    values = figures(np.random.default_rng(8).beta(6, 2, 70))
    shuffled = dict(random.Random(1).sample(list(values.items()), len(values)))
    assert estimate(values) == estimate(shuffled) == estimate(values, {})
    assert estimate(values) != estimate(values, seed=1)
    groups = {doc_id: f"g{number // 2}" for number, doc_id in enumerate(values)}
    assert estimate(values, groups).clusters == 35
    assert averaged([{"b": 0.25, "a": 1.0}, {"a": 0.5}]) == {"a": 0.75, "b": 0.25}


def test_many_documents_take_blocks_and_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = figures(np.random.default_rng(9).beta(6, 2, 200))
    whole = estimate(values)
    monkeypatch.setattr(summary, "CACHED_WEIGHTS", 5_000)
    blocks = estimate(values)
    assert blocks.interval is not None and whole.interval is not None
    assert math.isclose(blocks.interval.low, whole.interval.low, rel_tol=1e-9)
