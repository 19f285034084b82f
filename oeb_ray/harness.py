"""One document and one vendor, outside of any run: `predict`, and the names that go with it.

In: a provider's name, a document, a schema. Out: the record, with the extraction in it. What is asked for goes through
the same pool per account, claims and retries as a benchmark; the claims lie in a temporary folder, so a call that is
interrupted is not taken up again. `oeb predict --manifest` does that for a whole corpus.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import tempfile
import uuid
import warnings
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from . import layout, storage
from .cluster.account import PING_SECONDS, Account, code_digest
from .cluster.contract import Predicted
from .cluster.work import predict_all
from .digests import text_digest
from .errors import AccountFailure, MissingCredential, MissingDependency, RequestError, refused, suggestion
from .jsontext import read_json
from .loops import finished
from .plan import expand
from .pool import Pool
from .providers.registry import ALL_PROVIDERS, CARD_NAMES, PROVIDERS, find, settings_for
from .records import Doc, Lane, PredictBatch, Run

__all__ = [
    "ALL_PROVIDERS",
    "PROVIDERS",
    "AccountFailure",
    "MissingCredential",
    "MissingDependency",
    "apredict",
    "predict",
    "settings_for",
]


def predict(
    provider: str,
    pdf: str | os.PathLike[str],
    schema: dict[str, Any],
    timeout: float = 1800.0,
    overlay: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """Asks one provider for one document. This may cost money; keys come from the environment.

    Args:
        provider: a name of `ALL_PROVIDERS` or of the dataset card, or a model id ``org/model``.
        pdf: path or URL of the document.
        schema: the JSON Schema to extract against.
        timeout: seconds that the document may take, end to end.
        overlay: state the benchmark's conventions in the descriptions of the schema that is sent.
        options: settings of the provider, such as ``mode="accurate"``, and its run options, such as ``address``.

    Returns:
        ``result``: the extraction, shaped like the schema, or ``{"__error__": text}``; ``raw``: the vendor's answer;
        ``error``: None, or type, status, transient and message; ``cost``: ``usd`` (dollars that the vendor stated),
        ``wall_s`` (seconds), ``attempts`` and more; ``run_manifest``: what was asked; and the rest of a record.

    Raises:
        MissingCredential: no key in the environment. MissingDependency: a package is not installed.
        AccountFailure: the vendor refuses the account.
        RequestError: no such provider, option, document or schema.
    """
    return finished(apredict(provider, pdf, schema, timeout, overlay, **options))


async def apredict(
    provider: str,
    pdf: str | os.PathLike[str],
    schema: dict[str, Any],
    timeout: float = 1800.0,
    overlay: bool = True,
    **options: Any,
) -> dict[str, Any]:
    """As `predict`, to be awaited; calls of one loop share the limits of their account."""
    run = _run(provider, timeout, overlay, options)
    doc = await asyncio.to_thread(_doc, os.fspath(pdf), schema)
    with tempfile.TemporaryDirectory(prefix="oeb-") as out:
        batch = PredictBatch(out, run, (doc,))
        ended = await (predict_all(batch) if run.lane is None else _paid(batch, run.lane))
        if ended.stopped is not None:
            raise ended.stopped
        return await asyncio.to_thread(_record, out, run.name, doc.doc_id)


def _run(provider: str, timeout: float, overlay: bool, options: dict[str, Any]) -> Run:
    if type(timeout) not in (int, float) or not 0 < timeout < math.inf:
        raise RequestError(f"timeout={timeout!r}: wants a number of seconds above 0")
    name, own = CARD_NAMES.get(provider, (provider, {}))
    known = find(name).Options.__dataclass_fields__
    if sets := [key for key in ("options", "grid") if key in options]:
        raise refused(name, [f"{key}: no such setting; {suggestion(key, known)}" for key in sets])
    entry = {**options, **own} | ({"overlay": overlay} if "overlay" in known else {})
    (run,), unusual = expand({name: entry}, float(timeout))
    for text in unusual:
        warnings.warn(text, stacklevel=4)
    return run


def _doc(path: str, schema: dict[str, Any]) -> Doc:
    address = storage.absolute(path)
    try:
        storage.stat(address)
    except FileNotFoundError:
        raise RequestError(f"no document at {address}") from None
    if not isinstance(schema, dict) or not schema:
        raise RequestError(f"the schema must be a JSON object that is not empty, not {str(schema)[:60]!r}")
    name = address.rsplit("/", 1)[-1]
    doc_id = name.rsplit(".", 1)[0] or name
    try:
        storage.encode_id(doc_id)
    except ValueError:  # a name too long for a file with another ending; nobody is told it
        doc_id = "document"
    text = json.dumps(schema)
    return Doc(doc_id, "", address, "", text, text_digest(text))


def _record(out: str, run: str, doc_id: str) -> dict[str, Any]:
    """The record with the prediction in it; what most people look for stands first."""
    record: dict[str, Any] = read_json(storage.read(layout.record(out, run, doc_id)))
    if record["error"] is None:
        try:
            record["result"] = read_json(storage.read(layout.prediction(out, run, doc_id)))
        except ValueError:  # stored predictions are served as they are
            record["result"] = None
    first = ("result", "error", "provider", "cost")
    inner = ("token", "earlier")  # of records that stand beside others
    return {key: record[key] for key in first} | {key: value for key, value in record.items() if key not in inner}


# --- accounts that calls of one loop share ------------------------------------------------------------------------


class _Shared:
    """An account and how many calls use it."""

    def __init__(self, name: str) -> None:
        self.account, self.users = Account(name), 0


_ACCOUNTS: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Shared]] = weakref.WeakKeyDictionary()


async def _paid(batch: PredictBatch, lane: Lane) -> Predicted:
    job = uuid.uuid4().hex
    async with _account(lane.account) as account:
        limits: dict[str, Any] = {"cap": lane.cap, "rpm": lane.rpm, "max_usd": lane.max_usd}
        account.register(job, limits | {"spent": {}, "resumed": False, "digest": code_digest(), "paused": False})
        pinging = asyncio.ensure_future(_stay_alive(account.pool, job))
        try:
            return await account.predict(job, batch)
        finally:
            pinging.cancel()
            account.pool.leave(job)
            await account.end(batch.out)


async def _stay_alive(pool: Pool, job: str) -> None:
    while True:
        pool.ping(job)
        await asyncio.sleep(PING_SECONDS)


@asynccontextmanager
async def _account(name: str) -> AsyncIterator[Account]:
    here = _ACCOUNTS.setdefault(asyncio.get_running_loop(), {})
    shared = here.setdefault(name, _Shared(name))
    shared.users += 1
    try:
        yield shared.account
    finally:
        shared.users -= 1
        if not shared.users:
            del here[name]
            await shared.account.close()
