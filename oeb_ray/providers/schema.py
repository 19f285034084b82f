"""Prepares a document's schema for a vendor: conventions stated, benchmark keys taken off, the vendor's dialect.

In: a JSON Schema as the corpus has it. Out: a new one; the input is never changed. Every walk goes through keyword
positions only, so that a field may bear any name, and every walk ends, also on schemas that refer to themselves.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..errors import DialectError
from .replies import pointed_at

MAX_DEPTH = 200
"""Levels of lists and objects in a schema; a deeper one is refused."""
MAX_NODES = 100_000
"""Subschemas after inlining; a schema that grows beyond is refused."""
BENCHMARK_KEYS = ("evaluation_config", "default")
"""Keywords that tell how a field is scored, or what it is when absent: not for the vendor."""

PRIMITIVES = ("string", "number", "integer", "boolean")

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLES = (
    *("items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)


class Convention(NamedTuple):
    """A sentence for fields whose lower-case name contains one of ``words`` and none of ``never``."""

    words: tuple[str, ...]
    never: tuple[str, ...]
    sentence: str


CONVENTIONS = (
    Convention(
        (
            *("capex", "capital_expenditure", "dividends_paid", "share_repurchase", "repurchases", "interest_expense"),
            *("cost_of_revenue", "operating_expense", "income_tax_expense", "payments_of", "purchases_of"),
            "distributions_paid",
        ),
        ("percent", "pct", "rate", "ratio", "days", "count", "number", "shares_"),
        "Report the size of the amount as a positive number: brackets round a printed figure mark money going out, "
        "which this field's name says already, so leave the minus sign off.",
    ),
    Convention(
        ("affiliation",),
        (),
        "State the organisation by its name alone, without department, street address, city or postal code.",
    ),
    Convention(
        ("author",), ("count", "number"), "Write the name the way it stands in the document, and keep initials."
    ),
)
"""Of these the first that fits a name applies; what they say is the benchmark's convention for such fields."""


def prepared(
    schema: dict[str, Any], *, overlay: bool, dialect: Callable[[dict[str, Any]], dict[str, Any]]
) -> tuple[dict[str, Any], bool]:
    """The schema as a vendor is sent it, and whether conventions were added: overlay, then strip, then dialect.

    Raises:
        DialectError: the vendor cannot be told this schema.
    """
    changed = False
    if overlay:
        schema, changed = _overlaid(schema)
    return dialect(stripped(schema)), changed


