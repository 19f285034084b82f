"""Reading replies: an object or nothing, side keys by schema, nothing secret or unwritable in a record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oeb_ray.jsontext import read_json
from oeb_ray.providers import replies
from oeb_ray.providers.replies import (
    answer_of,
    count_at,
    merge_objects,
    number_at,
    parse_object,
    prediction_bytes,
    reason,
    recordable,
    redacted,
    strip_sidecars,
)

ONE = {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', ONE),
        ('  \n{"a": 1}\n', ONE),
        ('\ufeff{"a": 1}', ONE),
        ('```json\n{"a": 1}\n```', ONE),
        ('```\n{"a": 1}\n```', ONE),
        ('```{"a": 1}```', ONE),
        ('```JSON\n{"a": 1}\n```', ONE),
        ('The result:\n```json\n{"a": 1}\n```', ONE),
        ('```json\n{"a": 1}\n```\nAs [2] says.', ONE),
        ('{"a": 1}\n\nSources: [1], [2]', ONE),
        ('<think>or {"a": 0}?</think>{"a": 1}', ONE),
        ('{"a": "```json"}', {"a": "```json"}),
        ('```json\n{"a": "``` {"}\n```', {"a": "``` {"}),
        ('{"a": 1}{"a": 2}', None),
        ('{"a": {"b": 1}}, "c": 2}', None),
        ('See [1]: {"a": 42}', None),
        ('Not so:\n```text\n{"a": "no"}\n```\nbut:\n```json\n{"a": "yes"}\n```', None),
        ('```json\n{"a": 0}\n```\nor\n```json\n{"a": 1}\n```', None),
        ('Not {"a": 0} but\n```json\n{"a": 1}\n```', None),
        ('{"a": 0}\nthat was wrong:\n```json\n{"a": 1}\n```', None),
        ('<think>\n```json\n{"a": 0}\n```\n</think>\n{"a": 1}', ONE),
        ('<think>\n```json\n{"a": 0}\n```\nhm', None),
        ('```text\n{"a": 1}\n```', None),
        ('````json\n{"a": 1}\n````', None),
        ('{"a": NaN}', None),
        ('{"a": NaN, "b": {"c": 1}}', None),
        ('{"a": -Infinity}', None),
        ('{"a": 1e999}', None),
        ('{"a": NaN} and so on', None),
        ('[{"a": 1}]', None),
        ('{"a": 1,}', None),
        ('"{\\"a\\": 1}"', None),
        ("null", None),
        ("", None),
        ("{}", None),
        ('{"a": "cut', None),
        ('```json\n{"a": 1', None),
        ('```json\n{"a": 1}', None),
        ("{" * 100_000, None),
        ('{"a":' * 100_000, None),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", None),
        ('{"a": ' + "7" * 5000 + "}", None),
    ],
)
def test_an_object_or_nothing_and_never_a_wrong_one(text: str, expected: Any) -> None:
    assert parse_object(text) == expected


def test_long_texts_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replies, "MAX_TEXT", 20)
    assert parse_object('{"a": 1}') == ONE
    assert parse_object('{"a": "' + "x" * 20 + '"}') is None


def test_every_digit_and_half_an_emoji_survive() -> None:
    text = '{"id": 123456789012345678901234567890, "x": 0.1, "half": "\\ud83d", "umlaut": "ü"}'
    answer = parse_object(text)
    assert answer is not None
    stored = prediction_bytes(answer)
    assert b"123456789012345678901234567890" in stored and "ü".encode() in stored and b"\\ud83d" in stored
    assert read_json(stored) == answer
    with pytest.raises(ValueError):
        prediction_bytes({"a": float("nan")})


def test_an_answer_may_come_as_text_or_object() -> None:
    assert answer_of('{"a": 1}') == answer_of({"a": 1}) == ONE
    assert [answer_of(given) for given in ({}, [], [ONE], None, 3, {"a": float("inf")})] == [None] * 6


def test_partial_objects_merge_to_the_first_values_that_say_something() -> None:
    assert merge_objects([{"a": None, "rows": []}, {"a": "x", "rows": [1], "b": 0}, {"b": 2}]) == {
        "a": "x",
        "rows": [1],
        "b": 0,
    }
    assert merge_objects([3, {"a": None}]) == {"a": None}
    nothing: list[list[Any]] = [[], [{}], [3], [{}, {}]]
    assert [merge_objects(given) for given in nothing] == [None] * 4


LOTS: dict[str, Any] = {
    "properties": {
        "lot": {"type": "string"},
        "lot_meta": {"type": "string"},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        "either": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"type": "null"}]},
        "map": {"type": "object", "additionalProperties": {"properties": {"v": {}}}},
    },
    "$defs": {"row": {"properties": {"tax": {}, "again": {"$ref": "#/$defs/row"}}}},
}


def test_side_keys_go_where_the_schema_does_not_ask_for_them() -> None:
    answer: dict[str, Any] = {
        "lot": "L7",
        "lot_meta": "north",
        "lot_score": {"score": 5},
        "rows": [{"tax": 1, "tax_citations": ["/page/0/T/1"], "again": {"tax": 2, "tax_meta": {}}}],
        "rows_meta": {},
        "other_meta": "no property: kept",
        "either": {"x": 1, "x_score": 2},
        "map": {"one": {"v": 1, "v_meta": 1}, "one_meta": "kept"},
    }
    plain, removed = strip_sidecars(answer, LOTS)
    assert plain == {
        "lot": "L7",
        "lot_meta": "north",
        "rows": [{"tax": 1, "again": {"tax": 2}}],
        "other_meta": "no property: kept",
        "either": {"x": 1},
        "map": {"one": {"v": 1}, "one_meta": "kept"},
    }
    assert {(item["path"], item["key"]) for item in removed} == {
        ("lot", "lot_score"),
        ("rows[0].tax", "tax_citations"),
        ("rows[0].again.tax", "tax_meta"),
        ("rows", "rows_meta"),
        ("either.x", "x_score"),
        ("map.one.v", "v_meta"),
    }
    assert answer["rows"][0]["tax_citations"] == ["/page/0/T/1"], "the input is not changed"


TOTALS: dict[str, Any] = {
    "properties": {
        "total": {"type": ["number", "null"]},
        "party": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"enum": [1, 2], "type": "integer"}}},
        },
        "value": {"type": "string"},
        "any": {},
        "map": {"type": "object", "additionalProperties": {"type": "number"}},
        "own": {"type": "object", "properties": {"value": {"type": "number"}, "unit": {"type": "string"}}},
    }
}


def test_a_value_is_taken_out_of_its_wrapper_where_the_schema_has_no_place_for_one() -> None:
    answer: dict[str, Any] = {
        "total": {"value": 88.5, "page_number": 1},
        "party": {"value": {"value": "Quay Co"}, "matching_text": "Quay"},
        "rows": {"value": [{"value": {"n": {"value": 1}}, "score": 2}], "citations": ["p1"]},
        "value": "field",
        "any": {"value": 1},
        "map": {"value": 3},
        "own": {"value": 4, "unit": "kg"},
    }
    plain, removed = strip_sidecars(answer, TOTALS)
    assert plain == {
        "total": 88.5,
        "party": "Quay Co",
        "rows": [{"n": 1}],
        "value": "field",
        "any": {"value": 1},
        "map": {"value": 3},
        "own": {"value": 4, "unit": "kg"},
    }
    assert [(item["path"], item["key"]) for item in removed] == [
        ("total", "page_number"),
        ("party", "matching_text"),
        ("rows", "citations"),
        ("rows[0]", "score"),
    ]
    wrapped, _ = strip_sidecars({"value": {"total": 1}, "confidence": 1}, {"properties": {"total": {"type": "number"}}})
    assert wrapped == {"total": 1}


def test_numbers_in_a_reply_are_numbers_or_nothing() -> None:
    body = {"a": {"n": 2.5, "k": 3, "t": "3", "b": True, "low": -1, "inf": float("inf")}, "l": [1]}
    paths = ("a.n", "a.k", "a.t", "a.b", "a.low", "a.inf", "a.x", "a", "l.0", "x.y")
    assert [number_at(body, path) for path in paths] == [2.5, 3, *[None] * 8]
    assert [count_at(body, path) for path in ("a.n", "a.k", "a.b")] == [None, 3, None]


def test_a_circle_of_references_ends() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/x"}},
        "$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"$ref": "#/$defs/x"}},
    }
    assert strip_sidecars({"a": {"b": 1}}, schema) == ({"a": {"b": 1}}, [])


def test_no_secret_is_recorded() -> None:
    key = 'sk/é"1'
    text = redacted(f"bad key {key}; " + json.dumps({"key": key}) + " " + key.replace("/", "\\/"), [key, ""])
    assert "sk" not in text and text.count("[redacted]") == 3
    assert recordable({f"k{key}": [key, 1]}, [key]) == {"k[redacted]": ["[redacted]", 1]}


def test_what_is_recorded_can_be_written() -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    kept = recordable({"x": float("nan"), "deep": deep, "y": -float("inf"), "n": 10**5000})
    assert (kept["x"], kept["y"]) == ("nan", "-inf")
    assert len(json.dumps(kept, allow_nan=False)) < 1000


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": "no such page"}, "no such page"),
        ({"detail": [{"loc": ["body", "file"], "msg": "field required", "type": "x"}]}, "body.file: field required"),
        ({"error": {"message": "broken", "code": 3300}}, "broken: code 3300"),
        ({"error": "plain"}, "plain"),
        ({"message": {"detail": [{"msg": "inner"}]}}, "inner"),
        ({"object": "error", "message": "not a valid PDF", "code": "3740"}, "not a valid PDF: code 3740"),
        (
            {
                "error": {
                    "code": 429,
                    "message": "upstream",
                    "metadata": {"raw": "full house", "provider_name": "North"},
                }
            },
            "upstream: North: full house: code 429",
        ),
        ("<html>\n busy </html>", "<html> busy </html>"),
        ({"error": None, "detail": "", "message": []}, ""),
        (None, ""),
        ({"error": {"error": {"error": {"error": {"error": "too deep"}}}}}, ""),
    ],
)
def test_the_reason_is_found(body: Any, words: str) -> None:
    assert reason(body) == words


def test_a_long_reason_is_cut() -> None:
    assert len(reason({"detail": "x" * 5000})) == 600
