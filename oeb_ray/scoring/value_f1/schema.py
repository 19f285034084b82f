"""What a JSON Schema says about each place: table, object or cell, and its default (METRIC_SPEC.md, "The schema").

Nodes are made as they are asked for, so a schema that names itself costs only as deep as the documents go.
"""

from __future__ import annotations

import json
import marshal
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .errors import Ungradable
from .texts import NEAR, Nearness

BRANCHES = ("anyOf", "oneOf", "allOf")
DEEPEST = 200
MOST_COLUMNS = 5_000


class Absent(Enum):
    """The one value that stands for a key that is not there and has no default."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


_NEVER_FIXED = frozenset((str, int, float, bool, type(None), Absent))


class Fixed:
    """A text of a schema's default: it is never read as a date."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


Kind = Enum("Kind", ("CELL", "OBJECT", "TABLE"))
Open = frozenset[str]


class Parts:
    """A schema node with its reference followed: its keywords, each with the references that are open there."""

    __slots__ = ("_branches", "open", "root", "words")

    def __init__(self, root: dict[str, Any], raw: Any, open: Open) -> None:
        self.root = root
        self.words: dict[str, Any] = {}
        self.open: dict[str, Open] = {}
        self._branches: list[Parts] | None = None
        self._take(raw, open)

    def _take(self, raw: Any, open: Open) -> None:
        if not isinstance(raw, dict):
            return
        reference = raw.get("$ref")
        if isinstance(reference, str):
            if reference in open:
                return
            self._take(_target(self.root, reference), open | {reference})
        for word, value in raw.items():
            if word != "$ref" or not isinstance(value, str):
                self.words[word] = value
                self.open[word] = open

    def part(self, raw: Any, word: str) -> Parts:
        """A node below the keyword ``word``."""
        return Parts(self.root, raw, self.open[word])

    def branches(self) -> list[Parts]:
        if self._branches is None:
            listed = [(word, found) for word in BRANCHES if isinstance(found := self.words.get(word), list)]
            self._branches = [self.part(raw, word) for word, found in listed for raw in found if isinstance(raw, dict)]
        return self._branches

    def has_type(self, name: str) -> bool:
        kind = self.words.get("type")
        return name == kind or (isinstance(kind, list) and name in kind)

    def props(self, depth: int = 0) -> dict[str, Parts]:
        _not_too_deep(depth)
        declared = self.words.get("properties")
        found = {}
        if isinstance(declared, dict):
            found = {name: self.part(raw, "properties") for name, raw in declared.items()}
        for branch in self.branches():
            found |= branch.props(depth + 1)
        return found

    def items(self, depth: int = 0) -> Parts | None:
        _not_too_deep(depth)
        if isinstance(own := self.words.get("items"), dict):
            return self.part(own, "items")
        return next((found for branch in self.branches() if (found := branch.items(depth + 1))), None)

    def is_array(self, depth: int = 0) -> bool:
        _not_too_deep(depth)
        if self.has_type("array") or isinstance(self.words.get("items"), dict):
            return True
        return any(branch.is_array(depth + 1) for branch in self.branches())


