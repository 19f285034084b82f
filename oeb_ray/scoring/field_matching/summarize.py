"""Many rows into one summary (METRIC_SPEC.md, "Many documents").

In: rows of documents, as `score` results with doc_id, suite and status. Out: coverage, means over the scored ones, and
the same per suite. Failed documents lower coverage and are in no mean.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

MEANS = ("accuracy", "precision", "recall")
RATES = ("misread", "unfound", "fabricated", "invented_item", "invented_field")


class _Block:
    def __init__(self) -> None:
        self.documents = 0
        names = (*MEANS, *(f"{name}_rate" for name in RATES))
        self.values = {name: array("d") for name in names}  # of millions of documents

    def add(self, row: Mapping[str, Any]) -> None:
        self.documents += 1
        if row["status"] != "scored":
            return
        for key in MEANS:
            self.values[key].append(row[key])
        total = row["total"]
        for name in RATES:
            self.values[f"{name}_rate"].append(row[name] / total if total else 0.0)

    def summary(self) -> dict[str, Any]:
        scored = len(self.values["accuracy"])
        means = {key: math.fsum(values) / scored if scored else 0.0 for key, values in self.values.items()}
        return {
            "documents": self.documents,
            "scored": scored,
            "coverage": scored / self.documents if self.documents else 0.0,
            **means,
        }


def summarize(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The summary of a Run: ratios of 0 to 1, means over scored documents, each document weighing the same.

    Args:
        rows: one mapping per document, with ``suite``, ``status`` (``scored`` or ``error``) and, where scored, the
            figures of `score`.
    """
    whole, suites = _Block(), dict[str, _Block]()
    for row in rows:
        whole.add(row)
        suites.setdefault(row["suite"], _Block()).add(row)
    return {**whole.summary(), "per_suite": {suite: suites[suite].summary() for suite in sorted(suites)}}
