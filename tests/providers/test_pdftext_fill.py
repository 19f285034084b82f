"""Tests of the schema filler: labels, types, tables, citations, hostile schemas, determinism."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oeb_ray.providers.pdftext_fill import fill
from oeb_ray.providers.pdftext_values import convert, parse_number, words_of
from oeb_ray.providers.textlayer import Line, Table, TextLayer, Word, read_text_layer

STRING = {"type": ["string", "null"]}
NUMBER = {"type": "number"}


def plain(text: str) -> TextLayer:
    return read_text_layer(text.encode(), "text/plain")


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def filled(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return fill(schema, plain(text))[0]


def test_labels_before_a_colon_a_gap_and_above_the_value() -> None:
    text = "Invoice No: INV-7     Due date    2025-02-01\n\nCustomer name\nAnn Bo Ltd\n\nTotal 12.50\n"
    schema = obj(invoice_number=STRING, dueDate=STRING, customer_name=STRING, total=NUMBER, absent=STRING)
    assert filled(schema, text) == {
        "invoice_number": "INV-7",
        "dueDate": "2025-02-01",
        "customer_name": "Ann Bo Ltd",
        "total": 12.5,
        "absent": None,
    }


def test_description_is_used_when_the_name_matches_nothing() -> None:
    schema = obj(ref={"type": "string", "description": "The purchase order shown at the top"})
    assert filled(schema, "Purchase order: PO-9\n") == {"ref": "PO-9"}


def test_a_printed_value_serves_one_field_and_the_better_match_wins() -> None:
    schema = obj(date=STRING, invoice_date=STRING)
    assert filled(schema, "Invoice date: 2025-01-01\n") == {"date": None, "invoice_date": "2025-01-01"}


def test_nested_objects_prefer_their_parents_name() -> None:
    schema = obj(seller=obj(name=STRING), buyer=obj(name=STRING))
    text = "Buyer name: Bo\nSeller name: Ann\n"
    assert filled(schema, text) == {"seller": {"name": "Ann"}, "buyer": {"name": "Bo"}}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234.50", 1234.5), ("1.234,50", 1234.5), ("1,234", 1234), ("12,5", 12.5), ("$ (1,000)", -1000),
        ("-3.00", -3.0), ("5.00-", -5.0), ("EUR 7", 7), ("12 %", 12), ("\u20ac1'000", 1000), (".5", 0.5),
        ("2025-01-03", None), ("10/14/2025", None), ("abc 5", None), ("", None), ("1.2.3.4", None), ("9" * 5000, None),
    ],
)  # fmt: skip
def test_numbers(text: str, number: float | None) -> None:
    if text.startswith("999"):
        assert isinstance(parse_number(text), int)  # cut to a bounded length, never a traceback
    else:
        assert parse_number(text) == number


def test_other_types() -> None:
    assert convert("33.0", {}, "integer") == 33
    assert convert("33.5", {}, "integer") is None
    assert [convert(text, {}, "boolean") for text in ("Yes", "no", "[x] agreed", "[ ]", "\u2612", "maybe")] == [
        True, False, True, False, True, None,
    ]  # fmt: skip
    assert convert("Status is Past Due now", {"enum": ["due", "past due", None]}, "string") == "past due"
    assert convert("unknown", {"enum": ["due"]}, "string") is None
    assert words_of("invoiceNo_HTMLText") == ("invoice", "number", "html", "text")


def test_lists_of_scalars_split_at_commas() -> None:
    schema = obj(tags={"type": "array", "items": STRING}, codes={"type": "array", "items": {"type": "integer"}})
    assert filled(schema, "Tags: red, green; blue\n") == {"tags": ["red", "green", "blue"], "codes": []}


LINES = {"type": "array", "items": {"$ref": "#/$defs/Line"}}
ORDER = {
    **obj(line_items=LINES),
    "$defs": {"Line": obj(description=STRING, qty={"type": "integer"}, unit_price=NUMBER, notes=LINES, sku=STRING)},
}


def test_rows_come_from_the_best_table_and_equal_headers_are_one_table() -> None:
    text = "Description   Qty   Unit price\nBolt            3         1.50\n\nName     Age\nAnn       30\n\n"
    again = "Description   Qty   Unit price\nNut             4         2.00\n"
    blank = {"notes": [], "sku": None}
    assert filled(ORDER, text + again)["line_items"] == [
        {"description": "Bolt", "qty": 3, "unit_price": 1.5, **blank},
        {"description": "Nut", "qty": 4, "unit_price": 2.0, **blank},
    ]


def test_a_table_that_matches_too_little_gives_no_rows() -> None:
    assert filled(ORDER, "Qty   Colour\n3     red\n4     blue\n")["line_items"] == []


def test_citations_on_a_page_with_geometry() -> None:
    words = (Word("Total:", 2, (0.1, 0.1, 0.2, 0.12)), Word("12", 2, (0.5, 0.1, 0.55, 0.12)))
    table = Table(3, ("Qty", "SKU"), (("4", "A"),), (((0.1, 0.2, 0.2, 0.3), (0.4, 0.2, 0.5, 0.3)),))
    layer = TextLayer(3, (Line(2, words),), (table,), geometry=True)
    prediction, citations = fill({**ORDER, **obj(total=NUMBER, line_items=LINES)}, layer)
    assert prediction["total"] == 12 and prediction["line_items"][0]["sku"] == "A"
    assert citations[0] == {"path": "total", "page": 2, "box": [0.5, 0.1, 0.55, 0.12], "text": "12"}
    assert {"path": "line_items[0].sku", "page": 3, "box": [0.4, 0.2, 0.5, 0.3], "text": "A"} in citations
    assert fill(ORDER, layer._replace(geometry=False))[1] == []


def test_any_of_takes_the_object_branch_and_all_of_is_followed() -> None:
    schema = obj(
        a={"anyOf": [{"type": "null"}, STRING, obj(total=NUMBER)]},
        b={"allOf": [{"$ref": "#/$defs/Code"}]},
        c={"anyOf": [{"type": "integer"}, {"type": "null"}]},
    )
    schema["$defs"] = {"Code": STRING}
    assert filled(schema, "Total: 5\nB: x1\nC: 7\n") == {"a": {"total": 5}, "b": "x1", "c": 7}


def test_circular_refs_end() -> None:
    node = obj(name=STRING, left={"$ref": "#/$defs/N"}, right={"$ref": "#/$defs/N"}, up={"$ref": "#"})
    schema = {"$ref": "#/$defs/N", "$defs": {"N": node, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert filled(schema, "Name: Ann\n") == {"name": "Ann", "left": None, "right": None, "up": None}
    assert filled(obj(x={"$ref": "#"}), "x: 1\n") != {}
    assert filled({"$ref": "#/$defs/Loop", **{k: v for k, v in schema.items() if k != "$ref"}}, "x") == {}


def test_refs_that_double_at_every_level_are_bounded() -> None:
    levels = {f"L{i}": obj(a={"$ref": f"#/$defs/L{i + 1}"}, b={"$ref": f"#/$defs/L{i + 1}"}) for i in range(31)}
    schema = {"$ref": "#/$defs/L0", "$defs": {**levels, "L31": obj(x=STRING)}}
    assert len(json.dumps(filled(schema, "x: 1\n"))) < 1_000_000


def test_deep_schema_is_bounded() -> None:
    schema: dict[str, Any] = STRING
    for _ in range(5_000):
        schema = obj(a=schema)
    prediction = filled(schema, "a: 1\n")
    depth = 0
    node: Any = prediction
    while isinstance(node, dict):
        node, depth = node["a"], depth + 1
    assert node is None and 10 < depth < 100


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"type": "array", "items": STRING}, {"type": "object"}, {"properties": 3}, {"$ref": "file:///etc/passwd"},
        {"type": [], "properties": {"a": None, "b": 3, "c": {"type": 7}, "d": {"enum": "x"}, "e": {"anyOf": [1]}}},
        {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": [STRING]}}},
    ],
)  # fmt: skip
def test_odd_schemas_give_a_result(schema: dict[str, Any]) -> None:
    prediction, citations = fill(schema, plain("a: 1\nb: 2\n"))
    assert set(prediction) <= set("abcde") and citations == []


def test_an_empty_layer_leaves_every_field_empty() -> None:
    assert fill(ORDER, TextLayer(0, (), ())) == ({"line_items": []}, [])


def test_the_same_input_gives_the_same_output() -> None:
    text = "Total: 5\nTotal: 6\nQty   SKU\n3     A\n"
    schema = {**ORDER, **obj(total=NUMBER, line_items=LINES)}
    first = fill(schema, plain(text))
    assert first == fill(schema, plain(text))
    assert first[0]["total"] == 5  # a tie goes to the label printed first
