"""azure-cu: Azure AI Content Understanding. An analyzer per schema, then one analysis per document, then polls.

In: a document and a field schema. Out: the fields as a plain object; confidences and places stay in the record. The
version of the interface decides the shape of requests: the preview of May 2025, or what is generally available since
November 2025. The vendor states tokens, no price.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from ..digests import text_digest
from ..errors import VendorError
from . import vendors
from .azure_fields import field_schema, values_of
from .contract import Call, Document, Extraction, Response
from .jobs import Answer, JobVendor, State, state_of
from .replies import ERROR_LENGTH, body_of, count_at, is_sound, reason, recordable, value_at
from .transport import ask, poll, server
from .vendor import Line, Request, without

PATH = "/contentunderstanding"
RESULTS = "analyzerResults/"
GENERAL = "2025-11"
"""Versions from here on have the shape that is generally available."""
PASSING_ERRORS = frozenset({"InternalServerError", "ServiceUnavailable"})
PAGES = ("documentPagesMinimal", "documentPagesBasic", "documentPagesStandard")
DONE, FAILED = ("succeeded", "completed", "ready"), ("failed", "canceled", "cancelled", "deleting")

_NAME = "[A-Za-z0-9_~-][A-Za-z0-9._~-]*"
_OPERATION = re.compile(rf"{PATH}/({_NAME}(?:/{_NAME})*)(?:\?|$)")
_READY: set[tuple[str, str]] = set()
"""Analyzers that are known to be there, by server."""


class AzureCu(JobVendor):
    """See the module's text. A job's id is that of its result, or the path of an operation that lies elsewhere."""

    name = "azure-cu"
    Settings = vendors.AzureCu
    credential = ("AZURE_CU_KEY",)
    cap = 3
    account_statuses = (403,)

    def server_of(self, settings: Mapping[str, Any]) -> str:
        return str(settings["endpoint"])

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        if not server(options.get("address", ""), self.address_variable, settings["endpoint"]):
            return ["endpoint must name your resource, such as https://NAME.cognitiveservices.azure.com"]
        return super().problems(settings, options)

    def headers(self, key: str, settings: vendors.AzureCu) -> dict[str, str]:
        return {"Ocp-Apim-Subscription-Key": key}

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.AzureCu) -> dict[str, Any]:
        return field_schema(schema, "json" if _is_general(settings) else "object")

    async def extract(
        self, document: Document, schema: dict[str, Any], settings: Any, options: Any, call: Call | None
    ) -> Extraction:
        known = bool(_READY)
        try:
            return await super().extract(document, schema, settings, options, call)
        except VendorError as error:
            if error.status != 404 or not known or (call and call.job_id):
                raise
            _READY.clear()  # somebody has deleted the analyzer: nothing was begun, so it is made and asked again
        return await super().extract(document, schema, settings, options, call)

    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        general = _is_general(line.settings)
        analyzer = await _analyzer(line, schema)
        verb = "analyzeBinary" if general else "analyze"
        kind = document.media_type if general else "application/octet-stream"
        headers = {"Content-Type": kind}
        path = f"{PATH}/analyzers/{analyzer}:{verb}"
        return Request("POST", path, params=_version(line), content=document.data, headers=headers)

    def job_of(self, response: Response, body: Any) -> str | None:
        operation = _operation(response)
        return operation.removeprefix(RESULTS) if operation else None

    async def polling(self, line: Line, job: str) -> Request:
        return Request("GET", f"{PATH}/{job if '/' in job else RESULTS + job}", params=_version(line))

    def state(self, body: dict[str, Any]) -> State | None:
        state = state_of(body.get("status"), done=DONE, failed=FAILED)
        return state and state._replace(passing=value_at(body, "error.code") in PASSING_ERRORS)

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        tokens = value_at(body, "usage.tokens")
        listed = tokens.items() if isinstance(tokens, dict) else ()
        known = {name: count_at({"count": count}, "count") or 0 for name, count in listed}
        if not known:
            return {}
        given = sum(count for name, count in known.items() if name.endswith("-input"))
        made = sum(count for name, count in known.items() if name.endswith("-output"))
        return {"tokens_in": given, "tokens_out": made, "source": "usage.tokens"}

    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        contents = value_at(body, "result.contents")
        contents = [one for one in contents if isinstance(one, dict)] if isinstance(contents, list) else []
        chosen = next((one for one in contents if one.get("kind") == "document"), contents[0] if contents else {})
        counts = [count for name in PAGES if (count := count_at(body, f"usage.{name}")) is not None]
        pages = sum(counts) if counts else count_at(chosen, "endPageNumber")
        fields = chosen.get("fields")
        if not isinstance(fields, dict) or not is_sound(fields):
            return Answer(None, body, pages=pages)
        value, evidence = values_of(fields)
        raw = body | {"result": body["result"] | {"contents": [without(one, "fields") for one in contents]}}
        return Answer(value, raw, evidence, pages)


def _is_general(settings: vendors.AzureCu) -> bool:
    return settings.api_version >= GENERAL


def _version(line: Line) -> dict[str, str]:
    return {"api-version": line.settings.api_version}


def _operation(response: Response) -> str | None:
    """The path of an operation that an answer points to; its host does not matter, the key goes to our server only."""
    found = _OPERATION.search(response.headers.get("operation-location", ""))
    return found[1] if found else None


async def _analyzer(line: Line, fields: dict[str, Any]) -> str:
    """The id of an analyzer for these fields, made if it is not there, and waited for.

    Its name comes from its content, so whoever needs the same one may make it at the same time: the vendor takes one
    and answers 409 to the others. One that is there and has failed is made anew, where the vendor lets us.
    """
    definition = _definition(line.settings, fields)
    digest = text_digest(json.dumps([definition, line.settings.api_version], sort_keys=True))
    analyzer = f"oeb{digest[:24]}"
    if (line.server, analyzer) not in _READY:
        is_found, problem = await _made(line, analyzer, definition, {})
        if problem and is_found and _is_general(line.settings):
            _, problem = await _made(line, analyzer, definition, {"allowReplace": "true"})
        if problem:
            raise problem
        _READY.add((line.server, analyzer))
    return analyzer


async def _made(
    line: Line, analyzer: str, definition: dict[str, Any], more: dict[str, str]
) -> tuple[bool, VendorError | None]:
    """Asks for the analyzer and waits for it. Whether it was there already, and why it cannot be used if so."""
    asked = Request("PUT", f"{PATH}/analyzers/{analyzer}", params=_version(line) | more, json=definition)
    rules = dataclasses.replace(line.vendor, judge=lambda response: "fine" if response.status == 409 else None)
    response = await ask(line.call, lambda: line.send(asked), vendor=rules)
    is_found = response.status == 409
    operation = None if is_found else _operation(response)
    watched = Request("GET", f"{PATH}/{operation or f'analyzers/{analyzer}'}", params=_version(line))
    while True:
        response = await poll(
            line.call,
            lambda: line.send(watched),
            interval=line.settings.poll_interval,
            vendor=line.vendor,
            job=f"analyzer {analyzer}",
        )
        body = body_of(response.body)
        state = state_of(value_at(body, "status") if isinstance(body, dict) else "?", done=DONE, failed=FAILED)
        if state is None or state.kind == "done":
            return is_found, None
        if state.kind == "failed":
            kept = recordable(body, line.vendor.secrets)
            text = f"azure-cu: analyzer {analyzer} is {state.word[:40]}: {reason(kept) or 'no reason given'}"
            return is_found, VendorError(text[:ERROR_LENGTH], response.status, kept)


def _definition(settings: vendors.AzureCu, fields: dict[str, Any]) -> dict[str, Any]:
    if not _is_general(settings):
        return {
            "baseAnalyzerId": "prebuilt-documentAnalyzer",
            "config": {"returnDetails": False, "completion": settings.completion_model},
            "fieldSchema": fields,
        }
    return {
        "baseAnalyzerId": "prebuilt-document",
        "config": {"returnDetails": False},
        "models": {"completion": settings.completion_model},
        "fieldSchema": {"name": "extraction", "description": "", **fields, "definitions": {}},
    }
