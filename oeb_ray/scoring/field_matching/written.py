"""Addresses of verdict columns as text, for tables.

In: a Scored. Out: three lists, one entry per verdict: the address as JSON, the path (``rows[0].qty``) and the field
(``rows[*].qty``). Texts of elements and of the leaves within are made once and joined.
"""

from __future__ import annotations

import json

from .names import joined, written
from .schema import Spot
from .scorer import Scored
from .tree import Steps


class Written:
    """See the module's text."""

    def __init__(self, scored: Scored) -> None:
        self.address: list[str] = []
        self.path: list[str] = []
        self.field: list[str] = []
        for steps in scored.open_maps:
            self.address.append(json.dumps([list(step) for step in steps], separators=(",", ":")))
            self.path.append(path_text(steps))
            self.field.append(written(tuple(None if kind == "i" else name for kind, name in steps)))
        inner: dict[int, tuple[str, str, str]] = {}
        outer: tuple[Steps | None, str, str] = (None, "", "")
        columns = scored.columns
        for at, spot in zip(columns.at, columns.spot, strict=True):
            if outer[0] is not at:
                outer = at, json.dumps([list(step) for step in at], separators=(",", ":"))[:-1], path_text(at)
            texts = inner.get(spot.id)
            if texts is None:
                texts = inner[spot.id] = _within(spot)
            leaf_json, leaf_path, field = texts
            self.address.append(f"{outer[1]}{',' if at and leaf_json else ''}{leaf_json}]")
            self.path.append(
                outer[2] + leaf_path if not at or not leaf_path or leaf_path[0] == "[" else f"{outer[2]}.{leaf_path}"
            )
            self.field.append(field)


def _within(spot: Spot) -> tuple[str, str, str]:
    steps = json.dumps([["k", name] for name in spot.names], separators=(",", ":"))[1:-1]
    return steps, path_text(tuple(("k", name) for name in spot.names)), written(spot.path())


def path_text(steps: Steps) -> str:
    """``line_items[0].qty``; a key with a point or bracket in it is quoted, as in names of arrays."""
    text = ""
    for kind, name in steps:
        text = f"{text}[{name}]" if kind == "i" else joined(text, name)
    return text
