"""llamaextract: a list of projects, an upload, a job, then polls.

In: ``GET /llamaextract/api/v1/projects``, ``POST .../api/v1/beta/files``, ``POST .../api/v2/extract``, ``GET`` of the
same with the job's id, and ``/cancel`` below it; the key as a bearer token. Out: ``extract_result``; the price in
credits. A schema that breaks the vendor's documented rules is answered 422.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .account import Job
from .uploads import UploadVendor
from .vendor import CREDITS, BadRequest, bearer, value_of

PROJECT = "6f1c8a50-0000-4000-8000-000000000001"


class LlamaExtract(UploadVendor):
    name = "llamaextract"
    key_status = (401, "Invalid authentication token")
    credit_status = (402, "You've exceeded the maximum number of credits for your plan")

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/projects", self.projects, methods=["GET"]),
            Route("/api/v1/beta/files", self.upload, methods=["POST"]),
            Route("/api/v2/extract", self.submit, methods=["POST"]),
            Route("/api/v2/extract/{job}", self.poll, methods=["GET"]),
            Route("/api/v2/extract/{job}/cancel", self.cancel, methods=["POST"]),
        ]

    def key(self, request: Request) -> str:
        return bearer(request)

    async def projects(self, request: Request) -> Response:
        """The projects of the key: one."""
        visit = self.account.arrive("projects", self.key(request))
        if why := self.account.refusal(visit, self.key(request)):
            return self._refused(visit, why)
        if response := self.free_fault(visit, "projects"):
            return response
        self.account.note(visit, 200)
        return self.answer(200, [{"id": PROJECT, "name": "Default", "is_default": True}])

    def uploaded(self, digest: str, size: int) -> tuple[str, Any]:
        return f"dfl-{digest}", {"id": f"dfl-{digest}", "name": "document.pdf", "purpose": "extract"}

    def named(self, body: dict[str, Any]) -> tuple[Any, Any]:
        configuration = body.get("configuration")
        if not isinstance(configuration, dict) or not isinstance(configuration.get("tier"), str):
            raise BadRequest(422, "configuration.tier: Field required")
        return body.get("file_input"), configuration.get("data_schema")

    def check(self, schema: Any) -> None:
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise BadRequest(422, "data_schema: the root must be an object")
        for wrong in _wrong(schema, "data_schema", 1):
            raise BadRequest(422, wrong)

    def problem(self, status: int, text: str) -> Any:
        if status == 422:
            return {"detail": [{"type": "value_error", "loc": ["body"], "msg": text}]}
        return {"detail": text}

    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        return 200, {"id": job.id, "status": "PENDING", "project_id": PROJECT}

    def running(self, job: Job) -> Any:
        return {"id": job.id, "status": "RUNNING", "extract_result": None, "error_message": None}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 200, {"id": job.id, "status": "FAILED", "extract_result": None, "error_message": text}

    def cancelled(self, job: Job) -> Any:
        return {"id": job.id, "status": "CANCELLED", "extract_result": None, "error_message": None}

    def result(self, job: Job, text: str, padding: str) -> Any:
        value = value_of(text)
        fields = value if isinstance(value, dict) else {}
        return {
            "id": job.id,
            "status": "COMPLETED",
            "project_id": PROJECT,
            "created_at": "2026-01-01T00:00:00Z",
            "updated_at": "2026-01-01T00:00:09.5Z",
            "error_message": None,
            "extract_result": value,
            "extract_metadata": {"field_metadata": {name: {"confidence": 0.9} for name in fields}, "log": padding},
            "metadata": {"usage": {"num_pages_extracted": 1, "num_pages_billed": 1}},
            "usage": {"credits": round(job.price * CREDITS, 9)},
        }


def _wrong(node: Any, place: str, depth: int) -> list[str]:
    """What the vendor's documentation does not allow in a schema."""
    if not isinstance(node, dict):
        return []
    if dollars := [key for key in node if key.startswith("$")]:
        return [f"{place}: unsupported keywords {', '.join(dollars)}"]
    if "enum" in node and "type" not in node:
        return [f"{place}: choices need a type"]
    if not isinstance(node.get("additionalProperties", True), bool):
        return [f"{place}: additionalProperties must be a boolean"]
    properties = node.get("properties", {})
    if properties and depth > 7:
        return [f"{place}: nested more than 7 levels deep"]
    found = []
    for name, below in properties.items():
        found += _wrong(below, f"{place}.{name}", depth + 1)
    for word in ("anyOf", "oneOf", "allOf"):
        for below in node.get(word, []):
            found += _wrong(below, place, depth)
    return found + _wrong(node.get("items"), f"{place}[]", depth)
