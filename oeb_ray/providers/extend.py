"""extend: Extend's extract runs. Upload, one submission, polls until the run has ended.

In: a document and a schema in Extend's dialect. Out: the extraction, its names as the schema has them; confidences and
citations by field. The vendor states credits.
"""

from __future__ import annotations

import os
from typing import Any

from . import vendors
from .contract import Document, Response
from .extend_dialect import NAMES, extend_dialect
from .jobs import Answer, JobVendor, State, state_of
from .replies import number_at, value_at
from .transport import key_of
from .vendor import Line, Request, quoted, without

WORKSPACE = "EXTEND_WORKSPACE_ID"
"""Environment variable: the workspace, which keys of a whole organisation need."""
POLL_SECONDS = 5.0
WRAPPERS = ("extractRun", "processorRun", "run")
"""Keys that older versions of the interface put round a run."""


class Extend(JobVendor):
    """See the module's text."""

    name = "extend"
    Settings = vendors.Extend
    credential = ("EXTEND_API_KEY",)
    cap = 5
    account_phrases = ("usage_blocked",)

    def headers(self, key: str, settings: vendors.Extend) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {key}", "x-extend-api-version": settings.api_version}
        if os.environ.get(WORKSPACE, "").strip():
            headers["x-extend-workspace-id"] = key_of((WORKSPACE,), self.name)
        return headers

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.Extend) -> dict[str, Any]:
        return extend_dialect(schema)

    def interval(self, settings: vendors.Extend) -> float:
        return POLL_SECONDS

    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        upload = Request("POST", "/files/upload", files={"file": line.file(document)}, timeout=300)
        file = await line.upload(upload, "id", "file.id")
        config = {"schema": schema, "advancedOptions": {"arrayStrategy": {"type": line.settings.array_strategy}}}
        return Request("POST", "/extract_runs", json={"file": {"id": file}, "config": config})

    def job_of(self, response: Response, body: Any) -> str | None:
        return _run_of(body).get("id") if isinstance(body, dict) else None

    async def polling(self, line: Line, job: str) -> Request:
        return Request("GET", f"/extract_runs/{quoted(job)}", timeout=60)

    async def cancelling(self, line: Line, job: str) -> Request | None:
        return Request("POST", f"/extract_runs/{quoted(job)}/cancel")

    def state(self, body: dict[str, Any]) -> State | None:
        run = _run_of(body)
        failed = ("failed", "error", "cancelled", "canceled")
        state = state_of(run.get("status"), done=("processed", "completed"), failed=failed)
        if state and state.kind == "failed" and run.get("failureReason") == "OUT_OF_CREDITS":
            return state._replace(kind="account", word="OUT_OF_CREDITS")
        return state and state._replace(passing=run.get("failureReason") == "INTERNAL_ERROR")

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        for path in ("usage.totalCredits", "usage.credits"):
            credits = number_at(_run_of(body), path)
            if credits is not None:
                return {"credits": credits, "source": path}
        return {}

    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        run = _run_of(body)
        evidence = value_at(run, "output.metadata")
        citations = [
            {"path": NAMES.meant_path(path), **(found if isinstance(found, dict) else {"value": found})}
            for path, found in (evidence.items() if isinstance(evidence, dict) else ())
        ]
        raw = without(run, "output", "result") | {"envelope_path": "output.value"}
        return Answer(value_at(run, "output.value"), raw, citations)

    def restored(self, answer: dict[str, Any]) -> dict[str, Any]:
        plain: dict[str, Any] = NAMES.restored(answer)
        return plain


def _run_of(body: dict[str, Any]) -> dict[str, Any]:
    return next((body[key] for key in WRAPPERS if isinstance(body.get(key), dict)), body)
