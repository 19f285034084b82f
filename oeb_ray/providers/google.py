"""google: Gemini models by generateContent of the Gemini API. One call, no job.

In: a document and a schema, both inside one request. Out: the object that the model wrote. The schema stands in the
text as it is, and beside it in the part of JSON Schema that the interface knows. See WIRE.md.
"""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

from . import vendors
from .chat import Question
from .chat_replies import Completion, End
from .contract import Response
from .direct import DirectVendor
from .replies import body_of, count_at, value_at
from .schema import mapped
from .vendor import quoted

_ENDS: dict[str, End] = {
    "MAX_TOKENS": "limit",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), "filter"),
    **dict.fromkeys(("OTHER", "MALFORMED_RESPONSE"), "failed"),
}
KNOWN = (
    *("$defs", "$ref", "type", "title", "description", "enum", "items", "prefixItems", "anyOf", "oneOf"),
    *("properties", "additionalProperties", "required"),
)
"""Keywords of a schema that are told. Bounds on numbers and lists are documented too, and several of them in one schema
make the server refuse it."""


class Google(DirectVendor):
    """See the module's text."""

    name = "google"
    Settings = vendors.Google
    credential = ("GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    own_server = "https://generativelanguage.googleapis.com"
    account_statuses = (403,)
    account_phrases = ("api_key_invalid", "api key expired", "perday", "credits are depleted", "enable billing")

    def headers(self, key: str, settings: vendors.Google) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def path(self, settings: vendors.Google) -> str:
        return f"/v1beta/models/{quoted(settings.model)}:generateContent"

    def body(self, question: Question, settings: vendors.Google) -> dict[str, Any]:
        parts = [*_document_parts(question), {"text": question.text}]
        return {
            "systemInstruction": {"parts": [{"text": question.instructions}]},
            "contents": [{"role": "user", "parts": parts}],
            "generationConfig": {
                "temperature": 0.0,
                "maxOutputTokens": settings.max_output_tokens,
                "responseMimeType": "application/json",
                "responseJsonSchema": told(question.schema),
            },
        }

    def continued(self, body: dict[str, Any], answer: str, complaint: str) -> dict[str, Any]:
        more = [{"role": "model", "parts": [{"text": answer}]}, {"role": "user", "parts": [{"text": complaint}]}]
        return body | {"contents": [*body["contents"], *more]}

    def said(self, response: Response) -> Response:
        """With the wait that stands inside a refusal as a header of the same meaning."""
        if response.status != 429 or "retry-after" in response.headers:
            return response
        details = value_at(body_of(response.body), "error.details")
        for detail in details if isinstance(details, list) else []:
            delay = value_at(detail, "retryDelay")
            if isinstance(delay, str) and delay.endswith("s"):
                return dataclasses.replace(response, headers={**response.headers, "retry-after": delay[:-1]})
        return response

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        """Thoughts are billed as output, and what tools gave as input."""
        figures = {
            "tokens_in": _total(body, "promptTokenCount", "toolUsePromptTokenCount"),
            "tokens_out": _total(body, "candidatesTokenCount", "thoughtsTokenCount"),
            "tokens_cached": _total(body, "cachedContentTokenCount"),
        }
        return {name: figure for name, figure in figures.items() if figure is not None}

    def completion(self, body: dict[str, Any]) -> Completion:
        candidate = _candidate(body)
        finish, blocked = candidate.get("finishReason"), value_at(body, "promptFeedback.blockReason")
        finish = blocked if isinstance(blocked, str) else finish if isinstance(finish, str) else None
        parts = [part for part in _parts(candidate) if isinstance(part.get("text"), str) and not part.get("thought")]
        text = "".join(part["text"] for part in parts)
        return Completion(
            body,
            finish,
            text if text.strip() else None,
            "filter" if isinstance(blocked, str) else _ENDS.get(finish or "", ""),
            is_there=bool(candidate),
            tokens_out=_total(body, "candidatesTokenCount", "thoughtsTokenCount"),
            reasoning=_total(body, "thoughtsTokenCount"),
        )

    def without_answer(self, body: dict[str, Any]) -> dict[str, Any]:
        candidate = _candidate(body)
        content = candidate["content"] | {"parts": [part for part in _parts(candidate) if part.get("thought")]}
        return body | {"candidates": [candidate | {"content": content}, *body["candidates"][1:]]}


def _total(body: dict[str, Any], *names: str) -> int | None:
    """The sum of those counts that the reply states; None if it states none."""
    counts = [count for name in names if (count := count_at(body, f"usageMetadata.{name}")) is not None]
    return sum(counts) if counts else None


def _candidate(body: dict[str, Any]) -> dict[str, Any]:
    candidates = body.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, dict) else {}


def _parts(candidate: dict[str, Any]) -> list[dict[str, Any]]:
    parts = value_at(candidate, "content.parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _document_parts(question: Question) -> list[dict[str, Any]]:
    if question.images:
        return [_data("image/png", data) for data in question.images]
    return [_data(question.document.media_type, question.document.data)]


def _data(media_type: str, data: bytes) -> dict[str, Any]:
    return {"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode("ascii")}}


def told(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the keywords that the interface knows; the text holds what is left out.

    A reference stands alone; ``const`` becomes an ``enum``, which stays if its members are texts and numbers, with null
    as a branch beside it; ``allOf`` becomes one node; definitions of both names stand under ``$defs``.
    """

    def change(node: dict[str, Any]) -> dict[str, Any]:
        node = _merged(node)
        if isinstance(node.get("$ref"), str):
            alone = {"$ref": node["$ref"].replace("#/definitions/", "#/$defs/", 1)}
            return alone | {key: node[key] for key in ("$defs",) if key in node}
        if "const" in node:
            node = node | {"enum": [node["const"]]}
        return _with_choices({key: value for key, value in node.items() if key in KNOWN})

    if isinstance(schema.get("definitions"), dict):
        own = schema.get("$defs")
        schema = schema | {"$defs": schema["definitions"] | (own if isinstance(own, dict) else {})}
    result: dict[str, Any] = mapped(schema, change)
    return result


def _with_choices(node: dict[str, Any]) -> dict[str, Any]:
    choices = node.get("enum")
    if not isinstance(choices, list):
        return node
    members = [one for one in choices if one is not None]
    rest = {key: value for key, value in node.items() if key != "enum"}
    if not members or not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in members):
        return rest
    if len(members) == len(choices):
        return node
    kinds = rest.pop("type", None)
    kinds = [kind for kind in kinds if kind != "null"] if isinstance(kinds, list) else kinds
    branch = ({"type": kinds} if kinds else {}) | {"enum": members}
    return rest | {"anyOf": [branch, {"type": "null"}]}


def _merged(node: dict[str, Any]) -> dict[str, Any]:
    """A node with the branches of its ``allOf`` put into it; its own keywords win, properties are put together."""
    branches = node.get("allOf")
    if not isinstance(branches, list):
        return node
    result: dict[str, Any] = {}
    for part in (*(branch for branch in branches if isinstance(branch, dict)), {**node, "allOf": None}):
        fields = {**_fields(result), **_fields(part)}
        result = {**result, **part, **({"properties": fields} if fields else {})}
    del result["allOf"]
    return result


def _fields(node: dict[str, Any]) -> dict[str, Any]:
    fields = node.get("properties")
    return fields if isinstance(fields, dict) else {}
