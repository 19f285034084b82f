"""`oeb corpus`: looks at a corpus before anything is paid for, and makes one of annotated data."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from ..jsontext import visible
from .base import declare, note

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..corpus.fetching import Told
    from ..corpus.labelled import Labelled, Rejected

PINS = "a manifest of pinned documents"
DATA = "where oeb corpus fetch puts the data; default .data"


def add(commands: Any) -> None:
    """Declares `oeb corpus`."""
    parser = declare(
        commands, "corpus", "Look at a corpus before anything is paid for; make one of CORD and DocILE.",
        "oeb corpus check my/manifest.parquet",
    )  # fmt: skip
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = declare(actions, "check", "All faults of a manifest, and what its golds say that their schemas do not.",
                     "oeb corpus check my/manifest.parquet --data-root my/")  # fmt: skip
    check.add_argument("manifest", nargs="?", help="path or URL; default the sample corpus")
    check.add_argument("--data-root", metavar="DIR|URL")
    check.set_defaults(command=_corpus_check)
    fetch = declare(actions, "fetch", "Fetch what a manifest pins from its hosts, and check every digest; goes on.",
                    "DOCILE_TOKEN=... oeb corpus fetch pins.json")  # fmt: skip
    fetch.add_argument("pins", metavar="PINS", help=PINS)
    fetch.add_argument("--data", metavar="DIR", default=".data", help=DATA)
    fetch.add_argument("--cord-host", metavar="URL", help="who serves the receipts; default the hub, or HF_ENDPOINT")
    fetch.add_argument("--docile-host", metavar="URL", help="who serves the invoices; it is given DOCILE_TOKEN")
    fetch.set_defaults(command=_fetch)
    verify = declare(actions, "verify", "Hold every pinned document against its digests (exit code 2 if one differs).",
                     "oeb corpus verify pins.json")  # fmt: skip
    verify.add_argument("pins", metavar="PINS", help=PINS)
    verify.add_argument("--data", metavar="DIR|URL", default=".data", help=DATA)
    verify.set_defaults(command=_verify)
    make = declare(actions, "make", "Make a corpus of CORD receipts, DocILE invoices, or both.",
                   "oeb corpus make --cord .data/data/test-00000-of-00001.parquet --out corpora/cord\n"
                   "  oeb corpus make --pins pins.json --data .data --out corpora/extractkit")  # fmt: skip
    make.add_argument("--cord", metavar="FILE|DIR|URL", help="a Parquet file of CORD-v2, or the folder of them")
    make.add_argument("--docile", metavar="DIR|URL", help="the folder that DocILE's archive was unpacked to")
    make.add_argument("--split", metavar="NAME", help="default test of CORD, val of DocILE")
    make.add_argument("--pins", metavar="FILE|URL", help=f"{PINS}: these only, of the data in --data")
    make.add_argument("--data", metavar="DIR|URL", default=".data", help=DATA)
    make.add_argument("--out", metavar="DIR|URL", required=True)
    make.set_defaults(command=_make)
    pin = declare(actions, "pin", "Choose documents of CORD and DocILE and pin them; writes the manifest anew.",
                  "oeb corpus pin pins.json --cord .data/data/test.parquet --docile .data/docile")  # fmt: skip
    pin.add_argument("pins", metavar="PINS", help=f"{PINS}; where there is one, its data sets and splits stay")
    pin.add_argument("--cord", metavar="FILE|DIR|URL", help="the data to choose from; without it these pins stay")
    pin.add_argument("--docile", metavar="DIR|URL", help="the data to choose from; without it these pins stay")
    pin.add_argument("--count", type=int, default=25, metavar="N", help="how many of each; default 25")
    pin.set_defaults(command=_pin)


def _corpus_check(given: argparse.Namespace) -> int:
    from collections import Counter

    from ..config import sample_manifest
    from ..corpus.check import check_golds
    from ..corpus.manifest import load

    corpus = load(given.manifest or sample_manifest(), data_root=given.data_root)
    notes, unusable = check_golds(corpus)
    for text in notes:
        print(visible(text))
    suites = ", ".join(f"{suite} {count}" for suite, count in sorted(Counter(corpus.suites).items()))
    print(f"{len(corpus)} documents: {suites}")
    if unusable:
        print(f"{unusable} golds cannot be scored against")
    return 4 if unusable else 0


def _fetch(given: argparse.Namespace) -> int:
    from ..corpus.pinned_fetch import fetch_pinned
    from ..corpus.pins import load_pins

    if "://" in given.data:
        raise RequestError(f"--data {given.data}: data are fetched to a folder; oeb corpus make --out takes a URL")
    pins = load_pins(given.pins)
    with _bars() as told:
        fetched = fetch_pinned(
            pins, Path(given.data), os.environ,
            cord_host=given.cord_host, docile_host=given.docile_host, told=told,
        )  # fmt: skip
    print(f"receipts: {fetched.cord}\ninvoices: {fetched.docile}")
    for text in fetched.notes:
        note(text)
    return 0


@contextmanager
def _bars() -> Iterator[Callable[[str], Told]]:
    """A progress bar per file on a terminal; nothing elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def bar(name: str) -> Told:
            task = progress.add_task(visible(name), total=None)
            return lambda here, whole: progress.update(task, completed=here, total=whole)

        yield bar


