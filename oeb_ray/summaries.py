"""What is derived from a Run's parts and receipts, and can be made again at any time.

In: the parts that hold its documents, and receipts. Out: scores.jsonl and summary.json, which depend on corpus,
predictions and scorer alone, and usage.json.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from . import layout, storage
from .arrow import release_memory
from .digests import digest
from .jsontext import line, pretty
from .records import Receipt, Run
from .scorers.contract import HEAD, Scorer
from .tables import read_parts

ROWS_AT_ONCE = 1_000  # of a table as Python objects


class Derived(NamedTuple):
    """``files``: what a scorer's rows come to, by name below the run; the summary; error rows' texts by doc_id."""

    files: dict[str, bytes]
    summary: dict[str, Any]
    errors: dict[str, str]


class Written(NamedTuple):
    """What is derived once it is stored: in place of the files, which may be large, size, stamp and digest of each,
    unless another driver has replaced it.
    """

    files: dict[str, tuple[int, str, str]]
    summary: dict[str, Any]
    errors: dict[str, str]


def write_summaries(out: str, run: Run, scorers: Sequence[Scorer], homes: Iterable[layout.Home]) -> list[Written]:
    """Writes what is derived from the parts of each scorer, suite by suite.

    Raises:
        DamagedPart: a part cannot be read; nothing of its scorer was written.
    """
    by_suite: dict[str, list[layout.Home]] = {}
    for home in sorted(homes):
        by_suite.setdefault(home.suite, []).append(home)
    made = []
    for scorer in scorers:
        table = layout.below(scorer.name, layout.SCORES)
        places = ([layout.part(out, run.name, table, home) for home in suite] for suite in by_suite.values())
        found = derived(run, scorer, (read_parts(suite, scorer.scores) for suite in places))
        files = {}
        for name, data in found.files.items():
            if stamp := storage.put_seen(storage.join(out, run.name, name), data):
                files[name] = (*stamp, digest(data))
        made.append(Written(files, found.summary, found.errors))
        del found
        release_memory()
    return made


def counted(run: Run, receipts: Collection[Receipt]) -> Written:
    """What stands for a summary where nothing is scored: how many documents were asked for and answered."""
    failed = {receipt.doc_id: receipt.error for receipt in receipts if receipt.error is not None}
    summary = {"run": run.name, "provider": run.provider, "settings": run.settings}
    return Written({}, summary | {"documents": len(receipts), "predicted": len(receipts) - len(failed)}, failed)


def derived(run: Run, scorer: Scorer, scores: Iterable[Any]) -> Derived:
    """What follows from a Run's score rows: Arrow tables, each of whole suites, in the order of these."""
    lines, errors = io.BytesIO(), {}

    def passing() -> Iterator[dict[str, Any]]:
        """The rows on their way into the summary: written, and errors noted."""
        for row in (row for table in scores for row in _rows(scorer, table)):
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
