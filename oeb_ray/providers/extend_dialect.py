"""Extend's dialect of JSON Schema: objects, arrays of objects or of bare primitives, and primitives that may be null.

In: a JSON Schema. Out: one that Extend takes, and that asks for the same fields. References are put in place, unions
become what they have in common, names that Extend does not take are told another way.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import DialectError
from .names import Names, is_plain
from .schema import PRIMITIVES, choices_of, collapsed, described, inlined, kind_of, kind_of_choices

DEPTH = 5
"""Levels of objects that the vendor takes."""
NAMES = Names(is_plain, {"id": "id__"})


def extend_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in Extend's dialect.

    A primitive of several types keeps the first; choices are texts, and those that are numbers go to the description.

    Raises:
        DialectError: the root is no object, or the schema is nested too deeply or cannot be inlined.
    """
    root = collapsed(inlined(schema, DEPTH))
    if kind_of(root) != "object":
        raise DialectError("extend needs a schema whose root is an object")
    return _node(root)


def _node(node: dict[str, Any]) -> dict[str, Any]:
    """A node of any kind where a property stands."""
    kind = kind_of(node)
    result: dict[str, Any] = {}
    if kind == "object":
        result = _object(node)
    elif kind == "array":
        result = {"type": "array", "items": _item(node)}
    elif "enum" in node or kind in PRIMITIVES:
        result = _primitive(node, kind)
    else:
        result = {"type": ["string", "null"]}
    description = result.pop("description", "") or node.get("description")
    return result | ({"description": description} if isinstance(description, str) and description else {})


def _object(node: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"type": "object"}
    properties = node.get("properties")
    if isinstance(properties, dict):
        result["properties"] = {NAMES.told(name): _node(collapsed(below)) for name, below in properties.items()}
    required = node.get("required")
    if isinstance(required, list) and required:
        result["required"] = [NAMES.told(name) for name in required if isinstance(name, str)]
    return result


def _item(node: dict[str, Any]) -> dict[str, Any]:
    """What stands in an array: an object, an array, or a primitive and nothing else about it."""
    item = collapsed(node.get("items", node.get("prefixItems")))
    kind = kind_of(item)
    if kind == "object":
        return _object(item)
    if kind == "array":
        return {"type": "array", "items": _item(item)}
    return {"type": kind if kind in PRIMITIVES else kind_of_choices(choices_of(item)) or "string"}


def _primitive(node: dict[str, Any], kind: str | None) -> dict[str, Any]:
    choices = choices_of(node)
    typed = kind if kind in PRIMITIVES else None
    if not choices:
        return {"type": [typed or "string", "null"]}
    common = kind_of_choices(choices)
    if common == "string" or (common is None and typed in (None, "string")):
        words = [choice if isinstance(choice, str) else json.dumps(choice) for choice in choices]
        return {**({"type": [typed, "null"]} if typed else {}), "enum": [*dict.fromkeys(words), None]}
    return {"type": [typed or common or "string", "null"], "description": described(node, choices)}
