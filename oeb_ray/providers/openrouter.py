"""openrouter: chat models by id, at OpenRouter or at any server that speaks its protocol. One call, no job.

In: a document and a schema, both inside one request. Out: the object that the model wrote. An answer without one is
asked for again a few times, a little warmer, and each of these completions is paid for. A status of 200 may hold an
error; the code inside it counts. ``base_url`` says whose server it is, and so which key it gets.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ..errors import DocumentError, InternalError, LimitReached, Unreadable, VendorTimeout
from ..media import PDF
from . import chat_replies, vendors
from .accepts import sent_name
from .chat_replies import Completion
from .contract import UNUSABLE, Call, Document, Extraction, Response, VendorOptions
from .replies import ERROR_LENGTH, prediction_bytes, recordable
from .transport import VendorRules, has_key, submit
from .vendor import Line, Request, Vendor

PATH = "/chat/completions"
TEMPERATURE = "temperature"
OPENAI_HOST = "api.openai.com"
"""OpenAI's own server names and limits some things otherwise than all that speak its protocol."""
WARMER, WARMEST = 0.1, 1.0
"""Temperature: how much is added after an answer that is no JSON, and the most."""
INSTRUCTIONS = """\
You extract data from one document. The user's message holds the document and a JSON Schema; you answer with the data.

Before you answer, go through the whole document, to its last page, and read the description of every field: it says
what is meant. Then follow these rules.
- What the document states is copied as it stands: keep spelling, upper and lower case, and the format of dates.
- Work a value out only where its description asks for that or the document does not state it directly.
- A list gets every entry that the document has. Never shorten one, and never stop at examples.
- Numbers are JSON numbers and booleans are true or false, both without quotes.
- What the document does not say is null. Use [] only where the document treats the subject and has no entries for it.
- Answer with one JSON object that follows the schema, and with nothing else.
"""
REQUEST = "Extract the data that this JSON Schema describes from the document above."


class Chat(Vendor):
    """Chat models at one kind of server; `served_by` says which. ``name``, with server and key, makes the account."""

    Settings = vendors.Chat
    cap = 5

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

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: vendors.Chat,
        options: VendorOptions,
        call: Call | None,
    ) -> Extraction:
        """Asks for completions until one holds an object, at most ``settings.attempts`` times.

        Raises:
            VendorError: the document is refused, the answer was cut off at the token limit, or none is usable.
            MissingCredential, AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        if served_by(settings.base_url).credential != self.credential:
            raise InternalError(f"{settings.base_url} is another kind of server than {self.name}")
        line = self.line(call, settings, options)
        await self.check(document)
        body = request_body(document, schema, settings, options.send_name, to_openrouter=self is OPENROUTER)
        return await _Talk(line, chat_replies.rules(settings.model, line.vendor.secrets), body).asked(settings)


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


def request_body(
    document: Document, schema: dict[str, Any], settings: vendors.Chat, send_name: str, *, to_openrouter: bool
) -> dict[str, Any]:
    """A request for one completion. The document comes first, in base64; the schema stands in it twice."""
    text = f"{REQUEST}\n\n```json\n{json.dumps(schema, indent=2)}\n```"
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": [_document_part(document, send_name), {"type": "text", "text": text}]},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "schema": schema, "strict": False},
        },
        "max_tokens": settings.max_output_tokens,
        TEMPERATURE: 0.0,
    }
    if to_openrouter:
        return body | {"usage": {"include": True}}
    if urlsplit(settings.base_url).hostname == OPENAI_HOST:
        body["model"] = settings.model.removeprefix("openai/")
        body["max_completion_tokens"] = body.pop("max_tokens")
        del body[TEMPERATURE]  # its newer models take none
    return body


def _document_part(document: Document, send_name: str) -> dict[str, Any]:
    url = f"data:{document.media_type};base64,{base64.b64encode(document.data).decode('ascii')}"
    if document.media_type == PDF:
        return {"type": "file", "file": {"filename": sent_name(document, send_name), "file_data": url}}
    return {"type": "image_url", "image_url": {"url": url}}


@dataclass(frozen=True, slots=True)
class _Talk:
    """The completions for one document. ``rules`` name the model; ``calls``: answers of no use, as recorded."""

    line: Line
    rules: VendorRules
    body: dict[str, Any] = field(repr=False)
    calls: list[Any] = field(default_factory=list)

    async def asked(self, settings: vendors.Chat) -> Extraction:
        """The first usable answer."""
        temperature, useless = 0.0, ""
        while len(self.calls) < settings.attempts:
            if self.calls:
                await self._pause(useless)
            try:
                found = await self._completion(temperature)
                answer, useless, warmer = chat_replies.read(found, self.rules, settings.max_output_tokens)
            except LimitReached as limit:
                if not self.calls:
                    raise
                raise self._no_use(f"{useless}, and there is no money for another try: {limit}") from None
            except DocumentError as error:
                if not self.calls:
                    raise
                raise type(error)(error.message, error.status, {"calls": [*self.calls, error.body]}) from None
            kept = recordable(found.body, self.rules.secrets)
            if answer is not None:
                calls = [*self.calls, chat_replies.without_content(kept)]
                raw = {"calls": calls, "finish_reason": found.finish, "max_output_tokens": settings.max_output_tokens}
                return Extraction(prediction=prediction_bytes(answer), raw=raw | {"model": settings.model})
            self.calls.append(kept)
            temperature = round(min(temperature + WARMER, WARMEST), 1) if warmer else temperature
        raise self._no_use(useless)

    async def _completion(self, temperature: float) -> Completion:
        """One completion that the server gave, after as many refusals as `submit` bears. Its bill is noted."""
        call = self.line.call
        body = self.body if TEMPERATURE not in self.body else self.body | {TEMPERATURE: temperature}

        async def send() -> Response:
            response = await self.line.send(
                Request("POST", PATH, json=body, timeout=max(1.0, call.remaining()), reading=chat_replies.said)
            )
            if bill := chat_replies.bill(response):
                call.billed(**bill)
            return response

        response = await submit(call, send, vendor=self.rules, why=UNUSABLE if self.calls else "first")
        return chat_replies.completion(response, self.rules)

    async def _pause(self, useless: str) -> None:
        seconds = pause_before_next(len(self.calls))
        if seconds >= self.line.call.remaining():
            text = f"{self.rules.name}: {useless}, and no time is left for another try"
            raise VendorTimeout(text[:ERROR_LENGTH], body={"calls": self.calls})
        await self.line.call.sleep(seconds)

    def _no_use(self, useless: str) -> Unreadable:
        count = len(self.calls)
        text = f"{self.rules.name}: no usable answer in {count} completion{'s' * (count != 1)}; last: {useless}"
        return Unreadable(text[:ERROR_LENGTH], 200, {"calls": self.calls})


def pause_before_next(tries: int) -> float:
    """Seconds until a model is asked again after so many answers of no use; not the same for all documents."""
    return 2.0**tries + random.random()
