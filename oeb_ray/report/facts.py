"""What a report is about: Runs, documents, and what each Run came to at each document.

In: an output, names of Runs, a corpus. Out: Facts. Only tables of scores and receipts are read, no verdicts, no
documents.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..board import Board, Group, board, groups
from ..corpus.columns import column_of
from ..corpus.manifest import Corpus
from ..errors import OebError, RequestError, StorageError
from ..folders import clusters_of, corpus_at
from ..records import Receipt
from ..stored import StoredRun, runs_at

MOST_RUNS = 50  # a document's page and the comparisons hold all of them
MOST_TAGS = 40
TAGS = "tags"  # the manifest's column


@dataclass(frozen=True)
class Selection:
    """Documents that can be looked at by themselves: ``kind`` is all, suite or tag; ``only``: None for all."""

    kind: str
    name: str
    only: frozenset[str] | None


@dataclass(frozen=True)
class Document:
    """One document. ``path``: where it lies, None if nobody knows; ``rows``: by Run, None where it has no row."""

    number: int
    doc_id: str
    suite: str
    tags: tuple[str, ...]
    path: str | None
    gold_rows: int | None
    rows: tuple[dict[str, Any] | None, ...]

    @property
    def accuracies(self) -> list[float | None]:
        """Of each Run; None where it failed or was not asked."""
        return [row["accuracy"] if row and row["status"] == "scored" else None for row in self.rows]


@dataclass(frozen=True)
class Facts:
    """``runs``: in the order of the board, repeats after the first; ``missing``: why there is no corpus, if so."""

    out: str
    runs: list[StoredRun]
    names: list[str]
    described: list[str]
    groups: list[Group]
    documents: list[Document]
    receipts: list[Mapping[str, Receipt]]
    selections: list[Selection]
    clusters: Mapping[str, str] | None
    missing: str | None

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Position of each document."""
        return {one.doc_id: one.number for one in self.documents}

    def board(self, selection: Selection, pages: Mapping[str, int] | None = None) -> Board:
        """The board of a selection."""
        count = None if selection.only is None else len(selection.only)
        return board(self.groups, documents=count, only=selection.only, clusters=self.clusters, pages=pages)


def gather(
    out: str,
    names: Collection[str] = (),
    *,
    manifest: str | None = None,
    data_root: str | None = None,
    cluster: str | None = None,
) -> Facts:
    """Reads what a report is about.

    Args:
        out: an output. names: these Runs only. manifest, data_root: its corpus; where it was last if None. cluster: the
            manifest's column that groups documents.

    Raises:
        RequestError: nothing is there, too many Runs, or the corpus that was asked for cannot be read.
    """
    runs = runs_at(out, names)
    if len(runs) > MOST_RUNS:
        raise RequestError(f"{len(runs)} runs; a report shows at most {MOST_RUNS}: choose some with --runs")
    corpus, missing = _corpus(runs[0].out, manifest, data_root)
    clusters = clusters_of(runs[0].out, manifest, cluster) if cluster else None
    listed = groups(runs)
    of_group = {one.base.run.name: one for one in listed}
    order = [one.name for one in board(listed, clusters=clusters).standings]
    listed = [of_group[name] for name in order]
    ordered = [run for one in listed for run in one.runs]
    described = [_described(one) for one in listed for _ in one.runs]
    tags = column_of(corpus.address, TAGS, optional=True) if corpus else {}
    documents = _documents([rows for one in listed for rows in one.rows], corpus, tags)
    return Facts(
        out=runs[0].out,
        runs=ordered,
        names=[run.name for run in ordered],
        described=described,
        groups=listed,
        documents=documents,
        receipts=[receipts for one in listed for receipts in one.receipts],
        selections=_selections(documents),
        clusters=clusters,
        missing=missing,
    )


def _described(group: Group) -> str:
    from ..jsontext import line

    words = [f"{key}={line(value)}" for key, value in sorted(group.base.settings.items())]
    return " ".join([group.base.provider or "a table of predictions", *words])


def _corpus(out: str, manifest: str | None, data_root: str | None) -> tuple[Corpus | None, str | None]:
    try:
        return corpus_at(out, manifest, data_root), None
    except (RequestError, StorageError) as error:
        if manifest is not None:
            raise
        return None, _first_line(error)


def _first_line(error: OebError) -> str:
    return str(error).splitlines()[0]


def _documents(
    rows: list[dict[str, dict[str, Any]]], corpus: Corpus | None, tags: Mapping[str, list[str]]
) -> list[Document]:
    paths = dict(zip(corpus.ids, corpus.doc_paths, strict=True)) if corpus else {}
    suites = dict(zip(corpus.ids, corpus.suites, strict=True)) if corpus else {}
    for one in rows:
        for doc_id, row in one.items():
            suites.setdefault(doc_id, row["suite"] or "-")
    asked = sorted(set().union(*rows), key=lambda doc_id: (suites[doc_id], doc_id))
    found = []
    for number, doc_id in enumerate(asked):
        of_runs = tuple(one.get(doc_id) for one in rows)
        gold_rows = next((row["gt_rows"] for row in of_runs if row and row.get("gt_rows") is not None), None)
        words = tuple(word for text in tags.get(doc_id, ()) for word in _words(text))
        found.append(Document(number, doc_id, suites[doc_id], words, paths.get(doc_id), gold_rows, of_runs))
    return found


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _selections(documents: list[Document]) -> list[Selection]:
    by_suite: dict[str, set[str]] = {}
    by_tag: dict[str, set[str]] = {}
    for one in documents:
        by_suite.setdefault(one.suite, set()).add(one.doc_id)
        for tag in one.tags:
            by_tag.setdefault(tag, set()).add(one.doc_id)
    largest = sorted(by_tag, key=lambda tag: (-len(by_tag[tag]), tag))[:MOST_TAGS]
    return [
        Selection("all", "all documents", None),
        *(Selection("suite", name, frozenset(by_suite[name])) for name in sorted(by_suite)),
        *(Selection("tag", name, frozenset(by_tag[name])) for name in sorted(largest)),
    ]
