"""google: contents with the document inside the request, answered when the model has written.

In: ``POST /google/v1beta/models/<model>:generateContent`` in JSON, the key in ``x-goog-api-key``. Out: the extraction
as the text of the only candidate, tokens in ``usageMetadata``, no price. A wrong key is a 400, and a wait stands in the
body.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from .account import Job
from .chats import ChatModel, document_in, parts_in, request_of

_WRONG_KEY = "API key not valid. Please pass a valid API key."
_TYPE = "type.googleapis.com/google.rpc"
_STATUS = {
    400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
    503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


class Google(ChatModel):
    name = "google"
    key_status = (400, _WRONG_KEY)
    credit_status = (429, "Your prepayment credits are depleted.")

    def routes(self) -> list[Route]:
        return [Route("/v1beta/models/{model}:generateContent", self.submit, methods=["POST"])]

    def key(self, request: Request) -> str:
        return request.headers.get("x-goog-api-key", "")

    def document_of(self, body: bytes) -> bytes:
        request = request_of(body, "contents")
        for part in parts_in(request["contents"], "parts"):
            data = part.get("inlineData")
            if isinstance(data, dict):
                return document_in(data.get("mimeType"), data.get("data"))
        raise ValueError("contents: no document in them")

    def problem(self, status: int, text: str) -> Any:
        error: dict[str, Any] = {"code": status, "message": text, "status": _STATUS.get(status, "UNKNOWN")}
        if text == _WRONG_KEY:
            reason = {"reason": "API_KEY_INVALID", "domain": "googleapis.com"}
            error["details"] = [{"@type": f"{_TYPE}.ErrorInfo"} | reason]
        elif status == 429 and (seconds := self.account.dials.retry_after).replace(".", "", 1).isdigit():
            error["details"] = [{"@type": f"{_TYPE}.RetryInfo", "retryDelay": f"{seconds}s"}]
        return {"error": error}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 400, self.problem(400, text)

    def result(self, job: Job, text: str, padding: str) -> Any:
        made = self.written(job, text)
        thought = [{"text": padding, "thought": True}] if padding else []
        content = {"role": "model", "parts": [*thought, {"text": made.text}]}
        usage = {
            "promptTokenCount": made.tokens_in,
            "candidatesTokenCount": made.tokens_out,
            "totalTokenCount": made.tokens_in + made.tokens_out,
        }
        finish = "MAX_TOKENS" if made.cut else "STOP"
        return {
            "candidates": [{"content": content, "finishReason": finish, "index": 0}],
            "usageMetadata": usage,
            "modelVersion": "-",
            "responseId": job.id,
        }
