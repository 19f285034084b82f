"""The values that travel between the parts of the package: frozen, picklable, without behaviour.

Those of which there are as many as documents are tuples, which are the quickest to make.

A Doc is one document of a corpus; a Run one provider with one option set; a Receipt what is known of a recorded
document without opening its record; a PartTask the documents that one score part holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


class FileStamp(NamedTuple):
    """What tells that a file has changed without reading it: size in bytes, and its ETag or modification time."""

    size: int
    stamp: str


ABSENT = "absent"  # the stamp of a file whose size is known and that has not been fetched


class Doc(NamedTuple):
    """One document of a corpus. ``schema``: JSON text, with its digest; the paths are absolute paths or URLs.

    ``annotations``: a file with what scorers may know beside the gold; None if there is none.
    """

    doc_id: str
    suite: str
    doc_path: str
    gt_path: str
    schema: str
    schema_sha256: str
    annotations: str | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """The vendor account that a paid Run goes through, and the limits that this job puts on it.

    ``cap``: calls in flight; ``rpm``: requests per minute, None for no limit; ``max_usd``: dollars that each Run may
    spend, None for no limit; ``usd_per_doc``: what a call is reckoned to cost before its price is known.
    """

    account: str
    cap: int
    rpm: float | None
    max_usd: float | None
    usd_per_doc: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One provider with one option set.

    ``settings``: every setting, defaults included; they make the name. ``options``: run options, which do not:
    ``timeout_s`` and what the provider adds. ``lane``: None for a provider that costs nothing.
    """

    name: str
    provider: str
    settings: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    lane: Lane | None = None


@dataclass(frozen=True, slots=True)
class PredictBatch:
    """Documents for one task; ``again``: replace records that are there, and keep their history."""

    out: str
    run: Run
    docs: tuple[Doc, ...]
    again: bool = False


class Receipt(NamedTuple):
    """The index entry of one record.

    ``error``: the text of the document's row if it failed, else None; ``error_type``: its class. ``retryable``: asking
    again may help. Digests are SHA-256 in hex; ``prediction_sha256`` is None where no prediction was stored.
    Money in ``usd`` (dollars stated by the vendor) and ``credits`` (vendor's own); ``wall_s`` in seconds. ``attempts``
    counts how often the document was asked for, over all its records: of two receipts the one with more is newer.
    ``unpriced``: those of them that may have cost dollars which nobody has stated. ``pages``: as the vendor counts.
    """

    doc_id: str
    error: str | None
    error_type: str | None
    retryable: bool
    prediction_sha256: str | None
    prediction_bytes: int
    schema_sha256: str
    doc_sha256: str
    doc_size: int
    doc_stamp: str
    usd: float | None
    credits: float | None
    tokens_in: int | None
    tokens_out: int | None
    wall_s: float
    attempts: int
    unpriced: int
    pages: int | None = None

    def kept(self, doc_id: str) -> Receipt:
        """What a job goes on with, under an equal ``doc_id`` that is shared: not what only planning compares."""
        return self._replace(doc_id=doc_id, schema_sha256="", doc_sha256="", doc_stamp="")


class ScoreItem(NamedTuple):
    """One recorded document to score.

    ``error``: the row's text if there is no prediction.
    """

    doc_id: str
    gt_path: str
    schema: str
    schema_sha256: str
    prediction_sha256: str | None
    error: str | None
    annotations: str | None = None


@dataclass(frozen=True, slots=True)
class PartTask:
    """One part of a scorer's tables: all recorded documents whose home it is, sorted by doc_id.

    ``memory``: bytes that it may take; ``limit``: each document is scored in a process of its own, in at most so many
    bytes; None: in the worker itself.
    """

    out: str
    run: Run
    suite: str
    part: str
    items: tuple[ScoreItem, ...]
    verdicts: bool
    scorer: str
    memory: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """The end of a Run: its index is merged, ``without`` some documents, and what is derived from its parts written.

    ``homes``: suite and part of every part that there is; ``memory``: bytes that it may take.
    """

    out: str
    run: Run
    scorers: tuple[str, ...]
    homes: tuple[tuple[str, str], ...]
    memory: int
    without: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PartReceipt:
    """What scoring a part came to: ``digests`` of the files that could be read, by address, and notes on golds.

    ``broken``: doc_ids whose prediction is not the one that the record names; the part was not written then.
    """

    run: str
    digests: dict[str, str]
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
