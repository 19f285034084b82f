"""Receipts of what is recorded: an index of the records, rebuilt from them where it lacks any.

In: a Run's folder. Out: a Receipt per recorded document. A record is opened only when the index lacks it; then the
prediction that it names must be there as well.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

from . import layout, storage
from .arrow import release_memory
from .ask import receipt_of
from .digests import digest
from .jsontext import read_json
from .records import Receipt
from .tables import merged_receipts, read_receipts, receipts_table

NOTHING: Mapping[str, Receipt] = MappingProxyType({})


@storage.STORAGE
def stored_receipts(out: str, run: str, ids: Set[str], known: Mapping[str, Receipt] = NOTHING) -> dict[str, Receipt]:
    """Receipts of all recorded documents among ``ids``: from the index, and from the records that it lacks.

    The records are listed once, since one that was deleted is not done, whatever the index says. With ``known`` those
    receipts alone that are newer than what is known.
    """
    found = indexed(out, run, known)
    names = storage.names(storage.join(out, run, "records"))
    for doc_id in [doc_id for doc_id in found if doc_id not in ids or not _is_among(doc_id, names)]:
        del found[doc_id]
    unknown = [doc_id for doc_id in ids if doc_id not in found and doc_id not in known and _is_among(doc_id, names)]
    del names  # there may be millions
    with ThreadPoolExecutor(16) as threads:
        for receipt in threads.map(lambda doc_id: read_receipt(out, run, doc_id), unknown):
            if receipt is not None:
                found[receipt.doc_id] = receipt
    return found


def _is_among(doc_id: str, names: Set[str]) -> bool:
    return f"{storage.encode_id(doc_id)}.json" in names


def indexed(out: str, run: str, known: Mapping[str, Receipt] = NOTHING) -> dict[str, Receipt]:
    """The newest receipt of each document in the index, where it is newer than what is known."""
    folder = storage.join(out, run, layout.RECEIPTS)
    newest: dict[str, Receipt] = {}
    for name in sorted(storage.listed(folder)):
        for receipt in read_receipts(_read_if_there(storage.join(folder, name)) or b""):
            before = known.get(receipt.doc_id)
            if before is None or receipt.attempts > before.attempts:
                take_newer(newest, [receipt])
    return newest


def take_newer(known: dict[str, Receipt], receipts: Iterable[Receipt]) -> None:
    """Adds receipts, keeping of each document the one of the later attempt."""
    for receipt in receipts:
        before = known.get(receipt.doc_id)
        if before is None or receipt.attempts >= before.attempts:
            known[receipt.doc_id] = receipt


def read_receipt(out: str, run: str, doc_id: str) -> Receipt | None:
    """The receipt of a stored record; None if it is gone or damaged, or its prediction is another one."""
    try:
        receipt = receipt_of(read_json(storage.read(layout.record(out, run, doc_id))))
        if receipt.doc_id != doc_id:
            return None
        if receipt.prediction_sha256 is not None:
            prediction = storage.read(layout.prediction(out, run, doc_id))
            if digest(prediction) != receipt.prediction_sha256:
                return None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return receipt


def merge_index(out: str, run: str, receipts: Iterable[Receipt], without: frozenset[str] = frozenset()) -> None:
    """Makes one file of the index and ``receipts``, leaving out documents ``without``.

    The files that went into it go afterwards: a receipt may be there twice for a while, but never not.
    """
    folder, fresh = storage.join(out, run, layout.RECEIPTS), list(receipts)
    names = sorted(storage.listed(folder))
    if len(names) == 1 and not fresh and not without:
        return
    data = [found for name in names if (found := _read_if_there(storage.join(folder, name))) is not None]
    if fresh:
        data.append(receipts_table(fresh))
    _write_index(folder, merged_receipts(data, without))
    for name in names:
        storage.delete(storage.join(folder, name))
    release_memory()


def _read_if_there(address: str) -> bytes | None:
    try:
        return storage.read(address)
    except FileNotFoundError:  # another driver has just merged it
        return None


def add_to_index(out: str, run: str, receipts: Iterable[Receipt]) -> None:
    """Writes receipts as one more file of the index."""
    _write_index(storage.join(out, run, layout.RECEIPTS), receipts_table(receipts))


def _write_index(folder: str, data: bytes) -> None:
    storage.put(storage.join(folder, f"part-{uuid.uuid4().hex}.parquet"), data)
