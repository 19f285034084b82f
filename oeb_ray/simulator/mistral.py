"""mistral: one call with the document as a data URL, answered when the extraction is done.

In: ``POST /mistral/v1/ocr`` in JSON, the key as a bearer token. Out: ``document_annotation`` as text; a cost only if
the dial ``state_cost`` says so.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .account import Job, Upload
from .chats import document_in, request_of
from .vendor import CallVendor, bearer

_URL = "data:application/pdf;base64,"


class Mistral(CallVendor):
    name = "mistral"
    key_status = (401, "Unauthorized")
    credit_status = (402, "Payment required: the account has no credit left")

    def routes(self) -> list[Route]:
        return [Route("/v1/ocr", self.submit, methods=["POST"])]

    def key(self, request: Request) -> str:
        return bearer(request)

    async def read(self, request: Request) -> Upload:
        return await self.upload_in(request, _document_of, 422)

    def problem(self, status: int, text: str) -> Any:
        if status == 422:
            return {"detail": [{"type": "value_error", "loc": ["body"], "msg": text}]}
        return {"object": "error", "message": text, "type": "error", "param": None, "code": str(status)}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 422, self.problem(422, text)

    def result(self, job: Job, text: str, padding: str) -> Any:
        usage: dict[str, Any] = {"pages_processed": 1, "doc_size_bytes": job.size}
        if self.account.dials.state_cost:
            usage["cost"] = job.price
        return {
            "model": "mistral-ocr-2512",
            "pages": [{"index": 0, "markdown": padding, "images": [], "dimensions": None}],
            "document_annotation": text,
            "usage_info": usage,
        }


def _document_of(body: bytes) -> bytes:
    """The document in a request's body. Raises ValueError that says what the request lacks."""
    request = request_of(body)
    document, wanted = request.get("document"), request.get("document_annotation_format")
    if not isinstance(request.get("model"), str):
        raise ValueError("model: Field required")
    if not isinstance(wanted, dict) or not isinstance(wanted.get("json_schema"), dict):
        raise ValueError("document_annotation_format.json_schema: Field required")
    url = document.get("document_url") if isinstance(document, dict) else None
    if not isinstance(url, str) or not url.startswith(_URL):
        raise ValueError(f"document.document_url: must begin with {_URL}")
    return document_in("application/pdf", url[len(_URL) :])
