"""Runs here as a run record, and a run record as predictions here.

In: runs of an output that were scored by field_accuracy, or a record. Out: a record of the harness's shape, or files
that the provider `replay` serves. List prices and what vendors state that they billed are kept apart: ``costUSD`` is
made of tokens and prices, ``billedUSD`` is a key of our own.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from .. import layout, storage
from ..corpus.labelled import doc_id, form_of, harness_id, own_id
from ..corpus.manifest import Corpus
from ..corpus.pins import Pins
from ..digests import digest
from ..errors import RequestError
from ..jsontext import pretty, read_json
from ..receipts import stored_receipts
from ..records import Receipt
from ..results import read_scores, read_verdicts
from ..scorers.contract import parsed_gold
from ..scoring.field_accuracy import score_failure
from ..scoring.field_accuracy.gold import ITEMS
from ..stored import StoredRun
from .record import Json
from .results import MISSING, Prices, usage_of

SCORER = "field_accuracy"
MOST_ITEMS = 9999
LOST = frozenset({"NotSent", "Unreachable", "VendorTimeout", "WorkerLost"})
"""Errors of requests, for which the harness keeps no usage; what was spent before stands in a key of our own."""
_PATH = re.compile(r"[^.]+|lineItems\.\d{1,4}\.[^.]+")


def record_of_runs(
    runs: Sequence[StoredRun], corpus: Corpus, prices: Mapping[str, Prices], pins: Pins | None = None
) -> Json:
    """The run record of runs of one output, documents in the order of the corpus.

    Args:
        prices: by model, or by run for those without a model; without one the cost is null.
        pins: what the corpus was made of. Its checksum goes into the record, and whatever it pins and the corpus does
            not have is told as a condition of the run; without it the checksum is that of the corpus's manifest.

    Raises:
        RequestError: a run was not scored by field_accuracy with its verdicts, or a document is of no data set that
            the harness knows.
    """
    foreign = [name for name in corpus.ids if harness_id(name) is None]
    if foreign:
        raise RequestError(f"{foreign[0]!r} is of neither CORD nor DocILE; the corpus was not made by oeb corpus make")
    names = _models(runs)
    made = [(run, _Documents(run, corpus, prices.get(names[run]))) for run in runs]
    started = min((moment for _, documents in made if (moment := documents.started)), default=None)
    return {
        "startedAt": _moment(started),
        "manifestChecksum": pins.checksum if pins else digest(storage.read(corpus.address)),
        **({"conditions": left_out} if (left_out := _left_out(pins, corpus)) else {}),
        "runs": [{"model": names[run], "docs": list(documents.results())} for run, documents in made],
    }


def predictions_of(record: Json) -> Iterator[tuple[str, str, bytes]]:
    """Per model and document the prediction, as `replay` serves it: (model, doc_id, JSON).

    Raises:
        RequestError: a document is not named as the harness does, or a model cannot name a folder.
    """
    for run in record["runs"]:
        model = run["model"]
        if "/" in model or model in ("", ".", "..") or "\0" in model:
            raise RequestError(f"the model {model!r} cannot name a folder; rename it in the record")
        for doc in run["docs"]:
            name = own_id(doc["docId"])
            if name is None:
                raise RequestError(f"{doc['docId']!r} is no document such as cord/test/4 or docile/val/<24 digits>")
            _check_size(doc)
            answered = any(field["predicted"] is not None for field in doc["fields"])
            failed = doc["error"] is not None and not answered
            yield model, name, pretty({"__error__": doc["error"]} if failed else _bare(doc))


def _left_out(pins: Pins | None, corpus: Corpus) -> list[str]:
    """What is pinned and not in the corpus, in words."""
    if pins is None:
        return []
    there = set(corpus.ids)
    halves = {
        "receipts": [doc_id("cord", pins.cord.split, pin.row) for pin in pins.cord.docs],
        "invoices": [doc_id("docile", pins.docile.split, pin.doc_id) for pin in pins.docile.docs],
    }
    return [
        f"{absent} of {len(names)} pinned {half} are left out."
        for half, names in halves.items()
        if (absent := sum(name not in there for name in names))
    ]


def _check_size(doc: Json) -> None:
    """Raises RequestError for a document whose paths or items are none of a receipt or an invoice."""
    wrong = [field["path"] for field in doc["fields"] if not _PATH.fullmatch(field["path"])]
    if wrong:
        raise RequestError(f"{doc['docId']}: {wrong[0][:80]!r} is no path such as total or lineItems.0.amount")
    if doc["extraLineItems"] > MOST_ITEMS:
        raise RequestError(f"{doc['docId']} has {doc['extraLineItems']} items too many; at most {MOST_ITEMS} are read")


def _bare(doc: Json) -> Json:
    """The predicted values in the shape of the data; items at the end of which nothing is said are left out."""
    values: Json = {}
    items: dict[int, Json] = {}
    true_items = 0
    for field in doc["fields"]:
        head, _, rest = field["path"].partition(".")
        if head != ITEMS:
            values[head] = field["predicted"]
            continue
        number, _, name = rest.partition(".")
        true_items = max(true_items, int(number) + 1)
        items.setdefault(int(number), {})[name] = field["predicted"]
    said = [number for number, cells in items.items() if any(value is not None for value in cells.values())]
    last = true_items if doc["extraLineItems"] else max(said, default=-1) + 1
    listed: list[Json] = [items.get(number, {}) for number in range(last)]
    return {**values, ITEMS: listed + [{}] * doc["extraLineItems"]}


class _Documents:
    """What is stored of a run's documents."""

    def __init__(self, run: StoredRun, corpus: Corpus, prices: Prices | None) -> None:
        self.run, self.corpus, self.prices = run, corpus, prices
        self.receipts = stored_receipts(run.out, run.name, set(corpus.ids))
        self.rows = {row["doc_id"]: row for row in read_scores(run.address, scorer=SCORER).to_pylist()}
        self.fields: dict[str, list[Json]] = {}
        for row in read_verdicts(run.address, scorer=SCORER).to_pylist():
            self.fields.setdefault(row["doc_id"], []).append(_field(row))
        if not self.rows:
            raise RequestError(f"{run.address} was not scored by {SCORER}; run it with scorer={SCORER}")

        with ThreadPoolExecutor(16) as threads:
            self.records = dict(zip(self.rows, threads.map(self._record, self.rows), strict=True))

    def _record(self, doc_id: str) -> Json:
        record: Json = read_json(storage.read(layout.record(self.run.out, self.run.name, doc_id)))
        return record

    @property
    def started(self) -> str | None:
        """When the first document was asked for."""
        moments = [record["run_manifest"]["captured_at"] for record in self.records.values()]
        return min(filter(None, moments), default=None)

    def results(self) -> Iterator[Json]:
        """A document result for every document that is scored, in the order of the corpus."""
        for position, name in enumerate(self.corpus.ids):
            if row := self.rows.get(name):
                yield self._result(name, row, self.corpus.annotations[position])

    def _result(self, doc_id: str, row: Json, annotations: str | None) -> Json:
        name = harness_id(doc_id) or doc_id
        dataset = name.split("/")[0]
        if row["status"] == "scored":
            fields = self.fields.get(doc_id, [])
            if len(fields) != row["fields"]:
                raise RequestError(f"{self.run.address} lacks verdicts of {doc_id!r}; score it with verdicts=true")
        elif annotations is None:
            raise RequestError(f"the corpus has no fields of {doc_id!r}; make it with oeb corpus make")
        else:
            fields = score_failure(parsed_gold(storage.read(annotations)))["fields"]
        receipt = self.receipts.get(doc_id)
        usage = self._usage(receipt)
        lost = receipt is not None and receipt.error_type in LOST
        return {
            "docId": name, "dataset": dataset, "schema": form_of(dataset).name,
            "error": row["error"] or self._lacking(doc_id), "fields": fields,
            "extraLineItems": row["extra_line_items"] or 0, "usage": None if lost else usage,
            **({"spent": usage} if lost and usage else {}),
        }  # fmt: skip

    def _lacking(self, doc_id: str) -> str | None:
        """The error of an answer that lacks what the document must have; it is scored as far as it goes."""
        raw = self.records[doc_id].get("raw")
        missing = raw.get("missing") if isinstance(raw, dict) else None
        return f"{MISSING}: {', '.join(map(str, missing))}" if isinstance(missing, list) and missing else None

    def _usage(self, receipt: Receipt | None) -> Json | None:
        if receipt is None or (receipt.tokens_in is None and receipt.tokens_out is None and receipt.usd is None):
            return None
        known = receipt.tokens_in is not None and receipt.tokens_out is not None
        tokens = int(receipt.tokens_in or 0), int(receipt.tokens_out or 0)
        usage = usage_of(*tokens, receipt.attempts, self.prices if known else None)
        return usage if receipt.usd is None else usage | {"billedUSD": receipt.usd}


def _models(runs: Sequence[StoredRun]) -> dict[StoredRun, str]:
    """What each run is called: its model where no other run has the same, else its own name."""
    named = {run: (run.file("settings.json") or {}).get("settings") or {} for run in runs}
    models = {run: settings.get("model") or settings.get("system") or run.name for run, settings in named.items()}
    counts = [*models.values()]
    return {run: model if counts.count(model) == 1 else run.name for run, model in models.items()}


def _field(row: Json) -> Json:
    return {
        "path": row["path"], "compare": row["compare"], "expected": row["expected"], "predicted": row["predicted"],
        "valueCorrect": row["value_correct"], "iou": row["iou"], "predictedPage": row["predicted_page"],
    }  # fmt: skip


def _moment(text: str | None) -> str:
    """A moment in UTC with milliseconds, ``2026-08-01T09:30:00.000Z``."""
    moment = dt.datetime.fromisoformat(text) if text else dt.datetime.fromtimestamp(0, dt.UTC)
    moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
