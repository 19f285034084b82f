"""anthropic: Claude models by the Messages interface of their maker. One call, no job.

In: a document and a schema, both inside one request. Out: the object that the model wrote. The schema stands in the
text alone: newer models refuse a forced tool, and the structured output of the interface takes only closed schemas with
few unions. See WIRE.md.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

from ..media import PDF
from . import vendors
from .chat import Question
from .chat_replies import Completion, End, text_of
from .contract import Response
from .direct import DirectVendor
from .replies import count_at
from .transport import Verdict

VERSION = "2023-06-01"
OVERLOADED = 529
"""The server is short of capacity for everybody; it has done nothing."""
WITH_TEMPERATURE = ("claude-haiku-4", "claude-sonnet-4", "claude-opus-4-1", "claude-opus-4-5", "claude-opus-4-6")
"""How the ids of models begin that take a temperature; newer ones answer 400 to any."""
_ENDS: dict[str, End] = {"max_tokens": "limit", "model_context_window_exceeded": "limit", "refusal": "filter"}


class Anthropic(DirectVendor):
    """See the module's text."""

    name = "anthropic"
    Settings = vendors.Anthropic
    credential = ("ANTHROPIC_API_KEY",)
    free = True
    own_server = "https://api.anthropic.com"
    account_phrases = (
        "credit balance is too low",
        "enforced_spend_limit_reached",
        "specified api usage limits",
        "organization has been disabled",
    )

    def headers(self, key: str, settings: vendors.Anthropic) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": VERSION}

    def path(self, settings: vendors.Anthropic) -> str:
        return "/v1/messages"

    def body(self, question: Question, settings: vendors.Anthropic) -> dict[str, Any]:
        content = [*_document_parts(question), {"type": "text", "text": question.text}]
        body: dict[str, Any] = {
            "model": settings.model,
            "max_tokens": settings.max_output_tokens,
            "system": question.instructions,
            "messages": [{"role": "user", "content": content}],
        }
        return body | ({"temperature": 0.0} if settings.model.startswith(WITH_TEMPERATURE) else {})

    def continued(self, body: dict[str, Any], answer: str, complaint: str) -> dict[str, Any]:
        more = [{"role": "assistant", "content": answer.rstrip()}, {"role": "user", "content": complaint}]
        return body | {"messages": [*body["messages"], *more]}

    def said(self, response: Response) -> Response:
        return dataclasses.replace(response, throttled=response.status == OVERLOADED)

    def judge(self, response: Response) -> Verdict | None:
        return "again" if response.status == OVERLOADED else None

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        """The vendor counts what it reads from or writes to its cache beside ``input_tokens``."""
        cached, written = (count_at(body, f"usage.cache_{name}_input_tokens") for name in ("read", "creation"))
        given, made = count_at(body, "usage.input_tokens"), count_at(body, "usage.output_tokens")
        figures = {
            "tokens_in": None if given is None else given + (cached or 0) + (written or 0),
            "tokens_out": made,
            "tokens_cached": cached,
        }
        return {name: figure for name, figure in figures.items() if figure is not None}

    def completion(self, body: dict[str, Any]) -> Completion:
        finish, content = body.get("stop_reason"), body.get("content")
        finish = finish if isinstance(finish, str) else None
        return Completion(
            body,
            finish,
            text_of(content),
            _ENDS.get(finish or "", ""),
            is_there=isinstance(content, list),
            tokens_out=count_at(body, "usage.output_tokens"),
        )

    def without_answer(self, body: dict[str, Any]) -> dict[str, Any]:
        content = body["content"]
        if not isinstance(content, list):
            return body | {"content": []}
        return body | {"content": [part for part in content if not (isinstance(part, dict) and "text" in part)]}


def _document_parts(question: Question) -> list[dict[str, Any]]:
    document = question.document
    if question.images:
        return [{"type": "image", "source": _source("image/png", data)} for data in question.images]
    source = _source(document.media_type, document.data)
    if document.media_type == PDF:
        return [{"type": "document", "source": source, "title": question.name}]
    return [{"type": "image", "source": source}]


def _source(media_type: str, data: bytes) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode("ascii")}
