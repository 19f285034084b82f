"""The package against recorded answers of the public reference.

``OEB_TEST_VECTORS`` names another folder with a file of the same name.
"""

import datetime as dt
import json

import pytest

from oeb_ray.scoring import value_f1

from ..field_matching.test_vectors import lines_of

FILE = "extractbench_vectors.jsonl"
TODAY = dt.date(2026, 11, 29)  # two-digit years are read by it
FIGURES = (
    *("precision", "recall", "f1", "perfect", "matched_cells", "expected_cells", "predicted_cells"),
    *("expected_rows", "predicted_rows", "value_incomplete", "grounded_incomplete"),
)
GROUNDING = {"page": ("page", "page_counts"), "word": ("grounded", "grounded_counts")}
SCORED, NO_OBJECT, NO_SCORE = "scored", "output is no object", "nothing to score against"


def answer(vector):
    """The figures and feedback of a vector, or why there are none."""
    output = vector["output"]
    if vector.get("output_text") is not None:
        try:
            output = json.loads(vector["output_text"])
        except ValueError:
            return NO_OBJECT, None
    elif vector["outcome"] == "malformed":
        return NO_OBJECT, None
    limit = vector.get("options", {}).get("assignment_cell_limit", 100_000_000)
    try:
        figures = value_f1.score(
            output,
            vector["expected"],
            vector["schema"],
            today=TODAY,
            field_rules=vector.get("field_rules"),
            citations=vector.get("citations"),
            most_pairs=limit,
            feedback=True,
        )
    except value_f1.OutputNotObject:
        return NO_OBJECT, None
    except value_f1.Ungradable:
        return NO_SCORE, None
    return SCORED, figures


def recorded_outcome(vector):
    if vector["outcome"] in ("scored", "list_root"):
        return SCORED
    return NO_SCORE if vector["verifier_reward"] is None else NO_OBJECT


def disagreement(vector):
    """What differs from the recorded answer, as a text; None if nothing does."""
    if vector["outcome"] == "not_object" and isinstance(vector["output"], list):
        return None  # a verifier refuses lists; the library reads them as objects where it can
    outcome, got = answer(vector)
    if outcome != recorded_outcome(vector):
        return f"{outcome}, not {recorded_outcome(vector)}"
    if outcome != SCORED:
        return None
    recorded = vector["metrics"]
    wrong = {name: (got[name], recorded[name]) for name in FIGURES if not close(got[name], recorded[name])}
    for name, (ratios, counts) in GROUNDING.items():
        mine = [got[f"{name}_{part}"] for part in ("precision", "recall", "f1")]
        theirs = list((recorded[ratios] or dict.fromkeys(("precision", "recall", "f1"))).values())
        if not all(map(close, mine, theirs)):
            wrong[name] = (mine, theirs)
        if counts in recorded:
            mine = [got[f"{name}_{part}"] for part in ("correct", "expected", "claims")]
            if mine != recorded[counts]:
                wrong[counts] = (mine, recorded[counts])
    if wrong:
        return f"(got, recorded): {wrong}"
    cells = [cell[:3] for cell in got["feedback"]]
    listed = [(cell["reference_path"], cell["output_path"], cell["outcome"]) for cell in vector["feedback"]]
    if cells != listed:
        return f"feedback: {sorted(map(str, set(cells) ^ set(listed))) or 'the same in another order'}"
    credits = [cell.f1_credit for cell in got["feedback"]]
    if not all(close(mine, cell["f1_credit"]) for mine, cell in zip(credits, vector["feedback"], strict=True)):
        return "credits differ"
    return None if close(sum(credits), got["f1"]) else f"credits add up to {sum(credits)}, not {got['f1']}"


def close(one, other):
    if one is None or other is None or isinstance(one, (bool, int)):
        return one == other
    return abs(one - other) <= 1e-12


def test_extractbench_vectors():
    vectors = lines_of(FILE)
    wrong = [f"{vector['id']}: {said}" for vector in vectors if (said := disagreement(vector))]
    assert not wrong, f"{len(wrong)} of {len(vectors)} disagree:\n" + "\n".join(wrong)


@pytest.mark.parametrize("part", ["f1", "feedback", "word_f1"])
def test_a_wrong_answer_to_an_extractbench_vector_is_seen(part, monkeypatch):
    vector = next(v for v in lines_of(FILE) if v["id"] == "ground/rows_reordered")
    assert disagreement(vector) is None
    true = value_f1.score

    def wrong(*args, **kwargs):
        figures = true(*args, **kwargs)
        return figures | {part: figures[part][::-1] if part == "feedback" else 0.25}

    monkeypatch.setattr(value_f1, "score", wrong)
    assert disagreement(vector)