def overlay(schema: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema with `CONVENTIONS` added to the descriptions of the fields they concern; whether any was added.

    A field's sentence also stands on the branches of its unions and on the items of its array. Definitions count as
    fields of their name; what stands elsewhere and is only referred to does not.
    """
    check_bounds(schema)
    result = copy.deepcopy(schema)
    return result, _add_conventions(result, "")


_overlaid = overlay


def _add_conventions(node: Any, name: str) -> bool:
    if not isinstance(node, dict):
        return False
    changed = _add_sentence(node, name)
    for word in ("properties", "$defs"):
        for key, below in _map(node, word).items():
            changed |= _add_conventions(below, key)
    for below in (node.get("items"), *(branch for word in _LISTS[:3] for branch in _list(node, word))):
        changed |= _add_conventions(below, name)
    return changed


def _add_sentence(node: dict[str, Any], name: str) -> bool:
    name = name.lower()
    for words, never, sentence in CONVENTIONS:
        if any(word in name for word in words) and not any(word in name for word in never):
            given = node.get("description", "")
            if not isinstance(given, str) or sentence in given:
                return False
            node["description"] = f"{given} {sentence}" if given else sentence
            return True
    return False


def stripped(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without `BENCHMARK_KEYS` where they are keywords: fields and values of those names stay."""
    check_bounds(schema)
    result: dict[str, Any] = mapped(
        schema, lambda node: {key: value for key, value in node.items() if key not in BENCHMARK_KEYS}
    )
    return result


def mapped(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of a schema with ``change`` applied to every subschema, outer ones first."""
    if not isinstance(node, dict):
        return copy.deepcopy(node)
    return _with_subschemas(change(node), lambda below: mapped(below, change))


def _with_subschemas(node: dict[str, Any], visit: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy of one node with ``visit`` applied to the subschemas right below it; all other values are copied."""
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in _MAPS and isinstance(value, dict):
            result[key] = {name: visit(below) for name, below in value.items()}
        elif key in (*_LISTS, "items") and isinstance(value, list):
            result[key] = [visit(below) for below in value]
        elif key in _SINGLES:
            result[key] = visit(value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def as_it_is(schema: dict[str, Any]) -> dict[str, Any]:
    """The dialect of vendors that take any schema that can be written as JSON; references and circles stay."""
    check_bounds(schema)
    return copy.deepcopy(schema)


def datalab_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in Datalab's dialect, which answers 500 to a list of types and needs ``properties`` at the root.

    Everywhere in the schema a list of types becomes its first that is not null (``string`` if there is none), and a
    property that may be null is no longer required. No field is dropped; references and unions stay.

    Raises:
        DialectError: there are no ``properties`` at the root.
    """
    check_bounds(schema)
    if not isinstance(schema.get("properties"), dict):
        raise DialectError("datalab needs a schema with `properties` at its root")

    def change(node: dict[str, Any]) -> dict[str, Any]:
        result = dict(node)
        required = node.get("required")
        if isinstance(required, list):
            properties = _map(node, "properties")
            kept = [name for name in required if not _may_be_null(_named(properties, name), schema)]
            if len(kept) < len(required):
                result["required"] = kept
                if not kept:
                    del result["required"]
        if isinstance(node.get("type"), list):
            result["type"] = next((kind for kind in node["type"] if kind != "null"), "string")
        return result

    collapsed: dict[str, Any] = mapped(schema, change)
    return collapsed


def _may_be_null(node: Any, root: dict[str, Any]) -> bool:
    """Whether a property's list of types, or that of the definition it refers to, holds null."""
    seen: set[int] = set()
    while isinstance(node, dict) and id(node) not in seen:
        seen.add(id(node))
        kinds = node.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            return True
        node = pointed_at(root, node.get("$ref"))
    return False


def inlined(schema: dict[str, Any], depth_limit: int) -> dict[str, Any]:
    """The schema with every local reference replaced by what it points at; keywords beside it win.

    Definitions are dropped once they are in place; one that nothing uses is not looked at. References that are not
    local or lead nowhere stay. ``depth_limit``: levels of objects with ``properties`` that the vendor takes.

    Raises:
        DialectError: the schema refers to itself, is nested too deeply, or grows beyond `MAX_NODES`.
    """
    check_bounds(schema)
    result: dict[str, Any] = _Inliner(schema, depth_limit).node(schema, ("#",), 0, 0)
    return result


class _Inliner:
    def __init__(self, root: dict[str, Any], depth_limit: int) -> None:
        self.root, self.depth_limit = root, depth_limit
        self.nodes = 0

    def node(self, node: Any, path: tuple[str, ...], depth: int, level: int) -> Any:
        """``path``: the references being followed; ``depth``: objects, ``level``: subschemas around this one."""
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise DialectError(f"the schema has over {MAX_NODES:,} parts once its references are in place")
        if level > MAX_DEPTH // 2:
            raise DialectError(f"the schema is over {MAX_DEPTH // 2} levels deep once its references are in place")
        if not isinstance(node, dict):
            return copy.deepcopy(node)
        if isinstance(node.get("$ref"), str):
            target = pointed_at(self.root, node["$ref"])
            if isinstance(target, dict | bool):
                return self.referred(target, node, path, depth, level)
        if isinstance(node.get("properties"), dict):
            depth += 1
            if depth > self.depth_limit:
                raise DialectError(f"the schema nests objects over {self.depth_limit} levels deep, which is the most")
        kept = {key: value for key, value in node.items() if key not in ("$defs", "definitions")}
        return _with_subschemas(kept, lambda below: self.node(below, path, depth, level + 1))

    def referred(
        self, target: dict[str, Any] | bool, node: dict[str, Any], path: tuple[str, ...], depth: int, level: int
    ) -> Any:
        """The target of the node's reference, with the keywords beside the reference put over it."""
        pointer = node["$ref"]
        if pointer in path:
            raise DialectError(f"the schema refers to itself at {pointer!r}; the vendor takes no references")
        found = self.node(target, (*path, pointer), depth, level + 1)
        if found is False or len(node) == 1:
            return found
        beside = self.node({key: value for key, value in node.items() if key != "$ref"}, path, depth, level + 1)
        return {**(found if isinstance(found, dict) else {}), **beside}


def collapsed(node: Any) -> dict[str, Any]:
    """One node without unions, for vendors that take none; it asks for every field that any branch asks for.

    ``allOf`` becomes one node, a union of objects an object with the properties of all, any other union its first
    branch that is not null; keywords beside a union win. Below a node nothing is changed. What is no object is {}; a
    list (of places in an array) is a union.

    Raises:
        DialectError: a reference stands there, which leads nowhere.
    """
    if isinstance(node, list):
        node = {"anyOf": node}
    if not isinstance(node, dict):
        return {}
    refuse_reference(node)
    result = {key: value for key, value in node.items() if key not in ("anyOf", "oneOf", "allOf")}
    for word in ("anyOf", "oneOf", "allOf"):
        branches = [collapsed(branch) for branch in _list(node, word) if not _is_null(branch)]
        objects = [branch for branch in branches if "properties" in branch]
        parts = branches if word == "allOf" else objects or branches[:1]
        if ("type" in node or "enum" in node) and not objects:
            continue
        for part in parts:
            fields = {**_map(part, "properties"), **_map(result, "properties")}
            result = {**part, **result, **({"properties": fields} if fields else {})}
    return result


def refuse_reference(node: dict[str, Any]) -> None:
    """Raises DialectError for a node that is still a reference after inlining: it leads out of the schema."""
    if "$ref" in node:
        raise DialectError(f"the schema refers to {str(node['$ref'])[:100]!r}, which is not in it")


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and (
        node.get("type") in ("null", ["null"]) or node.get("enum") == [None] or node.get("const", ...) is None
    )


def kind_of(node: dict[str, Any]) -> str | None:
    """The first type of a collapsed node that is not null; else what its keywords speak of; None if nothing tells."""
    given = node.get("type")
    kinds = [kind for kind in (given if isinstance(given, list) else [given]) if isinstance(kind, str)]
    kind = next((kind for kind in kinds if kind != "null"), None)
    if kind:
        return kind
    return "object" if "properties" in node else "array" if "items" in node or "prefixItems" in node else None


def choices_of(node: dict[str, Any]) -> list[Any]:
    """The values of a node's ``enum`` that are texts, numbers or booleans."""
    return [value for value in _list(node, "enum") if isinstance(value, str | int | float)]


def kind_of_choices(choices: list[Any]) -> str | None:
    """The one primitive type that all choices are of; None if there is none."""
    if choices and all(isinstance(choice, bool) for choice in choices):
        return "boolean"
    if not choices or any(isinstance(choice, bool) for choice in choices):
        return None
    kinds = (("string", str), ("integer", int), ("number", int | float))
    return next((kind for kind, types in kinds if all(isinstance(choice, types) for choice in choices)), None)


def described(node: dict[str, Any], choices: list[Any]) -> str:
    """A node's description with the choices that the vendor cannot be told otherwise."""
    given = node.get("description")
    text = given if isinstance(given, str) else ""
    words = ", ".join(choice if isinstance(choice, str) else json.dumps(choice) for choice in choices)
    return f"{text} One of: {words}.".strip() if choices else text


def check_bounds(schema: Any) -> None:
    """Refuses what no walk here and no vendor could take.

    Raises:
        DialectError: it is no object, is nested beyond `MAX_DEPTH`, or holds a number that JSON lacks.
    """
    if not isinstance(schema, dict):
        raise DialectError(f"the schema is no object but a {type(schema).__name__}")
    level: list[Any] = [schema]
    for _ in range(MAX_DEPTH):
        level = [below for item in level for below in (item.values() if isinstance(item, dict) else item)]
        if any(isinstance(value, float) and not math.isfinite(value) for value in level):
            raise DialectError("the schema holds NaN or Infinity, which JSON lacks")
        level = [value for value in level if isinstance(value, dict | list)]
        if not level:
            return
    raise DialectError(f"the schema is nested over {MAX_DEPTH} levels deep")


def _map(node: dict[str, Any], word: str) -> dict[str, Any]:
    value = node.get(word)
    return value if isinstance(value, dict) else {}


def _list(node: dict[str, Any], word: str) -> list[Any]:
    value = node.get(word)
    return value if isinstance(value, list) else []


def _named(properties: dict[str, Any], name: Any) -> Any:
    return properties.get(name) if isinstance(name, str) else None
