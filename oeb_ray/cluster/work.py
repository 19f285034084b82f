"""What a worker does with one work item: load, compute, put, receipt. No Ray here.

In: a PredictBatch, a PartTask or a SummaryTask. Out: receipts, or what is derived. Predictions are written before
records and verdicts before scores, since the presence of the latter says that all is there.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

from .. import layout, media, storage
from ..ask import Outcome, failed, history, predict, receipt_of
from ..corpus.check import gold_notes
from ..cost import too_large
from ..digests import digest
from ..errors import NO_PREDICTION, OebError, RequestError, WorkerLost
from ..jsontext import pretty, read_json
from ..loops import finished
from ..providers.contract import Document
from ..providers.registry import find
from ..receipts import merge_index, read_receipt
from ..records import Doc, FileStamp, PartReceipt, PartTask, PredictBatch, Receipt, Run, ScoreItem, SummaryTask
from ..scorers import find as find_scorer
from ..scorers.contract import Given, parsed_gold, parsed_schema
from ..scorers.contract import failed as failed_row
from ..summaries import write_summaries
from ..tables import part_stamp, score_part, verdict_part
from .apart import Apart, Marked, mark
from .contract import Ended, Graded, Lost, Predicted, Summed, Work

Marking = Callable[[str, str, Given], Marked | Any]
AT_ONCE = 16  # documents of a batch in flight together


def do_predict(batch: PredictBatch) -> Predicted | Lost:
    """Predicts and records the documents of a batch; what concerns them all ends the batch early."""
    try:
        return finished(predict_all(batch))
    except MemoryError:
        return Lost(batch, "MemoryError")


async def predict_all(batch: PredictBatch) -> Predicted:
    """As `do_predict`, of a provider that costs nothing; documents in flight end when the batch is stopped."""
    free = asyncio.Semaphore(AT_ONCE)
    receipts: list[Receipt] = []
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
    return Predicted(batch, tuple(receipts), stopped[0] if stopped else None)


async def _predict_one(batch: PredictBatch, doc: Doc) -> Receipt:
    run, out = batch.run, batch.out
    if not batch.again and (there := read_receipt(out, run.name, doc.doc_id)):
        return there  # another driver, or an attempt whose worker was lost before it could answer
    earlier = history_of(out, run.name, doc.doc_id)
    document, stamp = source_of(run, doc)
    outcome = await predict(document, stamp, doc.schema, doc.schema_sha256, run, earlier)
    return store(out, run, outcome, replace=batch.again)


def history_of(out: str, run: str, doc_id: str) -> list[Any]:
    """What the record that is to be replaced leaves to its successor."""
    try:
        return history(read_json(storage.read(layout.record(out, run, doc_id))))
    except (FileNotFoundError, ValueError, TypeError, AttributeError, KeyError):  # no record of ours
        return []


def store(out: str, run: Run, outcome: Outcome, *, replace: bool) -> Receipt:
    """Writes prediction and record, and returns the receipt: ours, or that of another driver's equal record."""
    receipt = receipt_of(outcome.record)
    prediction = layout.prediction(out, run.name, receipt.doc_id)
    if replace:
        _keep_earlier(out, run.name, receipt, prediction)
    if outcome.prediction is not None:
        storage.put(prediction, outcome.prediction)
    address, data = layout.record(out, run.name, receipt.doc_id), pretty(outcome.record)
    if not replace and not storage.create(address, data):
        there = read_receipt(out, run.name, receipt.doc_id)
        if there is not None:
            return there
        replace = True  # what is there is no record, or our prediction has taken the place of its own
        if outcome.prediction is None:
            _keep_earlier(out, run.name, receipt, prediction)
    if replace:
        storage.put(address, data)
    if outcome.prediction is None and replace:
        storage.delete(prediction)
    return receipt


def _keep_earlier(out: str, run: str, receipt: Receipt, prediction: str) -> None:
    """What was answered before may have been paid for: it stays under another name."""
    with suppress(FileNotFoundError):
        data = storage.read(prediction)
        if digest(data) != receipt.prediction_sha256:
            storage.put(layout.earlier_prediction(out, run, receipt.doc_id, receipt.attempts), data)


def do_give_up(batch: PredictBatch, reason: str) -> list[Receipt]:
    """Records documents whose workers died again and again as failed."""
    receipts = []
    for doc in batch.docs:
        document = Document(doc.doc_id, "", "", b"", found=False)
        error = WorkerLost(reason)
        outcome = failed(document, FileStamp(0, ""), doc.schema_sha256, batch.run, [], error)
        receipts.append(store(batch.out, batch.run, outcome, replace=False))
    return receipts


def source_of(run: Run, doc: Doc) -> tuple[Document, FileStamp]:
    """What the provider works from, and its stamp."""
    address = find(run.provider).source(doc, run.settings, run.options)
    try:  # the stamp first: a file replaced in between is hashed once more, never trusted
        stamp, data = storage.stat(address), storage.read(address)
    except FileNotFoundError:
        if address == doc.doc_path:
            raise RequestError(f"{doc.doc_id!r}: its document {address} was there when this was planned") from None
        return Document(doc.doc_id, "", "", b"", found=False), FileStamp(0, "")
    name = address.rsplit("/", 1)[-1]
    return Document(doc.doc_id, name, media.media_type(data, name), data), stamp


