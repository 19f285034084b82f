"""What is derived from a Run's parts and receipts, and can be made again at any time.

In: the parts that hold its documents, and receipts. Out: scores.jsonl and summary.json, which depend on corpus,
predictions and scorer alone, and usage.json.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from . import layout, storage
from .clock import phase
from .jsontext import line, pretty
from .records import Receipt, Run
from .scorers.contract import HEAD, Scorer
from .tables import read_parts, release_memory

ROWS_AT_ONCE = 1_000  # of a table as Python objects


class Derived(NamedTuple):
    """``files``: what a scorer's rows come to, by name below the run; the summary; error rows' texts by doc_id."""

    files: dict[str, bytes]
    summary: dict[str, Any]
    errors: dict[str, str]


@phase("summarising")
def write_summaries(
    out: str, run: Run, scorers: Sequence[Scorer], homes: Iterable[layout.Home], usage: bytes
) -> list[Derived]:
    """Writes ``usage`` (usage.json) and what is derived from the parts of each scorer, and returns the latter.

    Raises:
        DamagedPart: a part cannot be read; nothing of its scorer was written.
    """
    homes = sorted(homes)
    made = []
    for scorer in scorers:
        table = layout.below(scorer.name, layout.SCORES)
        parts = read_parts([layout.part(out, run.name, table, home) for home in homes], scorer.scores)
        made.append(derived(run, scorer, parts))
        del parts
        release_memory()
    for name, data in [("usage.json", usage), *(file for one in made for file in one.files.items())]:
        storage.put(storage.join(out, run.name, name), data)
    return made


def counted(run: Run, receipts: Collection[Receipt]) -> Derived:
    """What stands for a summary where nothing is scored: how many documents were asked for and answered."""
    failed = {receipt.doc_id: receipt.error for receipt in receipts if receipt.error is not None}
    summary = {"run": run.name, "provider": run.provider, "settings": run.settings}
    return Derived({}, summary | {"documents": len(receipts), "predicted": len(receipts) - len(failed)}, failed)


def derived(run: Run, scorer: Scorer, scores: Any) -> Derived:
    """What follows from a Run's score rows (an Arrow table)."""
    lines, errors = io.BytesIO(), {}

    def passing() -> Iterator[dict[str, Any]]:
        """The rows on their way into the summary: written, and errors noted."""
        for row in _rows(scorer, scores):
            lines.write(f"{line(row)}\n".encode())
            if row["status"] == "error":
                errors[row["doc_id"]] = row["error"]
            yield row

    summary = {"run": run.name, "provider": run.provider, "settings": run.settings}
    if scorer.name != layout.FIRST_SCORER:
        summary["scorer"] = scorer.label
    summary |= scorer.summarize(passing())
    files = {
        layout.below(scorer.name, "scores.jsonl"): lines.getvalue(),
        layout.below(scorer.name, "summary.json"): pretty(summary),
    }
    return Derived(files, summary, errors)


def _rows(scorer: Scorer, scores: Any) -> Iterator[dict[str, Any]]:
    """Rows as scores.jsonl has them, sorted by suite and doc_id."""
    for some in scores.sort_by([("suite", "ascending"), ("doc_id", "ascending")]).to_batches(ROWS_AT_ONCE):
        for row in some.to_pylist():
            keys = (*HEAD, *(scorer.figures if row["status"] == "scored" else ("error", *scorer.noted)))
            yield {key: row[key] for key in keys}
