"""datalab: Datalab's extract interface. One submission, then polls until the job has ended.

In: a PDF and a schema in Datalab's dialect. Out: the extraction without the evidence beside its fields, which goes to
the citations and the record. The vendor states the cost in cents, sometimes only after the job is complete.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..errors import InternalError, OebError, VendorError
from ..records import Doc
from . import vendors
from .accepts import refused_document, sent_name
from .contract import Call, Document, Extraction, Response, setting
from .replies import (
    ERROR_LENGTH,
    answer_of,
    body_of,
    prediction_bytes,
    reason,
    recordable,
    redacted,
    strip_sidecars,
)
from .schema import datalab_dialect
from .transport import VendorRules, failure_of, key_of, poll, server, server_problems, submit

ADDRESS = "OEB_DATALAB_ADDRESS"
"""Environment variable: the server to call, where no option names one."""
REQUEST_TIMEOUT = 120.0
"""Seconds for one request."""
LATE_COST_TIMEOUT = 30.0
"""Seconds for the one request that only asks for the cost."""
UNREADABLE_POLLS = 5
"""Polls in a row whose answer is no JSON object (a gateway's page): the job is paid for, so it is asked again."""
ACCOUNT_PHRASES = ("you need an active, paid subscription", "your payment has failed", "invalid api key")
"""The vendor's documented refusals (403, 401) that concern the account."""
COST_FIELDS = ("cost_breakdown.final_cost_cents", "total_cost")
"""Where the cost stands, in cents; the first that is a number counts."""
EXTRACTION = "extraction_schema_json"
SCORE_AVERAGE = "extraction_score_average"
"""Stands among the fields without being one."""


@dataclass(frozen=True, slots=True)
class DatalabOptions:
    overlay: bool = setting(True, help="state the benchmark's conventions in the schema's descriptions")
    send_name: str = setting("neutral", help="the file name the vendor sees", choices=("neutral", "original"))
    address: str = setting("", help="server to call instead of the vendor's own; else OEB_DATALAB_ADDRESS")


@dataclass(frozen=True, slots=True)
class _Line:
    """What every request for one document needs. ``interval``: seconds between polls."""

    call: Call
    vendor: VendorRules
    url: str
    headers: dict[str, str] = field(repr=False)
    interval: float

    async def state(self, job_id: str, timeout: float = REQUEST_TIMEOUT) -> Response:
        url = f"{self.url}/{quote(job_id, safe='')}"
        return await self.call.send("GET", url, headers=self.headers, timeout=timeout)


class Datalab:
    """See the module's text."""

    name = "datalab"
    paid = True
    Settings = vendors.Datalab
    Options = DatalabOptions
    credential: tuple[str, ...] = ("DATALAB_API_KEY",)
    cap = 10
    states_usd = True

    def host(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return server(options["address"], ADDRESS, settings["base_url"])

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return doc.doc_path

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """A server that cannot be called. The key is looked for when a document is asked for."""
        return server_problems(options.get("address", ""), ADDRESS, settings["base_url"])

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.Datalab) -> dict[str, Any]:
        """The dialect: see `datalab_dialect`."""
        return datalab_dialect(schema)

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: vendors.Datalab,
        options: DatalabOptions,
        call: Call | None,
    ) -> Extraction:
        """Submits the document, unless a job is known, and waits for its end.

        Raises:
            VendorError: the document is refused, the job failed, or its answer holds no extraction that can be read.
            MissingCredential, AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        if call is None:
            raise InternalError("datalab is a paid provider and was given no call")
        key = key_of(self.credential, self.name)
        line = _Line(
            call=call,
            vendor=VendorRules(self.name, ACCOUNT_PHRASES, secrets=(key,)),
            url=server(options.address, ADDRESS, settings.base_url) + "/api/v1/extract",
            headers={"X-Api-Key": key},
            interval=settings.poll_interval,
        )
        job_id = call.job_id
        if job_id is None:
            problem = await asyncio.to_thread(refused_document, self.name, document)
            if problem:
                raise VendorError(problem)
            job_id = await _submitted(line, document, schema, settings.mode, options.send_name)
        final = await _finished(line, job_id)
        return _extraction(final, schema, line.vendor, job_id)


async def _submitted(line: _Line, document: Document, schema: dict[str, Any], mode: str, send_name: str) -> str:
    """The id of the job that the vendor accepted; it is durable when this returns."""
    form = {
        "page_schema": json.dumps(schema),
        "extraction_mode": mode,
        "output_format": "json",
    }
    files = {"file": (sent_name(document, send_name), document.data, document.media_type)}

    async def send() -> Response:
        response = await line.call.send(
            "POST", line.url, headers=line.headers, data=form, files=files, timeout=REQUEST_TIMEOUT
        )
        job_id = _accepted_id(response)
        if job_id:
            await line.call.accepted(job_id)
        return response

    response = await submit(line.call, send, vendor=line.vendor)
    job_id = _accepted_id(response)
    if response.status != 200:
        raise failure_of(response, line.vendor, "the submission")
    if not job_id:
        body = recordable(body_of(response.body), line.vendor.secrets)
        words = reason(body) if isinstance(body, dict) else "the reply is no JSON object"
        text = f"datalab: no job was accepted: {words or 'no reason given'}"
        raise VendorError(text[:ERROR_LENGTH], response.status, body)
    return job_id


def _accepted_id(response: Response) -> str | None:
    """The job's id in the answer to a submission; None unless the vendor says that it accepted one."""
    body = body_of(response.body) if 200 <= response.status < 300 else None
    if not isinstance(body, dict) or body.get("success") is False:
        return None
    given = body.get("request_id")
    return given if isinstance(given, str) and 0 < len(given.strip()) <= 200 else None


