"""datalab: a multipart submission, then polls.

In: ``POST /datalab/api/v1/extract`` (file, page_schema, extraction_mode, output_format) and ``GET`` of the same with
the request id; the key in ``X-Api-Key``. Out: ``extraction_schema_json`` as text, the cost in cents.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from ..jsontext import read_json
from .account import Job, Upload
from .uploads import read_form
from .vendor import BadRequest, JobVendor


class Datalab(JobVendor):
    name = "datalab"
    key_status = (401, "Invalid API key provided")
    credit_status = (403, "Your subscription has expired")

    def routes(self) -> list[Route]:
        return [
            Route("/api/v1/extract", self.submit, methods=["POST"]),
            Route("/api/v1/extract/{job}", self.poll, methods=["GET"]),
        ]

    def key(self, request: Request) -> str:
        return request.headers.get("x-api-key", "")

    async def read(self, request: Request) -> Upload:
        form = await read_form(request)
        schema = form.fields.get("page_schema")
        if schema is None:
            raise BadRequest(422, "page_schema: Field required")
        try:
            fields = read_json(schema.encode("utf-8", "surrogatepass"))
        except ValueError:
            raise BadRequest(400, "page_schema is no valid JSON") from None
        if not isinstance(fields, dict) or not isinstance(fields.get("properties"), dict):
            raise BadRequest(400, "page_schema must have properties")
        return Upload(await self.library.document(form.data), len(form.data))

    def problem(self, status: int, text: str) -> Any:
        if status == 422:
            place, _, message = text.partition(": ")
            return {"detail": [{"type": "missing", "loc": ["body", place], "msg": message}]}
        return {"detail": text}

    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        url = f"{request.url.replace(query='')}/{job.id}"
        return 200, {
            "success": True,
            "error": None,
            "request_id": job.id,
            "request_check_url": url,
            "versions": None,
        }

    def running(self, job: Job) -> Any:
        return {"status": "processing", "success": True}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 200, {"status": "error", "success": False, "error": text, "error_in": "INFERENCE"}

    def result(self, job: Job, text: str, padding: str) -> Any:
        cents = round(job.price * 100, 9)
        return {
            "status": "complete",
            "success": True,
            "error": None,
            "output_format": "json",
            "page_count": 1,
            "json": {"block_type": "Document", "children": [{"id": "/page/0/Text/0", "html": padding}]},
            "extraction_schema_json": text,
            "cost_breakdown": {"final_cost_cents": cents, "list_cost_cents": cents},
        }
