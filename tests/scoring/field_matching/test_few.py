"""Few pairs that compete for the same elements: all choices tried at once come to what trying one by one does."""

import random

import numpy as np
import pytest

from oeb_ray.scoring.field_matching import batch, pricing


@pytest.mark.parametrize("size", range(2, pricing.FEW + 1))
def test_the_best_of_few_pairs_is_that_of_trying_one_by_one(size, monkeypatch):
    monkeypatch.setattr(batch, "BLOCK_CELLS", 1000)
    dice = random.Random(size)
    cells = [(row, column) for row in range(4) for column in range(4)]
    groups = [dice.sample(cells, size) for _ in range(400)]
    worth = [[dice.randint(1, 9) * 1000 + dice.randint(0, 9) for _ in range(size)] for _ in groups]
    rows, columns = (np.array([[pair[side] for pair in group] for group in groups]) for side in (0, 1))
    found = batch._best_of_few(rows, columns, np.array(worth, dtype=np.float64))
    one_by_one = [
        pricing._most([(*pair, value) for pair, value in zip(group, values, strict=True)], 0, frozenset(), frozenset())
        for group, values in zip(groups, worth, strict=True)
    ]
    assert found.tolist() == one_by_one
    assert any(value < sum(values) for value, values in zip(one_by_one, worth, strict=True)), "some are to clash"