async def _finished(line: _Line, job_id: str) -> dict[str, Any]:
    """The last body of a job that is complete, with its cost noted.

    States that the vendor does not document are polled on until the budget ends.
    """
    unreadable = 0
    stated: tuple[float, str] | None = None
    while True:
        response = await poll(
            line.call, lambda: line.state(job_id), interval=line.interval, vendor=line.vendor, job=job_id
        )
        body = body_of(response.body)
        if not isinstance(body, dict):
            unreadable += 1
            if unreadable > UNREADABLE_POLLS:
                raise _failed(line.vendor, job_id, "gives unreadable replies: no JSON object", response.status, body)
            continue
        unreadable = 0
        stated = _noted_cost(line.call, body, stated)
        _raise_if_failed(line.vendor, job_id, response.status, body)
        if body["status"] == "complete":
            return body if stated else await _with_late_cost(line, job_id, body)


def _raise_if_failed(vendor: VendorRules, job_id: str, status: int, body: dict[str, Any]) -> None:
    state = body.get("status")
    if not isinstance(state, str):
        raise _failed(vendor, job_id, f"gives an unreadable reply without a status: {_why(body)}", status, body)
    if state == "error" or (body.get("success") is False and state != "processing"):
        raise _failed(vendor, job_id, f"failed in state {state[:40]}: {_why(body)}", status, body)


def _why(body: dict[str, Any]) -> str:
    words = reason(body) or "no reason given"
    kind = body.get("error_in")
    return f"{words} (error in {kind[:40]})" if isinstance(kind, str) and kind else words


def _failed(vendor: VendorRules, job_id: str, what: str, status: int, body: Any) -> VendorError:
    text = redacted(f"datalab: job {job_id} {what}", vendor.secrets)
    return VendorError(text[:ERROR_LENGTH], status, recordable(body, vendor.secrets))


def stated_cost(body: dict[str, Any]) -> tuple[float, str] | None:
    """(dollars to 6 places, the field they come from) as the vendor states it in cents; None if it states none."""
    for path in COST_FIELDS:
        value: Any = body
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
            return round(value / 100, 6), path
    return None


def _noted_cost(call: Call, body: dict[str, Any], before: tuple[float, str] | None) -> tuple[float, str] | None:
    stated = stated_cost(body)
    if stated and stated != before:
        call.billed(usd=stated[0], source=stated[1])
    return stated or before


async def _with_late_cost(line: _Line, job_id: str, final: dict[str, Any]) -> dict[str, Any]:
    """The final body with a cost that the vendor states only after completion, if one more poll brings it.

    Nothing that happens here may cost the answer that is in hand: it takes at most half of the time that is left.
    """
    if 4 * line.interval > line.call.remaining():
        return final
    try:
        await line.call.sleep(line.interval)
        timeout = min(LATE_COST_TIMEOUT, line.call.remaining() / 2)
        response = await line.state(job_id, timeout)
    except OebError:
        return final
    body = body_of(response.body)
    if response.status != 200 or not isinstance(body, dict) or not _noted_cost(line.call, body, None):
        return final
    return final | {key: body[key] for key in ("cost_breakdown", "total_cost") if key in body}


def _extraction(final: dict[str, Any], schema: dict[str, Any], vendor: VendorRules, job_id: str) -> Extraction:
    """The extraction of a complete job. Raises VendorError if there is none, or only an empty one."""
    given = final.get(EXTRACTION)
    answer = answer_of(given)
    if answer is None:
        problem = "has no extraction" if given is None else "has an unreadable or empty extraction"
        raise _failed(vendor, job_id, f"is complete but {problem}", 200, final)
    plain, evidence = strip_sidecars(answer, schema)
    if SCORE_AVERAGE in plain and SCORE_AVERAGE not in schema.get("properties", {}):
        evidence.append({"path": "", "key": SCORE_AVERAGE, "value": plain.pop(SCORE_AVERAGE)})
    if not plain:
        raise _failed(vendor, job_id, "is complete but its extraction holds evidence and no field", 200, final)
    raw = {key: value for key, value in final.items() if key != EXTRACTION}
    if evidence:
        raw["evidence"] = evidence
    pages = final.get("page_count")
    citations = [{"path": e["path"], "blocks": e["value"]} for e in evidence if e["key"].endswith("_citations")]
    return Extraction(
        prediction=prediction_bytes(plain),
        raw=recordable(raw, vendor.secrets),
        citations=tuple(recordable(citations, vendor.secrets)),
        pages=pages if isinstance(pages, int) and not isinstance(pages, bool) and pages >= 0 else None,
    )
