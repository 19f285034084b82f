"""reducto: an upload, an asynchronous submission, then polls; large extractions lie behind an address.

In: ``POST /reducto/upload``, ``POST /reducto/extract_async``, ``GET /reducto/job/<id>``, ``POST /reducto/cancel/<id>``;
the key as a bearer token. Out: ``result.result``, a list with the extraction; the price in credits.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .account import Job
from .uploads import UploadVendor
from .vendor import CREDITS, BadRequest, bearer, value_of


class Reducto(UploadVendor):
    name = "reducto"
    key_status = (401, "Invalid access token")
    credit_status = (402, "Payment required: no credits left")
    url = ""  # of this vendor, as clients call it

    def routes(self) -> list[Route]:
        return [
            Route("/upload", self.upload, methods=["POST"]),
            Route("/extract_async", self.submit, methods=["POST"]),
            Route("/job/{job}", self.poll, methods=["GET"]),
            Route("/cancel/{job}", self.cancel, methods=["POST"]),
            Route("/results/{job}", self.stored, methods=["GET"]),
        ]

    def key(self, request: Request) -> str:
        return bearer(request)

    def uploaded(self, digest: str, size: int) -> tuple[str, Any]:
        file = f"reducto://{digest}.pdf"
        return file, {"file_id": file, "presigned_url": None}

    def named(self, body: dict[str, Any]) -> tuple[Any, Any]:
        instructions = body.get("instructions")
        if not isinstance(instructions, dict):
            raise BadRequest(422, "instructions: Field required")
        return body.get("input"), instructions.get("schema")

    def problem(self, status: int, text: str) -> Any:
        if status == 422:
            return {"detail": [{"type": "value_error", "loc": ["body"], "msg": text}]}
        return {"error": {"message": text, "type": "error", "code": status}}

    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        self.url = str(request.url.replace(query="")).removesuffix("/extract_async")
        return 200, {"job_id": job.id}

    def running(self, job: Job) -> Any:
        return {"status": "Pending", "progress": 0.1, "result": None, "reason": None}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        error = {"name": "LLM_OUTPUT_PARSE_FAILED", "code": 422, "message": text}
        return 200, {"status": "Failed", "result": None, "reason": text, "error": error}

    def cancelled(self, job: Job) -> Any:
        return {"status": "Cancelled", "result": None, "reason": "cancelled by the client"}

    def result(self, job: Job, text: str, padding: str) -> Any:
        given: Any = [value_of(text)]
        if self.account.dials.behind_address:
            given = {"type": "url", "url": f"{self.url}/results/{job.id}", "result_id": job.id}
        result = {
            "response_type": "extract",
            "job_id": job.id,
            "usage": {"num_pages": 1, "num_fields": 1, "credits": round(job.price * CREDITS, 9)},
            "citations": None,
            "result": given,
            "studio_link": f"https://studio.example/{padding}",
        }
        return {"status": "Completed", "progress": 1.0, "reason": None, "result": result}

    async def stored(self, request: Request) -> Response:
        """An extraction behind its address, which is as open as a signed one and takes no key."""
        account = self.account
        visit = account.arrive("result", self.key(request))
        job = account.jobs.get(request.path_params["job"])
        text = await self.library.answer(job.document) if job else None
        if text is None or self.key(request):
            account.note(visit, 403)
            return self.answer(403, self.problem(403, "Forbidden"))
        if response := self.free_fault(visit, f"result {visit.document}"):
            return response
        account.note(visit, 200)
        return self.answer(200, [value_of(text)])
