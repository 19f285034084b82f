"""Choosing the documents that a manifest pins: the same data give the same manifest.

In: CORD's Parquet file and DocILE's folder, and how many documents of each are wanted. Out: pins, mixed evenly from
kinds of document, and the documents that could not be graded with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from .. import storage
from ..digests import digest
from ..errors import RequestError
from . import cord, docile
from .labelled import Labelled, Rejected, doc_id, mapped
from .pins import CordPins, DocilePins, Invoice, Receipt

PUBLISHED = CordPins(
    "naver-clova-ix/cord-v2",
    "7f0115a4b758a71d6473b8d085751692da2fef98",
    "data/test-00000-of-00001-9c204eb3f4e11791.parquet",
    "51c65f1788faff392abe2a0b55b023eb23e9be551c509138eaa3a832514224e7",
    "test",
    (),
)
INVOICES = DocilePins("annotated-trainval", "val", ())
NEEDED = ("vendorName", "invoiceNumber", "issueDate", "total")  # of an invoice that is worth pinning
T = TypeVar("T", bound=Hashable)


def item_bucket(items: int) -> str:
    """The kind of a receipt: by its number of line items."""
    return "single-item" if items == 1 else "few-items" if items <= 3 else "many-items"


def pick(candidates: Iterable[tuple[T, str]], count: int) -> list[T]:
    """Up to ``count`` candidates, each given with its bucket: one of each bucket in turn, buckets in order of name."""
    buckets: dict[str, list[T]] = {}
    for candidate, bucket in candidates:
        buckets.setdefault(bucket, []).append(candidate)
    turns = [
        buckets[name][turn]
        for turn in range(max(map(len, buckets.values()), default=0))
        for name in sorted(buckets)
        if turn < len(buckets[name])
    ]
    return turns[:count]


def pin_receipts(like: CordPins, source: str, count: int) -> tuple[CordPins, list[Rejected]]:
    """Pins of receipts, in order of their rows. ``like``: where the data come from.

    Raises:
        RequestError: fewer candidates than ``count``; or see `cord.read_rows`.
    """
    address, *others = cord.parquet_files(source, like.split)
    if others:
        raise RequestError(f"{source} holds the split {like.split} in {len(others) + 1} files; pins name one file")
    candidates: list[tuple[Receipt, str]] = []
    rejected = []
    for row in cord.read_rows(address, like.split):
        made = mapped(doc_id("cord", like.split, row.number), "cord", row.image, row.truth)
        if isinstance(made, Rejected):
            rejected.append(made)
            continue
        pin = Receipt(row.number, _image_id(row.truth), digest(row.image))
        candidates.append((pin, item_bucket(made.gold.line_items)))
    chosen = sorted(_enough(candidates, count, "receipts"), key=lambda pin: pin.row)
    sha256 = digest(storage.read(address))
    return CordPins(like.dataset, like.revision, like.file, sha256, like.split, tuple(chosen), like.host), rejected


def pin_invoices(like: DocilePins, source: str, count: int) -> tuple[DocilePins, list[Rejected]]:
    """Pins of invoices, in order of their ids.

    Raises:
        RequestError: fewer candidates than ``count``; or see `docile.read_docs`.
    """
    candidates: list[tuple[Invoice, str]] = []
    rejected = []
    for doc in docile.read_docs(source, like.split):
        made = mapped(doc_id("docile", like.split, doc.doc_id), "docile", doc.pdf, doc.truth)
        if isinstance(made, Rejected):
            rejected.append(made)
            continue
        metadata = doc.truth.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        if metadata.get("document_type") == "tax_invoice" and _worth_pinning(made):
            pages = metadata.get("page_count")
            pin = Invoice(doc.doc_id, digest(doc.pdf), digest(doc.annotation))
            candidates.append((pin, "multi-page" if type(pages) is int and pages > 1 else "single-page"))
    chosen = sorted(_enough(candidates, count, "invoices"), key=lambda pin: pin.doc_id)
    return DocilePins(like.archive, like.split, tuple(chosen)), rejected


def _enough(candidates: list[tuple[T, str]], count: int, what: str) -> list[T]:
    if len(candidates) < count:
        raise RequestError(f"{count} {what} are to be pinned, and {len(candidates)} can be; give a lower --count")
    return pick(candidates, count)


def _worth_pinning(doc: Labelled) -> bool:
    value: Callable[[str], Any] = {field.path: field.value for field in doc.gold.fields}.get
    return all(value(name) is not None for name in (*NEEDED, "lineItems.0.description"))


def _image_id(truth: Any) -> int:
    found = truth["meta"].get("image_id")
    if type(found) is not int:
        raise RequestError(f"meta.image_id of a receipt is {found!r}, not a number")
    return found
