"""The package, and the oracle beside it, against recorded answers of the public reference.

``OEB_TEST_VECTORS`` names another folder with files of the same two names.
"""

import json
import math
import os
from pathlib import Path

import pytest

from oeb_ray.scoring import field_matching

from .. import oracle

DATA = Path(__file__).resolve().parents[2] / "data"
FREE_FIGURES = {"fabricated", "invented_item", "invented_field", "matched_rows"}
METRICS = ("accuracy", "total", "matched")


def lines_of(name):
    path = Path(os.environ.get("OEB_TEST_VECTORS") or DATA) / name
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    assert lines, f"{path} holds no vectors"
    return lines


def plain(value):
    """JSON text of a value that tells 1, 1.0 and true apart, with floats that JSON lacks as Python writes them."""

    def named(value):
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, (list, tuple)):
            return [named(member) for member in value]
        return {key: named(member) for key, member in value.items()} if isinstance(value, dict) else value

    return json.dumps(named(value))


def canon_disagreements(canon_key, vectors):
    for vector in vectors:
        value = float(vector["special"]) if "special" in vector else vector["value"]
        got = canon_key(value)
        if got != vector["key"]:
            yield f"{vector['id']}: {value!r} has the key {got!r}, not {vector['key']!r}"


def score_disagreement(score, vector):
    """What differs from the recorded answer, as a text; None if nothing does."""
    pred = json.loads(vector["pred_text"]) if "pred_text" in vector else vector["pred"]
    try:
        got = score(pred, vector["gt"], vector["schema"], vector["order_matters"], verdicts=True)
    except Exception as error:
        wanted = vector.get("error_type")
        return None if type(error).__name__ == wanted else f"raises {error!r}, not {wanted}"
    if "error_type" in vector:
        return f"raises nothing, not {vector['error_type']}"
    wanted, tie = vector["result"], vector["tie"]
    assert tie in (None, "verdicts", "metrics"), tie
    listed = got.pop("verdicts")
    if list(got) != list(wanted):
        return f"figures {list(got)}"
    compared = METRICS if tie == "metrics" else wanted
    wrong = {name: (got[name], wanted[name]) for name in compared if plain(got[name]) != plain(wanted[name])}
    if wrong:
        return f"(got, recorded): {wrong}"
    if tie is None:
        fields = ("address", "gold_raw", "pred_raw", "gold_canon", "pred_canon", "verdict")
        recorded = [plain([verdict[field] for field in fields]) for verdict in vector["verdicts"]]
        mine = [plain(list(verdict)) for verdict in listed]
        if mine != recorded:
            return f"verdicts: {sorted(set(mine) ^ set(recorded)) or 'the same in another order'}"
    return None


def score_disagreements(score, vectors):
    for vector in vectors:
        wrong = score_disagreement(score, vector)
        if wrong:
            yield f"{vector['id']}: {wrong}"


def told(disagreements, count):
    wrong = list(disagreements)
    return f"{len(wrong)} of {count} disagree:\n" + "\n".join(wrong) if wrong else ""


@pytest.mark.parametrize("canon_key", [field_matching.canon_key, oracle.canon_key], ids=["package", "oracle"])
def test_oeb_canon_vectors(canon_key):
    vectors = lines_of("oeb_canon_vectors.jsonl")
    message = told(canon_disagreements(canon_key, vectors), len(vectors))
    assert not message, message


@pytest.mark.parametrize("score", [field_matching.score, oracle.score], ids=["package", "oracle"])
def test_oeb_score_vectors(score):
    vectors = lines_of("oeb_score_vectors.jsonl")
    message = told(score_disagreements(score, vectors), len(vectors))
    assert not message, message


def test_a_folder_of_vectors_without_lines_fails(tmp_path, monkeypatch):
    (tmp_path / "oeb_canon_vectors.jsonl").write_text("\n")
    monkeypatch.setenv("OEB_TEST_VECTORS", str(tmp_path))
    with pytest.raises(AssertionError, match="no vectors"):
        lines_of("oeb_canon_vectors.jsonl")


def test_a_wrong_answer_is_told_by_its_id():
    vectors = lines_of("oeb_score_vectors.jsonl")
    message = told(score_disagreements(lambda *args, **kwargs: 1 / 0, vectors), len(vectors))
    assert message.startswith(f"{len(vectors)} of {len(vectors)} disagree")
    assert all(vector["id"] in message for vector in vectors)
    assert told(canon_disagreements(str, [{"id": "one", "value": 1.0, "key": "1"}]), 1).endswith("not '1'")


def test_every_kind_of_tie_is_compared_as_far_as_it_goes():
    vector = next(v for v in lines_of("oeb_score_vectors.jsonl") if v.get("tie", "") is None and len(v["verdicts"]) > 1)

    def other_list(*args, **kwargs):
        result = field_matching.score(*args, **kwargs)
        return result | {"verdicts": result["verdicts"][::-1]}

    def other_rows(*args, **kwargs):
        return field_matching.score(*args, **kwargs) | {"gt_rows": -1}

    assert "another order" in score_disagreement(other_list, vector)
    assert score_disagreement(other_list, vector | {"tie": "verdicts"}) is None
    assert "gt_rows" in score_disagreement(other_rows, vector | {"tie": "verdicts"})
    assert score_disagreement(other_rows, vector | {"tie": "metrics"}) is None
