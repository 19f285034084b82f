"""Addresses of verdict columns as text, for tables.

In: a Scored. Out: the address as JSON, the path (``rows[0].qty``) and the field (``rows[*].qty``) of every verdict,
each in two parts: the text of its element and that of the leaf within, by number, so that no text is made twice.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from .names import joined, written
from .scorer import Scored
from .tree import Steps


class Texts(NamedTuple):
    """The parts of addresses: JSON, path and field."""

    address: list[str]
    path: list[str]
    field: list[str]


class Written:
    """``outer`` and ``inner``: texts by number; ``element``, ``leaf``: their numbers, one per verdict.

    Address and path are the two texts put together; the field is the inner one alone. Open maps come first.
    """

    def __init__(self, scored: Scored) -> None:
        self.outer, self.inner = Texts([], [], []), Texts([], [], [])
        self.element: list[int] = []
        self.leaf: list[int] = []
        for steps in scored.open_maps:
            self.element.append(self._outer("", ""))
            field = written(tuple(None if kind == "i" else name for kind, name in steps))
            self.leaf.append(self._inner(_as_json(steps), path_text(steps), field))
        columns = scored.columns
        known: dict[tuple[int, bool], int] = {}
        add_element, add_leaf = self.element.append, self.leaf.append
        before: Steps | None = None
        number = 0
        for at, spot in zip(columns.at, columns.spot, strict=True):
            if at is not before:
                before, number = at, self._outer(_as_json(at)[:-1], path_text(at))
            place = spot.id, not at
            leaf = known.get(place)
            if leaf is None:
                steps = tuple(("k", name) for name in spot.names)
                text, path = _as_json(steps)[1:], path_text(steps)
                if at and steps:
                    text, path = f",{text}", path if path[0] == "[" else f".{path}"
                leaf = known[place] = self._inner(text, path, written(spot.path()))
            add_element(number)
            add_leaf(leaf)

    def _outer(self, address: str, path: str) -> int:
        self.outer.address.append(address)
        self.outer.path.append(path)
        return len(self.outer.path) - 1

    def _inner(self, address: str, path: str, field: str) -> int:
        self.inner.address.append(address)
        self.inner.path.append(path)
        self.inner.field.append(field)
        return len(self.inner.path) - 1


def _as_json(steps: Steps) -> str:
    return json.dumps([list(step) for step in steps], separators=(",", ":"))


def path_text(steps: Steps) -> str:
    """``line_items[0].qty``; a key with a point or bracket in it is quoted, as in names of arrays."""
    text = ""
    for kind, name in steps:
        text = f"{text}[{name}]" if kind == "i" else joined(text, name)
    return text
