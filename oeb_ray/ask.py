"""One document, one provider, one budget: no Ray, no storage.

In: a Document, its schema, a Run. Out: an Outcome: the bytes of the prediction, and the record of what happened. A
failure of the document is an outcome; only what concerns the whole account or request is raised.
"""

from __future__ import annotations

import asyncio
import math
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from . import __version__
from .calls import Attempt
from .digests import digest
from .errors import DocumentError, NoPrediction, OebError, VendorError, VendorTimeout
from .jsontext import read_json
from .providers.accepts import sent_name
from .providers.contract import Call, Document, Extraction
from .providers.registry import find
from .providers.schema import prepared
from .records import FileStamp, Receipt, Run

MOST_PAGES = 1_000_000
ERROR_LENGTH = 600
RETRYABLE = frozenset({"VendorTimeout", "Unreachable", "NotSent", "Unreadable", "WorkerLost"})  # whatever their status
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})


class Outcome(NamedTuple):
    """``prediction`` is None for a failed document."""

    prediction: bytes | None
    record: dict[str, Any]


async def predict(
    document: Document,
    stamp: FileStamp,
    schema: str,
    schema_sha256: str,
    run: Run,
    earlier: list[Any],
    call: Call | None = None,
) -> Outcome:
    """Asks one provider for one document, within ``run.options["timeout_s"]`` seconds.

    Args:
        stamp: of the document's file. earlier: what the records that this one replaces said, oldest first.
        call: for a paid provider; it keeps the time, and the record of what was attempted is the caller's.

    Raises:
        RequestError, AccountFailure, StorageError: nothing can be recorded for the document.
    """
    provider = find(run.provider, run.settings)
    own = {key: value for key, value in run.options.items() if key != "timeout_s"}
    settings, options = provider.Settings(**run.settings), provider.Options(**own)
    started = time.monotonic()
    about = _About(document, stamp, schema_sha256, run, earlier, datetime.now(UTC).isoformat(timespec="seconds"))
    given = read_json(schema.encode("utf-8", "surrogatepass"))
    sent: Any = None
    overlaid = False
    extraction: Extraction | None = None
    error: Exception | None = None
    try:
        async with asyncio.timeout(run.options["timeout_s"] if call is None else None):
            if call is None:
                sent = provider.prepare_schema(given, settings)
            else:
                dialect = partial(provider.prepare_schema, settings=settings)
                sent, overlaid = prepared(given, overlay=options.overlay, dialect=dialect)
            extraction = await provider.extract(document, sent, settings, options, call)
    except TimeoutError:
        error = VendorTimeout(f"no answer within {run.options['timeout_s']:g} s")
    except DocumentError as problem:
        error = problem
    except (OebError, MemoryError):  # not this document's
        raise
    except Exception as problem:  # a hostile document may provoke anything; it is this document's failure
        error = problem
    record = _record(about, extraction, error, time.monotonic() - started)
    record["schema_sent"] = sent if sent != given else None
    record["run_manifest"]["conventions_applied"] = overlaid
    return Outcome(extraction.prediction if extraction else None, record)


def failed(
    document: Document, stamp: FileStamp, schema_sha256: str, run: Run, earlier: list[Any], error: DocumentError
) -> Outcome:
    """The record of a document that fails without being asked for; arguments as for `predict`."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Outcome(None, _record(_About(document, stamp, schema_sha256, run, earlier, at), None, error, 0.0))


def adopted(
    document: Document,
    stamp: FileStamp,
    schema_sha256: str,
    run: Run,
    prediction: bytes | None,
    found: Mapping[str, Any],
    origin: str,
) -> Outcome:
    """The outcome of a document that another tool has recorded: the evidence that ``found`` holds, in our shape.

    Args:
        prediction: what was answered; not looked at if ``found`` says that the document failed.
        found: the other tool's record; what is missing or of another type stays unknown.
        origin: where it was, for the record.
    """
    error = found.get("error")
    result = found.get("result")
    if error is None:
        extraction = None if prediction is None else Extraction(prediction, found.get("raw"))
    else:
        extraction = None
    about = _About(document, stamp, schema_sha256, run, [], _text(_at(found, "run_manifest", "captured_at")))
    record = _record(about, extraction, None, 0.0)
    if extraction is None:
        kind, message = _text(_at(error, "type"), "VendorError"), _text(_at(error, "message"), "no prediction recorded")
        status = _at(error, "status")
        record["error"] = {
            "type": kind,
            "status": status if type(status) is int else None,
            "transient": _at(error, "transient") is True,
            "message": message[:ERROR_LENGTH],
        }
        text = _text(_at(result, "__error__"), f"{kind}: {message}")
        record.update(result={"__error__": text[:ERROR_LENGTH]}, raw=found.get("raw"))
    cost = _at(found, "cost")
    for key in ("usd", "credits", "tokens_in", "tokens_out", "wall_s", "attempts"):
        value = _at(cost, key)
        whole = key in ("tokens_in", "tokens_out", "attempts")
        if type(value) is int or (type(value) is float and math.isfinite(value) and not whole):
            record["cost"][key] = value
    record["cost"]["source"] = _at(cost, "source")
    record["cost"]["billed_out_of_band"] = _at(cost, "billed_out_of_band") is True
    record["job_id"], record["schema_sent"] = found.get("job_id"), found.get("schema_sent")
    record["run_manifest"]["timed_out"] = _at(found, "run_manifest", "timed_out") is True
    record["run_manifest"]["conventions_applied"] = _at(found, "run_manifest", "conventions_applied") is True
    record["run_manifest"]["imported_from"] = origin
    return Outcome(extraction.prediction if extraction else None, record)


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _text(value: Any, other: str = "") -> str:
    return value if isinstance(value, str) and value else other


def with_attempts(outcome: Outcome, attempts: Sequence[Attempt], job_id: str | None) -> Outcome:
    """A paid document's outcome with what was attempted and billed for it, over all attempts."""

    def total(name: str) -> Any:
        stated = [value for attempt in attempts if (value := getattr(attempt, name)) is not None]
        return math.fsum(stated) if stated else None

    usd = total("usd")
    source = next((attempt.source for attempt in reversed(attempts) if attempt.source), None)
    cost = outcome.record["cost"] | {
        "usd": None if usd is None else round(usd, 6),
        "source": source,
        "credits": total("credits"),
        "tokens_in": total("tokens_in"),
        "tokens_out": total("tokens_out"),
        "tokens_cached": total("tokens_cached"),
        "attempts": len(attempts),
        "unpriced": sum(attempt.is_unpriced for attempt in attempts),
        "billed_out_of_band": usd is None and total("credits") is None and outcome.prediction is not None,
    }
    outcome.record.update(cost=cost, job_id=job_id, attempts=[asdict(attempt) for attempt in attempts])
    return outcome


