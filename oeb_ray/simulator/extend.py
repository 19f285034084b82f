"""extend: an upload, a run, then polls.

In: ``POST /extend/files/upload``, ``POST /extend/extract_runs``, ``GET`` of the same with the run's id, and ``/cancel``
below it; the key as a bearer token. Out: ``output.value`` under the names that were asked for; the price in credits.
A schema that breaks the vendor's documented rules is answered 400.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from ..providers.extend_dialect import NAMES
from .account import Job
from .uploads import UploadVendor
from .vendor import CREDITS, BadRequest, bearer, value_of

_PRIMITIVES = {"string", "number", "integer", "boolean"}
_CODES = {400: "INVALID_REQUEST", 401: "UNAUTHORIZED", 402: "USAGE_BLOCKED", 404: "NOT_FOUND"}
_CODES |= {403: "USAGE_BLOCKED", 429: "RATE_LIMIT_EXCEEDED"}


class Extend(UploadVendor):
    name = "extend"
    key_status = (401, "Invalid API key")
    credit_status = (403, "Your organisation is out of credits")

    def routes(self) -> list[Route]:
        return [
            Route("/files/upload", self.upload, methods=["POST"]),
            Route("/extract_runs", self.submit, methods=["POST"]),
            Route("/extract_runs/{job}", self.poll, methods=["GET"]),
            Route("/extract_runs/{job}/cancel", self.cancel, methods=["POST"]),
        ]

    def key(self, request: Request) -> str:
        return bearer(request)

    def uploaded(self, digest: str, size: int) -> tuple[str, Any]:
        return f"file_{digest}", {"object": "file", "id": f"file_{digest}", "name": "document.pdf"}

    def named(self, body: dict[str, Any]) -> tuple[Any, Any]:
        file, config = body.get("file"), body.get("config")
        if not isinstance(file, dict) or not isinstance(config, dict):
            raise BadRequest(400, "file and config are required")
        return file.get("id"), config.get("schema")

    def check(self, schema: Any) -> None:
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise BadRequest(400, "The schema's root must be an object")
        for wrong in _wrong(schema, "schema", 1):
            raise BadRequest(400, wrong)

    def problem(self, status: int, text: str) -> Any:
        code = _CODES.get(status, "INTERNAL_ERROR")
        return {"code": code, "message": text, "retryable": status in (429, 500, 503), "requestId": "req_0"}

    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        return 200, self.running(job)

    def running(self, job: Job) -> Any:
        return {"object": "extract_run", "id": job.id, "status": "PROCESSING", "output": None}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        reasons = {"failureReason": "FAILED_TO_PROCESS_FILE", "failureMessage": text}
        return 200, {"object": "extract_run", "id": job.id, "status": "FAILED", "output": None, **reasons}

    def cancelled(self, job: Job) -> Any:
        return {"object": "extract_run", "id": job.id, "status": "CANCELLED", "output": None}

    def result(self, job: Job, text: str, padding: str) -> Any:
        value = _told(value_of(text))
        places = value if isinstance(value, dict) else {}
        metadata = {name: {"ocrConfidence": 0.98, "citations": [{"page": 1, "referenceText": name}]} for name in places}
        credits = round(job.price * CREDITS, 9)
        return {
            "object": "extract_run",
            "id": job.id,
            "status": "PROCESSED",
            "edited": False,
            "dashboardUrl": f"https://dashboard.example/{padding}",
            "output": {"value": value, "metadata": metadata},
            "usage": {"credits": credits, "totalCredits": credits},
        }


def _told(value: Any) -> Any:
    """The answer under the names that a client with reserved names in its schema has to ask for."""
    if isinstance(value, dict):
        return {NAMES.told(key): _told(item) for key, item in value.items()}
    return [_told(item) for item in value] if isinstance(value, list) else value


def _wrong(node: Any, place: str, depth: int, *, bare: bool = False) -> list[str]:
    """What the vendor's documentation does not allow in a node; ``bare``: it stands in an array."""
    if not isinstance(node, dict):
        return [f"{place}: no object"]
    if unknown := set(node) - {"type", "enum", "properties", "items", "required", "description"}:
        return [f"{place}: unsupported keywords {', '.join(sorted(unknown))}"]
    kind = node.get("type")
    if kind == "object":
        if depth > 5:
            return [f"{place}: nested more than 5 levels deep"]
        found = []
        for name, below in node.get("properties", {}).items():
            if not re.fullmatch("[A-Za-z0-9_-]+", name) or name == "id":
                found.append(f"{place}: the property name {name!r} is not allowed")
            found += _wrong(below, f"{place}.{name}", depth + 1)
        return found
    if kind == "array":
        return _wrong(node.get("items"), f"{place}[]", depth, bare=True)
    if bare:
        return [] if kind in _PRIMITIVES and set(node) == {"type"} else [f"{place}: items must be bare primitives"]
    choices = node.get("enum")
    if choices is not None:
        fine = all(choice is None or isinstance(choice, str) for choice in choices) and None in choices
        return [] if fine else [f"{place}: choices are texts and null"]
    fine = isinstance(kind, list) and len(kind) == 2 and kind[0] in _PRIMITIVES and kind[1] == "null"
    return [] if fine else [f"{place}: a primitive must be nullable"]
