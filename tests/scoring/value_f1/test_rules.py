"""One promise of METRIC_SPEC.md per test: recorded cases, the odd rules, the errors and the limits."""

from __future__ import annotations

import datetime as dt
import json
import random
import re
import time
from pathlib import Path

import pytest

from oeb_ray.scoring import value_f1
from oeb_ray.scoring.value_f1 import costs, values
from oeb_ray.scoring.value_f1.dates import as_date
from oeb_ray.scoring.value_f1.near import near_table
from oeb_ray.scoring.value_f1.schema import root_nodes
from oeb_ray.scoring.value_f1.summarize import summarize
from oeb_ray.scoring.value_f1.texts import NEAR, common, near

METRIC_SPEC = Path(value_f1.__file__).with_name("METRIC_SPEC.md")
CASES = Path(__file__).resolve().parents[2] / "data" / "oeb_cases"


def table(*columns, **more):
    return {"type": "array", "items": {"type": "object", "properties": {name: {} for name in columns} | more}}


def counts(output, reference, schema, **more):
    got = value_f1.score(output, reference, schema, **more)
    return got["matched_cells"], got["expected_cells"], got["predicted_cells"]


def cases():
    for path in sorted(CASES.glob("*.json")):
        for item in json.loads(path.read_text(encoding="utf-8")):
            if item["scorer"] == "value_f1":
                yield pytest.param(item, id=f"{path.stem}: {item['name']}")


@pytest.mark.parametrize("item", list(cases()))
def test_what_people_met(item):
    output = json.loads(item["output_text"]) if "output_text" in item else item["output"]
    got = value_f1.score(output, item["expected"], item["schema"], field_rules=item.get("field_rules"))
    assert {name: got[name] for name in item["expect"]} == pytest.approx(item["expect"], abs=1e-12)


def test_the_example_of_the_text():
    text = METRIC_SPEC.read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    example = json.loads(block)
    got = value_f1.score(example["output"], example["reference"], example["schema"], feedback=True)
    assert {name: got[name] for name in example["figures"]} == example["figures"]
    assert [list(cell[:3]) for cell in got["feedback"]] == example["feedback"]


def test_every_heading_that_the_code_names_is_there():
    headings = set(re.findall(r"^#+ (.*)$", METRIC_SPEC.read_text(encoding="utf-8"), re.MULTILINE))
    for path in METRIC_SPEC.parent.glob("*.py"):
        for named in re.findall(r"METRIC_SPEC\.md, ([^)]*)\)", path.read_text(encoding="utf-8")):
            assert set(re.findall(r'"([^"]*)"', named)) <= headings, path.name


@pytest.mark.parametrize(
    ("text", "today", "date"),
    [
        ("3/4/75", (2026, 12, 1), "2075-03-04"),
        ("3/4/76", (2026, 12, 1), "1976-03-04"),
        ("3/4/76", (2027, 1, 1), "2076-03-04"),
        ("3-4-99", (1960, 1, 1), "1999-03-04"),
        ("12/31/1899", (2026, 12, 1), None),
        ("2100-1-2", (2026, 12, 1), "2100-01-02"),
        ("2024-13-01", (2026, 12, 1), None),
        ("2024-03-04T99:00", (2026, 12, 1), None),
        ("2024-03-04 10:00 XYZ", (2026, 12, 1), "2024-03-04"),
        ("1234567890 2024-03-04", (2026, 12, 1), None),
        ("July 9 ,2021", (2026, 12, 1), "2021-07-09"),
    ],
)
def test_dates_go_by_the_day_given_and_never_by_the_clock(text, today, date):
    assert as_date(text, dt.date(*today)) == (date or text)


def test_the_quick_dates_are_those_of_dateutil():
    dice = random.Random(5)
    from oeb_ray.scoring.value_f1 import dates

    day = dt.date(2026, 12, 1)
    words = [*dates._MONTHS, "Mai", "janu", "monday", "at", "of", "am", "th", "z"]
    dates_found = 0
    for _ in range(1000):
        a, b, year = dice.randint(0, 40), dice.randint(0, 40), dice.randint(1880, 2120)
        word = dice.choice([str.lower, str.upper, str.title])(dice.choice(words))
        digits = (f"{year:04}-{a}-{b}", f"{year:04}/{a}/{b:02}", f"{a}/{b}/{year:04}", f"{a:02}-{b:02}-{year:04}")
        timed = f"{year:04}-{a:02}-{b:02}T{dice.randint(0, 29):02}:{dice.randint(0, 69):02}:{dice.randint(0, 69):02}"
        for text in (*digits, timed, f"{a} {word} {year}", f"{word} {a:02}, {year}", f"{word} {a} {year}"):
            quick = dates._plain(text)
            dates_found += quick is not None
            assert quick is None or quick == dates._parsed(text, day), text
            assert quick is None or dates._SHAPES.search(text), text
    assert dates_found > 1000


