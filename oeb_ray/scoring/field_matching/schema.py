"""What a JSON Schema says about each spot of a document (METRIC_SPEC.md, "The schema").

In: a schema. Out: a tree of Spots, one per node key (an address with its indices left out), grown as documents
visit it, so that the schema is looked at once per spot and not once per value.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 12
SIDECARS = ("_citations", "_meta")


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with every local ``$ref`` inlined and every ``$defs`` dropped, to a depth of 12.

    Raises:
        ValueError: a ``$ref`` is left: recursion, a bad pointer, too deep, or a property of that name.
    """
    found = _keys_of(schema)
    if "$ref" not in found and "$defs" not in found:
        return schema
    whole = _Inliner(schema).visit(schema, 0)
    if "$ref" in _keys_of(whole):
        raise ValueError(
            "the schema still has a $ref after inlining: it is recursive, points nowhere, lies deeper than "
            f"{MAX_DEPTH} levels, or is the name of a property"
        )
    assert isinstance(whole, dict)
    return whole


def _keys_of(node: Any) -> set[str]:
    """Every key of every object below; each shared object is looked at once."""
    keys: set[str] = set()
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (dict, list)):
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, dict):
                keys.update(node)
                waiting.extend(node.values())
            else:
                waiting.extend(node)
    return keys


class _Inliner:
    """Inlines by depth; one result per (object, depth), so that definitions that fan out stay affordable."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.done: dict[tuple[int, int], Any] = {}
        self.kept: list[Any] = []  # merged objects stay alive, so that their ids stay theirs

    def visit(self, node: Any, depth: int) -> Any:
        if depth > MAX_DEPTH or not isinstance(node, (dict, list)):
            return node
        place = (id(node), depth)
        if place not in self.done:
            self.done[place] = self._visit_new(node, depth)
        return self.done[place]

    def _visit_new(self, node: Any, depth: int) -> Any:
        if isinstance(node, list):
            return [self.visit(member, depth + 1) for member in node]
        if "$ref" in node:
            target = self._target(node["$ref"])
            if target is not None:
                merged = {key: value for key, value in node.items() if key != "$ref"}
                for key, value in target.items():
                    merged.setdefault(key, value)
                self.kept.append(merged)
                return self.visit(merged, depth + 1)
        return {key: self.visit(value, depth + 1) for key, value in node.items() if key != "$defs"}

    def _target(self, pointer: Any) -> dict[str, Any] | None:
        if not isinstance(pointer, str) or not pointer.startswith("#/"):
            return None
        node: Any = self.root
        for part in pointer[2:].split("/"):
            if not isinstance(node, dict) or part not in node:
                return None
            node = node[part]
        return node if isinstance(node, dict) else None


def chosen(node: Any) -> dict[str, Any]:
    """The branch that stands for a node: the first object of anyOf, oneOf, allOf that is not the null type."""
    if not isinstance(node, dict):
        return {}
    for combinator in ("anyOf", "oneOf", "allOf"):
        for member in node.get(combinator) or ():
            if isinstance(member, dict) and member.get("type") != "null":
                return member
    return node


def is_open(node: dict[str, Any]) -> bool:
    """Whether a (chosen) node is an open map: its property names come from the document."""
    extra = node.get("additionalProperties")
    if extra is True or isinstance(extra, dict):
        return True
    return any(
        is_open(member)
        for combinator in ("anyOf", "oneOf", "allOf")
        for member in node.get(combinator) or ()
        if isinstance(member, dict)
    )


class Spot:
    """One node key, with what the schema says there.

    ``open``: nothing below is graded. ``slot``: the schema asks for a scalar here. ``ordered``: an array here is
    compared by position. ``names``: the key steps since the nearest index step (the root counts as one).
    ``items`` and ``children`` are grown on demand; ``plain`` are the numbers of those children that are neither open
    nor of the form of a sidecar.
    """

    __slots__ = (
        "children",
        "declared",
        "id",
        "items",
        "key",
        "names",
        "node",
        "open",
        "ordered",
        "parent",
        "plain",
        "slot",
        "trie",
    )

    def __init__(self, trie: Trie, parent: Spot | None, key: str | None, node: Any, declared: bool) -> None:
        self.trie = trie
        self.parent = parent
        self.key = key  # None: an index step, or the root
        self.id = len(trie.spots)
        trie.spots.append(self)
        self.node = chosen(node)
        self.open = is_open(self.node)
        self.declared = declared and not self.open
        items, properties = self.node.get("items"), self.node.get("properties")
        self.slot = self.declared and not properties and items is None
        self.names: tuple[str, ...] = () if parent is None or key is None else (*parent.names, key)
        self.children: dict[str, tuple[Spot, str | None]] = {}
        self.plain: dict[str, int] = {}
        self.items: Spot | None = None
        self.ordered = bool(trie.ordered) and self.path() in trie.ordered

    def child(self, key: str) -> tuple[Spot, str | None]:
        """The spot under a key, and the base name of the key if it has the form of a sidecar (``x_meta``: ``x``)."""
        properties = self.node.get("properties") or {}
        declared = self.declared and key in properties
        base = next((key[: -len(ending)] for ending in SIDECARS if key.endswith(ending)), None)
        child = Spot(self.trie, self, key, properties.get(key), declared)
        found = self.children[key] = child, base
        if base is None and not child.open:
            self.plain[key] = child.id
        return found

    def item(self) -> Spot:
        """The spot of the elements of the array here."""
        if self.items is None:
            items = self.node.get("items")
            self.items = Spot(self.trie, self, None, items, self.declared and items is not None)
        return self.items

    def path(self) -> tuple[str | None, ...]:
        """The node key from the root; None stands for an index."""
        steps: list[str | None] = []
        spot = self
        while spot.parent is not None:
            steps.append(spot.key)
            spot = spot.parent
        return tuple(reversed(steps))


class Trie:
    """All spots met so far, by number; ``root`` first. ``ordered``: node keys of the arrays whose order counts."""

    def __init__(self, schema: dict[str, Any], ordered: frozenset[tuple[str | None, ...]] = frozenset()) -> None:
        self.spots: list[Spot] = []
        self.ordered = ordered
        self.root = Spot(self, None, None, schema, True)
