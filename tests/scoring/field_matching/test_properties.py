"""What holds for any two documents."""

import copy
import random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oeb_ray.scoring.field_matching import canon_key, score

from . import generated

COUNTS = ("matched", "misread", "unfound", "fabricated", "invented_item", "invented_field")


def examples(count):
    return settings(deadline=None, derandomize=True, database=None, max_examples=count)


steady = examples(100)
words = st.sampled_from([member for group in generated.GROUPS for member in group])
scalars = st.one_of(
    words,
    st.none(),
    st.booleans(),
    st.integers(-50, 10**20),
    st.floats(),
    st.text(max_size=6),
    st.text("0159.,-+ ()[]$%/\"'\u2013\u2019\u00b2", max_size=8),
)
names = st.sampled_from(generated.NAMES)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=12,
)
trees = st.dictionaries(names, values, max_size=4)
open_map = {"type": "object", "additionalProperties": True}
schemas = st.sampled_from(
    [
        {"type": "object"},
        {"properties": {name: {} for name in generated.NAMES}},
        {
            "properties": {
                name: {"type": "array", "items": {"properties": {"a": {}, "b": {}}}} for name in generated.NAMES
            }
        },
        {"properties": {"a": {}, "b": {"items": {"items": {}}}, "c": open_map, "id": {"properties": {"a": open_map}}}},
    ]
)
seeds = st.integers(0, 10**9)


def text(value):
    return repr(value)  # tells 1, 1.0 and True apart, and takes nan for nan


def damaged(document, seed):
    return generated.damaged(random.Random(seed), copy.deepcopy(document), 0.4, root=True)


def places_of(value, at=()):
    """Where the scalars that state something are, as keys and indices."""
    if isinstance(value, (dict, list)):
        for step, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places_of(member, (*at, step))
    elif value is not None and not (isinstance(value, str) and not value.strip()):
        yield at


def replaced(document, place, value):
    document = copy.deepcopy(document)
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    return document


def without_wrappers(value):
    """No envelope and no sidecar can arise: the names used for both are gone."""
    if isinstance(value, dict):
        return all(name != "value" and not name.endswith("_meta") and without_wrappers(m) for name, m in value.items())
    return all(without_wrappers(member) for member in value) if isinstance(value, list) else True


@given(trees, schemas)
@steady
def test_a_perfect_prediction_is_perfect(document, schema):
    result = score(copy.deepcopy(document), document, schema)
    perfect = 1.0 if result["total"] else 0.0
    assert [result[name] for name in ("accuracy", "precision", "recall", "f1")] == [perfect] * 4
    assert result["matched"] == result["total"] == result["asserted"]
    assert result["gt_rows"] == result["pred_rows"] == result["matched_rows"]


@given(trees, schemas, seeds, seeds)
@steady
def test_the_order_of_free_arrays_and_of_keys_changes_no_figure(document, schema, seed, turn):
    rng = random.Random(turn)

    def turned(value):
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in rng.sample(list(value), len(value))}
        return [turned(member) for member in rng.sample(value, len(value))] if isinstance(value, list) else value

    pred = damaged(document, seed)
    first, again = score(pred, document, schema), score(turned(pred), turned(document), schema)
    if not first["skipped_open_maps"]:
        assert text(first) == text(again)
    for result in (first, again):
        result.pop("skipped_open_maps")  # they keep the indices they came with
    assert text(first) == text(again)


@given(trees, schemas, seeds, st.randoms(use_true_random=False))
@steady
def test_correcting_a_value_never_lowers_accuracy(document, schema, seed, rng):
    # Same frame, some values changed; then one of them is put right.
    places = list(places_of(document))
    assume(places and without_wrappers(document))
    wrong = [place for place in places if rng.random() < 0.5] or places[:1]
    pred = document
    for place in wrong:
        pred = replaced(pred, place, rng.choice([None, "other", 17, "Acme Ltd", "2024-03-05"]))
    original = document
    place = rng.choice(wrong)
    for step in place:
        original = original[step]
    corrected = replaced(pred, place, original)
    before, after = score(pred, document, schema), score(corrected, document, schema)
    assert after["accuracy"] >= before["accuracy"]
    assert after["matched"] >= before["matched"]


