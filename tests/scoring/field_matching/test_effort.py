"""How much work the scorer does, as counts: keys made, cells solved, pairs priced one by one. Never as seconds."""

import copy
import subprocess
import sys

import pytest

from oeb_ray.scoring.field_matching import assign, batch, pricing, score, tree
from tests.bench.corpora import document


@pytest.fixture
def solved(monkeypatch):
    """Cells of every matrix given to the solver."""
    cells = []
    solve = assign.linear_sum_assignment
    monkeypatch.setattr(assign, "linear_sum_assignment", lambda costs: cells.append(costs.size) or solve(costs))
    return cells


def scored(one, **more):
    return score(one["pred"], one["gold"], one["schema"], **more)


@pytest.mark.parametrize("verdicts", [False, True])
def test_every_distinct_text_is_keyed_once(monkeypatch, verdicts):
    made = []
    key = tree.text_key
    monkeypatch.setattr(tree, "text_key", lambda value: made.append(value) or key(value))
    monkeypatch.setattr(tree, "_KEY_OF_TEXT", {})
    scored(document("keys", "nested", 30, 1), verdicts=verdicts)
    assert len(made) == len(set(made)) > 100


def test_keys_known_from_another_document_are_not_made_again(monkeypatch):
    one = document("again", "flat", 50, 1)
    scored(one)
    monkeypatch.setattr(tree, "text_key", lambda value: pytest.fail(f"{value} was keyed again"))
    scored(copy.deepcopy(one))


def test_rows_that_are_plainly_each_others_best_are_paired_without_the_solver(solved):
    one = document("plain", "flat", 200, 1)
    one["pred"] = copy.deepcopy(one["gold"])
    one["pred"]["rows"].reverse()
    assert scored(one)["accuracy"] == 1.0
    assert solved == []


def test_a_table_is_solved_whole_at_most_once(solved):
    for shape in ("flat", "twins"):
        solved.clear()
        one = document(shape, shape, 300, 1)
        scored(one)
        whole = len(one["pred"]["rows"]) * len(one["gold"]["rows"])
        assert [cells for cells in solved if cells * assign.WIDE > whole] in ([], [whole])


def test_nested_rows_are_not_priced_pair_by_pair(monkeypatch, solved):
    """Of all pairs only the tentative ones go through the recursion, and few inner clashes through the solver."""
    priced = []
    worth = pricing.Prices.worth
    monkeypatch.setattr(pricing.Prices, "worth", lambda self, *pair: priced.append(pair) or worth(self, *pair))
    one = document("nested", "nested", 120, 1)
    scored(one)
    pairs = len(one["pred"]["rows"]) * len(one["gold"]["rows"])
    inner = sum(len(row["entries"]) for row in one["gold"]["rows"])
    assert len(priced) < 20 * inner < pairs
    assert sum(solved) < 3 * pairs


def test_inner_rows_meet_in_one_count_of_overlaps(monkeypatch):
    calls = []
    count = batch.all_weights
    monkeypatch.setattr("oeb_ray.scoring.field_matching.large.all_weights", lambda *a: calls.append(a) or count(*a))
    scored(document("nested", "nested", 120, 1))
    assert 1 <= len(calls) <= 3


def test_scoring_loads_no_part_of_numpy_that_it_does_not_need():
    """numpy.ma takes longer to load than most documents to score; some ways to call np.unique load it."""
    code = (
        "import sys; from oeb_ray.scoring.field_matching import score; from tests.bench.corpora import document\n"
        "for shape in ('flat', 'nested', 'twins'):\n"
        "    one = document(shape, shape, 60, 1); score(one['pred'], one['gold'], one['schema'])\n"
        "print('numpy' in sys.modules, 'numpy.ma' in sys.modules, 'scipy.optimize' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