def test_no_shape_is_missed_by_the_quick_look():
    from oeb_ray.scoring.value_f1 import dates

    dice, shaped = random.Random(6), 0
    words, signs = ["1", "12", "2024", "May", "at.", "\u0663"], ["-", "/", " ", ",", " ,\t", "  "]
    for _ in range(20_000):
        text = "".join(dice.choice(words) + dice.choice(signs) for _ in range(4))
        if dates._SHAPES.search(dates._COMMA.sub(", ", text)):
            shaped += 1
            assert dates._IN_EVERY_SHAPE.search(text), text
    assert shaped > 300


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (1, 1.0, True),
        (True, 1, True),
        (0, False, True),
        (0, None, False),
        ("1", 1, False),
        ("", None, False),
        (2**64 + 1, 2**64, False),
        (-0.0, 0, True),
        ("a\u00a0 b ", "a b", True),
        (["a b"], ["a  b"], False),
        ([1, True], [True, 1.0], True),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": True}, True),
        ([1], {"0": 1}, False),
        (float("nan"), float("nan"), False),
        ([float("nan")], [float("nan")], False),
        ("Blue", "blue", False),
    ],
)
def test_agreement_is_plain_equality_but_for_white_space(one, other, agree):
    assert counts({"f": other}, {"f": one}, {"properties": {"f": {}}})[0] == agree
    rows = {"properties": {"r": table("f", "k")}}
    alone = counts({"r": [{"f": other, "k": 1}]}, {"r": [{"f": one, "k": 1}]}, rows)
    assert alone == (1 + agree, 2, 2), "in rows as elsewhere"


def test_a_nan_is_not_found_by_being_the_same_object():
    nan = float("nan")
    for value in (nan, [nan], {"a": nan}):
        assert counts({"f": value}, {"f": value}, {}) == (0, 1, 1)


def test_dates_of_a_default_stay_as_they_are():
    schema = {"properties": {"d": {"default": "3/4/2024"}}}
    assert counts({}, {"d": "3/4/2024"}, schema) == (0, 1, 1)
    assert counts({}, {"d": "2024-03-04"}, schema) == (0, 1, 1)
    assert counts({}, {}, schema) == (1, 1, 1)
    assert value_f1.score({}, {}, schema, feedback=True)["feedback"][0].predicted == "3/4/2024"


@pytest.mark.parametrize("name", ["description", "court"])
def test_nearness_passes_at_its_limit(name):
    nearness = NEAR[name]
    for one, other in (("a" * 20, "a" * 19 + "b"), ("a" * 20, "b" * 20), ("abcdefghij" * 2, "abcdefghij" * 2 + "xx")):
        distance = len(one) + len(other) - 2 * common(one, other)
        limit = {"description": 95, "court": 85}[name]
        similarity = 100 * (len(one) + len(other) - distance) / (len(one) + len(other))
        assert near(one, other, nearness) == (similarity >= limit)


def longest(one, other):
    row = [0] * (len(other) + 1)
    for sign in one:
        last = 0
        for at, there in enumerate(other):
            last, row[at + 1] = row[at + 1], last + 1 if sign == there else max(row[at], row[at + 1])
    return row[-1]


