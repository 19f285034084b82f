"""What is made of documents that lie in the same parts: their values for pages, counts, and pictures.

In: a Batch. Out: files, by name within the report, and Counts. Nothing here knows of other documents, so batches are
made in any order, on any number of machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from .. import layout, storage
from ..errors import StorageError
from ..jsontext import read_json
from ..results import Wanted, parts
from ..scorers.field_matching import VERDICTS
from ..stored import StoredRun
from .facts import Document, Facts
from .packed import packed
from .pictures import Picture, picture
from .values import boxes, columns, field_counts, right_and_wrong, without_skipped

READERS = 8
MOST_BYTES = 200_000_000  # of a document that is drawn


@dataclass(frozen=True)
class Batch:
    """Documents with the Runs that are looked at; ``folder``: where files go."""

    folder: str
    runs: Sequence[StoredRun]
    documents: Sequence[Document]


@dataclass
class Counts:
    """``fields``: verdicts by Run's position and field; ``patterns``: by document number, the positions of the Runs
    that have scored it, and how often which of them were right, by field; ``pages``: of documents; ``pictured``: by
    document number what there is to look at: how many images, a text, or why there is none."""

    fields: dict[int, dict[str, Counter[str]]] = field(default_factory=dict)
    patterns: dict[int, tuple[list[int], list[tuple[str, str, int]]]] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    pictured: dict[int, tuple[int, str | None, str | None]] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Takes in those of other documents."""
        for run, fields in other.fields.items():
            mine = self.fields.setdefault(run, {})
            for name, counts in fields.items():
                mine.setdefault(name, Counter()).update(counts)
        self.patterns.update(other.patterns)
        self.pages.update(other.pages)
        self.pictured.update(other.pictured)


def batches(facts: Facts, folder: str) -> list[Batch]:
    """All documents, in Batches that read few parts each."""
    keys = sorted({key for run in facts.runs for key in storage.listed(storage.join(run.address, layout.VERDICTS))})
    homes = [home for key in keys if (home := layout.home_of_key(key))]
    found: dict[layout.Home | None, list[Document]] = {}
    for one in facts.documents:
        there = [home for home in homes if home.suite == one.suite and layout.may_hold(home.part, one.doc_id)]
        found.setdefault(max(there, key=lambda home: layout.precedence(home.part)) if there else None, []).append(one)
    made = [Batch(folder, facts.runs, documents) for documents in found.values()]
    return sorted(made, key=lambda batch: -sum(one.gold_rows or 0 for one in batch.documents))


def do_batch(batch: Batch) -> Counts:
    """Writes a Batch's files and returns its Counts."""
    counts = Counts()
    files = made_values(batch.runs, batch.documents, counts)
    with ThreadPoolExecutor(READERS) as threads:
        list(threads.map(lambda file: storage.put(storage.join(batch.folder, file[0]), file[1]), files))
    for document in batch.documents:
        drawn = drawn_of(document)
        for number, image in enumerate(drawn.images, 1):
            storage.put(storage.join(batch.folder, image_name(document.number, number)), image)
        counts.pictured[document.number] = (len(drawn.images), drawn.text, reason(drawn, len(drawn.images)))
        if drawn.pages is not None:
            counts.pages[document.doc_id] = drawn.pages
    return counts


def reason(drawn: Picture, images: int) -> str | None:
    """Why a document has no image, or fewer than pages."""
    return f"the first {images} of {drawn.pages} pages" if drawn.pages and 0 < images < drawn.pages else drawn.why


def made_values(
    runs: Sequence[StoredRun], documents: Sequence[Document], counts: Counts
) -> Iterator[tuple[str, bytes]]:
    """Files with every Run's verdicts at every one of the documents; what they come to goes into ``counts``."""
    by_document: dict[int, dict[int, list[dict[str, Any]]]] = {}
    numbers = {one.doc_id: one.number for one in documents}
    for position, run in enumerate(runs):
        for doc_id, rows in verdicts_of(run, frozenset(numbers)):
            yield values_name(numbers[doc_id], position), packed_values(run, doc_id, numbers[doc_id], position, rows)
            counted = without_skipped(rows)
            fields = counts.fields.setdefault(position, {})
            for name, found in field_counts(counted).items():
                fields.setdefault(name, Counter()).update(found)
            kept = [{key: row[key] for key in ("field", "address", "verdict")} for row in counted]
            by_document.setdefault(numbers[doc_id], {})[position] = kept
    for number, by_run in by_document.items():
        listed = [(name, pattern, count) for (name, pattern), count in sorted(right_and_wrong(by_run).items())]
        counts.patterns[number] = sorted(by_run), listed


def verdicts_of(run: StoredRun, doc_ids: frozenset[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Verdict rows of those documents that have any, document by document."""
    for table in parts(run, layout.VERDICTS, VERDICTS, Wanted(doc_id=doc_ids)):
        rows: list[dict[str, Any]] = []
        for chunk in table.to_batches(max_chunksize=20_000):
            for row in chunk.to_pylist():
                if rows and row["doc_id"] != rows[0]["doc_id"]:
                    yield rows[0]["doc_id"], rows
                    rows = []
                rows.append(row)
        if rows:
            yield rows[0]["doc_id"], rows


def packed_values(run: StoredRun, doc_id: str, number: int, position: int, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The script with one Run's verdicts at one document and what its record cites."""
    return packed(
        f"values/{number}-{position}", columns(rows) | {"boxes": boxes(record_of(run, doc_id).get("citations"))}
    )


def record_of(run: StoredRun, doc_id: str) -> dict[str, Any]:
    """The record of a document, empty if there is none that can be read."""
    try:
        found = read_json(storage.read(layout.record(run.out, run.name, doc_id)))
    except (FileNotFoundError, StorageError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def drawn_of(document: Document, draw: Callable[[bytes, str], Picture] = picture) -> Picture:
    """The picture of a document of the corpus."""
    if document.path is None:
        return Picture(None, [], why="the document is not at hand")
    try:
        if storage.stat(document.path).size > MOST_BYTES:
            return Picture(None, [], why="the document is too large to be drawn")
        data = storage.read(document.path)
    except FileNotFoundError:
        return Picture(None, [], why="the document is not where the corpus says")
    return draw(data, document.path.rsplit("/", 1)[-1])


def values_name(number: int, position: int) -> str:
    return f"data/values/{number}-{position}.js"


def image_name(number: int, page: int) -> str:
    return f"pages/{number}/{page}.webp"
