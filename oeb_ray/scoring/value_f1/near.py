"""Which of many texts are near which of many others, without comparing every pair in full."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .texts import Nearness, near

ROWS_AT_ONCE = 256


def near_table(ours: Sequence[str | None], theirs: Sequence[str | None], nearness: Nearness) -> NDArray[np.bool_]:
    """For each text of ``ours`` (None for what is no text) which of ``theirs`` is near."""
    table = np.zeros((len(ours), len(theirs)), bool)
    left = [at for at, text in enumerate(ours) if text is not None]
    right = [at for at, text in enumerate(theirs) if text is not None]
    for one, other in _candidates([ours[at] or "" for at in left], [theirs[at] or "" for at in right], nearness):
        if near(ours[left[one]] or "", theirs[right[other]] or "", nearness):
            table[left[one], right[other]] = True
    return table


def _candidates(ours: list[str], theirs: list[str], nearness: Nearness) -> list[tuple[int, int]]:
    """The pairs whose letters alone do not rule them out: texts differ at least by the letters they do not share."""
    if not ours or not theirs:
        return []
    signs = {sign: at for at, sign in enumerate(sorted(set("".join(ours)) | set("".join(theirs))))}
    mine, other = _counts(ours, signs), _counts(theirs, signs)
    lengths, widths = mine.sum(1), other.sum(1)
    found: list[tuple[int, int]] = []
    for start in range(0, len(ours), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        together = lengths[part, None] + widths[None, :]
        apart = np.zeros(together.shape, np.int32)
        for sign in range(len(signs)):
            apart += np.abs(mine[part, sign, None] - other[None, :, sign])
        ones, others = np.nonzero(apart <= nearness.edits * together // nearness.of)
        found += zip((ones + start).tolist(), others.tolist(), strict=True)
    return found


def _counts(texts: list[str], signs: dict[str, int]) -> NDArray[np.int32]:
    counts = np.zeros((len(texts), max(1, len(signs))), np.int32)
    for at, text in enumerate(texts):
        for sign in text:
            counts[at, signs[sign]] += 1
    return counts
