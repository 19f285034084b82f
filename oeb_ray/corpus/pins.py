"""Pinned documents: a manifest of ids and SHA-256, and the documents that it names, each held against it.

In: a manifest file (version 1: ``cord`` with dataset, revision, file, sha256, split and docs; ``docile`` with archive,
split and docs), and the folder that `oeb corpus fetch` fills. Out: Pins of frozen values, and the documents. The
manifest's checksum is the SHA-256 of its bytes; every run record names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .. import storage
from ..digests import digest
from ..errors import RequestError, refused
from ..jsontext import read_json
from . import cord, docile
from .labelled import Labelled, Rejected, doc_id, mapped

VERSION = 1
DOCILE_FOLDER = "docile"
SHOWN = 20  # documents that are named in one message


@dataclass(frozen=True)
class Receipt:
    """A pinned row: its number in the split, the id in its annotations, and the digest of its image's bytes."""

    row: int
    image_id: int
    image_sha256: str

    def as_json(self) -> dict[str, Any]:
        return {"rowIndex": self.row, "imageId": self.image_id, "imageSha256": self.image_sha256}


@dataclass(frozen=True)
class Invoice:
    """A pinned document: its id, and the digests of its PDF and of its annotation file."""

    doc_id: str
    pdf_sha256: str
    annotation_sha256: str

    def as_json(self) -> dict[str, Any]:
        return {"docId": self.doc_id, "pdfSha256": self.pdf_sha256, "annotationSha256": self.annotation_sha256}


@dataclass(frozen=True)
class CordPins:
    """Pinned receipts. ``file``: the Parquet file's path in the data set; ``host``: who serves it, None for the hub."""

    dataset: str
    revision: str
    file: str
    sha256: str
    split: str
    docs: tuple[Receipt, ...]
    host: str | None = None


@dataclass(frozen=True)
class DocilePins:
    """Pinned invoices. ``archive``: the name of the zip file without its ending."""

    archive: str
    split: str
    docs: tuple[Invoice, ...]


@dataclass(frozen=True)
class Pins:
    """A manifest. ``checksum``: SHA-256 of its bytes."""

    cord: CordPins
    docile: DocilePins
    checksum: str


def pins_as_json(cord_pins: CordPins, docile_pins: DocilePins) -> dict[str, Any]:
    """A manifest as it is stored."""
    host = {} if cord_pins.host is None else {"host": cord_pins.host}
    return {
        "version": VERSION,
        "cord": {
            **host, "dataset": cord_pins.dataset, "revision": cord_pins.revision, "file": cord_pins.file,
            "sha256": cord_pins.sha256, "split": cord_pins.split, "docs": [doc.as_json() for doc in cord_pins.docs],
        },
        "docile": {
            "archive": docile_pins.archive, "split": docile_pins.split,
            "docs": [doc.as_json() for doc in docile_pins.docs],
        },
    }  # fmt: skip


def load_pins(address: str) -> Pins:
    """A manifest by its path or URL. Raises RequestError: there is none, or see `read_pins`."""
    try:
        return read_pins(storage.read(address), address)
    except FileNotFoundError:
        raise RequestError(f"no manifest of pinned documents at {address}") from None


def read_pins(data: bytes, name: str) -> Pins:
    """A manifest from its bytes; ``name`` leads every message.

    Raises:
        RequestError: no JSON, another version than 1, or what is missing or of a wrong type, all at once.
    """
    try:
        value = read_json(data)
    except ValueError as error:
        raise RequestError(f"{name} is no JSON: {error}") from error
    found = value.get("version") if isinstance(value, dict) else None
    if type(found) is not int or found != VERSION:
        raise RequestError(f"{name} is of version {found!r}; this reads manifests of version {VERSION}")
    read = _Reader(value)
    pins = Pins(read.cord(), read.docile(), digest(data))
    if read.problems:
        raise refused(f"manifest {name}", dict.fromkeys(read.problems))
    return pins


