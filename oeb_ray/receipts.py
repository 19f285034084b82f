"""Receipts of what is recorded: an index of the records, rebuilt from them where it is missing.

In: a Run's folder. Out: a Receipt per recorded document. The records are listed once, and only those are opened that
the index lacks.
"""

from __future__ import annotations

from . import layout, storage
from .jsontext import read_json
from .predict import receipt_of
from .records import Receipt
from .tables import read_receipts


def stored_receipts(out: str, run: str, ids: set[str]) -> dict[str, Receipt]:
    """Receipts of all recorded documents of the corpus: from the index, and from records that it lacks."""
    found: dict[str, Receipt] = {}
    folder = storage.join(out, run, layout.RECEIPTS)
    for name in sorted(storage.listed(folder)):
        try:
            receipts = read_receipts(storage.read(storage.join(folder, name)))
        except FileNotFoundError:  # another driver has just merged it
            continue
        found.update((receipt.doc_id, receipt) for receipt in receipts if receipt.doc_id in ids)
    if len(found) < len(ids):
        records = storage.join(out, run, "records")
        for name in storage.listed(records):
            doc_id = storage.decode_id(name.removesuffix(".json"))
            if doc_id in ids and doc_id not in found:
                receipt = read_receipt(storage.join(records, name))
                if receipt is not None:
                    found[doc_id] = receipt
    return found


def read_receipt(address: str) -> Receipt | None:
    """The receipt of a stored record; None if it is gone or damaged, so that the document counts as not done."""
    try:
        return receipt_of(read_json(storage.read(address)))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