class _About(NamedTuple):
    document: Document
    stamp: FileStamp
    schema_sha256: str
    run: Run
    earlier: list[Any]
    captured_at: str


def _record(about: _About, extraction: Extraction | None, error: Exception | None, seconds: float) -> dict[str, Any]:
    document, run = about.document, about.run
    return {
        "doc_id": document.doc_id,
        "run": run.name,
        "provider": run.provider,
        "result": {"__error__": _row_text(error)} if error is not None else None,
        "raw": extraction.raw if extraction else getattr(error, "body", None),
        "error": _described(error),
        "cost": {
            "usd": None,
            "source": None,
            "tokens_in": None,
            "tokens_out": None,
            "tokens_cached": None,
            "credits": None,
            "wall_s": round(seconds, 3),
            "attempts": len(about.earlier) + 1,
            "unpriced": 0,
            "billed_out_of_band": False,
        },
        "job_id": None,
        "schema_sent": None,
        "run_manifest": {
            "timeout_s": run.options["timeout_s"],
            "settings": run.settings,
            "options": run.options,
            "model": run.provider if "/" in run.provider else None,
            "timed_out": isinstance(error, VendorTimeout),
            "captured_at": about.captured_at,
            "oeb_ray": __version__,
        },
        "citations": list(extraction.citations) if extraction else [],
        "pages": extraction.pages if extraction else None,
        "prediction_sha256": digest(extraction.prediction) if extraction else None,
        "prediction_bytes": len(extraction.prediction) if extraction else 0,
        "schema_sha256": about.schema_sha256,
        "document": {
            "sha256": digest(document.data) if document.found else "",
            "size": about.stamp.size,
            "stamp": about.stamp.stamp,
            "media_type": document.media_type,
            "name_sent": sent_name(document, run.options.get("send_name", "neutral")),
        },
        "earlier": about.earlier,
        "token": uuid.uuid4().hex,
    }


def history(record: Any) -> list[Any]:
    """What a record that is replaced leaves in the one that follows: its predecessors and its own outline."""
    if not isinstance(record, dict):
        return []
    kept = ("result", "error", "cost", "job_id", "prediction_sha256", "schema_sha256", "document")
    captured_at = record.get("run_manifest", {}).get("captured_at")
    return [*record.get("earlier", []), {"captured_at": captured_at, **{key: record.get(key) for key in kept}}]


def _described(error: Exception | None) -> dict[str, Any] | None:
    if error is None:
        return None
    status = error.status if isinstance(error, DocumentError) else None
    return {
        "type": type(error).__name__,
        "status": status,
        "transient": status in TRANSIENT or (isinstance(error, VendorError) and error.passing),
        "message": str(error)[:ERROR_LENGTH] or type(error).__name__,
    }


def _row_text(error: Exception) -> str:
    if isinstance(error, NoPrediction):
        return str(error)
    return f"{type(error).__name__}: {error}"[:ERROR_LENGTH]


def receipt_of(record: dict[str, Any]) -> Receipt:
    """The index entry of a record. Raises KeyError or TypeError for what is no record of ours."""
    error, cost, document = record["error"], record["cost"], record["document"]
    if type(cost["attempts"]) is not int or type(record["prediction_bytes"]) is not int:
        raise TypeError("no record of ours")
    return Receipt(
        doc_id=record["doc_id"],
        error=record["result"]["__error__"] if error else None,
        error_type=error["type"] if error else None,
        retryable=bool(error and (error["transient"] or error["type"] in RETRYABLE)),
        prediction_sha256=record["prediction_sha256"],
        prediction_bytes=record["prediction_bytes"],
        schema_sha256=record["schema_sha256"],
        doc_sha256=document["sha256"],
        doc_size=document["size"],
        doc_stamp=document["stamp"],
        usd=cost["usd"],
        credits=cost["credits"],
        tokens_in=cost["tokens_in"],
        tokens_out=cost["tokens_out"],
        wall_s=cost["wall_s"],
        attempts=cost["attempts"],
        unpriced=cost["unpriced"],
        pages=_pages(record.get("pages")),
    )


def _pages(stated: Any) -> int | None:
    return stated if type(stated) is int and 0 < stated < MOST_PAGES else None