class _Reader:
    """Values of a manifest, with what is wrong about them noted."""

    def __init__(self, value: dict[str, Any]) -> None:
        self.value, self.problems = value, list[str]()

    def cord(self) -> CordPins:
        return CordPins(
            dataset=self.text("cord", "dataset"),
            revision=self.text("cord", "revision"),
            file=self.text("cord", "file"),
            sha256=self.hexadecimal("cord", self._half("cord"), "sha256", 64),
            split=self.text("cord", "split"),
            docs=tuple(
                Receipt(
                    self.count(at, doc, "rowIndex"),
                    self.count(at, doc, "imageId"),
                    self.hexadecimal(at, doc, "imageSha256", 64),
                )
                for at, doc in self.docs("cord")
            ),
            host=self.host(),
        )

    def docile(self) -> DocilePins:
        return DocilePins(
            archive=self.text("docile", "archive"),
            split=self.text("docile", "split"),
            docs=tuple(
                Invoice(
                    self.hexadecimal(at, doc, "docId", 24),
                    self.hexadecimal(at, doc, "pdfSha256", 64),
                    self.hexadecimal(at, doc, "annotationSha256", 64),
                )
                for at, doc in self.docs("docile")
            ),
        )

    def _half(self, half: str) -> dict[str, Any]:
        found = self.value.get(half)
        if not isinstance(found, dict):
            self.problems.append(f"{half} is missing or no object")
            return {}
        return found

    def text(self, half: str, key: str) -> str:
        found = self._half(half).get(key)
        if not isinstance(found, str) or not found or ".." in found.split("/") or found.startswith("/"):
            self.problems.append(f"{half}.{key} is {found!r}: wants a text, and no path that leaves its folder")
            return ""
        return found

    def host(self) -> str | None:
        found = self._half("cord").get("host")
        if found is None or (isinstance(found, str) and found.startswith(("https://", "http://"))):
            return found
        self.problems.append(f"cord.host is {found!r}: wants an address such as https://huggingface.co")
        return None

    def docs(self, half: str) -> Iterator[tuple[str, dict[str, Any]]]:
        found = self._half(half).get("docs")
        if not isinstance(found, list):
            self.problems.append(f"{half}.docs is missing or no list")
            return
        for number, doc in enumerate(found):
            if isinstance(doc, dict):
                yield f"{half}.docs[{number}]", doc
            else:
                self.problems.append(f"{half}.docs[{number}] is no object")

    def count(self, at: str, doc: dict[str, Any], key: str) -> int:
        found = doc.get(key)
        if type(found) is int and found >= 0:
            return found
        self.problems.append(f"{at}.{key} is {found!r}: wants a whole number")
        return 0

    def hexadecimal(self, at: str, doc: dict[str, Any], key: str, length: int) -> str:
        found = doc.get(key)
        if isinstance(found, str) and len(found) == length and not set(found) - set("0123456789abcdef"):
            return found
        self.problems.append(f"{at}.{key} is {found!r}: wants {length} hexadecimal digits")
        return ""


def mismatch(what: str, pinned: object, actual: object) -> str | None:
    """What to say where a document is not the pinned one; None where it is."""
    return None if pinned == actual else f"{what} is {actual}, pinned is {pinned}"


def pinned_receipts(pins: CordPins, source: str) -> Iterator[tuple[Labelled | Rejected, list[str]]]:
    """The pinned receipts in the manifest's order, each with what differs from its pin.

    Raises:
        RequestError: see `cord.read_rows`; or a row that the file does not have.
    """
    wanted = {pin.row: pin for pin in pins.docs}
    found: dict[int, tuple[Labelled | Rejected, list[str]]] = {}
    rows = 0
    for row in cord.read_rows(source, pins.split):
        rows += 1
        if pin := wanted.get(row.number):
            meta = row.truth.get("meta") if isinstance(row.truth, dict) else None
            image_id = meta.get("image_id") if isinstance(meta, dict) else None
            name = doc_id("cord", pins.split, row.number)
            said = [
                mismatch(f"{name}: the image's sha256", pin.image_sha256, digest(row.image)),
                mismatch(f"{name}: the image's id", pin.image_id, image_id),
            ]
            made = mapped(name, "cord", row.image, row.truth)
            found[row.number] = made, [text for text in said if text]
    if beyond := sorted(wanted.keys() - found.keys()):
        raise RequestError(f"{source} has {rows} rows in the split {pins.split}, and none of the number {beyond[0]}")
    return iter([found[pin.row] for pin in pins.docs])


def pinned_invoices(pins: DocilePins, source: str) -> Iterator[tuple[Labelled | Rejected, list[str]]]:
    """The pinned invoices in the manifest's order, each with what differs. Raises RequestError: a file is missing."""
    for pin in pins.docs:
        doc = docile.read_doc(source, pin.doc_id)
        name = doc_id("docile", pins.split, pin.doc_id)
        said = [
            mismatch(f"{name}: the PDF's sha256", pin.pdf_sha256, digest(doc.pdf)),
            mismatch(f"{name}: the annotations' sha256", pin.annotation_sha256, digest(doc.annotation)),
        ]
        yield mapped(name, "docile", doc.pdf, doc.truth), [text for text in said if text]


@dataclass(frozen=True)
class Pinned:
    """The documents of a manifest. ``missing``: why a half is left out, empty where both are there."""

    docs: tuple[Labelled | Rejected, ...]
    missing: tuple[str, ...]


def read_pinned(pins: Pins, data: str) -> Pinned:
    """Every pinned document, checked; receipts first.

    Args:
        data: the folder that was fetched to: the receipts' Parquet file under its own path, the invoices in docile/.

    Raises:
        RequestError: nothing is pinned, the receipts' file is missing, or documents are not the pinned ones, which
            are named with both digests.
    """
    if not pins.cord.docs and not pins.docile.docs:
        raise RequestError("the manifest pins no document; make one with oeb corpus pin")
    read: list[tuple[Labelled | Rejected, list[str]]] = []
    missing = []
    if pins.cord.docs:
        read += pinned_receipts(pins.cord, storage.join(data, pins.cord.file))
    if pins.docile.docs:
        folder = storage.join(data, DOCILE_FOLDER)
        if storage.is_folder(storage.join(folder, "annotations")):
            read += pinned_invoices(pins.docile, folder)
        else:
            missing.append(
                f"{len(pins.docile.docs)} pinned invoices are left out: nothing in {folder}; set DOCILE_TOKEN and run "
                "oeb corpus fetch"
            )
    if differs := [text for _, texts in read for text in texts]:
        more = [f"and {len(differs) - SHOWN} more"] if len(differs) > SHOWN else []
        raise refused("these are not the pinned documents", [*differs[:SHOWN], *more])
    return Pinned(tuple(doc for doc, _ in read), tuple(missing))
