"""reducto: Reducto's deep extraction. Upload, one asynchronous submission, polls until the job has ended.

In: a PDF and a schema, sent as it is. Out: the extraction, which for large results lies behind an address. The vendor
states credits.
"""

from __future__ import annotations

from typing import Any

from . import vendors
from .addresses import fetched
from .contract import Document, Response
from .jobs import Answer, JobVendor, State, state_of
from .replies import count_at, merge_objects, number_at
from .vendor import Line, Request, quoted, without

# What `error.name` of a failed job says; all others concern the document.
ACCOUNT_ERRORS = frozenset({"AUTH_ERROR"})
PASSING_ERRORS = frozenset({
    "TIMEOUT", "CAPACITY_TIMEOUT", "INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "QUEUE_FULL", "BATCH_QUEUE_FULL",
    "RATE_LIMIT", "LLM_PROVIDER_ERROR", "SUBPROCESS_CRASHED",
})  # fmt: skip

ENVELOPE = frozenset({"response_type", "job_id", "usage"})
"""Keys of the reply round an extraction; a reply with one of them is no extraction itself."""


class Reducto(JobVendor):
    """See the module's text."""

    name = "reducto"
    Settings = vendors.Reducto
    credential = ("REDUCTO_API_KEY",)
    cap = 3
    own_server = "https://platform.reducto.ai"

    def headers(self, key: str, settings: vendors.Reducto) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        file = await line.upload(
            Request("POST", "/upload", files={"file": line.file(document)}, timeout=300), "file_id"
        )
        settings: vendors.Reducto = line.settings
        instructions: dict[str, Any] = {"schema": schema}
        if settings.system_prompt:
            instructions["system_prompt"] = settings.system_prompt
        body = {
            "async": {"priority": False},
            "input": file,
            "parsing": {"enhance": {"agentic": [{"scope": "table", "mode": settings.agentic_table_mode}]}},
            "instructions": instructions,
            "settings": {
                "deep_extract": True,
                "citations": {"enabled": False},
                "alpha": {"deep_extract_model": settings.deep_extract_model},
            },
        }
        return Request("POST", "/extract_async", json=body)

    def job_of(self, response: Response, body: Any) -> str | None:
        return body.get("job_id") if isinstance(body, dict) else None

    async def polling(self, line: Line, job: str) -> Request:
        return Request("GET", f"/job/{quoted(job)}", timeout=60)

    async def cancelling(self, line: Line, job: str) -> Request | None:
        return Request("POST", f"/cancel/{quoted(job)}")

    def state(self, body: dict[str, Any]) -> State | None:
        state = state_of(body.get("status"), done=("completed",), failed=("failed", "error", "cancelled"))
        error = body.get("error")
        name = error.get("name") if isinstance(error, dict) else None
        if state is None or state.kind != "failed" or not isinstance(name, str):
            return state
        if name in ACCOUNT_ERRORS:
            return state._replace(kind="account", word=name)
        return state._replace(word=f"{state.word} ({name})", passing=name in PASSING_ERRORS or name.startswith("GPU_"))

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        credits = number_at(body, "result.usage.credits")
        return {} if credits is None else {"credits": credits, "source": "usage.credits"}

    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        result = body.get("result")
        result = result if isinstance(result, dict) else {}
        given = result.get("result", None if ENVELOPE & set(result) else result)
        if isinstance(given, dict) and given.get("type") == "url" and "url" not in schema.get("properties", {}):
            given = await fetched(line.call, given.get("url"), server=line.server, vendor=line.vendor, job=job)
            if isinstance(given, dict) and "result" in given and "result" not in schema.get("properties", {}):
                given = given["result"]
        value = merge_objects(given) if isinstance(given, list) else given
        raw = body | {"result": without(result, "result")}
        return Answer(value, raw, pages=count_at(result, "usage.num_pages"))
