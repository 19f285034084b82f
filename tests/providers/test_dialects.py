"""Each vendor's dialect of JSON Schema: vectors, fields that never vanish, and names that come back."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oeb_ray.errors import DialectError
from oeb_ray.providers.extend_dialect import NAMES
from oeb_ray.providers.registry import PAID, settings_for
from oeb_ray.providers.schema import prepared
from tests.providers.test_schema import CIRCLES
from tests.providers.wires import in_a_hurry, wire

DATA = json.loads((Path(__file__).parent.parent / "data" / "dialects.json").read_text())
INLINING = sorted({"azure-cu", "extend", "llamaextract"} & set(PAID))

GENERAL = {"azure-cu": {"api_version": "2025-11-01"}}


def fields_of(told: dict[str, Any]) -> Any:
    """What is asked for at the root."""
    return told["fields" if "fields" in told else "properties"]


def told(vendor: str, schema: Any, **options: Any) -> Any:
    """The schema as a vendor is sent it, without the benchmark's conventions."""
    provider = PAID[vendor]
    settings = provider.Settings(**(settings_for(vendor, GENERAL.get(vendor)) | options))
    return prepared(schema, overlay=False, dialect=lambda given: provider.prepare_schema(given, settings))[0]


def wrapped(vector: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": vector["a"]}, "$defs": DATA["defs"]}
    return schema | ({"required": ["a"]} if vector["required"] else {})


@pytest.mark.parametrize("vendor", sorted(PAID))
@pytest.mark.parametrize("vector", DATA["vectors"], ids=lambda vector: vector["name"])
def test_the_vectors(vector: dict[str, Any], vendor: str) -> None:
    schema = wrapped(vector)
    before = copy.deepcopy(schema)
    result = told(vendor, schema)
    if vendor not in vector["told"]:  # schemas are sent to it as they are
        assert vendor in ("anthropic", "google", "mistral", "openai", "reducto")
        assert result == schema
    else:
        expected = vector["told"][vendor]
        assert fields_of(result)["a"] == expected["a"]
        assert ("a" in result.get("required", [])) == expected.get("required", False)
    assert schema == before


@pytest.mark.parametrize("vendor", INLINING)
def test_the_vendor_takes_every_vector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vendor: str) -> None:
    in_a_hurry(monkeypatch)
    fields = {f"a{number}": vector["a"] for number, vector in enumerate(DATA["vectors"])}
    schema = {"type": "object", "properties": fields, "$defs": DATA["defs"]}
    with wire(tmp_path, vendor, schema=schema, options={"settings": GENERAL.get(vendor, {})}) as work:
        assert work.ask()[0]["error"] is None


@pytest.mark.parametrize("vendor", INLINING)
def test_root_keywords_go_and_unused_circles_do_no_harm(vendor: str) -> None:
    node = {"type": "object", "properties": {"again": {"$ref": "#/$defs/n"}}}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "x",
        "$comment": "c",
        "type": "object",
        "properties": {"v": {"type": "string"}},
        "$defs": {"n": node},
    }
    result = told(vendor, schema)
    assert not [key for key in result if key.startswith("$")] and set(fields_of(result)) == {"v"}


@pytest.mark.parametrize("vendor", INLINING)
@pytest.mark.parametrize("schema", CIRCLES)
def test_circles_are_refused_at_once(schema: Any, vendor: str) -> None:
    started = time.process_time()
    with pytest.raises(DialectError, match="refers to itself"):
        told(vendor, {"type": "object"} | schema)
    assert time.process_time() - started < 1


@pytest.mark.parametrize("vendor", INLINING)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {}},
        {"properties": {"a": {"$ref": "#/$defs/none"}}},
        {"properties": {"a": {"items": {"anyOf": [{"$ref": "http://x/y"}]}}}},
        json.loads('{"properties": {"a": ' * 25 + "{}" + "}}" * 25),
    ],
)
def test_what_cannot_be_told_is_a_dialect_error(schema: Any, vendor: str) -> None:
    with pytest.raises(DialectError):
        told(vendor, schema)


FIELD = st.deferred(
    lambda: st.one_of(
        st.sampled_from([{}, {"type": "string"}, {"type": ["null", "number"]}, {"enum": ["x", 1]}, {"type": "null"}]),
        st.builds(lambda below: {"type": "array", "items": below}, FIELD),
        st.builds(lambda fields: {"type": "object", "properties": fields}, FIELDS),
        st.builds(lambda branches: {"anyOf": branches}, st.lists(FIELD, min_size=1, max_size=3)),
    )
)
FIELDS = st.dictionaries(st.text(max_size=6), FIELD, min_size=1, max_size=3)


def names(node: Any) -> set[str]:
    """The names of all properties in a schema, at any depth."""
    if isinstance(node, list):
        return {name for below in node for name in names(below)}
    if not isinstance(node, dict):
        return set()
    properties = node.get("properties")
    own = set(properties) if isinstance(properties, dict) else set()
    places = [*(properties.values() if own else ()), node.get("items"), node.get("anyOf")]
    return own | {name for place in places for name in names(place)}


def first_fields(node: Any) -> set[str]:
    """The names that no union hides: what a vendor without unions must still be asked for."""
    if not isinstance(node, dict) or "anyOf" in node:
        return set()
    fields = node.get("properties", {})
    return set(fields) | {name for below in [*fields.values(), node.get("items")] for name in first_fields(below)}


@settings(max_examples=60, deadline=None)
@given(FIELDS)
def test_no_field_vanishes(fields: Any) -> None:
    schema = {"type": "object", "properties": fields}
    for vendor in INLINING:
        try:
            result = told(vendor, copy.deepcopy(schema))
        except DialectError as error:
            assert "levels deep" in str(error) or "characters" in str(error)
            continue
        found = names({"properties": fields_of(result)})
        assert first_fields(schema) <= found | {NAMES.meant(name) for name in found}, vendor


@settings(deadline=None)
@given(st.text(max_size=12) | st.text(alphabet="id_u5f0x-", max_size=14))
def test_names_come_back(name: str) -> None:
    word = NAMES.told(name)
    assert NAMES.meant(word) == name
    assert word and word != "id" and all(c.isascii() and (c.isalnum() or c in "_-") for c in word)
    assert NAMES.restored([{word: [{word: 1}]}]) == [{name: [{name: 1}]}]


def test_paths_come_back() -> None:
    assert NAMES.meant_path("rows[0].id__") == "rows[0].id" and NAMES.meant("__uffffff__") == ""
