"""Many documents into one summary (METRIC_SPEC.md, "Many documents"), and what they cost.

In: document results as run records have them: ``schema``, ``error``, ``fields``, ``extraLineItems``, ``usage``. Out:
per schema the accuracy of fields, how well they were placed, and the cost by list prices. A document without an answer
counts with every field wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HIT = 0.5  # the overlap from which a place counts as found, itself included
SCHEMAS = ("receipt", "invoice")
_INDEX = re.compile(r"\.[0-9]+(?=\.|$)")


def token_cost(tokens_in: int, tokens_out: int, usd_per_mtok: tuple[float, float] | None) -> float | None:
    """US dollars of measured tokens at list prices, in and out per million tokens; None without prices."""
    if usd_per_mtok is None:
        return None
    return (tokens_in * usd_per_mtok[0] + tokens_out * usd_per_mtok[1]) / 1_000_000


def per_thousand(total: float | None, documents: int) -> float | None:
    """A cost per 1,000 documents; those of which nothing is known stay in the divisor."""
    return None if total is None or not documents else total / documents * 1000


def summarize(docs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The summary per schema, for those schemas that have documents; receipts first.

    Returns:
        by schema ``docs`` and ``failedDocs`` (counts), ``fieldsScored``, ``fieldAccuracy`` (0 to 1; 0 without fields),
        ``grounding`` (``scoreable``, ``meanIoU``, ``hitAt50``), ``perField``, ``extraLineItems`` and ``cost`` (US
        dollars and tokens).
    """
    by_schema: dict[str, list[Mapping[str, Any]]] = {}
    for doc in docs:
        by_schema.setdefault(doc["schema"], []).append(doc)
    order = [*SCHEMAS, *sorted(by_schema.keys() - set(SCHEMAS))]
    return {schema: _block(by_schema[schema]) for schema in order if schema in by_schema}


def field_name(path: str) -> str:
    """``lineItems[].amount`` for ``lineItems.3.amount``."""
    return _INDEX.sub("[]", path)


def _block(docs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fields = [field for doc in docs for field in doc["fields"]]
    correct = [field["valueCorrect"] for field in fields]
    places = [field["iou"] for field in fields if field["iou"] is not None]
    by_name: dict[str, list[bool]] = {}
    for field in fields:
        by_name.setdefault(field_name(field["path"]), []).append(field["valueCorrect"])
    return {
        "docs": len(docs),
        "failedDocs": sum(doc["error"] is not None for doc in docs),
        "fieldsScored": len(fields),
        "fieldAccuracy": sum(correct) / len(correct) if correct else 0.0,
        "grounding": {
            "scoreable": len(places),
            "meanIoU": math.fsum(places) / len(places) if places else None,
            "hitAt50": sum(place >= HIT for place in places) / len(places) if places else None,
        },
        "perField": [
            {"field": name, "accuracy": sum(by_name[name]) / len(by_name[name]), "count": len(by_name[name])}
            for name in sorted(by_name)
        ],
        "extraLineItems": sum(doc["extraLineItems"] for doc in docs),
        "cost": _cost([doc["usage"] for doc in docs]),
    }


def _cost(usages: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    known = [usage for usage in usages if usage is not None]
    stated = [usage["costUSD"] for usage in known if usage["costUSD"] is not None]
    total = math.fsum(stated) if stated else None
    return {
        "totalUSD": total,
        "per1kDocsUSD": per_thousand(total, len(usages)),
        "inputTokens": sum(usage["inputTokens"] for usage in known),
        "outputTokens": sum(usage["outputTokens"] for usage in known),
    }