def test_tables_of_near_texts_are_those_of_every_pair():
    dice = random.Random(3)
    for alphabet, length, count in (("ab ", 12, 14), ("abcdefgh ", 40, 10), ("xyzé漢 ", 150, 5)):
        texts = ["".join(dice.choices(alphabet, k=dice.randint(length // 4, length))) for _ in range(count)]
        for text in [*texts, ""]:
            at = dice.randrange(len(text) + 1)
            texts.append(text[:at] + dice.choice(alphabet) + text[at:])
            texts.append(text[:at] + text[at + 2 :])
        shared = {(one, other): longest(one, other) for one in texts for other in texts}
        assert all(common(*pair) == known for pair, known in shared.items())
        for nearness in NEAR.values():
            found = near_table([*texts, None], texts, nearness)
            for i, one in enumerate(texts):
                for j, other in enumerate(texts):
                    together = len(one) + len(other)
                    distance = together - 2 * shared[one, other]
                    wanted = bool(one and other) and nearness.of * distance <= nearness.edits * together
                    assert found[i, j] == (wanted or one == other) == near(one, other, nearness), (one, other)
            assert not found[-1].any()


@pytest.mark.parametrize("length", [1, 70, 3000])
def test_one_very_long_text_among_short_ones_costs_no_memory_for_all(length):
    texts = [f"row {number} of a table" for number in range(2000)]
    long = "x" * 200_000
    found = near_table([*texts, long], [texts[7], "y" * length, long[:-1]], NEAR["description"])
    assert found[7, 0] and found[2000, 2] and found[:, 1].sum() == 0 and found[:2000, 2].sum() == 0


def test_rows_cost_what_differs_whatever_the_order_and_the_keys():
    """Rows are paired as by trying every pairing, for cells, near texts, inner tables and missing keys."""
    from itertools import permutations

    dice = random.Random(11)
    schema = {"properties": {"r": table("a", "b", inner=table("x", "y"))}}

    def value():
        row = {}
        for name in "ab":
            if dice.random() < 0.8:
                row[name] = dice.choice([1, 2, "x", None])
        if dice.random() < 0.7:
            row["inner"] = [{"x": dice.randint(1, 2), "y": dice.randint(1, 2)} for _ in range(dice.randint(0, 2))]
        return row

    for _ in range(60):
        ours, theirs = ([value() for _ in range(dice.randint(1, 4))] for _ in range(2))
        got = value_f1.score({"r": theirs}, {"r": ours}, schema, feedback=True)
        pairs = {
            (int(cell.reference_path[2]), int(cell.output_path[2]))
            for cell in got["feedback"]
            if cell.reference_path and cell.output_path
        }

        def cost(one, other):
            total = sum(one.get(name, ...) != other.get(name, ...) for name in "ab")
            mine, found = one.get("inner", []), other.get("inner", [])
            if len(mine) > len(found):
                mine, found = found, mine
            best = min(
                sum((m["x"] != f["x"]) + (m["y"] != f["y"]) for m, f in zip(mine, some, strict=True))
                for some in permutations(found, len(mine))
            )
            return total + best + 2 * (len(found) - len(mine))

        short, long = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
        best = min(
            sum(cost(*pair) for pair in zip(short, some, strict=True)) for some in permutations(long, len(short))
        )
        seen = sum(cost(ours[i], theirs[j]) for i, j in pairs)
        assert seen <= best, "pairs without any cell of both sides are not seen in the feedback"


def test_a_shuffle_of_keys_and_rows_changes_no_figure():
    dice = random.Random(2)
    schema = {"properties": {"r": table("a", "b", "c")}}
    rows = [{"a": dice.randint(0, 5), "b": dice.randint(0, 5), "c": number} for number in range(30)]
    output = [row | {"a": dice.randint(0, 5)} for row in rows]
    first = value_f1.score({"r": output}, {"r": rows}, schema)
    for _ in range(5):
        mixed = [dict(dice.sample(sorted(row.items()), 3)) for row in dice.sample(output, 30)]
        assert value_f1.score({"r": mixed}, {"r": rows}, schema) == first


def test_inputs_are_not_changed():
    schema = {"properties": {"claims": table("n"), "payment_details": table("c", claims=table("n"))}}
    reference = {"claims": [{"n": 1}], "payment_details": [{"c": "3/4/2024"}]}
    output = {"payment_details": {"c": "2024-03-04", "claims": [{"n": 1}]}}
    before = json.dumps([schema, reference, output])
    value_f1.score(output, reference, schema)
    assert json.dumps([schema, reference, output]) == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"f": {"normalizers": ["lower"]}}, "unknown normalizer 'lower'"),
        ({"f": {"evidence": [{"page": 0}]}}, "page 0 is no whole number from 1"),
        ({"f": {"evidence": [{"page": 1.5}]}}, "page 1.5 is no whole number from 1"),
        ({"f": {"evidence": [{"page": 1, "bbox": [1, 2, "a", 4]}]}}, "bbox [1, 2, 'a', 4] is no list of numbers"),
        ({"f": {"evidence": [{"page": 1, "bbox": "0 0 1 1"}]}}, "bbox '0 0 1 1' is no list of numbers"),
        ({"f": {"evidence": [{"layer": "line"}]}}, "unknown layer 'line'"),
        ({"f": {"evidence": "x"}}, "evidence must be a list"),
        ({"f": {"type": "extract_table"}}, "has the type 'extract_table'"),
        ({"f": 3, "g": {"normalizers": 3}}, "'f' is no object; 'g': normalizers must be a list"),
        ([{"evidence": []}], "entry 0 has no field_path"),
        ("text", "must be an object by path or a list"),
    ],
)
def test_rules_that_are_none_are_the_references_fault(given, said):
    with pytest.raises(value_f1.Ungradable, match=re.escape(said)):
        value_f1.score({"f": 1}, {"f": 1}, {}, field_rules=given)


