"""What Azure AI Content Understanding is asked, and how it answers: field schemas and value nodes.

In: a JSON Schema, or the fields of a result. Out: a field schema that asks for the same fields, or a plain object with
the evidence beside it. References are put in place and unions collapsed first; choices stand in the descriptions.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from ..errors import DialectError
from .names import Names
from .schema import PRIMITIVES, choices_of, collapsed, described, inlined, kind_of, kind_of_choices

DEPTH = 20
"""Levels of objects; the vendor documents no limit."""
LONGEST_DESCRIPTION, LONGEST_NAME = 1024, 64
"""Characters that the vendor takes."""
LIST = "__list__"
"""Vendors' arrays hold objects and primitives: an array inside one is told as an object with this one field."""
EVIDENCE = ("confidence", "source", "spans")


def _takes(c: str) -> bool:
    return c.isalnum() or c in "_.-" or unicodedata.category(c).startswith("M")


NAMES = Names(_takes, {LIST: "__u5f____u5f__list__u5f____u5f__"})


def field_schema(schema: dict[str, Any], open_kind: str) -> dict[str, Any]:
    """The schema as ``{"fields": {...}}``; ``open_kind`` is the type of an object whose fields have no names.

    Raises:
        DialectError: the root has no properties, a name is too long, or the schema cannot be inlined.
    """
    root = collapsed(inlined(schema, DEPTH))
    if not isinstance(root.get("properties"), dict):
        raise DialectError("azure-cu needs a schema whose root is an object with properties")
    return {"fields": _fields(root["properties"], open_kind)}


def _fields(properties: dict[str, Any], open_kind: str) -> dict[str, Any]:
    told = {NAMES.told(name): _field(below, open_kind) for name, below in properties.items()}
    for name in told:
        if len(name) > LONGEST_NAME:
            raise DialectError(f"azure-cu takes names of {LONGEST_NAME} characters; {name[:80]!r} has {len(name)}")
    return told


def _field(given: Any, open_kind: str) -> dict[str, Any]:
    node = collapsed(given)
    kind, choices = kind_of(node), choices_of(node)
    result: dict[str, Any] = {"type": kind, "description": described(node, choices)[:LONGEST_DESCRIPTION]}
    if kind == "object":
        properties = node.get("properties")
        if isinstance(properties, dict) and properties:
            result["properties"] = _fields(properties, open_kind)
        else:
            result["type"] = open_kind
    elif kind == "array":
        item = _field(node.get("items", node.get("prefixItems")), open_kind)
        if item["type"] == "array":
            item = {"type": "object", "description": "", "properties": {LIST: item}}
        result["items"] = item
    elif kind not in PRIMITIVES:
        result["type"] = kind_of_choices(choices) or "string"
    return result


def values_of(fields: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The plain object that the fields of a result state, and the evidence as {"path", "confidence", ...}."""
    evidence: list[dict[str, Any]] = []
    return _named(fields, "", evidence), evidence


def _named(nodes: Any, path: str, evidence: list[dict[str, Any]]) -> dict[str, Any]:
    plain = {}
    for told, node in (nodes if isinstance(nodes, dict) else {}).items():
        name = NAMES.meant(told)
        plain[name] = _value(node, f"{path}.{name}" if path else name, evidence)
    return plain


def _value(node: Any, path: str, evidence: list[dict[str, Any]]) -> Any:
    """A node's value: that under ``value<Type>``, else its ``content``; None for a field that was found nowhere."""
    if not isinstance(node, dict):
        return None
    if beside := {key: node[key] for key in EVIDENCE if node.get(key) is not None}:
        evidence.append({"path": path, **beside})
    given = next((key for key in node if key.startswith("value") and key[5:6].isupper()), "content")
    value = node.get(given)
    if given == "valueArray":
        listed = value if isinstance(value, list) else []
        return [_value(item, f"{path}[{n}]", evidence) for n, item in enumerate(listed)]
    if given == "valueObject":
        if isinstance(value, dict) and set(value) == {LIST}:
            return _value(value[LIST], path, evidence)
        return _named(value, path, evidence)
    return value
