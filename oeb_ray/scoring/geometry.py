"""Upright rectangles on a page: area, overlap and their ratio.

In: boxes as (left, top, right, bottom), in any one unit, the origin at the top left. A box with an inverted side has no
area; boxes that merely touch do not overlap.
"""

from __future__ import annotations

Box = tuple[float, float, float, float]


def area(box: Box) -> float:
    """Width times height; 0 where a side is inverted."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(one: Box, other: Box) -> float:
    """The area that two boxes share."""
    return max(0.0, min(one[2], other[2]) - max(one[0], other[0])) * max(
        0.0, min(one[3], other[3]) - max(one[1], other[1])
    )


def iou(one: Box, other: Box) -> float:
    """Shared area over joint area, 0 to 1; 0 where both have none."""
    shared = overlap(one, other)
    joint = area(one) + area(other) - shared
    return shared / joint if joint > 0 else 0.0
