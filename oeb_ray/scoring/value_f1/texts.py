"""Texts compared: white space folded, and for two names nearness instead of equality (METRIC_SPEC.md, "Agreement")."""

from __future__ import annotations

import re
from typing import NamedTuple

_OTHER_SIGNS = re.compile(r"[^\w\s]")


class Nearness(NamedTuple):
    """How far apart two texts may be: ``edits`` characters put in or taken out per ``of`` characters of both."""

    edits: int
    of: int

    def slack(self, together: int) -> int:
        """The largest distance allowed for two texts of so many characters together."""
        return self.edits * together // self.of


NEAR = {"description": Nearness(1, 20), "court": Nearness(3, 20)}
"""By the name of a leaf."""


def folded(text: str) -> str:
    """Runs of white space as one space, none at the ends."""
    return " ".join(text.split())


def loose(text: str) -> str:
    """Words alone, in lower case: what is neither word nor white space separates."""
    return folded(_OTHER_SIGNS.sub(" ", text)).lower()


def near(one: str, other: str, nearness: Nearness) -> bool:
    """Whether two texts that `loose` has made are alike enough."""
    if one == other:
        return True
    together = len(one) + len(other)
    if not one or not other:
        return False
    slack = nearness.slack(together)
    if slack < max(abs(len(one) - len(other)), 1):  # what is not equal is at least one apart
        return False
    return together - 2 * common(one, other) <= slack


def common(one: str, other: str) -> int:
    """Length of the longest common subsequence, by bits: one step per character of ``other``."""
    start = 0
    shortest = min(len(one), len(other))
    while start < shortest and one[start] == other[start]:
        start += 1
    end = 0
    while end < shortest - start and one[-1 - end] == other[-1 - end]:
        end += 1
    one, other = one[start : len(one) - end], other[start : len(other) - end]
    if not one or not other:
        return start + end
    places: dict[str, int] = {}
    for at, sign in enumerate(one):
        places[sign] = places.get(sign, 0) | 1 << at
    full = (1 << len(one)) - 1
    row = full
    for sign in other:
        hits = row & places.get(sign, 0)
        row = ((row + hits) | (row - hits)) & full
    return start + end + len(one) - row.bit_count()
