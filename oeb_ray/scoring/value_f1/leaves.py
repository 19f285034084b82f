"""What a value that only one side has is worth: its leaves (METRIC_SPEC.md, "Walking")."""

from __future__ import annotations

from typing import Any

from .schema import ABSENT, Kind, Node


def leaves(node: Node, value: Any) -> int:
    """How many cells a value that only one side has is worth."""
    if node.kind is Kind.CELL:
        return 1
    if node.kind is Kind.OBJECT:
        return row_leaves(node, value)
    return sum(row_leaves(node, row) for row in value) if isinstance(value, list) else 0


def row_leaves(node: Node, value: Any) -> int:
    """The leaves of one row of a table, or of one object."""
    holder = value if isinstance(value, dict) else {}
    total = 0
    for child in node.children:
        found = holder.get(child.name, child.default)
        if found is not ABSENT:
            total += 1 if child.kind is Kind.CELL else leaves(child, found)
    return total