@given(scalars, scalars)
@examples(200)
def test_two_values_match_exactly_if_their_keys_are_equal(a, b):
    assume(canon_key(a) and canon_key(b))
    equal = canon_key(a) == canon_key(b)
    schema = {"properties": {"v": {}}}
    for pred, gold in ((a, b), (b, a)):
        result = score({"v": pred}, {"v": gold}, schema)
        assert (result["matched"], result["misread"]) == (int(equal), int(not equal))
        in_list = score({"v": [pred]}, {"v": [gold]}, schema)
        assert (in_list["matched"], in_list["unfound"]) == (int(equal), int(not equal))


def test_spellings_of_one_value_are_equal_and_different_values_differ():
    keys = [{canon_key(member) for member in group} for group in generated.GROUPS]
    assert all(len(spellings) == 1 for spellings in keys), keys
    assert len(set.union(*keys)) == len(keys)


@given(trees, schemas, st.randoms(use_true_random=False))
@steady
def test_leaving_a_value_out_costs_exactly_that_value(document, schema, rng):
    whole = score(document, document, schema)
    places = list(places_of(document))
    assume(places and without_wrappers(document))
    place = rng.choice(places)
    result = score(replaced(document, place, None), document, schema)
    stated = whole["total"]
    if result["asserted"] == stated:  # it lies in an open map
        assert result["skipped_open_maps"]
        return
    assert result["asserted"] == stated - 1
    assert (result["matched"], result["unfound"], result["total"]) == (stated - 1, 1, stated)
    assert result["recall"] == (stated - 1) / stated
    assert result["precision"] == (1.0 if stated > 1 else 0.0)


@given(trees, trees, schemas, seeds, st.booleans())
@examples(150)
def test_counts_add_up_and_the_verdicts_tell_the_same(document, other, schema, seed, related):
    pred = damaged(document, seed) if related else other
    before = text((pred, document, schema))
    result = score(pred, document, schema, verdicts=True)
    assert text((pred, document, schema)) == before
    listed = result.pop("verdicts")
    assert text(result) == text(score(pred, document, schema))

    assert sum(result[kind] for kind in COUNTS) == result["total"]
    assert result["asserted"] == result["total"] - result["unfound"]
    found = result["matched"] + result["misread"]
    stated = found + result["unfound"]
    assert result["accuracy"] == (result["matched"] / result["total"] if result["total"] else 0.0)
    assert result["precision"] == (result["matched"] / result["asserted"] if result["asserted"] else 0.0)
    assert result["recall"] == (result["matched"] / stated if stated else 0.0)
    assert result["addresses_found"] == (found / result["total"] if result["total"] else 0.0)
    assert result["addresses_read_right"] == (result["matched"] / found if found else 0.0)
    assert result["matched_rows"] <= min(result["gt_rows"], result["pred_rows"])
    assert result["matching_exact"] is True
    assert result["approximated"] == []

    kinds = [verdict.verdict for verdict in listed]
    assert {kind: kinds.count(kind) for kind in COUNTS} == {kind: result[kind] for kind in COUNTS}
    assert len(listed) == result["total"] + len(result["skipped_open_maps"])
    assert len({verdict.address for verdict in listed}) == len(listed)
    for verdict in listed:
        sides = (verdict.gold_canon is not None, verdict.pred_canon is not None)
        assert verdict.gold_canon == (canon_key(verdict.gold_raw) if sides[0] else None)
        assert verdict.pred_canon == (canon_key(verdict.pred_raw) if sides[1] else None)
        if verdict.verdict in ("matched", "misread"):
            assert sides == (True, True)
            assert (verdict.gold_canon == verdict.pred_canon) == (verdict.verdict == "matched")
        else:
            assert sides == (verdict.verdict == "unfound", verdict.verdict not in ("unfound", "skipped_open_map"))


@given(st.text(max_size=40))
@examples(300)
def test_no_text_that_states_something_has_an_empty_key(value):
    assert bool(canon_key(value)) == bool(value.strip())
