"""A corpus made of annotated data: CORD receipts, DocILE invoices, or both, as files and a manifest like any other.

In: where the data lie, and which documents (all of a split, or those that are pinned). Out: ``docs/``, ``gold/`` (the
bare values, for any scorer), ``fields/`` (values with other renderings and places, for field_accuracy) and
``manifest.parquet`` in a folder or bucket, and what was left out and why. Ids are ``cord-test-4`` for row 4 of a split
and ``docile-val-`` with the id of the data set. The same data give the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .. import storage
from ..errors import RequestError
from ..jsontext import pretty
from ..media import PDF, media_type
from ..scoring.field_accuracy.gold import Gold
from . import cord, docile
from .forms import INVOICE, RECEIPT, Form, MappingError
from .manifest import ANNOTATIONS, COLUMNS

ENDINGS = {PDF: "pdf", "image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
_FORM_OF = {"cord": RECEIPT, "docile": INVOICE}
_ID = re.compile("(cord|docile)-([A-Za-z0-9_]+)-([0-9a-f]+)")
_HARNESS_ID = re.compile("(cord|docile)/([A-Za-z0-9_]+)/([0-9a-f]+)")


class Labelled(NamedTuple):
    """One document of a data set (``cord`` or ``docile``), the bytes of its image or PDF, and its gold."""

    doc_id: str
    dataset: str
    data: bytes
    gold: Gold


@dataclass(frozen=True)
class Rejected:
    """A document that cannot be graded, and why."""

    doc_id: str
    why: str


def doc_id(dataset: str, split: str, name: str | int) -> str:
    """The id of a document in a corpus."""
    return f"{dataset}-{split}-{name}"


def harness_id(of: str) -> str | None:
    """The id that the extractkit harness gives to a document, such as ``cord/test/4``; None for other documents."""
    found = _ID.fullmatch(of)
    return "/".join(found.groups()) if found else None


def own_id(of: str) -> str | None:
    """The id in a corpus of what the harness calls ``cord/test/4``; None for other texts."""
    found = _HARNESS_ID.fullmatch(of)
    return doc_id(*found.groups()) if found else None


def form_of(dataset: str) -> Form:
    """What is asked of the documents of a data set."""
    return _FORM_OF[dataset]


def cord_docs(source: str, split: str) -> Iterator[Labelled | Rejected]:
    """All receipts of a split, in order of their rows. Raises RequestError: see `cord.read_rows`."""
    for row in cord.read_rows(source, split):
        yield mapped(doc_id("cord", split, row.number), "cord", row.image, row.truth)


def docile_docs(source: str, split: str) -> Iterator[Labelled | Rejected]:
    """All invoices of a split, in order of their ids. Raises RequestError: see `docile.read_docs`."""
    for doc in docile.read_docs(source, split):
        yield mapped(doc_id("docile", split, doc.doc_id), "docile", doc.pdf, doc.truth)


def mapped(name: str, dataset: str, data: bytes, truth: Any) -> Labelled | Rejected:
    """A document with its gold, or why it has none."""
    try:
        return Labelled(name, dataset, data, cord.map_cord(truth) if dataset == "cord" else docile.map_docile(truth))
    except MappingError as error:
        return Rejected(name, str(error))


class Made(NamedTuple):
    """A corpus that was written: its manifest's address, how many documents it has, and what was left out."""

    manifest: str
    documents: int
    rejected: list[Rejected]


def make_corpus(docs: Iterable[Labelled | Rejected], out: str) -> Made:
    """Writes documents, golds and last the manifest; one document is held at a time.

    Raises:
        RequestError: no document is left, or one is of a kind that nobody reads.
    """
    rows: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, ANNOTATIONS)}
    rejected: list[Rejected] = []
    for doc in docs:
        if isinstance(doc, Rejected):
            rejected.append(doc)
            continue
        ending = ENDINGS.get(media_type(doc.data, ""))
        if ending is None:
            raise RequestError(f"{doc.doc_id} is neither PDF nor PNG, JPEG or WebP")
        paths = f"docs/{doc.doc_id}.{ending}", f"gold/{doc.doc_id}.json", f"fields/{doc.doc_id}.json"
        contents = doc.data, pretty(doc.gold.values()), pretty(doc.gold.as_json())
        for path, data in zip(paths, contents, strict=True):
            storage.put(storage.join(out, path), data)
        row = (doc.doc_id, doc.dataset, *paths[:2], form_of(doc.dataset).schema(), paths[2])
        for name, value in zip(rows, row, strict=True):
            rows[name].append(value)
    if not rows["doc_id"]:
        said = f"; the first: {rejected[0].doc_id}: {rejected[0].why}" if rejected else ""
        raise RequestError(f"no document is left: {len(rejected)} were rejected{said}")
    sink = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in rows.items()}), sink)
    manifest = storage.join(out, "manifest.parquet")
    storage.put(manifest, sink.getvalue())
    return Made(manifest, len(rows["doc_id"]), rejected)
