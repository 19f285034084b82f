"""openrouter: chat models by id, at OpenRouter or at any server that speaks its protocol. One call, no job.

In: a document and a schema, both inside one request. Out: the object that the model wrote. An answer without one is
asked for again a few times, a little warmer, and each of these completions is paid for. A status of 200 may hold an
error; the code inside it counts. ``base_url`` says whose server it is, and so which key it gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..errors import InternalError
from ..media import PDF
from . import chat_replies, vendors
from .accepts import sent_name
from .chat import ChatVendor, Question, data_url
from .chat_replies import Completion, Read
from .contract import Call, Document, Extraction, Response
from .page_images import page_images
from .transport import VendorRules, has_key
from .vendor import Line

PATH = "/chat/completions"
TEMPERATURE = "temperature"
OPENAI_HOST = "api.openai.com"
"""OpenAI's own server names and limits some things otherwise than all that speak its protocol."""
WARMER, WARMEST = 0.1, 1.0
"""Temperature: how much is added after an answer that is no JSON, and the most."""


class Chat(ChatVendor):
    """Chat models at one kind of server; `served_by` says which. ``name``, with server and key, makes the account."""

    Settings = vendors.Chat
    Options = vendors.ChatOptions

    def __init__(self, name: str, credential: tuple[str, ...], *, states_usd: bool) -> None:
        self.name, self.credential, self.states_usd = name, credential, states_usd

    def headers(self, key: str, settings: vendors.Chat) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """A server that cannot be called, or no room for an answer."""
        found = super().problems(settings, options)
        if not found and self is OPENROUTER and urlsplit(settings["base_url"]).scheme != "https":
            found.append(f"base_url={settings['base_url']!r} would send the key unencrypted; write https://")
        if settings["max_output_tokens"] == 0:
            found.append("max_output_tokens=0 leaves no room for an answer; null is the model's ceiling")
        return found

    def path(self, settings: vendors.Chat) -> str:
        return PATH

    def said(self, response: Response) -> Response:
        return chat_replies.said(response)

    def rules(self, line: Line, settings: vendors.Chat) -> VendorRules:
        return chat_replies.rules(settings.model, line.vendor.secrets)

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        return chat_replies.bill(body)

    def completion(self, body: dict[str, Any]) -> Completion:
        return chat_replies.completion(body)

    def without_answer(self, body: dict[str, Any]) -> dict[str, Any]:
        return chat_replies.without_content(body)

    def body(self, question: Question, settings: vendors.Chat) -> dict[str, Any]:
        """The document comes first, in base64; the schema stands in the request twice."""
        content = [*_document_parts(question), {"type": "text", "text": question.text}]
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": [
                {"role": "system", "content": question.instructions},
                {"role": "user", "content": content},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "extraction", "schema": question.schema, "strict": False},
            },
            "max_tokens": settings.max_output_tokens,
            TEMPERATURE: 0.0,
        }
        if self is OPENROUTER:
            return body | {"usage": {"include": True}}
        if urlsplit(settings.base_url).hostname == OPENAI_HOST:
            body["model"] = settings.model.removeprefix("openai/")
            body["max_completion_tokens"] = body.pop("max_tokens")
            del body[TEMPERATURE]  # its newer models take none
        return body

    def again(self, body: dict[str, Any], found: Completion, read: Read) -> dict[str, Any]:
        """The same, warmer after an answer that is no JSON."""
        if not read.warmer or TEMPERATURE not in body:
            return body
        return body | {TEMPERATURE: round(min(body[TEMPERATURE] + WARMER, WARMEST), 1)}

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: vendors.Chat,
        options: vendors.ChatOptions,
        call: Call | None,
    ) -> Extraction:
        """Asks for completions until one holds an object. Raises what `ChatVendor.talk` does."""
        if served_by(settings.base_url).credential != self.credential:
            raise InternalError(f"{settings.base_url} is another kind of server than {self.name}")
        line = self.line(call, settings, options)
        await self.check(document)
        drawn = options.page_images and document.media_type == PDF
        images = await asyncio.to_thread(page_images, document.data) if drawn else ()
        name = sent_name(document, options.send_name)
        return await self.talk(line, Question(document, name, schema, images=images), settings)


OPENROUTER = Chat("openrouter", ("OPENROUTER_API_KEY",), states_usd=True)
COMPATIBLE = Chat("openai-compatible", ("OPENAI_API_KEY",), states_usd=False)
KEYLESS = Chat("openai-compatible", (), states_usd=False)


def served_by(base_url: str) -> Chat:
    """The kind of server behind an address: OpenRouter's own, another one, or another one that needs no key.

    OpenRouter's key goes to OpenRouter alone and OpenAI's never there. A server reached by plain http is one's own, and
    is called without a key where OPENAI_API_KEY is not set.
    """
    try:
        parts = urlsplit(base_url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:  # no address at all, as `problems` says
        return COMPATIBLE
    if host == "openrouter.ai" or host.endswith(".openrouter.ai"):
        return OPENROUTER
    return KEYLESS if parts.scheme == "http" and not has_key(COMPATIBLE.credential) else COMPATIBLE


def _document_parts(question: Question) -> list[dict[str, Any]]:
    document = question.document
    if question.images:
        return [_image("image/png", data) for data in question.images]
    if document.media_type != PDF:
        return [_image(document.media_type, document.data)]
    url = data_url(PDF, document.data)
    return [{"type": "file", "file": {"filename": question.name, "file_data": url}}]


def _image(media_type: str, data: bytes) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(media_type, data)}}