def test_numbers_of_places_may_be_written_as_text():
    rules = {"f": {"evidence": [{"page": "1", "bbox": [0, 0, ".5", "1"]}]}}
    citations = [{"field_path": "f", "page": 1.0, "bbox": [0, 0, 0.5, 1]}]
    assert value_f1.score({"f": 1}, {"f": 1}, {}, field_rules=rules, citations=citations)["word_correct"] == 1


def test_rules_come_by_path_or_as_a_list():
    body = {"evidence": [{"value": "Y"}]}
    for given in ({"f": body}, [body | {"field_path": "f", "type": "extract_field"}]):
        assert counts({"f": "Y"}, {"f": "yes"}, {}, field_rules=given) == (1, 1, 1)
    for given in (None, {}, []):
        assert counts({"f": "Y"}, {"f": "yes"}, {}, field_rules=given) == (0, 1, 1)


@pytest.mark.parametrize(
    "citations", [[None, 3, {}, {"field_path": 3}, {"field_path": "f", "page": 0}, {"field_path": "f", "page": []}]]
)
def test_citations_that_are_none_are_no_claims(citations):
    rules = {"f": {"evidence": [{"page": 1, "bbox": [0, 0, 1, 1]}]}}
    got = value_f1.score({"f": 1}, {"f": 1}, {}, field_rules=rules, citations=citations)
    assert (got["page_claims"], got["page_expected"], got["word_claims"]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("stated", "cited", "hit"),
    [
        ([0.1, 0.2, 0.2, 0.05], [0.1, 0.2, 0.2, 0.025], False),
        ([0.1, 0, 0.025, 0.02], [0.1, 0, 0.025, 0.01], False),
        ([0, 0.3, 0.5, 0.0495], [0, 0.3, 0.5, 0.02475], False),
        ([0.55, 0.1, 0.4, 0.01], [0.55, 0.1, 0.4, 0.02], False),
        ([0.25, 0.25, 0.5, 0.5], [0.25, 0.25, 0.5, 0.25], True),
    ],
)
def test_half_a_box_hits_if_floats_say_half(stated, cited, hit):
    """Areas are products of lengths, as the reference package has them; the last bit decides at the limit."""
    rules = {"f": {"evidence": [{"page": 1, "bbox": stated}]}}
    citations = [{"field_path": "f", "page": 1, "bbox": cited}]
    got = value_f1.score({"f": 1}, {"f": 1}, {}, field_rules=rules, citations=citations)
    assert (got["word_correct"], got["page_correct"]) == (hit, 1)


def test_a_default_inside_an_object_that_is_absent_is_none_when_rows_are_paired():
    inner = {"type": "object", "properties": {"d": {"default": 1}}}
    schema = {"properties": {"r": table(o=inner)}}
    assert counts({"r": [{"o": {}}]}, {"r": [{}, {"o": None}]}, schema) == (1, 1, 1)


def test_equal_inner_rows_are_not_paired_first_when_outer_rows_are_priced():
    schema = {"properties": {"r": table(d=table(v=table("a")))}}
    ours = [{"d": [{"v": [{"a": 1}, {"a": 2}]}]}]
    theirs = [{"d": [{}, {"v": [{"a": 2}, "no row", {"a": 2}]}]}]
    assert counts({"r": theirs}, {"r": ours}, schema) == (1, 2, 2)