class Node:
    """One place of the schema, by the last key of its path.

    ``near``: how a pair of texts here is compared where it is walked; ``pair_near``: where rows are paired. None for
    plain equality. ``default``: the value of a key that is not there, or ABSENT.
    """

    def __init__(self, parts: Parts | None, name: str) -> None:
        self._parts = parts
        self.name = name
        self.near: Nearness | None = NEAR.get(name.rsplit(".", 1)[-1].split("[", 1)[0])
        self.pair_near: Nearness | None = NEAR.get(name)
        words = parts.words if parts else {}
        self.default: Any = fixed(words["default"]) if "default" in words else ABSENT

    @cached_property
    def kind(self) -> Kind:
        parts = self._parts
        if parts is None:
            return Kind.CELL
        if parts.is_array():
            items = parts.items()
            return Kind.TABLE if items and (items.has_type("object") or items.props()) else Kind.CELL
        return Kind.OBJECT if parts.props() else Kind.CELL

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The props of an object, or the columns of a table."""
        parts = self._parts
        if parts and self.kind is Kind.TABLE:
            parts = parts.items()
        return tuple(Node(child, name) for name, child in parts.props().items()) if parts else ()

    @cached_property
    def cells(self) -> tuple[Entry, ...]:
        """The cells among the columns of a table, those of object columns included."""
        return tuple(entry for entry in self._entries if entry.node.kind is Kind.CELL)

    @cached_property
    def columns(self) -> Columns:
        """`cells`, seen as columns."""
        nodes = [entry.node for entry in self.cells]
        return Columns(
            tuple(node.name for node in nodes),
            tuple(node.default for node in nodes),
            tuple((at, node.pair_near) for at, node in enumerate(nodes) if node.pair_near),
            any(entry.above for entry in self.cells),
        )

    @cached_property
    def inner(self) -> tuple[Entry, ...]:
        """The tables among the columns of a table, those of object columns included."""
        return tuple(entry for entry in self._entries if entry.node.kind is Kind.TABLE and entry.node.children)

    @cached_property
    def _entries(self) -> list[Entry]:
        found: list[Entry] = []
        self._open(self, (), found)
        return found

    def _open(self, node: Node, above: tuple[Node, ...], found: list[Entry]) -> None:
        _not_too_deep(len(above))
        for child in node.children:
            if child.kind is Kind.OBJECT:
                self._open(child, (*above, child), found)
            else:
                found.append(Entry(above, child, "".join(f".{step.name}" for step in (*above, child))))
        if len(found) > MOST_COLUMNS:
            raise Ungradable(f"the schema gives a table more than {MOST_COLUMNS} columns")

    @cached_property
    def is_plain(self) -> bool:
        """Whether every column of the table is a cell."""
        return all(child.kind is Kind.CELL for child in self.children)

    def value(self, holder: dict[str, Any]) -> Any:
        """The value of this key in an object: what is there, the default, or ABSENT."""
        return holder.get(self.name, self.default)


class Columns(NamedTuple):
    """The cells of a table; ``near``: which of them are paired by nearness; ``deep``: whether any lies deeper."""

    names: tuple[str, ...]
    defaults: tuple[Any, ...]
    near: tuple[tuple[int, Nearness], ...]
    deep: bool


class Entry(NamedTuple):
    """A column as rows are paired by it: the object columns above it, itself, and its path below the row."""

    above: tuple[Node, ...]
    node: Node
    suffix: str

    def value(self, row: Any) -> Any:
        """The value in a row; what is no object on the way counts as an empty one, what is absent holds nothing."""
        for step in self.above:
            row = row.get(step.name, step.default) if isinstance(row, dict) else step.default
            if row is ABSENT:
                return ABSENT
        return row.get(self.node.name, self.node.default) if isinstance(row, dict) else self.node.default


def root_nodes(schema: dict[str, Any]) -> dict[str, Node]:
    """The nodes of a document's root keys, as far as the schema declares them.

    Raises:
        Ungradable: the schema holds something that JSON has not.
    """
    try:
        written = marshal.dumps(schema, 2)  # a quicker key than JSON; only in version 2 does what is equal look equal
    except ValueError:  # something that JSON might have, or too deep
        return _nodes_of(schema)
    # A schema that names itself has as many nodes as documents are deep, so its nodes go with the document.
    return _nodes_of(schema) if b"$ref" in written else _kept_nodes_of(written)


def _nodes_of(schema: dict[str, Any]) -> dict[str, Node]:
    try:
        own = json.loads(json.dumps(schema))
    except (TypeError, ValueError) as error:
        raise Ungradable(f"the schema is no JSON: {error}") from None
    return {name: Node(parts, name) for name, parts in Parts(own, own, frozenset()).props().items()}


@lru_cache(maxsize=256)
def _kept_nodes_of(written: bytes) -> dict[str, Node]:
    """The nodes of a schema; the documents of a corpus share few schemas."""
    return _nodes_of(marshal.loads(written))


def fixed(value: Any) -> Any:
    """A default with its texts marked as Fixed."""
    if isinstance(value, str):
        return Fixed(value)
    if isinstance(value, list):
        return [fixed(member) for member in value]
    if isinstance(value, dict):
        return {key: fixed(member) for key, member in value.items()}
    return value


def plain(value: Any) -> Any:
    """The value with Fixed texts as texts again."""
    if type(value) in _NEVER_FIXED:
        return value
    if isinstance(value, Fixed):
        return value.text
    if isinstance(value, list):
        return [plain(member) for member in value]
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return value


def _target(root: dict[str, Any], reference: str) -> Any:
    if not reference.startswith("#/"):
        return None
    node: Any = root
    for step in reference[2:].split("/"):
        if not isinstance(node, dict) or step not in node:
            return None
        node = node[step]
    return node


def _not_too_deep(depth: int) -> None:
    if depth > DEEPEST:
        raise Ungradable(f"the schema is nested more than {DEEPEST} deep")
