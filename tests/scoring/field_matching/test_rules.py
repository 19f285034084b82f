"""One promise of METRIC_SPEC.md per test: the odd rules, the errors, the limits and the examples of the text."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oeb_ray.scoring import field_matching
from oeb_ray.scoring.field_matching import canon_key, score, tree
from oeb_ray.scoring.field_matching.align import Alignment
from oeb_ray.scoring.field_matching.limits import Limits
from oeb_ray.scoring.field_matching.schema import Trie
from oeb_ray.scoring.field_matching.tree import Vocabulary, Walker

CASES = Path(__file__).resolve().parents[2] / "data" / "oeb_cases"
METRIC_SPEC = Path(field_matching.__file__).with_name("METRIC_SPEC.md")
ANY = {"properties": {"v": {}}}
TABLE = {"properties": {"rows": {"type": "array", "items": {"properties": {"a": {}, "b": {}, "c": {}}}}}}


def equal(a, b):
    """Whether two values match, asked of the scorer both ways."""
    there, back = (score({"v": p}, {"v": g}, ANY)["matched"] for p, g in ((a, b), (b, a)))
    assert there == back
    return bool(there)


def kinds(pred, gold, schema, **options):
    """Written addresses to verdicts."""
    verdicts = score(pred, gold, schema, verdicts=True, **options)["verdicts"]
    return {written(verdict.address): verdict.verdict for verdict in verdicts}


def written(address):
    return "".join(f"[{name}]" if kind == "i" else f".{name}" for kind, name in address)[1:]


# --- values -------------------------------------------------------------------------------------------------------


def test_parentheses_and_trailing_hyphens_are_signs_only_with_a_point():
    assert equal("(5)", 5) and equal("(5.0)", -5) and not equal("(5)", -5)
    assert equal("5-", 5) and equal("5.0-", -5) and not equal("5-", -5)


def test_long_integers_are_equal_when_their_floats_are():
    assert equal(9007199254740993, 9007199254740992)
    assert equal("12345678901234567890", 12345678901234567891)
    assert not equal(9007199254740992, 9007199254740990)


def test_slashes_superscripts_and_decimal_commas_fall_away():
    assert equal("1/2", 12) and equal("10\u00b2", 102) and equal("1,5", 15)


def test_a_percent_sign_falls_away_without_dividing():
    assert equal("5%", 5) and not equal(0.5, "50%")


def test_true_is_the_word_and_never_one():
    assert equal(True, "True") and equal(False, "FALSE")
    assert not equal(True, 1) and not equal(False, 0) and not equal(True, "1")


def test_a_small_native_float_differs_from_its_written_out_text():
    assert not equal(1e-05, "0.00001")
    assert canon_key(1e-05) == "1e05" and canon_key("0.00001") == "1e-05"


@pytest.mark.parametrize("answer", ["-", "n/a", "null", 0, False])
def test_marks_for_nothing_are_answers(answer):
    result = score({"v": answer}, {"v": answer}, ANY)
    assert (result["total"], result["matched"]) == (1, 1)
    assert score({}, {"v": answer}, ANY)["unfound"] == 1


@pytest.mark.parametrize("nothing", [None, "", " \u00a0\n", [], {}, [None, ""], {"x": {"y": []}}])
def test_null_blank_and_empty_cost_nothing(nothing):
    assert score({"v": nothing}, {}, ANY)["total"] == score({}, {"v": nothing}, ANY)["total"] == 0
    assert score({"v": 1}, {"v": nothing}, ANY)["fabricated"] == 1


def test_a_dash_and_not_available_differ():
    assert equal("-", "\u2014") and not equal("-", "n/a")


def test_a_sign_behind_a_currency_mark_is_no_second_sign():
    assert [canon_key(v) for v in ("$-5.5", "($5.5)", "($-5.5)", "%-5.5-")] == ["-5.5", "-5.5", "$5.5", "%5.5"]


def test_a_nul_comes_out_as_a_point():
    assert canon_key("a\0b") == "a.b" and canon_key("1\x005") == "1.5"


def test_upper_case_can_survive():
    assert canon_key("Acme\u2122") == "acmeTM" and canon_key("\u2133") == "M"
    assert not equal("Acme\u2122", "acmetm")


def test_two_numbers_beyond_the_float_range_are_equal_by_their_first_64_digits():
    a, b = "7" * 64 + "1" * 300, "7" * 64 + "2" * 300
    assert canon_key(a) == "7" * 64 and equal(a, b) and not equal(a, "8" + a[1:])


def test_no_value_is_folded_away():
    assert [canon_key(v) for v in ("()", "( )", ".", "\u0301", "\u200b")] == ["()", "()", ".", "\u0301", "\u200b"]


def test_a_text_cannot_pass_for_a_date():
    assert canon_key("2024-03-05") == "#d2024-03-05" and not equal("#d2024-03-05", "2024-03-05")


def test_dates_and_times_have_at_most_34_characters():
    assert canon_key("2024-03-05   09:30:00.123456+02:00") == "#t2024-03-05T09:30:00.123456"
    assert canon_key("2024-03-05    09:30:00.123456+02:00") == "2024030509:30:00.123456+02:00"
    assert canon_key("March" + " " * 22 + "5, 2024") == "#d2024-03-05"
    assert canon_key("March" + " " * 23 + "5, 2024") == "march52024"


def test_key_names_are_compared_exactly():
    assert score({"V": 1}, {"v": 1}, ANY)["matched"] == 0
    assert score({"e\u0301": 1}, {"\u00e9": 1}, ANY)["matched"] == 0


# --- arrays -------------------------------------------------------------------------------------------------------


def test_elements_of_an_array_that_the_gold_lacks_are_fabricated():
    assert kinds({"rows": [{"a": 1}, {"z": 2}]}, {}, TABLE) == {
        "rows[0].a": "fabricated",
        "rows[1].z": "invented_field",
    }
    assert kinds({"rows": [{"a": 1}]}, {"rows": [None, {}]}, TABLE) == {"rows[0].a": "fabricated"}


def test_arrays_inside_an_unpaired_element_keep_their_indices():
    pred = {"rows": [{"a": 5}, {"a": 1, "t": [[7], 8]}]}
    assert kinds(pred, {"rows": [{"a": 5}]}, TABLE) == {
        "rows[0].a": "matched",
        "rows[p1].a": "invented_item",
        "rows[p1].t[0][0]": "invented_item",
        "rows[p1].t[1]": "invented_item",
    }


def test_elements_without_one_equal_value_stay_apart():
    assert kinds({"rows": [{"a": 1, "b": 2}]}, {"rows": [{"a": 3, "b": 4}]}, TABLE) == {
        "rows[0].a": "unfound",
        "rows[0].b": "unfound",
        "rows[p0].a": "invented_item",
        "rows[p0].b": "invented_item",
    }


def test_matched_values_decide_before_shared_addresses():
    pred = {"rows": [{"a": 1, "b": 8, "c": 8}]}
    gold = {"rows": [{"a": 1, "b": 9, "c": 9}, {"a": 1, "b": 8}]}
    assert kinds(pred, gold, TABLE) == {
        "rows[0].a": "unfound",
        "rows[0].b": "unfound",
        "rows[0].c": "unfound",
        "rows[1].a": "matched",
        "rows[1].b": "matched",
        "rows[1].c": "fabricated",
    }
    # Equal matches: the pair that shares more addresses wins.
    assert kinds({"rows": [{"a": 1, "b": 8}]}, {"rows": [{"a": 1}, {"a": 1, "b": 9}]}, TABLE)["rows[1].b"] == "misread"


def test_the_best_total_wins_over_the_best_single_pair():
    pred = {"rows": [{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 2}]}
    gold = {"rows": [{"a": 1, "b": 1, "c": 2}, {"a": 9, "b": 9, "c": 1}]}
    assert score(pred, gold, TABLE)["matched"] == 4


def test_elements_without_values_keep_their_place_and_are_no_rows():
    result = score({"rows": [None, {"a": 1}]}, {"rows": [{}, {"b": ""}, {"a": 1}]}, TABLE, verdicts=True)
    assert result["verdicts"][0].address == (("k", "rows"), ("i", 2), ("k", "a"))
    assert (result["gt_rows"], result["pred_rows"], result["matched_rows"]) == (1, 1, 1)


def test_scalars_and_lists_are_no_rows_but_rows_inside_lists_are():
    document = {"v": [1, [2], [{"a": 3}]]}
    result = score(document, document, ANY)
    assert (result["gt_rows"], result["pred_rows"], result["matched_rows"]) == (1, 1, 1)


def test_an_ordered_array_is_compared_by_position():
    pred, gold = {"rows": [{"a": 1}, {"a": 2}, {"a": 3}]}, {"rows": [{"a": 2}, {"a": 1}]}
    assert score(pred, gold, TABLE)["matched"] == 2
    result = score(pred, gold, TABLE, order_matters=["rows"])
    assert (result["matched"], result["misread"], result["fabricated"], result["invented_item"]) == (0, 2, 1, 0)
    assert (result["gt_rows"], result["pred_rows"], result["matched_rows"]) == (2, 3, 2)


def test_inside_a_pair_price_an_ordered_array_takes_all_within_by_position():
    # Position by position nothing matches, so the outer elements are no pair, although aligning would match both.
    pred, gold = {"v": [{"o": [{"f": [1, 2]}]}]}, {"v": [{"o": [{"f": [2, 1]}]}]}
    assert score(pred, gold, ANY, order_matters=["v[*].o"])["matched"] == 0
    assert score(pred["v"][0], gold["v"][0], {"properties": {"o": {}}}, order_matters=["o"])["matched"] == 2
    assert score(pred, gold, ANY)["matched"] == 2


def test_names_of_arrays_quote_keys_with_points_and_brackets():
    document = {"a.b": [{"c": [1, 2]}], "d": [[1, 2]]}
    turned = {"a.b": [{"c": [2, 1]}], "d": [[2, 1]]}
    assert score(turned, document, {"type": "object"})["matched"] == 4
    assert score(turned, document, {"type": "object"}, order_matters=["['a.b'][*].c", "d[*]", "d[*]"])["matched"] == 0


def test_names_of_arrays_are_known_from_the_schema_and_from_empty_arrays():
    assert score({}, {}, TABLE, order_matters=["rows"])["total"] == 0
    assert score({"new": []}, {}, TABLE, order_matters=("new",))["total"] == 0


# --- preparing ----------------------------------------------------------------------------------------------------


def test_envelopes_are_unwrapped_on_both_sides_and_at_the_root():
    wrapped = {"value": {"v": {"value": {"value": 7, "page": 1}, "confidence": 0.5}}, "meta": {}}
    assert score(wrapped, {"v": 7}, ANY)["accuracy"] == score({"v": 7}, wrapped, ANY)["accuracy"] == 1.0


@pytest.mark.parametrize("plain", [{"value": 7}, {"value": 7, "page": 1, "unit": "USD"}, {"page": 1}])
def test_other_objects_are_no_envelopes(plain):
    assert score({"v": plain}, {"v": 7}, ANY)["invented_field"] == len(plain)


def test_sidecars_are_dropped_from_the_prediction_only():
    document = {"id": None, "id_meta": 1, "id_meta_meta": 2, "x_citations": [3], "v": 1, "v_citations": {"p": 4}}
    assert set(kinds(document, {}, ANY)) == {"x_citations[0]", "v"}
    assert score({}, document, ANY)["unfound"] == 5
    assert set(kinds({"": 1, "_meta": 2, "v": 3}, {}, ANY)) == {"", "v"}


@pytest.mark.parametrize("pred", [None, 0, "", [], False, {}, "text", 7, [{"v": 1}], True, {"value": [1], "page": 2}])
def test_a_prediction_that_is_no_object_is_an_empty_one(pred):
    result = score(pred, {"v": 1}, ANY)
    assert (result["unfound"], result["asserted"], result["accuracy"]) == (1, 0, 0.0)


def test_two_empty_documents_have_no_accuracy():
    result = score({}, None, ANY)
    assert [result[name] for name in ("accuracy", "precision", "recall", "f1", "total")] == [0.0, 0.0, 0.0, 0.0, 0]
    assert result["matching_exact"] is True


# --- the schema ---------------------------------------------------------------------------------------------------

MAP = {"type": "object", "additionalProperties": {}}


def test_open_maps_are_noted_even_over_null_and_never_graded():
    schema = {"properties": {"m": MAP, "v": {}}}
    result = score({"m": {"k": 1}}, {"m": None, "v": 1}, schema)
    assert (result["total"], result["skipped_open_maps"]) == (1, ["m"])
    assert score({}, {"v": 1}, schema)["skipped_open_maps"] == []


def test_open_maps_keep_their_indices_and_are_noted_twice_if_these_differ():
    schema = {"properties": {"rows": {"items": {"properties": {"a": {}, "m": MAP}}}}}
    pred, gold = {"rows": [{"a": 1}, {"a": 2, "m": {}}]}, {"rows": [{"a": 2, "m": {"x": 1}}]}
    result = score(pred, gold, schema, verdicts=True)
    assert result["skipped_open_maps"] == ["rows[0].m", "rows[1].m"]
    assert [verdict.verdict for verdict in result["verdicts"][:2]] == ["skipped_open_map"] * 2
    assert result["matched"] == 1


def test_an_open_root_leaves_nothing_to_grade():
    result = score({"a": 1}, {"b": 2}, {"additionalProperties": True, "properties": {"a": {}}})
    assert (result["total"], result["skipped_open_maps"]) == (0, ["<root>"])


def test_a_closed_object_is_no_open_map_but_one_inside_a_combinator_is():
    assert score({"v": {"k": 1}}, {}, {"properties": {"v": {"additionalProperties": False}}})["total"] == 1
    hidden = {"anyOf": [{"type": "object", "oneOf": [MAP]}]}
    assert score({"v": {"k": 1}}, {}, {"properties": {"v": hidden}})["total"] == 0


def test_combinators_are_entered_once_take_the_first_other_than_null_and_lose_their_siblings():
    null = {"type": "null"}
    inner = {"properties": {"a": {}}}
    schema = {"properties": {"v": {"anyOf": [null, True, inner, {"properties": {"b": {}}}], "properties": {"c": {}}}}}
    assert kinds({"v": {"a": 1, "b": 1, "c": 1}}, {}, schema) == {
        "v.a": "fabricated",
        "v.b": "invented_field",
        "v.c": "invented_field",
    }
    twice = {"properties": {"v": {"anyOf": [{"anyOf": [inner]}]}}}
    assert kinds({"v": {"a": 1}}, {}, twice) == {"v.a": "invented_field"}
    merged = {"properties": {"v": {"allOf": [{"properties": {"b": {}}}, inner]}}}
    assert kinds({"v": {"a": 1, "b": 1}}, {}, merged) == {"v.a": "invented_field", "v.b": "fabricated"}


def test_a_scalar_in_place_of_an_object_is_an_invented_field():
    schema = {"properties": {"o": {"properties": {"a": {}}}, "rows": {"items": {}}, "bare": {"type": "array"}}}
    assert kinds({"o": 1, "rows": 2, "bare": 3}, {}, schema) == {
        "o": "invented_field",
        "rows": "invented_field",
        "bare": "fabricated",
    }


def test_a_property_named_ref_makes_the_schema_unusable():
    with pytest.raises(ValueError):
        score({}, {}, {"properties": {"$ref": {"type": "string"}}})


def test_a_property_named_defs_loses_its_schema():
    schema = {"properties": {"$defs": {"type": "string"}, "definitions": {}, "v": {}}}
    assert kinds({"$defs": "x", "definitions": 1}, {}, schema) == {
        "$defs": "invented_field",
        "definitions": "fabricated",
    }


def nested(levels):
    """A reference ``levels`` steps below the root."""
    node = {"$ref": "#/definitions/x"}
    for _ in range(levels):
        node = {"items": node}
    return node | {"definitions": {"x": {"type": "string"}}}


def test_a_reference_at_the_depth_limit_is_inlined_and_one_below_is_an_error():
    assert score({}, {}, nested(12))["total"] == 0
    with pytest.raises(ValueError):
        score({}, {}, nested(13))


def test_keys_beside_a_reference_win():
    definition = {"x": {"properties": {"a": {}}}}
    schema = {"properties": {"v": {"$ref": "#/$defs/x", "properties": {"b": {}}}}, "$defs": definition}
    assert kinds({"v": {"a": 1, "b": 1}}, {}, schema) == {"v.a": "invented_field", "v.b": "fabricated"}


@pytest.mark.parametrize("pointer", ["#", "#/$defs/none", "other.json#/a", "#/$defs/list/0", "#/$defs/a~1b", 7])
def test_a_pointer_to_nothing_is_an_error(pointer):
    definitions = {"list": [{"type": "string"}], "a/b": {"type": "string"}}
    with pytest.raises(ValueError):
        score({}, {}, {"properties": {"v": {"$ref": pointer}}, "$defs": definitions})


@pytest.mark.parametrize("used", [True, False])
def test_a_definition_that_names_itself_thirty_times_is_settled_quickly(used):
    definitions = {
        "n": {"anyOf": [{"$ref": "#/$defs/n"}] * 30, "properties": {f"p{i}": {"$ref": "#/$defs/n"} for i in range(30)}}
    }
    schema = {"properties": {"v": {"$ref": "#/$defs/n"} if used else {}}, "$defs": definitions}
    started = time.process_time()
    if used:
        with pytest.raises(ValueError):
            score({"v": 1}, {"v": 1}, schema)
    else:
        assert score({"v": 1}, {"v": 1}, schema)["accuracy"] == 1.0
    assert time.process_time() - started < 2


# --- errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gold", [[], [{"v": 1}], "", "v", 0, 1, 1.5, True, False])
def test_a_gold_document_that_is_no_object_is_an_error(gold):
    with pytest.raises(TypeError):
        score({"v": 1}, gold, ANY)


@pytest.mark.parametrize("schema", [None, {}, [], [{"type": "object"}], "", "object", 0, True, False])
def test_a_missing_schema_is_an_error(schema):
    with pytest.raises(TypeError):
        score({"v": 1}, {"v": 1}, schema)


@pytest.mark.parametrize("order_matters", ["rows", "", None, [1], [None], ["rows", ("rows",)], 5])
def test_order_matters_of_another_type_is_an_error(order_matters):
    with pytest.raises(TypeError):
        score({"rows": []}, {}, TABLE, order_matters=order_matters)


@pytest.mark.parametrize("name", ["lines", "rows[0]", "rows[*]", "rows[*].a", "Rows", ""])
def test_a_name_of_no_array_is_an_error(name):
    with pytest.raises(ValueError):
        score({"rows": [{"a": 1}]}, {"rows": []}, TABLE, order_matters=["rows", name])


def test_two_arrays_of_one_name_are_an_error_even_when_no_order_is_asked_for():
    with pytest.raises(ValueError):
        score({"": {"rows": [1]}}, {"rows": [1]}, TABLE)
    with pytest.raises(ValueError):
        score({}, {}, {"properties": {"": {"properties": {"x": {"items": {}}}}, "x": {"items": {}}}})
    assert score({"": {"other": [1]}}, {"rows": [1]}, TABLE)["total"] == 2


def test_errors_come_in_their_order():
    broken = {"properties": {"v": {"$ref": "#"}}}
    with pytest.raises(TypeError):  # gold before the schema
        score({}, [], broken)
    with pytest.raises(ValueError):  # the schema before order_matters
        score({}, {}, broken, order_matters="rows")
    clash = {"": {"rows": [1]}, "rows": [1]}
    with pytest.raises(TypeError):  # one text before the clash of names
        score(clash, {}, TABLE, order_matters="rows")
    with pytest.raises(ValueError):  # the clash before an entry that is no text
        score(clash, {}, TABLE, order_matters=[1])
    with pytest.raises(ValueError):  # entries one by one
        score({}, {}, TABLE, order_matters=["none", 1])


# --- greedy flags -------------------------------------------------------------------------------------------------

NESTED = {"properties": {"rows": {"items": {"properties": {"a": {}, "t": {"items": {}}}}}}}


def flags(pred, gold, **lowered):
    """The sizes noted as solved greedily under lowered limits: ``dense, side, always, never``."""
    limits = type("Lowered", (Limits,), lowered)
    trie, words = Trie(NESTED), Vocabulary()
    right = Walker(trie, words, sidecars=False, raws=False).read(gold)
    left = Walker(trie, words, sidecars=True, raws=False).read(pred)
    alignment = Alignment(trie, words, left.leaves + 1, False, limits)
    alignment.align(left, right)
    return sorted(alignment.greedy, reverse=True)


def lines(count, inner=1, same=True):
    return {"rows": [{"a": 0 if same else i, "t": list(range(inner))} for i in range(count)]}


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, []),
        ({"dense": 12}, []),  # 4 x 3 cells are within
        ({"dense": 11, "side": 2}, [4]),  # the smaller side is beyond
        ({"dense": 11, "side": 3}, []),
        ({"dense": 11, "side": 3, "always": 11}, []),  # all 12 pairs share (a, 0)
        ({"dense": 11, "side": 3, "always": 11, "never": 11}, [4]),
        ({"dense": 11, "side": 3, "always": 12, "never": 12}, []),
    ],
)
def test_greedy_flags_follow_the_sizes(limits, expected):
    assert flags(lines(4), lines(3), **limits) == expected


def test_between_the_limits_equal_values_decide():
    limits = {"dense": 11, "side": 4, "always": 11, "never": 100}
    assert flags(lines(4, same=False), lines(3, same=False), **limits) == []  # 3 equal: 8 * 12 <= 72 * 3
    different = {"rows": [{"a": f"x{i}", "t": [i]} for i in range(3)]}
    assert flags(lines(4, same=False), different, **limits) == [4]  # none equal
    one = {"rows": [{"a": 0, "t": [1]}, *different["rows"][:2]]}
    assert flags(lines(4, same=False), one, **limits) == [4]  # 1 equal: 8 * 12 > 72
    limits = limits | {"dense": 8, "always": 8}
    assert flags(lines(3, same=False), one, **limits) == []  # 1 equal: 8 * 9 <= 72


def test_arrays_without_common_inner_arrays_are_exact_at_any_size():
    flat = {"rows": [{"a": i} for i in range(5)]}
    assert flags(flat, lines(5), dense=0, side=0) == []
    assert flags({"rows": [1, 2]}, {"rows": [1, 2]}, dense=0, side=0) == []


def test_inner_arrays_of_pairs_never_chosen_are_flagged_too():
    def deep(*inner):
        return {"rows": [{"a": i, "t": [{"u": [1]}] * length} for i, length in enumerate(inner)]}

    # Rows pair 0-0 and 1-1 (1 x 5 and 5 x 1 cells); only the pair 1-0, never chosen, has 5 x 5.
    assert flags(deep(1, 5), deep(5, 1), dense=24, side=0) == [5]
    assert flags(deep(1, 5), deep(5, 1), dense=25, side=0) == []


def test_flags_reach_the_figures_largest_first_without_repeats(monkeypatch):
    monkeypatch.setattr(Limits, "dense", 0)
    monkeypatch.setattr(Limits, "side", 0)
    document = {"rows": [{"a": i, "t": [[1], [2], [3]]} for i in range(2)]}
    result = score(document, document, NESTED)
    assert (result["matching_exact"], result["approximated"], result["accuracy"]) == (False, [3, 2], 1.0)


# --- recorded cases -----------------------------------------------------------------------------------------------


def case_items():
    for path in sorted(CASES.glob("*.json")):
        for item in json.loads(path.read_text(encoding="utf-8")):
            if item["scorer"] == "field_matching":
                yield pytest.param(item, id=f"{path.stem}: {item['name']}")


@pytest.mark.parametrize("item", list(case_items()))
def test_recorded_case(item):
    pred = json.loads(item["pred_text"]) if "pred_text" in item else item["pred"]
    expected = item["expect"]
    order_matters = item.get("order_matters", ())
    if "raises" in expected:
        with pytest.raises(Exception) as raised:
            score(pred, item["gt"], item["schema"], order_matters)
        assert raised.type.__name__ == expected["raises"]
        return
    result = score(pred, item["gt"], item["schema"], order_matters)
    assert {name: result.get(name) for name in expected} == expected


def test_recorded_cases_are_there():
    assert len(list(case_items())) == 56


# --- cost and imports ---------------------------------------------------------------------------------------------


def test_keys_are_made_per_cell_and_not_per_pair(monkeypatch):
    calls = []
    real = tree.text_key
    monkeypatch.setattr(tree, "text_key", lambda value: calls.append(value) or real(value))

    def document(side):
        long = "a long cell " * 20  # beyond what is remembered between documents
        return {"rows": [{name: f"{long}{side} {name} {row % 50}" for name in "abc"} for row in range(60)]}

    pred, gold = document("left"), document("right")
    for row in range(30):
        pred["rows"][row] = dict(gold["rows"][59 - row])
    result = score(pred, gold, TABLE)
    assert result["matched"] == 90
    assert 150 <= len(calls) <= 2 * 60 * 3


def test_the_bare_import_is_light():
    program = (
        "import sys, oeb_ray.scoring.field_matching\n"
        "print(*sorted({'ray', 'pyarrow', 'fsspec', 'httpx', 'scipy'} & sys.modules.keys()))\n"
        "print(oeb_ray.scoring.field_matching.score({'v': 1}, {'v': 1}, {'properties': {'v': {}}})['accuracy'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["", "1.0"]


# --- the text beside the code -------------------------------------------------------------------------------------


def examples_of(text):
    """(value, key) of the tables headed ``value (JSON) | key``; a row may list several values of one key."""
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["value (JSON)", "key"]:
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and set(line) - set("|-: "):
            values = re.findall("`([^`]+)`", cells[0])
            assert values, line
            yield from ((json.loads(value), cells[1].strip("`")) for value in values)


def test_the_examples_of_the_metric_text_hold():
    examples = list(examples_of(METRIC_SPEC.read_text(encoding="utf-8")))
    assert len(examples) >= 70
    wrong = [(value, canon_key(value), key) for value, key in examples if canon_key(value) != key]
    assert not wrong, wrong


def test_the_worked_example_of_the_metric_text_holds():
    blocks = re.findall(r"```json\n(.*?)```", METRIC_SPEC.read_text(encoding="utf-8"), re.DOTALL)
    schema, gold, pred, figures, verdicts = (json.loads(block) for block in blocks)
    result = score(pred, gold, schema, verdicts=True)
    listed = result.pop("verdicts")
    assert {name: round(value, 4) if isinstance(value, float) else value for name, value in result.items()} == figures
    assert [[written(verdict.address), verdict.verdict] for verdict in listed] == verdicts


def test_every_section_the_code_refers_to_is_in_the_metric_text():
    headings = set(re.findall(r"^#+ (.*)$", METRIC_SPEC.read_text(encoding="utf-8"), re.MULTILINE))
    named = set()
    for path in METRIC_SPEC.parent.glob("*.py"):
        for reference in re.findall(r"METRIC_SPEC\.md,([^)]*)\)", path.read_text(encoding="utf-8")):
            named.update(re.findall(r'"([^"]+)"', reference))
    assert named and named <= headings, named - headings
