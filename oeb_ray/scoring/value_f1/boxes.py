"""Boxes as rules and citations give them: a corner and lengths, as shares of the page, origin top left.

An area is the product of the lengths given and not of differences between sides: at a limit the last bit decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """An upright rectangle with area."""

    x: float
    y: float
    wide: float
    high: float

    @property
    def area(self) -> float:
        return self.wide * self.high


def overlap(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    wide = min(one.x + one.wide, other.x + other.wide) - max(one.x, other.x)
    high = min(one.y + one.high, other.y + other.high) - max(one.y, other.y)
    return wide * high if wide > 0 and high > 0 else 0.0


def iou(one: Box, other: Box) -> float:
    """Shared area over joint area, 0 to 1."""
    shared = overlap(one, other)
    joint = one.area + other.area - shared
    return shared / joint if joint > 0 else 0.0


def around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of them; there must be one."""
    x, y = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = max(box.x + box.wide for box in boxes), max(box.y + box.high for box in boxes)
    return Box(x, y, right - x, bottom - y)
