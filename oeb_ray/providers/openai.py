"""openai: GPT models by the Responses interface of their maker. One call, no job.

In: a document and a schema, both inside one request. Out: the object that the model wrote. Nothing is kept by the
vendor (``store`` is false). Chat completions at the same server are `openrouter` with its ``base_url``. See WIRE.md.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ..media import PDF
from . import vendors
from .chat import Question, data_url
from .chat_replies import Completion, End, error_of, text_of, tokens
from .contract import Response
from .direct import DirectVendor
from .replies import body_of, count_at, value_at

_ENDS: dict[str, End] = {"max_output_tokens": "limit", "content_filter": "filter"}
FAILURES = {"server_error": 500, "rate_limit_exceeded": 429}
"""Codes of a response that failed inside a status of 200, and the status that each would have."""


class OpenAi(DirectVendor):
    """See the module's text."""

    name = "openai"
    Settings = vendors.OpenAi
    credential = ("OPENAI_API_KEY",)
    own_server = "https://api.openai.com"
    account_phrases = (
        "credit_balance_exhausted",
        "spend_limit_exceeded",
        "usage_limit_exceeded",
        "billing_hard_limit_reached",
        "account_deactivated",
    )

    def headers(self, key: str, settings: vendors.OpenAi) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def path(self, settings: vendors.OpenAi) -> str:
        return "/v1/responses"

    def body(self, question: Question, settings: vendors.OpenAi) -> dict[str, Any]:
        """No temperature: models that reason take none."""
        content = [*_document_parts(question), {"type": "input_text", "text": question.text}]
        schema = question.schema if question.schema.get("type") == "object" else question.schema | {"type": "object"}
        return {
            "model": settings.model,
            "instructions": question.instructions,
            "input": [{"role": "user", "content": content}],
            "text": {"format": {"type": "json_schema", "name": "extraction", "schema": schema, "strict": False}},
            "max_output_tokens": settings.max_output_tokens,
            "store": False,
        }

    def continued(self, body: dict[str, Any], answer: str, complaint: str) -> dict[str, Any]:
        more = [{"role": "assistant", "content": answer}, {"role": "user", "content": complaint}]
        return body | {"input": [*body["input"], *more]}

    def said(self, response: Response) -> Response:
        body = body_of(response.body)
        code = value_at(error_of(body), "code") if response.status < 400 and isinstance(body, dict) else None
        return dataclasses.replace(response, status=FAILURES.get(code, response.status)) if code else response

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        cached = "usage.input_tokens_details.cached_tokens"
        return tokens(body, "usage.input_tokens", "usage.output_tokens", cached)

    def completion(self, body: dict[str, Any]) -> Completion:
        status, why = body.get("status"), value_at(body, "incomplete_details.reason")
        parts = [part for item in _messages(body) for part in item["content"] if isinstance(part, dict)]
        refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
        finish = why if isinstance(why, str) else status if isinstance(status, str) else None
        return Completion(
            body,
            finish,
            text_of(parts, ("output_text",)),
            _ENDS.get(finish or "", ""),
            "".join(refusals) or None,
            isinstance(body.get("output"), list),
            count_at(body, "usage.output_tokens"),
            count_at(body, "usage.output_tokens_details.reasoning_tokens"),
        )

    def without_answer(self, body: dict[str, Any]) -> dict[str, Any]:
        said = _messages(body)
        return body | {"output": [item for item in body["output"] if item not in said]}


def _messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """What the model said, without its reasoning."""
    output = body.get("output")
    listed = output if isinstance(output, list) else []
    said = [item for item in listed if isinstance(item, dict) and item.get("type") == "message"]
    return [item for item in said if isinstance(item.get("content"), list)]


def _document_parts(question: Question) -> list[dict[str, Any]]:
    document = question.document
    if question.images:
        return [_image("image/png", data) for data in question.images]
    if document.media_type == PDF:
        return [{"type": "input_file", "filename": question.name, "file_data": data_url(PDF, document.data)}]
    return [_image(document.media_type, document.data)]


def _image(media_type: str, data: bytes) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(media_type, data), "detail": "high"}
