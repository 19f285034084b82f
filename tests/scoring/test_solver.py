"""scipy's solver, loaded alone."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
from scipy import optimize

from oeb_ray.scoring import solver


@pytest.fixture(autouse=True)
def fresh() -> None:
    solver._solver.cache_clear()


@pytest.mark.parametrize("alone", [True, False])
def test_it_is_the_same_with_and_without_the_rest_of_scipy(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not alone:
        monkeypatch.setattr(solver, "find_spec", lambda name: None)
    dice = np.random.default_rng(5)
    for shape in ((1, 1), (3, 7), (7, 3), (6, 6)):
        costs = dice.integers(0, 4, shape).astype(float)
        for ours, theirs in zip(
            solver.linear_sum_assignment(costs), optimize.linear_sum_assignment(costs), strict=True
        ):
            assert ours.tolist() == theirs.tolist()
    assert (solver._solver() is optimize.linear_sum_assignment) is not alone


def test_it_needs_nothing_else_of_scipy() -> None:
    assert importlib.util.find_spec("scipy") is not None
    code = "import sys; from oeb_ray.scoring.solver import linear_sum_assignment as solve; solve([[1.0, 2.0]]);"
    code += "print('scipy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
