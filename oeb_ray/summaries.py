"""What is derived from a Run's parts and receipts, and can be made again at any time.

In: the parts that hold its documents, and receipts. Out: scores.jsonl and summary.json, which depend on corpus,
predictions and scorer alone, and usage.json.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from . import layout, storage
from .grade import SCORER
from .jsontext import line, pretty
from .records import Receipt, Run
from .scoring.field_matching.summarize import summarize
from .tables import SCORE_KEYS, SCORES, read_parts


class Derived(NamedTuple):
    """``files``: the bytes of scores.jsonl, usage.json and summary.json, in the order in which they are written; the
    summary; the error rows' texts by doc_id."""

    files: dict[str, bytes]
    summary: dict[str, Any]
    errors: dict[str, str]


def write_summaries(
    out: str, run: Run, homes: Iterable[layout.Home] | None, receipts: Collection[Receipt]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Writes what is derived from a Run's parts; returns the summary, and error rows' texts by doc_id.

    Where nothing is to be scored, ``homes`` is None: then usage.json alone is written, and the summary only counts.

    Raises:
        DamagedPart: a part cannot be read; nothing was written.
    """
    if homes is None:
        storage.put(storage.join(out, run.name, "usage.json"), usage_file(receipts))
        failed = {receipt.doc_id: receipt.error for receipt in receipts if receipt.error is not None}
        summary = {"run": run.name, "provider": run.provider, "settings": run.settings}
        return summary | {"documents": len(receipts), "predicted": len(receipts) - len(failed)}, failed
    scores = read_parts([layout.part(out, run.name, layout.SCORES, home) for home in sorted(homes)], SCORES)
    made = derived(run, scores, receipts)
    for name, data in made.files.items():
        storage.put(storage.join(out, run.name, name), data)
    return made.summary, made.errors


def derived(run: Run, scores: Any, receipts: Iterable[Receipt]) -> Derived:
    """What follows from a Run's score rows (an Arrow table) and receipts."""
    rows = list(_rows(scores))
    summary = {"run": run.name, "provider": run.provider, "settings": run.settings, **summarize(rows)}
    files = {
        "scores.jsonl": "".join(line(row) + "\n" for row in rows).encode(),
        "usage.json": usage_file(receipts),
        "summary.json": pretty(summary),
    }
    return Derived(files, summary, {row["doc_id"]: row["error"] for row in rows if row["status"] == "error"})


def usage_file(receipts: Iterable[Receipt]) -> bytes:
    """usage.json."""
    return pretty({**usage(receipts), "scorer": SCORER})


def _rows(scores: Any) -> Iterator[dict[str, Any]]:
    """Rows as scores.jsonl has them, sorted by suite and doc_id."""
    for row in scores.sort_by([("suite", "ascending"), ("doc_id", "ascending")]).to_pylist():
        keys = ("doc_id", "suite", "provider", "status", *(SCORE_KEYS if row["status"] == "scored" else ("error",)))
        yield {key: row[key] for key in keys}


def usage(receipts: Iterable[Receipt]) -> dict[str, Any]:
    """What a Run used: documents, attempts, seconds, and money where the vendor stated it."""
    listed = sorted(receipts, key=lambda receipt: receipt.doc_id)

    def total(values: list[Any]) -> float | None:
        stated = [value for value in values if value is not None]
        return math.fsum(stated) if stated else None

    return {
        "documents": len(listed),
        "unanswered": sum(receipt.error is not None for receipt in listed),
        "attempts": sum(receipt.attempts for receipt in listed),
        "usd": total([receipt.usd for receipt in listed]),
        "usd_unknown": sum(receipt.usd is None for receipt in listed),
        "credits": total([receipt.credits for receipt in listed]),
        "tokens_in": total([receipt.tokens_in for receipt in listed]),
        "tokens_out": total([receipt.tokens_out for receipt in listed]),
        "wall_s": total([receipt.wall_s for receipt in listed]),
    }
