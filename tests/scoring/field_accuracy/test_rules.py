"""Promises of METRIC_SPEC.md, and inputs that nobody expects."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oeb_ray.scoring import field_accuracy
from oeb_ray.scoring.field_accuracy import normalized, score, score_failure, summarize, values_match
from oeb_ray.scoring.field_accuracy.kinds import number_text
from oeb_ray.scoring.geometry import iou

METRIC_SPEC = Path(field_accuracy.__file__).with_name("METRIC_SPEC.md")
CASES = Path(__file__).resolve().parents[2] / "data" / "oeb_cases"
WHOLE = {"x0": 0.0, "y0": 0.0, "x1": 1.0, "y1": 1.0}


def leaf(value: Any, page: Any = 0, bbox: Any = None) -> dict[str, Any]:
    return {"value": value, "confidence": 0.9, "page": page, "bbox": bbox}


def gold_of(*fields: dict[str, Any], items: int = 0) -> dict[str, Any]:
    return {"fields": [{"regions": [], "compare": "text", **field} for field in fields], "lineItemCount": items}


def cases(name: str) -> list[dict[str, Any]]:
    listed = json.loads((CASES / name).read_text(encoding="utf-8"))
    return [case for case in listed if case["scorer"] == "field_accuracy"]


def test_the_examples_of_the_metric_text_hold() -> None:
    rows = re.findall(r"^\| (text|money|count) \| `(.+?)` \| `(.+?)` \| (yes|no) \|", METRIC_SPEC.read_text(), re.M)
    assert len(rows) > 15
    wrong = [row for row in rows if values_match(json.loads(row[1]), json.loads(row[2]), row[0]) != (row[3] == "yes")]
    assert not wrong


def test_every_section_the_code_refers_to_is_in_the_metric_text() -> None:
    headings = set(re.findall(r"^#+ (.*)$", METRIC_SPEC.read_text(), re.M))
    named = set()
    for path in METRIC_SPEC.parent.glob("*.py"):
        named |= set(re.findall(r"METRIC_SPEC\.md, \"([^\"]+)\"", path.read_text()))
    assert named and named <= headings


def test_a_surplus_first_item_makes_all_later_ones_wrong() -> None:  # BR-05
    (case,) = cases("BR-05_shifted_rows.json")
    result = score(case["fields"], case["doc"])
    for right, paths in ((True, case["expect"]["correct"]), (False, case["expect"]["wrong"])):
        assert {f["path"] for f in result["fields"] if f["valueCorrect"] is right} == set(paths)
    assert result["extraLineItems"] == case["expect"]["extraLineItems"] == 1


@pytest.mark.parametrize("case", cases("BR-14_numbers.json"), ids=lambda case: case["name"])
def test_printed_numbers_of_other_countries(case: dict[str, Any]) -> None:  # BR-14
    assert values_match(case["expected"], case["predicted"], case["compare"]) is case["expect"]["match"]


def test_white_space_is_that_of_the_reference_and_not_pythons() -> None:
    assert normalized("a\ufeffb\u00a0c\u3000", "text") == "a b c"
    assert normalized("a\x1cb\x85", "text") == "a\x1cb\x85"


def test_an_unknown_kind_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"date.*text, money, count"):
        normalized("1", "date")


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (-2.5, "-2.5"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-6, "0.000001"), (1e-7, "1e-7"),
     (1.5e-7, "1.5e-7"), (123456.75, "123456.75"), (-0.0, "0"), (5, "5"), (math.inf, "Infinity"), (math.nan, "NaN"),
     (-1e-7, "-1e-7")],
)  # fmt: skip
def test_numbers_are_read_as_a_page_would_print_them(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_number_of_thousands_of_digits_is_too_large_to_print() -> None:
    assert [number_text(10**5000), number_text(-(10**5000))] == ["Infinity", "-Infinity"]


def test_a_boolean_reads_as_a_word_and_a_list_as_json() -> None:
    gold = gold_of({"path": "a", "value": "true"}, {"path": "b", "value": "[1, 2]"})
    result = score({"a": leaf(True), "b": leaf([1, 2])}, gold)
    assert [field["valueCorrect"] for field in result["fields"]] == [True, True]


@pytest.mark.parametrize("pred", [None, [], "text", 7, {"lineItems": None}, {"total": "1"}, {"total": {"value": "1"}}])
def test_an_answer_without_leaves_says_nothing(pred: Any) -> None:
    gold = gold_of({"path": "total", "value": "1"}, {"path": "lineItems.0.amount", "value": None})
    assert [field["valueCorrect"] for field in score(pred, gold)["fields"]] == [False, True]


@pytest.mark.parametrize(
    "page_and_box", [(0, None), (None, WHOLE), (1, WHOLE), (0, [0, 0, 1, 1]), (0.5, WHOLE), (True, WHOLE), ("0", WHOLE),
                     (0, WHOLE | {"x1": math.nan}), (0, WHOLE | {"x1": "1"}), (0, WHOLE | {"x1": 10**400})],
)  # fmt: skip
def test_a_right_value_without_a_usable_place_is_right_and_placed_at_zero(page_and_box: tuple[Any, Any]) -> None:
    gold = gold_of({"path": "total", "value": "1", "regions": [{"page": 0, "bbox": WHOLE}]})
    (field,) = score({"total": leaf("1", *page_and_box)}, gold)["fields"]
    assert (field["valueCorrect"], field["iou"]) == (True, 0.0)


def test_a_page_that_came_as_a_float_is_a_page() -> None:
    gold = gold_of({"path": "total", "value": "1", "regions": [{"page": 1, "bbox": WHOLE}]})
    (field,) = score({"total": leaf("1", 1.0, WHOLE)}, gold)["fields"]
    assert (field["iou"], field["predictedPage"]) == (1.0, 1)


def test_another_rendering_is_right_and_null_is_never_one() -> None:
    gold = gold_of({"path": "date", "value": "03/02/2024", "altValues": ["2 March 2024"]})
    assert [score({"date": leaf(value)}, gold)["fields"][0]["valueCorrect"]
            for value in ("03/02/2024", "2 MARCH 2024", "2 March", None)] == [True, True, False, False]  # fmt: skip


def test_what_is_no_gold_is_refused_with_its_first_faults() -> None:
    for gold in (None, [], {}, {"fields": {}}):
        with pytest.raises(ValueError, match="list fields"):
            score({}, gold)
    broken = {"fields": [{"path": 1, "value": 2, "compare": "date", "regions": [{"page": 0}]}, 3], "lineItemCount": -1}
    with pytest.raises(ValueError, match=r"lineItemCount is -1.*fields\[0\]: path is 1.*value is 2.*'date'.*regions"):
        score({}, broken)


def test_inputs_are_not_changed() -> None:
    pred, gold = {"total": leaf("1")}, gold_of({"path": "total", "value": "1"})
    before = json.dumps([pred, gold])
    score(pred, gold)
    assert json.dumps([pred, gold]) == before


def test_a_failed_document_counts_with_zero_everywhere() -> None:  # BR-21
    gold = gold_of({"path": "total", "value": "1", "regions": [{"page": 0, "bbox": WHOLE}]})
    usage = {"inputTokens": 1, "outputTokens": 1, "modelCalls": 1, "costUSD": 0.5}
    doc = {"schema": "receipt", "error": None, "usage": usage, **score({"total": leaf("1", 0, WHOLE)}, gold)}
    failed = {"schema": "receipt", "error": "ExtractionFailedError: x", "usage": None, **score_failure(gold)}
    block = summarize([doc, failed])["receipt"]
    assert (block["docs"], block["failedDocs"], block["fieldAccuracy"]) == (2, 1, 0.5)
    assert block["grounding"] == {"scoreable": 2, "meanIoU": 0.5, "hitAt50": 0.5}
    assert block["cost"]["per1kDocsUSD"] == 250.0


def test_it_stands_alone_and_loads_no_library() -> None:
    code = (
        "import sys; from oeb_ray.scoring.field_accuracy import score; score({}, {'fields': [], 'lineItemCount': 0});"
        "print([name for name in ('numpy', 'scipy', 'pyarrow', 'msgspec', 'httpx') if name in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


BOXES = st.tuples(*[st.floats(0, 1)] * 4)
JSONS = st.recursive(
    st.sampled_from([None, True, 0, 1, 2.0, math.nan, -(10**400), "", "1", "a\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["value", "confidence", "page", "bbox", "lineItems", "total", "x0"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(BOXES, BOXES)
def test_overlap_is_a_share_and_the_same_from_both_sides(one: Any, other: Any) -> None:
    assert 0 <= iou(one, other) <= 1 and iou(one, other) == iou(other, one)


@settings(max_examples=30, deadline=None)
@given(JSONS, st.text(max_size=8) | st.none(), st.sampled_from(field_accuracy.KINDS))
def test_no_answer_breaks_the_scorer(pred: Any, value: str | None, compare: str) -> None:
    region = {"page": 0, "bbox": WHOLE}
    gold = gold_of(*({"path": path, "value": value, "compare": compare, "regions": [region]}
                     for path in ("total", "lineItems.0.total", "lineItems.1.value")))  # fmt: skip
    for field in score(pred, gold)["fields"]:
        assert field["iou"] is None or 0 <= field["iou"] <= 1
        assert (field["iou"] is not None) == field["valueCorrect"]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=12), st.sampled_from(field_accuracy.KINDS))
def test_every_text_is_the_same_as_itself(value: str, compare: str) -> None:
    assert values_match(value, value, compare)
