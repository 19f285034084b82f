"""Receipts of what is recorded: an index of the records, rebuilt from them where it lacks any.

In: a Run's folder. Out: a Receipt per recorded document. A record is opened only when the index lacks it; then the
prediction that it names must be there as well.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from . import layout, storage
from .ask import receipt_of
from .digests import digest
from .jsontext import read_json
from .records import Receipt
from .tables import read_receipts, receipts_table


@storage.STORAGE
def stored_receipts(out: str, run: str, ids: set[str]) -> dict[str, Receipt]:
    """Receipts of all recorded documents among ``ids``: from the index, and from the records that it lacks.

    The records are listed once, since one that was deleted is not done, whatever the index says.
    """
    names = storage.listed(storage.join(out, run, "records")).keys()
    there = {doc_id for doc_id in ids if f"{storage.encode_id(doc_id)}.json" in names}
    del names  # there may be millions
    found = _index(out, run)[0]
    for doc_id in found.keys() - there:
        del found[doc_id]
    with ThreadPoolExecutor(16) as threads:
        for receipt in threads.map(lambda doc_id: read_receipt(out, run, doc_id), there - found.keys()):
            if receipt is not None:
                found[receipt.doc_id] = receipt
    return found


def indexed(out: str, run: str) -> dict[str, Receipt]:
    """What the index says of each document."""
    return _index(out, run)[0]


def _index(out: str, run: str) -> tuple[dict[str, Receipt], list[str]]:
    """The newest receipt of each document in the index, and the files that were read."""
    folder = storage.join(out, run, layout.RECEIPTS)
    newest: dict[str, Receipt] = {}
    names = sorted(storage.listed(folder))
    for name in names:
        try:
            receipts = read_receipts(storage.read(storage.join(folder, name)))
        except FileNotFoundError:  # another driver has just merged it
            continue
        take_newer(newest, receipts)
    return newest, names


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
    fresh = list(receipts)
    if not fresh and not without and len(storage.listed(storage.join(out, run, layout.RECEIPTS))) == 1:
        return
    newest, names = _index(out, run)
    if len(names) == 1 and not without and all(newest.get(receipt.doc_id) == receipt for receipt in fresh):
        return
    take_newer(newest, fresh)
    add_to_index(out, run, (receipt for doc_id, receipt in newest.items() if doc_id not in without))
    for name in names:
        storage.delete(storage.join(out, run, layout.RECEIPTS, name))


def add_to_index(out: str, run: str, receipts: Iterable[Receipt]) -> None:
    """Writes receipts as one more file of the index."""
    name = f"part-{uuid.uuid4().hex}.parquet"
    storage.put(storage.join(out, run, layout.RECEIPTS, name), receipts_table(receipts))
