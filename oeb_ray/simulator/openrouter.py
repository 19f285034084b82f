"""openrouter: chat completions with the document inside the request, answered when the model has written.

In: ``POST /openrouter/chat/completions`` in JSON, also below ``/api/v1`` and ``/v1``, the key as a bearer token. Out:
the extraction as the text of the only choice, tokens and dollars in ``usage``.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from ..jsontext import read_json
from .account import Job, Upload
from .vendor import IN_FLIGHT_TEXT, CallVendor, bearer

_PLACES = ("/chat/completions", "/v1/chat/completions", "/api/v1/chat/completions")
_TYPES = ("application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp")
_BYTES_PER_TOKEN = 4


class OpenRouter(CallVendor):
    name = "openrouter"
    key_status = (401, "No auth credentials found")
    credit_status = (402, "This request requires more credits, or fewer max_tokens")

    def routes(self) -> list[Route]:
        return [Route(place, self.submit, methods=["POST"]) for place in _PLACES]

    def key(self, request: Request) -> str:
        return bearer(request)

    async def read(self, request: Request) -> Upload:
        return await self.upload_in(request, _document_of, 400)

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
        if job.fault == "talk":
            text = "I have read the document, but I cannot say it in JSON."
        elif job.fault == "cut_short":
            text = text[: len(text) // 2]
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if padding:
            message["annotations"] = [{"type": "file", "file": {"content": [{"type": "text", "text": padding}]}}]
        finish = "length" if job.fault == "cut_short" else "stop"
        tokens = {"prompt_tokens": job.size // _BYTES_PER_TOKEN, "completion_tokens": len(text) // _BYTES_PER_TOKEN}
        usage = {**tokens, "total_tokens": sum(tokens.values()), "cost": job.price}
        return self._body(job.id, [{"index": 0, "finish_reason": finish, "message": message}]) | {"usage": usage}

    def _body(self, job_id: str, choices: list[Any] | None) -> dict[str, Any]:
        return {"id": f"gen-{job_id}", "object": "chat.completion", "created": 0, "model": "-", "choices": choices}


def _document_of(body: bytes) -> bytes:
    """The document in a request's body. Raises ValueError that says what the request lacks."""
    try:
        request = read_json(body)
    except ValueError:
        raise ValueError("the body is no valid JSON") from None
    if not isinstance(request, dict) or not isinstance(request.get("model"), str):
        raise ValueError("model: required")
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else []:
            if isinstance(part, dict) and (url := _url_of(part)) is not None:
                return _bytes_of(url)
    raise ValueError("messages: no document in them")


def _url_of(part: dict[str, Any]) -> Any:
    place, name = {"file": ("file", "file_data"), "image_url": ("image_url", "url")}.get(
        str(part.get("type")), ("", "")
    )
    inside = part.get(place)
    return inside.get(name, "") if isinstance(inside, dict) else None


def _bytes_of(url: Any) -> bytes:
    head, comma, data = str(url).partition(";base64,")
    if not comma or head.removeprefix("data:") not in _TYPES:
        raise ValueError(f"the document is no data URL of {', '.join(_TYPES)}")
    try:
        return base64.b64decode(data.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("the document is no valid base64") from None
