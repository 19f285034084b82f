"""Whether a value was read where the reference says it stands (METRIC_SPEC.md, "Grounding")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .boxes import Box, around, iou, overlap
from .rules import Place

HIT = 0.5
INSIDE = 0.99
TWIN = 0.9
PART = 0.5


class Target(NamedTuple):
    """One box that counts as found, with the boxes of its lines if it is an envelope around several."""

    page: int
    box: Box
    parts: tuple[Box, ...] = ()


def targets(places: Sequence[Place]) -> list[Target]:
    """The targets of one path: its envelopes with what is inside them, and precise boxes that no envelope holds."""
    boxed = [(place.page, place.box, place.coarse) for place in places if place.box is not None]
    found, held = [], set()
    for page, envelope, coarse in boxed:
        if not coarse:
            continue
        parts = []
        for number, (other_page, box, is_coarse) in enumerate(boxed):
            if is_coarse or other_page != page or overlap(box, envelope) < INSIDE * box.area:
                continue
            held.add(number)
            if iou(box, envelope) < TWIN:
                parts.append(box)
        found.append(Target(page, envelope, tuple(parts)))
    precise = [Target(page, box) for n, (page, box, coarse) in enumerate(boxed) if not coarse and n not in held]
    return found + precise


def is_hit(target: Target, cited: Sequence[Place]) -> bool:
    """Whether the cited boxes cover a target, and each of its parts."""
    boxes = [place.box for place in cited if place.page == target.page and place.box is not None]
    covered = any(iou(box, target.box) >= HIT for box in boxes)
    if not covered and target.parts:
        touching = [box for box in boxes if overlap(box, target.box) > 0]
        covered = bool(touching) and iou(around(touching), target.box) >= HIT
    return covered and all(any(overlap(box, part) >= PART * part.area for box in boxes) for part in target.parts)


class Ratio:
    """What was claimed, what could have been, and what of it was right."""

    __slots__ = ("claims", "correct", "expected")

    def __init__(self) -> None:
        self.correct = self.expected = self.claims = 0

    def add(self, *, claimed: bool, correct: bool) -> None:
        """A cell that the reference has a place for, on both sides."""
        self.expected += 1
        self.claims += claimed
        self.correct += correct


class Grounding:
    """The counts of pages and of boxes ("word") over all cells."""

    def __init__(self) -> None:
        self.page, self.word = Ratio(), Ratio()
        self.incomplete = False

    def reference_only(self, places: Sequence[Place]) -> None:
        """A cell that only the reference has."""
        if places:
            self.page.expected += 1
            self.word.expected += any(place.box is not None for place in places)

    def pair(self, places: Sequence[Place], cited: Sequence[Place], matched: bool) -> None:
        """A cell that both sides have."""
        if not places:
            return
        pages = {place.page for place in places}
        on_page = matched and any(place.page in pages for place in cited)
        self.page.add(claimed=bool(cited), correct=on_page)
        if any(place.box is not None for place in places):
            claimed = any(place.box is not None for place in cited)
            right = matched and claimed and any(is_hit(target, cited) for target in targets(places))
            self.word.add(claimed=claimed, correct=right)
