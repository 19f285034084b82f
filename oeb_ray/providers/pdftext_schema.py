"""Flattens a JSON Schema into the slots `pdftext_fill` fills: scalars, lists of scalars, and lists of objects.

In: a schema (hostile: any depth, circular $ref). Out: a skeleton result and its slots, in schema order.
Bounds: `MAX_DEPTH` levels and `MAX_SLOTS` slots; what lies beyond stays null, a $ref inside itself too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .pdftext_values import content_words, words_of

MAX_DEPTH = 32
"""Nesting of objects, arrays, $ref and anyOf that is followed."""
MAX_SLOTS = 5_000
"""Fields of one schema that are filled."""

Key = tuple[str, ...]


class Slot(NamedTuple):
    """One field to fill: where it goes, what it may be called, and what it holds.

    `kind` is string, number, integer, boolean, "list" (of scalars) or "rows" (of objects); `items` are the scalar slots
    of one row, their `key` relative to the row, `blank` is a row without values; `names` are word tuples, best first.
    """

    key: Key
    kind: str
    schema: dict[str, Any]
    names: tuple[tuple[str, ...], ...]
    hint: tuple[str, ...]
    items: tuple[Slot, ...] = ()
    blank: dict[str, Any] | None = None


class Plan:
    """Walks a schema once; `skeleton` is the empty result, `slots` what to fill in it."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.root = schema
        self.left = MAX_SLOTS
        self.slots: list[Slot] = []
        resolved, refs = self._resolve(schema, frozenset())
        skeleton = self._object(resolved, (), refs, self.slots) if _is_object(resolved) else {}
        self.skeleton: dict[str, Any] = skeleton

    def _resolve(self, schema: Any, refs: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
        """The schema behind $ref and anyOf/oneOf/allOf; {} for a circular or dangling one."""
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return {}, refs
            around = {key: schema[key] for key in ("title", "description") if key in schema}
            if isinstance(schema.get("$ref"), str):
                ref = schema["$ref"]
                if ref in refs:
                    return {}, refs
                refs = refs | {ref}
                schema = self._pointer(ref)
            elif branches := next((schema[k] for k in ("anyOf", "oneOf", "allOf") if _filled(schema.get(k))), None):
                if _is_object(schema):
                    return schema, refs
                schema = self._branch(branches, refs)
            else:
                return schema, refs
            if isinstance(schema, dict):
                schema = {**schema, **around}
        return {}, refs

    def _branch(self, branches: list[Any], refs: frozenset[str]) -> Any:
        """The first branch that is an object, else the first that is not null."""
        known = [branch for branch in branches[:MAX_DEPTH] if isinstance(branch, dict) and branch.get("type") != "null"]
        for branch in known:
            target = self._pointer(branch["$ref"]) if isinstance(branch.get("$ref"), str) else branch
            if _is_object(target):
                return branch
        return known[0] if known else {}

    def _pointer(self, ref: str) -> Any:
        """What a local JSON pointer ("#/$defs/Item") names; {} for anything else, nothing is ever fetched."""
        if not ref.startswith("#") or len(ref) > 1_000:
            return {}
        node: Any = self.root
        for part in ref[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            node = node.get(name) if isinstance(node, dict) else None
        return node if isinstance(node, dict) else {}

    def _object(self, schema: dict[str, Any], key: Key, refs: frozenset[str], out: list[Slot]) -> dict[str, Any]:
        """The skeleton of an object; its slots are appended to `out`."""
        result: dict[str, Any] = {}
        properties = schema.get("properties")
        for name, child in properties.items() if isinstance(properties, dict) else ():
            if not isinstance(name, str):
                continue
            result[name] = None
            # Counted per property, not per slot: objects that only hold objects could otherwise multiply unseen.
            self.left -= 1
            if self.left <= 0 or len(key) >= MAX_DEPTH:
                continue
            resolved, inner = self._resolve(child, refs)
            path = (*key, name)
            if _is_object(resolved):
                result[name] = self._object(resolved, path, inner, out)
            elif kind_of(resolved) == "array":
                result[name] = []
                self._array(resolved, path, inner, out)
            else:
                out.append(self._slot(path, kind_of(resolved), resolved))
        return result

    def _array(self, schema: dict[str, Any], key: Key, refs: frozenset[str], out: list[Slot]) -> None:
        items, inner = self._resolve(schema.get("items"), refs)
        if out is not self.slots:
            return  # an array inside a row stays empty: a table row has no place to read it from
        if _is_object(items):
            fields: list[Slot] = []
            blank = self._object(items, (), inner, fields)
            around: dict[str, Any] = {k: schema[k] for k in ("title", "description") if k in schema}
            out.append(self._slot(key, "rows", around)._replace(items=tuple(fields), blank=blank))
        elif kind_of(items) != "array":
            out.append(self._slot(key, "list", {**items, **schema, "type": kind_of(items)}))

    def _slot(self, key: Key, kind: str, schema: dict[str, Any]) -> Slot:
        own = words_of(key[-1])
        title = schema.get("title")
        description = schema.get("description")
        names = [words_of(" ".join(key[-2:])), own] if len(key) > 1 else [own]
        if isinstance(title, str):
            names.append(words_of(title))
        hint = content_words(description) if isinstance(description, str) else ()
        return Slot(key, kind, schema, tuple(name for name in dict.fromkeys(names) if name), hint[:100])


def kind_of(schema: dict[str, Any]) -> str:
    """The JSON type a schema asks for: its first type that is not null, "string" when it names none."""
    declared = schema.get("type")
    kinds = declared if isinstance(declared, list) else [declared]
    kind = next((kind for kind in kinds if isinstance(kind, str) and kind != "null"), None)
    if kind is None:
        kind = "object" if "properties" in schema else "array" if "items" in schema else "string"
    return kind


def _is_object(schema: Any) -> bool:
    return isinstance(schema, dict) and kind_of(schema) == "object" and isinstance(schema.get("properties"), dict)


def _filled(value: Any) -> bool:
    return isinstance(value, list) and bool(value)
