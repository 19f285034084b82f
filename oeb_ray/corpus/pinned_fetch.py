"""Brings the data of a manifest of pinned documents to this machine.

In: Pins, a folder, who serves the data, and DOCILE_TOKEN. Out: what was done with each half. Both halves are fetched at
the same time; one that fails does not end the other. The token is part of an address and stands in no message.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ..errors import OebError, Stopped, refused
from .fetching import Source, Told, download, unpack
from .pins import DOCILE_FOLDER, CordPins, DocilePins, Pins

HUB = "https://huggingface.co"
DOCILE_HOST = "https://docile-dataset-rossum.s3.eu-west-1.amazonaws.com"
TOKEN = "DOCILE_TOKEN"
NO_TOKEN = f"the invoices are left out: {TOKEN} is not set; a token is free of charge at docile.rossum.ai"


@dataclass(frozen=True)
class Fetched:
    """What became of each half: ``fetched``, ``present``, ``skipped`` (no token) or ``unpinned``; notes for people."""

    cord: str
    docile: str
    notes: tuple[str, ...]


def fetch_pinned(
    pins: Pins,
    data: Path,
    environment: Mapping[str, str],
    *,
    cord_host: str | None = None,
    docile_host: str | None = None,
    told: Callable[[str], Told] = lambda name: lambda here, all: None,
) -> Fetched:
    """Fetches what is pinned and not there yet.

    Args:
        data: the folder; the receipts' file goes under its own path, the invoices to docile/.
        environment: where DOCILE_TOKEN and HF_ENDPOINT are looked up; a blank one is not set.
        cord_host, docile_host: who serves the halves, instead of the manifest's or the canonical host.
        told: per file whom to tell of its progress.

    Raises:
        RequestError: a half cannot be fetched or is not what is pinned; both, if both. StorageError: nothing can be
            written there.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would name addresses
    token = environment.get(TOKEN, "").strip()
    hub = cord_host or pins.cord.host or environment.get("HF_ENDPOINT", "").strip() or HUB
    stop = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        half = partial(_until, stop, told)
        receipts = threads.submit(_receipts, pins.cord, data, hub, half)
        invoices = threads.submit(_invoices, pins.docile, data, token, docile_host or DOCILE_HOST, half)
        try:
            wait([receipts, invoices])
        except BaseException:  # Ctrl-C ends both at their next block
            stop.set()
            raise
    errors = [error for half in (receipts, invoices) if (error := half.exception())]
    if len(errors) > 1 and all(isinstance(error, OebError) for error in errors):
        raise refused("neither half could be fetched", map(str, errors))
    for error in errors:
        raise error
    notes = [NO_TOKEN] if invoices.result() == "skipped" else []
    return Fetched(receipts.result(), invoices.result(), tuple(notes))


def _until(stop: threading.Event, told: Callable[[str], Told], name: str) -> Told:
    """Tells of a file until ``stop`` is set, and then ends its download."""
    tell = told(name)

    def told_or_stopped(here: int, whole: int | None) -> None:
        if stop.is_set():
            raise Stopped(f"{name}: stopped")
        tell(here, whole)

    return told_or_stopped


def _receipts(pins: CordPins, data: Path, host: str, told: Callable[[str], Told]) -> str:
    address = f"{host.rstrip('/')}/datasets/{quote(pins.dataset)}/resolve/{quote(pins.revision, safe='')}"
    source = Source(f"{address}/{quote(pins.file)}", data / pins.file, pins.sha256)
    return "fetched" if download(source, told(Path(pins.file).name)) else "present"


def _invoices(pins: DocilePins, data: Path, token: str, host: str, told: Callable[[str], Told]) -> str:
    folder, archive = data / DOCILE_FOLDER, data / f"{pins.archive}.zip"
    if (folder / "annotations").is_dir():
        return "present"
    if not token:
        return "skipped"
    secret = quote(token, safe="")
    download(
        Source(f"{host.rstrip('/')}/{secret}/{quote(pins.archive)}.zip", archive, secret=secret), told(archive.name)
    )
    try:
        unpack(archive, folder, "annotations")
    finally:
        archive.unlink(missing_ok=True)
    return "fetched"