def do_score(task: PartTask) -> Graded | Lost:
    """Scores and writes one part; a document whose record and prediction disagree leaves it unwritten."""
    try:
        with _without_collector():
            return Graded(task, _score(task))
    except MemoryError:
        return Lost(task, "MemoryError")
    except OebError as error:
        return Graded(task, None, error)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Scoring makes very many objects and hardly a cycle; looking for cycles takes about a tenth of its time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _score(task: PartTask) -> PartReceipt:
    made = make_part(task)
    if task.items and not made.broken:  # without any: the record of its last one has turned out not to hold
        home, scorer = layout.Home(task.suite, task.part), find_scorer(task.scorer)
        stamp = part_stamp(scorer, task.items, made.digests)
        scores, verdicts = (
            layout.part(task.out, task.run.name, layout.below(task.scorer, table), home)
            for table in (layout.SCORES, layout.VERDICTS)
        )
        if task.verdicts:
            storage.put(verdicts, verdict_part(scorer, made.verdicts, stamp))
        else:
            storage.delete(verdicts)
        storage.put(scores, score_part(scorer, made.rows, stamp))
    return PartReceipt(task.run.name, made.digests, tuple(made.broken), tuple(made.notes))


def do_summarise(task: SummaryTask) -> Summed | Lost:
    """Ends a Run; of a part that cannot be read nothing was written."""
    try:
        merge_index(task.out, task.run.name, (), without=task.without)
        scorers = [find_scorer(name) for name in task.scorers]
        homes = [layout.Home(*home) for home in task.homes]
        return Summed(task, tuple(write_summaries(task.out, task.run, scorers, homes)))
    except MemoryError:
        return Lost(task, "MemoryError")
    except OebError as error:
        return Summed(task, (), error)


DOING: dict[type[Work], tuple[str, Callable[[Any], Ended]]] = {
    PredictBatch: ("predicting", do_predict),
    PartTask: ("scoring", do_score),
    SummaryTask: ("summarising", do_summarise),
}
"""Per kind of work what it counts as among the phases (clock.py), and what does it."""


class MadePart(NamedTuple):
    """A part before it is written: score rows; Arrow tables of verdicts; digests of the files that could be read, by
    address; doc_ids whose prediction is not the one that the record names; notes on golds."""

    rows: list[dict[str, Any]]
    verdicts: list[Any]
    digests: dict[str, str]
    broken: list[str]
    notes: list[str]


def make_part(task: PartTask) -> MadePart:
    """Loads and scores the documents of a part; each in a process of its own where the task gives a limit."""
    made = MadePart([], [], {}, [], [])
    with ExitStack() as opened:
        if task.limit is None:
            marked: Marking = partial(mark, task.scorer)
        else:
            marked = opened.enter_context(Apart(task.limit, task.scorer)).mark
        for item in task.items:
            _add(made, task, item, marked)
    return made


def _add(made: MadePart, task: PartTask, item: ScoreItem, marked: Marking) -> None:
    """Scores one document of a part."""
    run, out, scorer = task.run, task.out, find_scorer(task.scorer)
    gold = _file(item.gt_path, made.digests)
    annotations = _file(item.annotations, made.digests) if scorer.reads_annotations else None
    prediction = None
    if item.prediction_sha256 is not None:
        prediction = _prediction(out, run.name, item)
        if prediction is None:
            made.broken.append(item.doc_id)
            return
    record = _file(layout.record(out, run.name, item.doc_id)) if scorer.reads_record else None
    given = Given(prediction, item.error, gold, item.schema, annotations, record, task.verdicts)
    row, verdicts = marked(item.doc_id, task.suite, given) or failed_row(too_large(gold, prediction))
    made.notes.extend(_notes(item, gold))
    if prediction is not None and row.get("error") == NO_PREDICTION:
        made.notes.append(f"{run.name}: the prediction of {item.doc_id!r} is no JSON text in UTF-8")
    head = {"doc_id": item.doc_id, "suite": task.suite, "provider": run.provider}
    tail = {
        "run": run.name,
        "scorer": scorer.label,
        "prediction_sha256": item.prediction_sha256,
        "gold_sha256": made.digests.get(item.gt_path),
        "schema_sha256": item.schema_sha256,
    }
    made.rows.append({**head, **row, **tail})
    if verdicts is not None:
        made.verdicts.append(verdicts)


def _file(address: str | None, digests: dict[str, str] | None = None) -> bytes | None:
    """A file's bytes, None if there is none; its digest is noted."""
    if address is None:
        return None
    try:
        data = storage.read(address)
    except FileNotFoundError:
        return None
    if digests is not None:
        digests[address] = digest(data)
    return data


def _prediction(out: str, run: str, item: ScoreItem) -> bytes | None:
    """The stored prediction; None if it is not the one that the record names."""
    try:
        data = storage.read(layout.prediction(out, run, item.doc_id))
    except FileNotFoundError:
        return None
    return data if digest(data) == item.prediction_sha256 else None


_NOTED: set[tuple[str, str, str]] = set()  # golds of this process that have been looked at


def _notes(item: ScoreItem, gold: bytes | None) -> list[str]:
    if gold is None or (key := (item.doc_id, digest(gold), item.schema_sha256)) in _NOTED:
        return []
    _NOTED.add(key)
    try:
        return gold_notes(item.doc_id, parsed_gold(gold), parsed_schema(item.schema))
    except ValueError as error:
        return [f"gold of {item.doc_id!r}: no JSON ({error}); its rows are errors"]
