"""openrouter: chat completions with the document inside the request, answered when the model has written.

In: ``POST /openrouter/chat/completions`` in JSON, also below ``/api/v1`` and ``/v1``, the key as a bearer token. Out:
the extraction as the text of the only choice, tokens and dollars in ``usage``.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .account import Job
from .chats import ChatModel, document_in_url, parts_in, request_of
from .vendor import IN_FLIGHT_TEXT, bearer

_PLACES = ("/chat/completions", "/v1/chat/completions", "/api/v1/chat/completions")
_DOCUMENTS = {"file": "file_data", "image_url": "url"}


class OpenRouter(ChatModel):
    name = "openrouter"
    key_status = (401, "No auth credentials found")
    credit_status = (402, "This request requires more credits, or fewer max_tokens")

    def routes(self) -> list[Route]:
        return [Route(place, self.submit, methods=["POST"]) for place in _PLACES]

    def key(self, request: Request) -> str:
        return bearer(request)

    def document_of(self, body: bytes) -> bytes:
        request = request_of(body, "model")
        for part in parts_in(request.get("messages"), "content"):
            inside = part.get(str(part.get("type")))
            if (place := _DOCUMENTS.get(str(part.get("type")))) and isinstance(inside, dict):
                return document_in_url(inside.get(place))
        raise ValueError("messages: no document in them")

    def problem(self, status: int, text: str) -> Any:
        if status == 200:
            return self._body("-", None) | {"error": {"code": 502, "message": text}}
        error: dict[str, Any] = {"code": status, "message": text}
        if status == 402:
            source = "openrouter_in_flight_budget" if text == IN_FLIGHT_TEXT else "openrouter_credits"
            error["metadata"] = {"limit_source": source}
        return {"error": error}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 422, self.problem(422, text)

    def result(self, job: Job, text: str, padding: str) -> Any:
        made = self.written(job, text)
        message: dict[str, Any] = {"role": "assistant", "content": made.text}
        if padding:
            message["annotations"] = [{"type": "file", "file": {"content": [{"type": "text", "text": padding}]}}]
        finish = "length" if made.cut else "stop"
        tokens = {"prompt_tokens": made.tokens_in, "completion_tokens": made.tokens_out}
        usage = {**tokens, "total_tokens": sum(tokens.values()), "cost": job.price}
        return self._body(job.id, [{"index": 0, "finish_reason": finish, "message": message}]) | {"usage": usage}

    def _body(self, job_id: str, choices: list[Any] | None) -> dict[str, Any]:
        return {"id": f"gen-{job_id}", "object": "chat.completion", "created": 0, "model": "-", "choices": choices}
