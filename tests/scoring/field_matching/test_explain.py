"""Traces end in the key that `canon_key` gives, and say where two values meet or part."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oeb_ray.scoring.field_matching import canon_key
from oeb_ray.scoring.field_matching.explain import STAGES, compare, trace

from .test_vectors import DATA, lines_of

SIGNS = "aZé\u2013\u2022 \t()[]/.,-$%'\"012345678９½\u0301\u200b\0"
VALUES = (
    st.text()
    | st.text(SIGNS)
    | st.floats()
    | st.integers()
    | st.booleans()
    | st.none()
    | st.dates().map(str)
    | st.datetimes().map(str)
)


def test_a_trace_ends_in_the_recorded_key() -> None:
    vectors = lines_of("oeb_canon_vectors.jsonl")
    values = [float(vector["special"]) if "special" in vector else vector["value"] for vector in vectors]
    assert [trace(value).key for value in values] == [vector["key"] for vector in vectors]


@given(VALUES)
def test_a_trace_ends_in_the_key_of_any_value(value: object) -> None:
    traced = trace(value)
    assert traced.key == canon_key(value)
    names = [step.name for step in traced.steps]
    assert names == sorted(names, key=STAGES.index), "steps in their order, each once"
    assert not any(step.final for step in traced.steps[:-1])


@given(VALUES, VALUES)
def test_two_values_meet_exactly_if_their_keys_are_equal(left: object, right: object) -> None:
    compared = compare(left, right)
    assert compared.equal == (canon_key(left) == canon_key(right))
    assert compared.at is None or compared.at in STAGES


def test_printed_numbers_of_other_countries_are_explained() -> None:
    """BR-14"""
    items = json.loads((DATA / "oeb_cases" / "BR-14_numbers.json").read_text())
    compared = {item["name"]: compare(item["pred"]["v"], item["gt"]["v"]) for item in items if "pred" in item}
    assert {name: found.equal for name, found in compared.items()} == {
        item["name"]: item["expect"]["matched"] == 1 for item in items if "pred" in item
    }
    told = {name: (found.at, found.only) for name, found in compared.items()}
    assert told["1.234,56 | 1234.56"] == ("decimal", None)
    assert told["25,000 | 25000"] == ("number", None)
    assert told["25,000 | 25.000"] == ("decimal", 1)
    assert told["72, | 72"] == ("number", None)
    assert told["(1,250.00) | -1250.0"] == ("decimal", None)
    assert told["(1250) | -1250"] == ("number", 1)


@pytest.mark.parametrize(
    ("left", "right", "at"),
    [
        ("Acme", "acme ", "case"),
        ("Café", "cafe", "accents"),
        ("Total [2]", "Total", "footnote"),
        ("\u201cx", '"x', "typography"),
        ("\u2022Bolt", "\u2022 Bolt", None),
        ("03/31/2024", "2024-03-31", "date"),
        ("P.O. Box", "PO-Box", "punctuation"),
        ("a/b", "(ab)", "brackets"),
        (True, "TRUE", "case"),
        ("same", "same", None),
        (None, "  ", "nothing"),
        ("1" * 400, "1" * 399, "cut short"),
        ("()", "(", "kept whole"),
    ],
)
def test_the_step_where_they_meet_or_part_is_named(left: object, right: object, at: str | None) -> None:
    assert compare(left, right).at == at
