"""What a Run used: money, pages and time, per document and per page, over all and by suite.

In: receipts. Out: usage.json, which depends on nothing else. Every mean weighs each document the same. Flat arrays
hold the figures, since there may be millions of documents.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

from . import layout
from .jsontext import pretty
from .records import Receipt
from .scorers import find

PERCENTILES = (50, 90, 95, 99)


def usage_file(receipts: Iterable[Receipt], suites: Mapping[str, str], *, first: bool) -> bytes:
    """usage.json; with the version of the first scorer where there are rows of it. ``suites`` by doc_id."""
    return pretty(usage(receipts, suites) | ({"scorer": find(layout.FIRST_SCORER).label} if first else {}))


def usage(receipts: Iterable[Receipt], suites: Mapping[str, str]) -> dict[str, Any]:
    """Documents, attempts, and what they took, as far as it was stated.

    ``usd_per_page`` is the mean of each document's own dollars by its pages; documents without a stated cost, or
    without known pages, are in no such mean (``usd_unknown``, ``pages_unknown`` count them). ``seconds``: of the
    documents that were answered: total, avg, min, max, count and percentiles; ``seconds_per_page`` alike.
    ``per_suite`` has what is per document or page of each suite.
    """
    listed = sorted(receipts, key=lambda receipt: receipt.doc_id)
    whole, by_suite = _Use(), dict[str, _Use]()
    for receipt in listed:
        whole.add(receipt)
        suite = suites.get(receipt.doc_id)
        if suite is not None:
            by_suite.setdefault(suite, _Use()).add(receipt)
    return {
        "documents": len(listed),
        "unanswered": sum(receipt.error is not None for receipt in listed),
        "attempts": sum(receipt.attempts for receipt in listed),
        "usd": _total(receipt.usd for receipt in listed),
        "usd_unknown": sum(receipt.usd is None for receipt in listed),
        "credits": _total(receipt.credits for receipt in listed),
        "tokens_in": _total(receipt.tokens_in for receipt in listed),
        "tokens_out": _total(receipt.tokens_out for receipt in listed),
        "wall_s": _total(receipt.wall_s for receipt in listed),
        "pages": _total(receipt.pages for receipt in listed),
        "pages_unknown": sum(receipt.pages is None for receipt in listed),
        **whole.figures(),
        "per_suite": {suite: by_suite[suite].figures() for suite in sorted(by_suite)},
    }


class _Use:
    """What is per document or per page of some documents."""

    def __init__(self) -> None:
        self.usd, self.usd_per_page = array("d"), array("d")
        self.seconds, self.seconds_per_page = array("d"), array("d")

    def add(self, receipt: Receipt) -> None:
        pages = receipt.pages
        if receipt.usd is not None:
            self.usd.append(receipt.usd)
            if pages:
                self.usd_per_page.append(receipt.usd / pages)
        if receipt.error is None:
            self.seconds.append(receipt.wall_s)
            if pages:
                self.seconds_per_page.append(receipt.wall_s / pages)

    def figures(self) -> dict[str, Any]:
        return {
            "usd_per_document": _mean(self.usd),
            "usd_per_page": _mean(self.usd_per_page),
            "seconds": _spread(self.seconds),
            "seconds_per_page": _spread(self.seconds_per_page),
        }


def _total(values: Iterable[float | None]) -> float | None:
    stated = array("d", (value for value in values if value is not None))
    return math.fsum(stated) if stated else None


def _mean(values: array[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _spread(values: array[float]) -> dict[str, float] | None:
    """None of no value at all."""
    if not values:
        return None
    ordered, count = sorted(values), len(values)
    total = math.fsum(ordered)
    return {
        "total": total, "avg": total / count, "min": ordered[0], "max": ordered[-1], "count": count,
        **{f"p{share}": ordered[min(count * share // 100, count - 1)] for share in PERCENTILES},
    }  # fmt: skip
