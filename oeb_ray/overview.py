"""Runs of an output side by side, as far as they are.

In: runs. Out: per run its summary and use, and how many documents are recorded, failed and pending. Only small derived
files are read, and the records listed where those may be out of date.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import layout, storage
from .scoring.field_matching.summarize import summarize
from .stored import StoredRun, stored_corpus


@dataclass(frozen=True)
class Overview:
    """One run.

    ``documents``: of the corpus, None if nobody knows; ``recorded``: those asked for; ``summary``, ``usage``: what
    those files hold, None before the run has ended for the first time; ``other_corpus``: the name of the corpus that
    it is of, if that is another than the output's.
    """

    run: StoredRun
    provider: str | None
    settings: dict[str, Any]
    documents: int | None
    recorded: int
    summary: dict[str, Any] | None
    usage: dict[str, Any] | None
    other_corpus: str | None = None

    @property
    def pending(self) -> int | None:
        """Documents of the corpus that were never asked for."""
        return None if self.documents is None else max(0, self.documents - self.recorded)

    @property
    def scored(self) -> int:
        return int(self.summary["scored"]) if self.summary else 0

    @property
    def failed(self) -> int:
        """Documents that have no score since prediction or scoring failed."""
        return int(self.summary["documents"]) - self.scored if self.summary else 0

    @property
    def unsettled(self) -> int:
        """Documents that are recorded and in no summary yet."""
        return max(0, self.recorded - (int(self.summary["documents"]) if self.summary else 0))

    @property
    def partial(self) -> bool:
        """Whether its means are over other documents than those of a complete run."""
        return self.documents is None or self.recorded < self.documents or self.unsettled > 0

    @property
    def repeat_of(self) -> str:
        """The run that it repeats: ``datalab-f46415c9`` for ``datalab-f46415c9~2``, and itself for others."""
        return re.sub(r"~\d+$", "", self.run.name)


def overviews(runs: Sequence[StoredRun]) -> list[Overview]:
    """One Overview per run, in their order. Raises InternalError if a file is damaged."""
    corpora = {out: stored_corpus(out) for out in {run.out for run in runs}}
    with ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda run: _overview(run, corpora[run.out]), runs))


def _overview(run: StoredRun, corpus: dict[str, Any]) -> Overview:
    settings = run.file("settings.json")
    if settings is None:  # tables alone
        from .results import read_scores  # pyarrow takes longer to load than all the rest, and is seldom needed

        rows = [{**row, "suite": row["suite"] or "-"} for row in read_scores(run.address).to_pylist()]
        return Overview(run, None, {}, len(rows), len(rows), summarize(rows), None)
    usage = run.file("usage.json")
    other = settings.get("corpus") if corpus and settings.get("corpus") != corpus.get("corpus") else None
    return Overview(
        run=run,
        provider=settings.get("provider"),
        settings=settings.get("settings") or {},
        documents=None if other else corpus.get("documents"),
        recorded=_recorded(run, usage),
        summary=run.file("summary.json"),
        usage=usage,
        other_corpus=other,
    )


def _recorded(run: StoredRun, usage: dict[str, Any] | None) -> int:
    """How many documents have a record; while the index is in several files, usage.json is of an earlier time."""
    if usage is not None and len(storage.listed(storage.join(run.address, layout.RECEIPTS))) == 1:
        return int(usage["documents"])
    names = storage.names(storage.join(run.address, "records"))
    return sum(name.endswith(".json") for name in names)
