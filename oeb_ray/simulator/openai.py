"""openai: responses with the document inside the request, answered when the model has written.

In: ``POST /openai/v1/responses`` in JSON, the key as a bearer token. Out: the extraction as the text of a message,
tokens in ``usage``, no price.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .account import Job
from .chats import ChatModel, document_in_url, parts_in, request_of
from .vendor import bearer

_NO_CREDIT = "You exceeded your current quota, please check your plan and billing details."
_PLACES = {"input_file": "file_data", "input_image": "image_url"}


class OpenAi(ChatModel):
    name = "openai"
    key_status = (401, "Incorrect API key provided")
    credit_status = (429, _NO_CREDIT)

    def routes(self) -> list[Route]:
        return [Route("/v1/responses", self.submit, methods=["POST"])]

    def key(self, request: Request) -> str:
        return bearer(request)

    def document_of(self, body: bytes) -> bytes:
        request = request_of(body, "model", "input")
        for part in parts_in(request["input"], "content"):
            if place := _PLACES.get(str(part.get("type"))):
                return document_in_url(part.get(place))
        raise ValueError("input: no document in it")

    def problem(self, status: int, text: str) -> Any:
        if status == 200:
            return self._body("-", "failed", []) | {"error": {"code": "server_error", "message": text}}
        kind = (
            "insufficient_quota" if text == _NO_CREDIT else "invalid_request_error" if status < 500 else "server_error"
        )
        return {"error": {"message": text, "type": kind, "param": None, "code": kind if status != 400 else None}}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 400, self.problem(400, text)

    def result(self, job: Job, text: str, padding: str) -> Any:
        made = self.written(job, text)
        message = {
            "type": "message",
            "id": f"msg_{job.id}",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": made.text, "annotations": []}],
        }
        reasoning = {"type": "reasoning", "id": f"rs_{job.id}", "summary": [{"type": "summary_text", "text": padding}]}
        usage = {
            "input_tokens": made.tokens_in,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": made.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": made.tokens_in + made.tokens_out,
        }
        body = self._body(job.id, "incomplete" if made.cut else "completed", [reasoning, message])
        return body | {"incomplete_details": {"reason": "max_output_tokens"} if made.cut else None, "usage": usage}

    def _body(self, job_id: str, status: str, output: list[Any]) -> dict[str, Any]:
        return {
            "id": f"resp_{job_id}",
            "object": "response",
            "status": status,
            "error": None,
            "model": "-",
            "output": output,
        }
