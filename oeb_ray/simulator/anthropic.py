"""anthropic: messages with the document inside the request, answered when the model has written.

In: ``POST /anthropic/v1/messages`` in JSON, the key in ``x-api-key``. Out: the extraction as a block of text, tokens in
``usage``, no price.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .account import Job
from .chats import ChatModel, document_in, parts_in, request_of

_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


class Anthropic(ChatModel):
    name = "anthropic"
    key_status = (401, "invalid x-api-key")
    credit_status = (400, "Your credit balance is too low to access the API")

    def routes(self) -> list[Route]:
        return [Route("/v1/messages", self.submit, methods=["POST"])]

    def key(self, request: Request) -> str:
        return request.headers.get("x-api-key", "")

    def document_of(self, body: bytes) -> bytes:
        request = request_of(body, "model", "max_tokens", "messages")
        for part in parts_in(request["messages"], "content"):
            source = part.get("source")
            if part.get("type") in ("document", "image") and isinstance(source, dict):
                return document_in(source.get("media_type"), source.get("data"))
        raise ValueError("messages: no document in them")

    def problem(self, status: int, text: str) -> Any:
        return {"type": "error", "error": {"type": _TYPES.get(status, "api_error"), "message": text}, "request_id": "-"}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 400, self.problem(400, text)

    def result(self, job: Job, text: str, padding: str) -> Any:
        made = self.written(job, text)
        thought = [{"type": "thinking", "thinking": padding, "signature": "-"}] if padding else []
        usage = {"input_tokens": made.tokens_in, "output_tokens": made.tokens_out}
        return {
            "id": f"msg_{job.id}",
            "type": "message",
            "role": "assistant",
            "model": "-",
            "content": [*thought, {"type": "text", "text": made.text}],
            "stop_reason": "max_tokens" if made.cut else "end_turn",
            "stop_sequence": None,
            "usage": usage | {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        }
