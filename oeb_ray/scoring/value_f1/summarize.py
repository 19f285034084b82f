"""Many rows into one summary (METRIC_SPEC.md, "Many documents").

In: rows of documents, as `score` results with doc_id, suite, status and tags. Out: averages over all documents, failed
ones as 0, for the whole, per suite and per tag.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

VALUES = ("f1", "precision", "recall", "perfect")
GROUNDING = tuple(f"{name}_{ratio}" for name in ("page", "word") for ratio in ("f1", "precision", "recall"))
NO_AXIS = ""


class _Block:
    """The documents of one slice. ``grounding``: which of these figures the system has on any document at all."""

    def __init__(self, grounding: tuple[str, ...]) -> None:
        self.documents = self.scored = self.lower_bounds = 0
        self.values: dict[str, list[float]] = {key: [] for key in (*VALUES, *grounding)}

    def add(self, row: Mapping[str, Any]) -> None:
        self.documents += 1
        if row["status"] != "scored":
            for values in self.values.values():
                values.append(0.0)
            return
        self.scored += 1
        self.lower_bounds += row["value_incomplete"]
        for key, values in self.values.items():
            if row[key] is not None:
                values.append(float(row[key]))

    def summary(self) -> dict[str, Any]:
        found = {key: values for key, values in self.values.items() if values}
        means = {key: math.fsum(values) / len(values) for key, values in found.items()}
        return {
            "documents": self.documents,
            "scored": self.scored,
            "coverage": self.scored / self.documents if self.documents else 0.0,
            **dict.fromkeys(VALUES, 0.0),
            **means,
            "min": {key: min(values) for key, values in found.items()},
            "max": {key: max(values) for key, values in found.items()},
            "lower_bounds": self.lower_bounds,
        }


def summarize(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of a Run: averages of 0 to 1, each document once, failed documents as 0.

    A document without places in its reference is in no average of pages or words; a failed one is in those that the
    system has on any document.

    Args:
        rows: one mapping per document, with ``suite``, ``status`` (``scored`` or ``error``), perhaps ``tags``
            (``axis:value``) and, where scored, the figures of `score`.
    """
    listed = list(rows)
    scored = [row for row in listed if row["status"] == "scored"]
    grounding = tuple(key for key in GROUNDING if any(row[key] is not None for row in scored))
    whole = _Block(grounding)
    suites: dict[str, _Block] = {}
    tags: dict[str, dict[str, _Block]] = {}
    for row in listed:
        whole.add(row)
        suites.setdefault(row["suite"], _Block(grounding)).add(row)
        for tag in dict.fromkeys(row.get("tags") or ()):
            axis, colon, value = tag.partition(":")
            axis, value = (axis, value) if colon else (NO_AXIS, tag)
            tags.setdefault(axis, {}).setdefault(value, _Block(grounding)).add(row)
    return {
        **whole.summary(),
        "per_suite": {suite: suites[suite].summary() for suite in sorted(suites)},
        "per_tag": {
            axis: {value: tags[axis][value].summary() for value in sorted(tags[axis])} for axis in sorted(tags)
        },
    }
