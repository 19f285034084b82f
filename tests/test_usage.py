"""usage.json: each document's own cost by its own pages; percentiles by rank; what nobody stated is not zero."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oeb_ray.ask import receipt_of
from oeb_ray.records import Receipt
from oeb_ray.usage import usage, usage_file


def receipt(
    doc_id: str, usd: float | None = None, pages: Any = None, seconds: float = 1.0, failed: bool = False
) -> Any:
    """As a record of such a document gives it."""
    error = {"type": "VendorError", "transient": False} if failed else None
    cost = {"usd": usd, "credits": None, "tokens_in": None, "tokens_out": None, "wall_s": seconds, "attempts": 1}
    return receipt_of(
        {
            "doc_id": doc_id, "error": error, "result": {"__error__": "no"}, "pages": pages,
            "cost": cost | {"unpriced": 0}, "prediction_sha256": None, "prediction_bytes": 0, "schema_sha256": "",
            "document": {"sha256": "", "size": 0, "stamp": ""},
        }
    )  # fmt: skip


def test_cost_per_page_is_the_mean_of_each_documents_own() -> None:
    receipts = [receipt("a", 0.10, 2), receipt("b", 0.02, 1), *(receipt(name) for name in "cde")]
    found = usage(receipts, {"a": "short", "b": "long"})
    assert found["usd"] == pytest.approx(0.12) and found["usd_unknown"] == 3
    assert found["usd_per_page"] == pytest.approx(0.035) and found["usd_per_document"] == pytest.approx(0.06)
    assert (found["pages"], found["pages_unknown"]) == (3, 3)
    assert found["per_suite"]["short"]["usd_per_page"] == pytest.approx(0.05)
    assert list(found["per_suite"]) == ["long", "short"] and found["per_suite"]["long"]["seconds"]["count"] == 1


@pytest.mark.parametrize(
    ("seconds", "p50", "p90"), [([3.0, 1.0, 2.0], 2.0, 3.0), ([float(n) for n in range(1, 11)], 6.0, 10.0)]
)
def test_percentiles_are_by_rank(seconds: list[float], p50: float, p90: float) -> None:
    found = usage((receipt(f"{number:02}", seconds=each) for number, each in enumerate(seconds)), {})["seconds"]
    assert (found["p50"], found["p90"], found["count"], found["min"]) == (p50, p90, len(seconds), 1.0)
    assert found["avg"] == sum(seconds) / len(seconds) and found["total"] == sum(seconds)


def test_failed_documents_are_in_no_latency_and_their_cost_counts() -> None:
    found = usage([receipt("a", 0.5, seconds=9, failed=True), receipt("b", 0.1, 4, seconds=2)], {})
    assert found["seconds"]["count"] == 1 and found["seconds"]["avg"] == 2
    assert found["seconds_per_page"]["avg"] == 0.5 and found["usd_per_document"] == pytest.approx(0.3)


def test_of_nothing_there_is_no_mean_and_the_file_is_the_same_in_any_order() -> None:
    nothing = usage([], {})
    assert nothing["usd_per_page"] is nothing["seconds"] is nothing["usd"] is None and nothing["per_suite"] == {}
    both = [receipt("a", 0.1, 3), receipt("b", 0.2, 7)]
    assert usage_file(both, {}, first=True) == usage_file(reversed(both), {}, first=True)
    assert json.loads(usage_file(both, {}, first=True))["scorer"].startswith("field_matching ")


@pytest.mark.parametrize("pages", [0, -1, True, 2.0, "3", 10**9, None])
def test_pages_that_are_no_count_are_unknown(pages: Any) -> None:
    made: Receipt = receipt("a", 1.0, pages)
    assert made.pages is None