@pytest.mark.parametrize(
    ("reference", "schema", "said"),
    [
        ([], {}, "the reference must be an object, not a list"),
        ({"a": 1}, None, "the schema must be an object, not null"),
        ({"value": 3}, {}, "under its only key"),
        ({}, {}, "not a single cell|neither reference nor output"),
    ],
)
def test_a_reference_without_a_score_is_no_zero(reference, schema, said):
    with pytest.raises(value_f1.Ungradable, match=said):
        value_f1.score({}, reference, schema)


@pytest.mark.parametrize("output", [None, 3, "x", [], [1], {"value": 3}, {"value": [{}]}])
def test_an_output_that_is_no_object_is_its_own_fault(output):
    with pytest.raises(value_f1.OutputNotObject):
        value_f1.score(output, {"a": 1}, {})


def test_keys_of_listed_objects_that_say_nothing_are_absent():
    schema = {"properties": {"org": {}, "people": table("n")}}
    listed = [{"ORG": "", "people": [{"n": 1}, None]}, {"org": None, "People": [{"n": 2}]}]
    assert counts(listed, {"org": "Q", "people": [{"n": 1}, {"n": 2}]}, schema) == (2, 3, 2)
    assert counts([*listed, {"org": "Q"}], {"org": "Q", "people": [{"n": 1}, {"n": 2}]}, schema) == (3, 3, 3)


