"""DocILE invoices: annotations to gold, and documents out of a folder.

In: an annotation object, or a folder with ``{split}.json``, ``annotations/`` and ``pdfs/``. Out: a Gold with the places
of every value, or DocileMappingError where the annotations leave a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import storage
from ..errors import RequestError
from ..jsontext import read_json
from ..scoring.field_accuracy.gold import Gold, GoldField, Region
from ..scoring.field_accuracy.kinds import normalized
from ..scoring.geometry import Box
from .forms import INVOICE, MappingError, Value, objects

MAPPED = frozenset(label for value in (*INVOICE.heads, *INVOICE.cells) for label in value.labels)
_ID = re.compile("[0-9a-f]{24}")
Entry = dict[str, Any]


class DocileMappingError(MappingError):
    """The annotations of an invoice do not say for certain what is right."""


def map_docile(annotation: Any) -> Gold:
    """The gold of one invoice.

    Args:
        annotation: the annotation object, parsed JSON. Never changed.

    Raises:
        DocileMappingError: with a ``reason``: missing_line_item_id, bad_entry, or annotation where the object has
            another shape than DocILE's.
    """
    if not isinstance(annotation, dict):
        raise DocileMappingError("annotation", "the annotation is no object")
    heads, cells = (_entries(annotation, key) for key in ("field_extractions", "line_item_extractions"))
    for entry in cells:
        if type(entry.get("line_item_id")) is not int:
            raise DocileMappingError(
                "missing_line_item_id", f"a {str(entry.get('fieldtype'))[:40]} of line items does not say of which"
            )
    items: dict[int, list[Entry]] = {}
    for entry in cells:
        items.setdefault(entry["line_item_id"], []).append(entry)
    return INVOICE.gold(
        [_head(value, [entry for entry in heads if entry.get("fieldtype") in value.labels]) for value in INVOICE.heads],
        [[_cell(value, entries) for value in INVOICE.cells] for entries in items.values()],
    )


def _entries(annotation: dict[str, Any], key: str) -> list[Entry]:
    """All entries in reading order: page, top, left; those of equal place as the file has them."""
    listed = list(objects(annotation.get(key), "annotation", key, DocileMappingError))
    for entry in listed:
        if entry.get("fieldtype") in MAPPED and not (isinstance(entry.get("text"), str) and _region(entry)):
            raise DocileMappingError("bad_entry", f"a {entry['fieldtype']} has no text, page or bbox that can be read")
    return sorted(listed, key=_reading_order)


def _reading_order(entry: Entry) -> tuple[float, float, float]:
    region = _region(entry)
    return (float("inf"),) * 3 if region is None else (region.page, region.box[1], region.box[0])


def _region(entry: Entry) -> Region | None:
    page, box = entry.get("page"), entry.get("bbox")
    if type(page) is not int or not isinstance(box, list) or len(box) != 4:
        return None
    if not all(type(side) in (int, float) and -1e9 < side < 1e9 for side in box):
        return None
    corners: Box = (float(box[0]), float(box[1]), float(box[2]), float(box[3]))
    return Region(page, corners)


def _head(value: Value, entries: list[Entry]) -> GoldField:
    """The first rendering is the value, later ones that read differently are as right."""
    texts: dict[str, str] = {}
    for entry in entries:
        texts.setdefault(normalized(entry["text"], value.compare), entry["text"])
    first, *others = texts.values() or [None]
    return GoldField(value.name, first, value.compare, _regions(entries), tuple(map(str, others)))


def _cell(value: Value, entries: list[Entry]) -> GoldField:
    """The pieces of the best label that the item has, joined in reading order."""
    by_label = ([entry for entry in entries if entry.get("fieldtype") == label] for label in value.labels)
    pieces = next((found for found in by_label if found), [])
    text = " ".join(piece["text"] for piece in pieces) if pieces else None
    return GoldField(value.name, text, value.compare, _regions(pieces))


def _regions(entries: list[Entry]) -> tuple[Region, ...]:
    return tuple(region for entry in entries if (region := _region(entry)))


class DocileDoc(NamedTuple):
    """One document: its id, the bytes of its PDF and of its annotation file, and the annotations, parsed."""

    doc_id: str
    pdf: bytes
    annotation: bytes
    truth: Any


def document_ids(source: str, split: str) -> list[str]:
    """The ids of a split, as its file lists them.

    Raises:
        RequestError: there is no such list.
    """
    address = storage.join(source, f"{split}.json")
    try:
        ids = read_json(storage.read(address))
    except FileNotFoundError:
        raise RequestError(
            f"no {split}.json in {source}; give the folder that DocILE's archive was unpacked to"
        ) from None
    except ValueError as error:
        raise RequestError(f"{address} is no JSON: {error}") from error
    if not isinstance(ids, list) or not all(isinstance(one, str) and _ID.fullmatch(one) for one in ids):
        raise RequestError(f"{address} is no list of ids of 24 hexadecimal characters")
    return ids


def read_doc(source: str, doc_id: str) -> DocileDoc:
    """One document of a folder. Raises RequestError: a file of it is missing or no JSON."""
    address = storage.join(source, "annotations", f"{doc_id}.json")
    try:
        annotation = storage.read(address)
        pdf = storage.read(storage.join(source, "pdfs", f"{doc_id}.pdf"))
        return DocileDoc(doc_id, pdf, annotation, read_json(annotation))
    except FileNotFoundError as error:
        raise RequestError(f"{source} lacks the PDF or annotation of {doc_id}: {error}") from error
    except ValueError as error:
        raise RequestError(f"{address} is no JSON: {error}") from error


def read_docs(source: str, split: str) -> Iterator[DocileDoc]:
    """All documents of a split in order of their ids."""
    return (read_doc(source, doc_id) for doc_id in sorted(document_ids(source, split)))
