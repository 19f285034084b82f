"""What a job of a size that does not fit here would leave in a bucket, ask of it and take: counts, bytes, money, time.

In: how many documents and Runs on how many machines, and what one document is like: by default a page or two, or as in
an output that is there. Out: a Forecast. All is linear in documents and Runs; parts are as layout.py makes them.

The model. Predicting takes documents x Runs x seconds / calls in flight, and goes no faster than one account's pool can
store what it pays for. Scoring takes two requests one after the other per document, and its own seconds, on all
processors at once. Both go on together, so a job takes the longer of the two, and a beginning. Requests are counted per
document, part, Run and minute; `make bench-plan` holds them against two sizes that were measured. Requests per minute
that an account allows are not reckoned with.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from . import layout, storage
from .errors import RequestError
from .receipts import indexed
from .stored import runs_at


class Prices(NamedTuple):
    """Dollars per thousand writes and listings, per thousand reads, per gigabyte and month; as listed ``as_of``."""

    as_of: str
    place: str
    writes: float
    reads: float
    gigabyte_month: float


S3 = Prices("2025-07", "S3 Standard, us-east-1", 0.005, 0.0004, 0.023)
LISTED = 1000  # objects in one answer of a listing
POOL_PER_SECOND = 130.0  # paid documents that one account's pool can claim and store
BEGINNING_SECONDS = 20.0  # Ray, the plan, the first call alone
# Requests as the code makes them: of a paid document (claim, job id, end, prediction, record; looks at what is there,
# the document), of a free one, of each that is scored (gold, prediction), of each part, of each Run, of each time that
# receipts are put by, and of each minute in which a job says how far it is and looks for orders.
WRITES = {"paid": 5.0, "free": 2.0, "scored": 0.0, "part": 2.0, "run": 10.0, "flush": 1.0, "minute": 16.0}
READS = {"paid": 6.0, "free": 4.0, "scored": 2.0, "part": 2.0, "run": 12.0, "flush": 1.0, "minute": 30.0}
FLUSH_SECONDS = 2.0


@dataclass(frozen=True)
class Document:
    """What one document is like: bytes of what is stored of it, seconds, and dollars that the vendor takes.

    ``score`` and ``verdicts``: bytes in the tables; ``index``: in receipts and scores.jsonl.
    """

    prediction: float = 4_000
    record: float = 2_500
    call: float = 600
    score: float = 250
    verdicts: float = 1_500
    index: float = 800
    vendor_seconds: float = 20.0
    score_seconds: float = 0.02
    usd: float = 0.0


@dataclass(frozen=True)
class Scale:
    """How much, and on what. ``in_flight``: calls at the account that all Runs share; ``request``: seconds of one."""

    documents: int
    runs: int = 1
    suites: int = 1
    nodes: int = 1
    cpus: int = 8
    in_flight: int = 10
    paid: bool = True
    request: float = 0.015


@dataclass(frozen=True)
class Forecast:
    """Objects and bytes that stay; requests that write or list, and that read; seconds; dollars once, and by month."""

    objects: int
    bytes: int
    parts: int
    writes: int
    reads: int
    predict_seconds: float
    score_seconds: float
    seconds: float
    request_usd: float
    storage_usd_month: float
    vendor_usd: float


def forecast(scale: Scale, document: Document, prices: Prices = S3) -> Forecast:
    """What a job of that scale comes to, every document recorded and scored once."""
    work = scale.documents * scale.runs
    processors = scale.nodes * scale.cpus
    parts = scale.runs * parts_of(scale.documents, scale.suites)
    at_once = scale.in_flight if scale.paid else processors
    predict = work * document.vendor_seconds / max(1, min(at_once, work))
    if scale.paid:
        predict = max(predict, work / POOL_PER_SECOND)
    score = work * (READS["scored"] * scale.request + document.score_seconds) / min(processors, max(1, parts))
    seconds = BEGINNING_SECONDS + max(predict, score)
    kind = "paid" if scale.paid else "free"
    flushes = scale.runs * min(seconds / FLUSH_SECONDS, scale.documents)
    units = {kind: work, "scored": work, "part": parts, "run": scale.runs, "flush": flushes, "minute": seconds / 60.0}
    listings = 3 * scale.runs * -(-scale.documents // LISTED) + 2 * -(-scale.documents // LISTED)
    writes = sum(WRITES[name] * count for name, count in units.items()) + listings
    reads = sum(READS[name] * count for name, count in units.items())
    each = document.prediction + document.record + document.score + document.verdicts + document.index
    size = work * (each + (document.call if scale.paid else 0.0))
    objects = work * (3 if scale.paid else 2) + 2 * parts + 6 * scale.runs + 2
    return Forecast(
        objects,
        round(size),
        parts,
        round(writes),
        round(reads),
        predict,
        score,
        seconds,
        writes / 1000 * prices.writes + reads / 1000 * prices.reads,
        size / 1e9 * prices.gigabyte_month,
        work * document.usd,
    )


def parts_of(documents: int, suites: int) -> int:
    """Parts of each table of one Run, with suites of one size and no gold so large that it has its own."""
    each = -(-documents // suites)
    return suites * layout.parts_for(each)


def document_of(out: str, known: Document | None = None) -> tuple[Document, int, bool]:
    """What a document of an output is like on average, how many Runs are there, and whether they were paid for.

    What nobody can tell from an output, the seconds of scoring, is taken from ``known``.

    Raises:
        RequestError: there is no Run, or none with a recorded document.
    """
    runs = runs_at(out)
    receipts = [receipt for run in runs for receipt in indexed(run.out, run.name).values()]
    if not receipts:
        raise RequestError(f"{out}: no document is recorded there, so none can be taken for an example")
    sizes: Counter[str] = Counter()
    for run in runs:
        for key, stamp in storage.listed(run.address).items():
            sizes[key.split("/", 1)[0]] += stamp.size
    count = len(receipts)

    def mean(*names: str) -> float:
        return sum(sizes[name] for name in names) / count

    found = replace(
        known or Document(),
        prediction=mean("predictions", "predictions-before"),
        record=mean("records"),
        call=mean("calls"),
        score=mean(layout.SCORES),
        verdicts=mean(layout.VERDICTS),
        index=mean(layout.RECEIPTS, "scores.jsonl"),
        vendor_seconds=math.fsum(receipt.wall_s for receipt in receipts) / count,
        usd=math.fsum(receipt.usd or 0.0 for receipt in receipts) / count,
    )
    return found, len(runs), sizes["calls"] > 0