def _verify(given: argparse.Namespace) -> int:
    from ..corpus.pins import load_pins, read_pinned

    pins = load_pins(given.pins)
    pinned = read_pinned(pins, given.data)
    for text in pinned.missing:
        note(text)
    print(f"{len(pinned.docs)} documents are the pinned ones; manifest {pins.checksum[:12]}")
    return 0


def _make(given: argparse.Namespace) -> int:
    from ..corpus.labelled import cord_docs, docile_docs, make_corpus
    from ..corpus.pins import load_pins, read_pinned

    if bool(given.pins) == bool(given.cord or given.docile):
        raise RequestError("oeb corpus make: give --pins, or --cord, --docile or both")
    docs: list[Iterable[Labelled | Rejected]] = []
    if given.pins:
        pinned = read_pinned(load_pins(given.pins), given.data)
        docs.append(pinned.docs)
        for text in pinned.missing:
            note(text)
    if given.cord:
        docs.append(cord_docs(given.cord, given.split or "test"))
    if given.docile:
        docs.append(docile_docs(given.docile, given.split or "val"))
    made = make_corpus(chain(*docs), given.out)
    _name(made.rejected)
    print(f"{made.documents} documents, {len(made.rejected)} rejected\n{made.manifest}")
    return 0


def _name(rejected: list[Rejected]) -> None:
    for doc in rejected:
        note(f"{doc.doc_id} is rejected: {doc.why}")


def _pin(given: argparse.Namespace) -> int:
    from .. import storage
    from ..corpus.curate import INVOICES, PUBLISHED, pin_invoices, pin_receipts
    from ..corpus.pins import pins_as_json, read_pins
    from ..digests import digest
    from ..jsontext import pretty

    if given.count < 1:
        raise RequestError(f"--count {given.count}: wants a number above 0")
    receipts, invoices = PUBLISHED, INVOICES
    with suppress(FileNotFoundError):
        before = read_pins(storage.read(given.pins), given.pins)
        receipts, invoices = before.cord, before.docile
    if given.cord:
        receipts, rejected = pin_receipts(receipts, given.cord, given.count)
        _name(rejected)
    if given.docile:
        invoices, rejected = pin_invoices(invoices, given.docile, given.count)
        _name(rejected)
    data = pretty(pins_as_json(receipts, invoices))
    storage.put(given.pins, data)
    print(f"{len(receipts.docs)} receipts and {len(invoices.docs)} invoices; manifest {digest(data)}")
    return 0
