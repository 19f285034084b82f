"""Cells as JSON says them."""

from __future__ import annotations

import math
from typing import Any

from .schema import ABSENT
from .scorer import Cell


def written_cell(cell: Cell) -> dict[str, Any]:
    """A cell as an object; a side that has no such cell has neither path nor value."""
    values = {"expected": cell.expected, "predicted": cell.predicted}
    return {
        **{key: value for key, value in cell._asdict().items() if key not in values},
        **{key: finite(value) for key, value in values.items() if value is not ABSENT},
    }


def finite(value: Any) -> Any:
    """The value with numbers that JSON lacks as ``{"$float": "NaN"}`` and the like."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, list):
        return [finite(member) for member in value]
    return {key: finite(member) for key, member in value.items()} if isinstance(value, dict) else value
