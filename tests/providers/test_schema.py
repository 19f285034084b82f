"""Preparing schemas: conventions, benchmark keys, references, Datalab's dialect. Inputs stay as they were."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

from oeb_ray.errors import DialectError
from oeb_ray.providers.schema import CONVENTIONS, datalab_dialect, inlined, overlay, prepared, stripped

MONEY, ORGANISATION, AUTHOR = (convention.sentence for convention in CONVENTIONS)


def described(name: str, node: Any = None) -> Any:
    """The description of a field of this name after the overlay."""
    schema, _ = overlay({"type": "object", "properties": {name: {"type": "string"} if node is None else node}})
    return schema["properties"][name].get("description")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("capex", MONEY),
        ("Total_CapEx_2024", MONEY),
        ("share_repurchases", MONEY),
        ("purchases_of_equipment", MONEY),
        ("capex_percent", None),
        ("shares_repurchases", None),
        ("corporate_capex", None),
        ("author_affiliation", ORGANISATION),
        ("authors", AUTHOR),
        ("author_count", None),
        ("authorised_shares", AUTHOR),
        ("total", None),
    ],
)
def test_the_first_convention_that_fits_the_name_is_stated(name: str, sentence: str | None) -> None:
    assert described(name) == sentence


def test_a_sentence_follows_the_description_once() -> None:
    assert described("capex", {"description": "In thousands."}) == f"In thousands. {MONEY}"
    once, changed = overlay({"properties": {"capex": {}}})
    assert changed and overlay(once) == (once, False)
    assert overlay({"properties": {"total": {}}}) == ({"properties": {"total": {}}}, False)
    assert described("capex", {"description": 7}) == 7


def test_branches_items_and_definitions_get_the_sentence() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "authors": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
            "x": {"$ref": "#/$defs/author"},
            "y": {"$ref": "#/definitions/author"},
        },
        "$defs": {"author": {"type": "string"}},
        "definitions": {"author": {"type": "string"}},
    }
    result, changed = overlay(schema)
    items = result["properties"]["authors"]["items"]
    assert changed
    assert items["description"] == items["anyOf"][0]["description"] == items["anyOf"][1]["description"] == AUTHOR
    assert result["$defs"]["author"]["description"] == AUTHOR
    assert result["definitions"] == schema["definitions"] and result["properties"]["x"] == {"$ref": "#/$defs/author"}


def test_benchmark_keys_go_and_fields_of_those_names_stay() -> None:
    schema: dict[str, Any] = {
        "default": {},
        "evaluation_config": {"a": 1},
        "required": ["default", "evaluation_config"],
        "properties": {
            "default": {"type": "string", "default": "x"},
            "evaluation_config": {"type": "object", "properties": {"default": {"default": 1}}},
            "kind": {"enum": [{"default": 1}], "const": {"default": 1}, "examples": [{"evaluation_config": 1}]},
            "rows": {"items": {"default": [], "anyOf": [{"default": 1}, {"type": "null"}]}},
            "open": {"additionalProperties": {"default": 1}},
        },
        "$defs": {"default": {"default": 1, "type": "string"}},
    }
    before = copy.deepcopy(schema)
    assert stripped(schema) == {
        "required": ["default", "evaluation_config"],
        "properties": {
            "default": {"type": "string"},
            "evaluation_config": {"type": "object", "properties": {"default": {}}},
            "kind": {"enum": [{"default": 1}], "const": {"default": 1}, "examples": [{"evaluation_config": 1}]},
            "rows": {"items": {"anyOf": [{}, {"type": "null"}]}},
            "open": {"additionalProperties": {}},
        },
        "$defs": {"default": {"type": "string"}},
    }
    assert schema == before


def test_overlay_then_strip_then_dialect() -> None:
    schema: dict[str, Any] = {
        "properties": {"capex": {"type": ["number", "null"], "default": 0}},
        "required": ["capex"],
    }
    before = copy.deepcopy(schema)
    told, changed = prepared(schema, overlay=True, dialect=datalab_dialect)
    assert (told, changed) == ({"properties": {"capex": {"type": "number", "description": MONEY}}}, True)
    assert prepared(schema, overlay=False, dialect=datalab_dialect) == (
        {"properties": {"capex": {"type": "number"}}},
        False,
    )
    assert schema == before


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"type": "string", "format": "date"}, None),
        ({"anyOf": [{"type": "number"}, {"type": "null"}], "title": "T"}, None),
        ({"enum": ["x", None]}, None),
        ({"type": ["integer"]}, {"type": "integer"}),
        ({"type": ["string", "integer"]}, {"type": "string"}),
        ({"items": {"type": ["string", "null"], "enum": ["x"]}}, {"items": {"type": "string", "enum": ["x"]}}),
        ({"anyOf": [{"type": ["string", "null"]}]}, {"anyOf": [{"type": "string"}]}),
        ({"additionalProperties": {"type": ["null"]}}, {"additionalProperties": {"type": "string"}}),
    ],
)  # fmt: skip
def test_datalab_types_are_single_everywhere(given: Any, told: Any) -> None:
    schema: dict[str, Any] = {
        "type": ["object", "null"],
        "properties": {"a": given},
        "required": ["a"],
        "$defs": {"d": given},
    }
    before = copy.deepcopy(schema)
    result = datalab_dialect(schema)
    assert result["type"] == "object"
    assert result["properties"]["a"] == result["$defs"]["d"] == (told or given)
    assert result["required"] == ["a"] and schema == before


def test_datalab_fields_that_may_be_null_are_not_required() -> None:
    inner = {"type": ["object", "null"], "properties": {"b": {"type": ["null", "integer"]}}, "required": ["b"]}
    schema: dict[str, Any] = {
        "properties": {
            "a": inner,
            "c": {"$ref": "#/$defs/maybe"},
            "d": {"type": "string"},
            "type": {"type": "string"},
            "required": {"type": ["string", "null"]},
        },
        "required": ["a", "c", "d", "type", "required"],
        "$defs": {"maybe": {"$ref": "#/$defs/text"}, "text": {"type": ["string", "null"]}, "deep": {"allOf": [inner]}},
    }
    result = datalab_dialect(schema)
    plain = {"type": "object", "properties": {"b": {"type": "integer"}}}
    assert result["required"] == ["d", "type"]
    assert result["properties"]["a"] == plain and result["$defs"]["deep"] == {"allOf": [plain]}
    assert result["properties"]["c"] == {"$ref": "#/$defs/maybe"} and result["$defs"]["text"] == {"type": "string"}
    assert set(result["properties"]) == set(schema["properties"]), "no field vanishes"


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"properties": []}, {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {}}}}]
)
def test_datalab_needs_properties_at_the_root(schema: Any) -> None:
    with pytest.raises(DialectError, match="properties"):
        datalab_dialect(schema)


def test_references_are_replaced_and_neighbours_win() -> None:
    schema: dict[str, Any] = {
        "properties": {
            "row": {"$ref": "#/$defs/a~1b", "description": "outer"},
            "first": {"$ref": "#/properties/list/prefixItems/0"},
            "list": {"prefixItems": [{"type": "integer"}]},
            "$defs": {"type": "string"},
            "$ref": {"type": "string"},
            "gone": {"$ref": "#/$defs/none"},
            "away": {"$ref": "http://x/y"},
            "value": {"const": {"$ref": "#/$defs/t"}},
        },
        "$defs": {
            "a/b": {"type": "object", "description": "inner", "properties": {"t": {"$ref": "#/$defs/t"}}},
            "t": {"type": "string"},
            "unused": {"properties": {"u": {"$ref": "#/$defs/unused"}}},
        },
    }
    before = copy.deepcopy(schema)
    assert inlined(schema, 5) == {
        "properties": {
            "row": {"type": "object", "description": "outer", "properties": {"t": {"type": "string"}}},
            "first": {"type": "integer"},
            "list": {"prefixItems": [{"type": "integer"}]},
            "$defs": {"type": "string"},
            "$ref": {"type": "string"},
            "gone": {"$ref": "#/$defs/none"},
            "away": {"$ref": "http://x/y"},
            "value": {"const": {"$ref": "#/$defs/t"}},
        }
    }
    assert schema == before


NODE = {"type": "object", "properties": {"v": {}, "l": {"$ref": "#/$defs/n"}, "r": {"$ref": "#/$defs/n"}}}
CIRCLES = [
    {"properties": {"t": {"$ref": "#/$defs/n"}}, "$defs": {"n": NODE}},
    {"properties": {"t": {"$ref": "#"}}},
    {"properties": {"t": {"items": {"$ref": "#/properties/t"}}}},
    {"properties": {"t": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"properties": {"t": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/%61"}]}}},
]


@pytest.mark.parametrize("schema", CIRCLES)
def test_schemas_that_refer_to_themselves_end_within_two_seconds(schema: Any) -> None:
    started = time.process_time()
    with pytest.raises(DialectError, match="refers to itself"):
        inlined(schema, 7)
    told, _ = prepared(schema, overlay=True, dialect=datalab_dialect)
    assert set(told["properties"]) == {"t"}
    assert time.process_time() - started < 2


def test_doubling_definitions_do_not_explode() -> None:
    chain: dict[str, Any] = {
        f"d{n}": {"prefixItems": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)
    }
    with pytest.raises(DialectError, match="over 100,000 parts"):  # of 2**40: the limit ends it, or the run's time
        inlined({"properties": {"t": {"$ref": "#/$defs/d0"}}, "$defs": chain}, 7)


def test_depth_is_limited() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5):
        schema = {"type": "object", "properties": {"x": {"type": "array", "items": schema}}}
    assert inlined(schema, 5) == schema
    with pytest.raises(DialectError, match="over 4 levels"):
        inlined(schema, 4)
    chain = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(3000)}
    with pytest.raises(DialectError, match="levels deep"):
        inlined({"properties": {"t": {"$ref": "#/$defs/d0"}}, "$defs": chain}, 7)


@pytest.mark.parametrize("prepare", [overlay, stripped, datalab_dialect, lambda schema: inlined(schema, 7)])
def test_what_cannot_be_walked_or_sent_is_refused(prepare: Any) -> None:
    deep = '{"properties":' + '{"a":{"items":' * 400 + "{}" + "}}" * 400 + "}"
    schemas: list[Any] = [json.loads(deep), [], None, {"properties": {"a": {"maximum": float("inf")}}}]
    for schema in schemas:
        with pytest.raises(DialectError):
            prepare(schema)


def test_a_deep_schema_within_bounds_is_taken() -> None:
    schema = json.loads('{"properties":' + '{"a":{"items":' * 95 + "{}" + "}}" * 95 + "}")
    assert stripped(schema) == datalab_dialect(schema) == overlay(schema)[0] == schema
