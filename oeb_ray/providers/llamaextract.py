"""llamaextract: LlamaCloud's extract interface, version 2. Upload, one submission, polls until the job has ended.

In: a PDF and a schema in LlamaCloud's dialect. Out: the extraction; what the vendor tells of its fields stays in the
record. The vendor states credits, sometimes only after the job is complete.
"""

from __future__ import annotations

import dataclasses
import json
from datetime import datetime
from typing import Any

from ..digests import text_digest
from ..errors import DialectError, VendorError
from . import vendors
from .contract import Document, Response
from .jobs import Answer, JobVendor, State, state_of
from .replies import count_at, number_at
from .schema import inlined, kind_of, mapped, refuse_reference
from .vendor import Line, Request, quoted, without

DEPTH, MOST_PROPERTIES, MOST_CHARACTERS = 7, 5_000, 120_000
"""Of a schema: levels of objects, properties, characters of its text."""
PATH = "/api/v2/extract"
RESULTS = ("extract_result", "data", "result")
"""Where versions of the interface put the extraction; the first that is there counts."""
EXPANDED = ("metadata", "extract_metadata", "usage")
"""What a poll asks for beside the extraction: pages, confidences and citations, credits."""

_PROJECTS: dict[tuple[str, str], str] = {}
"""The project of a key, by server and fingerprint of the key; empty where the key brings its own."""


class LlamaExtract(JobVendor):
    """See the module's text."""

    name = "llamaextract"
    Settings = vendors.LlamaExtract
    credential = ("LLAMA_CLOUD_API_KEY", "LLAMAPARSE_API_KEY")
    cap = 3
    own_server = "https://api.cloud.llamaindex.ai"
    account_statuses = (403,)
    late_bill = ("usage",)

    def headers(self, key: str, settings: vendors.LlamaExtract) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.LlamaExtract) -> dict[str, Any]:
        return llamaextract_dialect(schema)

    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        project = await _project(line)
        files = {"file": line.file(document)}
        file = await line.upload(Request("POST", "/api/v1/beta/files", files=files, data={"purpose": "extract"}), "id")
        configuration = {"tier": line.settings.tier, "extraction_target": "per_doc", "data_schema": schema}
        body = {"file_input": file, "configuration": configuration}
        return Request("POST", PATH, params=project, json=body)

    def job_of(self, response: Response, body: Any) -> str | None:
        return body.get("id", body.get("job_id")) if isinstance(body, dict) else None

    async def polling(self, line: Line, job: str) -> Request:
        project = await _project(line, job)
        return Request("GET", f"{PATH}/{quoted(job)}", params={**project, "expand": EXPANDED})

    async def cancelling(self, line: Line, job: str) -> Request | None:
        return Request("POST", f"{PATH}/{quoted(job)}/cancel", params=await _project(line, job))

    def state(self, body: dict[str, Any]) -> State | None:
        failed = ("failed", "error", "cancelled", "canceled")
        return state_of(body.get("status"), done=("completed", "success"), failed=failed)

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        credits = number_at(body, "usage.credits")
        return {} if credits is None else {"credits": credits, "source": "usage.credits"}

    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        given = next((body[key] for key in RESULTS if body.get(key) is not None), None)
        if isinstance(given, dict) and "document_result" in given and "document_result" not in schema["properties"]:
            given = given["document_result"]
        raw = without(body, *RESULTS) | {"tier": line.settings.tier, "server_latency_s": _seconds(body)}
        return Answer(given, raw, pages=count_at(body, "metadata.usage.num_pages_extracted"))


async def _project(line: Line, job: str = "") -> dict[str, str]:
    """The project as a parameter of requests: the key's first; none for a key that is of one project alone."""
    place = line.server, text_digest(line.headers["Authorization"])
    if place not in _PROJECTS:
        # A key of one project may not list them; that says nothing about the account.
        rules = dataclasses.replace(line.vendor, account_statuses=())
        asking = dataclasses.replace(line, vendor=rules)
        try:
            body = await asking.ask(Request("GET", "/api/v1/projects"), "the list of projects", job)
        except VendorError as error:
            if error.status not in (403, 404):
                raise
            body = []
        listed = body.get("projects") if isinstance(body, dict) else body
        first = listed[0] if isinstance(listed, list) and listed else None
        found = first.get("id") if isinstance(first, dict) else None
        _PROJECTS[place] = found if isinstance(found, str) else ""
    project = _PROJECTS[place]
    return {"project_id": project} if project else {}


def _seconds(body: dict[str, Any]) -> float | None:
    """How long the vendor worked at a job, by its own clock."""
    try:
        ended, began = (datetime.fromisoformat(body[key]) for key in ("updated_at", "created_at"))
        return round((ended - began).total_seconds(), 3)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def llamaextract_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in LlamaCloud's dialect: no references and no keywords with ``$``, choices with their types.

    ``additionalProperties`` is true or false: a schema there becomes true. Fields of any name stay.

    Raises:
        DialectError: the root is no object, or the schema is larger or deeper than the vendor takes.
    """
    properties = 0

    def change(node: dict[str, Any]) -> dict[str, Any]:
        nonlocal properties
        refuse_reference(node)
        result = {key: value for key, value in node.items() if not key.startswith("$")}
        fields = node.get("properties")
        properties += len(fields) if isinstance(fields, dict) else 0
        if "type" not in node and isinstance(node.get("enum"), list) and node["enum"]:
            kinds = sorted({_kind(value) for value in node["enum"]}, key=lambda kind: (kind == "null", kind))
            result["type"] = kinds if len(kinds) > 1 else kinds[0]
        if not isinstance(node.get("additionalProperties", True), bool):
            result["additionalProperties"] = True
        return result

    told: dict[str, Any] = mapped(inlined(schema, DEPTH), change)
    if kind_of(told) != "object" or not isinstance(told.get("properties"), dict):
        raise DialectError("llamaextract needs a schema whose root is an object with properties")
    told["type"] = "object"
    if properties > MOST_PROPERTIES:
        raise DialectError(f"the schema has {properties:,} properties, llamaextract takes {MOST_PROPERTIES:,}")
    if len(json.dumps(told)) > MOST_CHARACTERS:
        raise DialectError(f"the schema's text is longer than the {MOST_CHARACTERS:,} characters that are taken")
    return told


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")
