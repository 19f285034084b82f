"""One document, one provider, one budget: no Ray, no storage.

In: a Document, its schema, a Run. Out: an Outcome: the bytes of the prediction, and the record of what happened. A
failure of the document is an outcome; only what concerns the whole account or request is raised.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from datetime import UTC, datetime
from typing import Any, NamedTuple

from . import __version__
from .errors import AccountFailure, DocumentError, NoPrediction, RequestError, VendorTimeout
from .jsontext import read_json
from .providers.contract import Document
from .providers.registry import find
from .records import FileStamp, Receipt, Run

ERROR_LENGTH = 600
TRANSIENT = frozenset({408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})


class Outcome(NamedTuple):
    """``prediction`` is None for a failed document."""

    prediction: bytes | None
    record: dict[str, Any]


async def predict(document: Document, stamp: FileStamp, schema: str, run: Run) -> Outcome:
    """Asks one provider for one document, within ``run.options["timeout_s"]`` seconds.

    Raises:
        RequestError, AccountFailure: nothing was recorded for the document.
    """
    provider = find(run.provider)
    own = {key: value for key, value in run.options.items() if key != "timeout_s"}
    settings, options = provider.Settings(**run.settings), provider.Options(**own)
    started = time.monotonic()
    captured_at = datetime.now(UTC).isoformat(timespec="seconds")
    error: Exception | None = None
    extraction = None
    sent: Any = None
    try:
        async with asyncio.timeout(run.options["timeout_s"]):
            sent = provider.prepare_schema(read_json(schema.encode("utf-8", "surrogatepass")), settings)
            extraction = await provider.extract(document, sent, settings, options, None)
    except TimeoutError:
        error = VendorTimeout(f"no answer within {run.options['timeout_s']:g} s")
    except (RequestError, AccountFailure):
        raise
    except Exception as problem:  # a hostile document may provoke anything; it is this document's failure
        error = problem
    seconds = time.monotonic() - started
    record: dict[str, Any] = {
        "doc_id": document.doc_id,
        "run": run.name,
        "provider": run.provider,
        "result": None,
        "raw": extraction.raw if extraction else getattr(error, "body", None),
        "error": _described(error),
        "cost": {
            "usd": None,
            "source": None,
            "tokens_in": None,
            "tokens_out": None,
            "credits": None,
            "wall_s": round(seconds, 3),
            "attempts": 1,
            "billed_out_of_band": False,
        },
        "job_id": None,
        "schema_sent": sent if sent != read_json(schema.encode("utf-8", "surrogatepass")) else None,
        "run_manifest": {
            "timeout_s": run.options["timeout_s"],
            "settings": run.settings,
            "options": run.options,
            "model": run.provider if "/" in run.provider else None,
            "timed_out": isinstance(error, VendorTimeout),
            "captured_at": captured_at,
            "oeb_ray": __version__,
        },
        "citations": list(extraction.citations) if extraction else [],
        "pages": extraction.pages if extraction else None,
        "prediction_sha256": hashlib.sha256(extraction.prediction).hexdigest() if extraction else None,
        "prediction_bytes": len(extraction.prediction) if extraction else 0,
        "schema_sha256": hashlib.sha256(schema.encode("utf-8", "surrogatepass")).hexdigest(),
        "document": {
            "sha256": hashlib.sha256(document.data).hexdigest() if document.data else "",
            "size": stamp.size,
            "stamp": stamp.stamp,
            "media_type": document.media_type,
            "name_sent": document.name,
        },
        "token": uuid.uuid4().hex,
    }
    if error is not None:
        record["result"] = {"__error__": _row_text(error)}
    return Outcome(extraction.prediction if extraction else None, record)


def _described(error: Exception | None) -> dict[str, Any] | None:
    if error is None:
        return None
    status = error.status if isinstance(error, DocumentError) else None
    return {
        "type": type(error).__name__,
        "status": status,
        "transient": status in TRANSIENT,
        "message": str(error)[:ERROR_LENGTH] or type(error).__name__,
    }


def _row_text(error: Exception) -> str:
    if isinstance(error, NoPrediction):
        return str(error)
    return f"{type(error).__name__}: {error}"[:ERROR_LENGTH]


def receipt_of(record: dict[str, Any]) -> Receipt:
    """The index entry of a record. Raises KeyError or TypeError for what is no record of ours."""
    error, cost, document = record["error"], record["cost"], record["document"]
    return Receipt(
        doc_id=record["doc_id"],
        error=record["result"]["__error__"] if error else None,
        error_type=error["type"] if error else None,
        retryable=bool(error and (error["transient"] or error["type"] in ("VendorTimeout", "Unreachable"))),
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
    )