def test_what_is_nested_without_end_is_refused():
    deep: dict = {}
    for _ in range(5000):
        deep = {"a": [deep]}
    with pytest.raises(value_f1.Ungradable, match="nested too deeply"):
        value_f1.score({"f": deep}, {"f": deep}, {})
    circle = {"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"properties": {"n": {"$ref": "#/$defs/n"}}}}}
    assert counts({"n": {"n": {"n": 1}}}, {"n": {"n": {"n": 1}}}, circle) == (1, 1, 1)


def test_a_schema_that_doubles_at_every_step_costs_what_is_there():
    names = [f"d{number}" for number in range(60)]
    defs = {
        name: {"properties": {"l": {"$ref": f"#/$defs/{after}"}, "r": {"$ref": f"#/$defs/{after}"}}}
        for name, after in zip(names, [*names[1:], "end"], strict=True)
    } | {"end": {"type": "string"}}
    assert counts({"k": 1, "a": {"l": {}}}, {"k": 1}, {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    wide = {"properties": {"t": {"type": "array", "items": {"$ref": "#/$defs/d46"}}}, "$defs": defs}
    with pytest.raises(value_f1.Ungradable, match="more than 5000 columns"):
        value_f1.score({"t": [{}, {}]}, {"t": [{}]}, wide)


def test_one_row_on_both_sides_is_a_pair_without_a_look_at_it(monkeypatch):
    schema = {"properties": {"r": table("k", inner=table("x"))}}
    monkeypatch.setattr(costs.Pricing, "matrix", lambda *args: pytest.fail("there is no choice"))
    one, other = {"r": [{"k": 1, "inner": [{"x": 2}]}]}, {"r": [{"k": 3, "inner": [{"x": 4}]}]}
    assert counts(one, other, schema) == (0, 2, 2)


def test_rows_beyond_the_limit_are_a_lower_bound_and_never_a_matrix(monkeypatch):
    schema = {"properties": {"r": table("k", "v")}}
    rows = [{"k": number, "v": number % 7} for number in range(30_000)]
    output = [row if number % 2 else row | {"k": -number - 1} for number, row in enumerate(rows)][::-1]
    monkeypatch.setattr(costs.Pricing, "matrix", lambda *args: pytest.fail("no matrix for 225 million pairs"))
    got = value_f1.score({"r": output}, {"r": rows}, schema)
    assert got["value_incomplete"] and (got["matched_cells"], got["expected_cells"]) == (30_000, 60_000), "the odd rows"


def test_inner_tables_too_large_for_memory_are_refused_before_anything_is_taken():
    schema = {"properties": {"r": table("k", inner=table("x"))}}
    rows = [{"k": number} for number in range(20_000)]
    with pytest.raises(value_f1.Ungradable, match=r"20000 x 20000 rows would need 3\.2 GB"):
        value_f1.score({"r": rows}, {"r": rows}, schema)


def test_a_text_is_normalized_once_and_not_once_per_pair(monkeypatch):
    calls = []
    whole = values._Codes.made
    monkeypatch.setattr(values._Codes, "made", lambda self, value: calls.append(value) or whole(self, value))
    dice = random.Random(1)
    rows = [{name: "text " * 60 + f"{name}{number}" for name in "abcdef"} for number in range(300)]
    output = [row | {"a": "other"} if dice.random() < 0.5 else row for row in rows]
    schema = {"properties": {"r": table(*"abcdef")}}
    value_f1.score({"r": output}, {"r": rows}, schema)
    assert len(calls) == len(set(calls)) <= 300 * 6 + 1


@pytest.mark.parametrize("column", ["name", "description"])
def test_thousands_of_rows_take_seconds(column):
    dice = random.Random(1)
    columns = [column, *"abcdefgh"]
    rows = [{c: f"{c} {dice.randint(1, 300)} of {dice.randint(1, 9)}" for c in columns} for _ in range(1200)]
    output = [{c: v if dice.random() < 0.9 else "other" for c, v in row.items()} for row in rows]
    dice.shuffle(output)
    schema = {"properties": {"r": table(*columns)}}
    started = time.process_time()
    value_f1.score({"r": output}, {"r": rows}, schema)
    assert time.process_time() - started < 4


def test_averages_are_those_of_the_worked_example():
    def row(suite, f1, word, **more):
        figures = dict.fromkeys(("precision", "recall", "page_f1", "page_precision", "page_recall"), f1)
        words = dict.fromkeys(("word_f1", "word_precision", "word_recall"), word)
        return {"suite": suite, "status": "scored", "perfect": f1 == 1, "value_incomplete": False,
                **figures, **words, "f1": f1, **more}  # fmt: skip

    failed = {"suite": "b", "status": "error", "error": "VendorTimeout"}
    rows = [row("a", 1.0, 0.5), row("a", 0.5, 1.0), row("b", 0.75, None), failed, failed]
    told = summarize(rows)
    assert (told["f1"], told["word_f1"], told["perfect"]) == (0.45, 0.375, 0.2)
    assert told["per_suite"]["b"]["word_f1"] == 0.0 and told["per_suite"]["a"]["word_f1"] == 0.75
    nothing = summarize([failed])
    assert (nothing["f1"], nothing["coverage"]) == (0.0, 0.0) and "word_f1" not in nothing
    assert summarize([])["f1"] == 0.0


def test_feedback_of_a_table_is_the_same_with_and_without_rules():
    """Tables without rules are listed by their codes; a rule that says nothing has every cell walked instead."""
    dice = random.Random(9)
    schema = {"properties": {"r": table("a", "description", d={"default": "3/4/2024"})}}

    def row():
        values = {
            "a": dice.choice([1, "x", None, [1]]),
            "description": dice.choice(["Blue paint", "blue PAINT!", "red"]),
        }
        return {name: value for name, value in values.items() if dice.random() < 0.8} if dice.random() < 0.95 else 7

    for _ in range(80):
        ours, theirs = ([row() for _ in range(dice.randint(0, 6))] for _ in range(2))
        rules = {f"r[{len(ours)}].a": {}, "r[0].none": {}}
        plain, walked = (
            value_f1.score({"k": 1, "r": theirs}, {"k": 1, "r": ours}, schema, field_rules=given, feedback=True)
            for given in (None, rules)
        )
        assert plain == walked


def test_a_schema_that_is_changed_counts_as_it_is_then():
    schema = {"properties": {"a": {"default": "x"}}}
    assert counts({}, {"a": "x"}, schema) == (1, 1, 1)
    schema["properties"]["a"]["default"] = "y"
    assert counts({}, {"a": "x"}, schema) == (0, 1, 1)
    del schema["properties"]["a"]["default"]
    assert counts({}, {"a": "x"}, schema) == (0, 1, 0)


def test_nodes_of_a_schema_that_names_itself_are_not_kept():
    node = {"properties": {"next": {"$ref": "#"}, "value": {}}}
    assert root_nodes(node)["next"] is not root_nodes(node)["next"]
    flat = {"properties": {"value": {}}}
    assert root_nodes(flat)["value"] is root_nodes(json.loads(json.dumps(flat)))["value"]
    kinds = [root_nodes({"properties": {"value": {"default": default}}})["value"].default for default in (1, True, 1.0)]
    assert [type(kind) for kind in kinds] == [int, bool, float]


def test_a_schema_that_is_no_json_is_told():
    schema = {"properties": {"a": {"default": {1, 2}}}}
    with pytest.raises(value_f1.Ungradable, match="the schema is no JSON: Object of type set"):
        value_f1.score({}, {"a": 1}, schema)
