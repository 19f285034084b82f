"""What a worker does with one work item: load, compute, put, receipt. No Ray here.

In: a PredictBatch or a PartTask. Out: receipts. Predictions are written before records and verdicts before scores,
since the presence of the latter says that all is there.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import Any

from .. import layout, media, storage
from ..corpus.check import gold_notes
from ..errors import AccountFailure, OebError, RequestError
from ..grade import SCORER, grade
from ..jsontext import pretty, read_json
from ..predict import predict, receipt_of
from ..providers.contract import Document
from ..providers.registry import find
from ..receipts import read_receipt
from ..records import Doc, FileStamp, PartReceipt, PartTask, PredictBatch, Receipt, ScoreItem
from ..scoring.field_matching.scorer import Scored
from ..tables import part_stamp, score_part, verdict_part
from .contract import Graded, Predicted

AT_ONCE = 16  # documents of a batch in flight together
UNREADABLE = "unreadable"  # the digest of a gold that is not there


def do_predict(batch: PredictBatch) -> Predicted:
    """Predicts and records the documents of a batch; what concerns them all ends the batch early."""
    receipts: list[Receipt] = []
    stopped = asyncio.run(_predict_all(batch, receipts))
    return Predicted(batch, tuple(receipts), stopped)


async def _predict_all(batch: PredictBatch, receipts: list[Receipt]) -> OebError | None:
    """Fills ``receipts``; returns what stopped the batch, after the documents in flight have ended."""
    free = asyncio.Semaphore(AT_ONCE)
    stopped: list[OebError] = []

    async def one(doc: Doc) -> None:
        async with free:
            if stopped:
                return
            try:
                receipts.append(await _predict_one(batch, doc))
            except OebError as error:
                stopped.append(error)

    await asyncio.gather(*(one(doc) for doc in batch.docs))
    return stopped[0] if stopped else None


async def _predict_one(batch: PredictBatch, doc: Doc) -> Receipt:
    run, out = batch.run, batch.out
    document, stamp = _document(doc, find(run.provider).reads_documents)
    outcome = await predict(document, stamp, doc.schema, run)
    if outcome.prediction is not None:
        storage.put(layout.prediction(out, run.name, doc.doc_id), outcome.prediction)
    address, data = layout.record(out, run.name, doc.doc_id), pretty(outcome.record)
    if batch.again:
        storage.put(address, data)
    elif not storage.create(address, data):
        if first := read_receipt(address):
            return first  # another driver was first
        storage.put(address, data)  # what is there is no record
    return receipt_of(outcome.record)


def _document(doc: Doc, read: bool) -> tuple[Document, FileStamp]:
    if not read:
        return Document(doc.doc_id, "", "", b""), FileStamp(0, "")
    data, stamp = storage.read(doc.doc_path), storage.stat(doc.doc_path)
    kind = media.media_type(data, doc.doc_path)
    ending = doc.doc_path.rsplit(".", 1)[-1] if "." in doc.doc_path.rsplit("/", 1)[-1] else "bin"
    return Document(doc.doc_id, f"document.{ending}", kind, data), stamp


def do_score(task: PartTask) -> Graded:
    """Scores and writes one part; a document whose record and prediction disagree leaves it unwritten."""
    try:
        return Graded(task, _score(task))
    except (RequestError, AccountFailure):
        raise
    except OebError as error:
        return Graded(task, None, error)


def _score(task: PartTask) -> PartReceipt:
    started = time.monotonic()
    run, out = task.run, task.out
    home = layout.Home(task.suite, task.part)
    rows: list[dict[str, Any]] = []
    scored: list[tuple[str, str, Scored]] = []
    digests: dict[str, str] = {}
    notes: list[str] = []
    broken = []
    for item in task.items:
        gold = _gold(item)
        prediction = None
        if item.prediction_sha256 is not None:
            prediction = _prediction(out, run.name, item)
            if prediction is None:
                broken.append(item.doc_id)
                continue
        digests[item.doc_id] = hashlib.sha256(gold).hexdigest() if gold is not None else UNREADABLE
        graded = grade(prediction, item.error, gold, item.schema, verdicts=task.verdicts)
        notes.extend(_notes(item, gold))
        head = {"doc_id": item.doc_id, "suite": task.suite, "provider": run.provider}
        tail = {
            "run": run.name,
            "scorer": SCORER,
            "prediction_sha256": item.prediction_sha256,
            "gold_sha256": digests[item.doc_id],
            "schema_sha256": hashlib.sha256(item.schema.encode("utf-8", "surrogatepass")).hexdigest(),
        }
        rows.append({**head, **graded.row, **tail})
        if graded.scored is not None:
            scored.append((item.doc_id, task.suite, graded.scored))
    if not broken:
        stamp = part_stamp(SCORER, task.items, digests)
        verdicts = layout.part(out, run.name, layout.VERDICTS, home)
        if task.verdicts:
            storage.put(verdicts, verdict_part(scored, stamp))
        else:
            storage.delete(verdicts)
        storage.put(layout.part(out, run.name, layout.SCORES, home), score_part(rows, stamp))
    failed = sum(row["status"] == "error" for row in rows)
    seconds = time.monotonic() - started
    return PartReceipt(
        run.name, task.suite, task.part, len(rows) - failed, failed, digests, tuple(broken), tuple(notes), seconds
    )


def _gold(item: ScoreItem) -> bytes | None:
    try:
        return storage.read(item.gt_path)
    except FileNotFoundError:
        return None


def _prediction(out: str, run: str, item: ScoreItem) -> bytes | None:
    """The stored prediction; None if it is not the one that the record names."""
    try:
        data = storage.read(layout.prediction(out, run, item.doc_id))
    except FileNotFoundError:
        return None
    return data if hashlib.sha256(data).hexdigest() == item.prediction_sha256 else None


_NOTED: set[tuple[str, str, int]] = set()  # golds of this process that have been looked at


def _notes(item: ScoreItem, gold: bytes | None) -> list[str]:
    if gold is None or (key := (item.doc_id, hashlib.sha256(gold).hexdigest(), hash(item.schema))) in _NOTED:
        return []
    _NOTED.add(key)
    try:
        return gold_notes(item.doc_id, read_json(gold), read_json(item.schema.encode("utf-8", "surrogatepass")))
    except ValueError as error:
        return [f"gold of {item.doc_id!r}: no JSON ({error}); its rows are errors"]
