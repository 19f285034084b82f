"""Models that read a document and a schema in one request and answer in text: what all of them share.

In: a ChatVendor, which says how its requests look and what its replies mean. Out: the object that the model wrote. An
answer without one is asked for again a few times, and each of these completions is paid for.
"""

from __future__ import annotations

import base64
import json
import random
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DocumentError, LimitReached, Unreadable, VendorError, VendorTimeout
from . import chat_replies
from .chat_replies import Completion, Read
from .contract import UNUSABLE, Document, Extraction, Response
from .replies import ERROR_LENGTH, body_of, prediction_bytes, reason, recordable
from .transport import VendorRules, submit
from .vendor import Line, Request, Vendor

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

Reader = Callable[[Completion, VendorRules, int | None], Read]
"""What a completion holds, by the rules of its vendor and the most tokens it could have; raises VendorError where
another try would end the same way."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked: ``document``, the rules for its answer, and the request with the schema in it.

    ``images``: the document's pages as PNG, sent in its place; empty where the document itself is sent. ``name``: the
    file name that the vendor sees.
    """

    document: Document
    name: str
    schema: dict[str, Any]
    instructions: str = INSTRUCTIONS
    request: str = REQUEST
    images: Sequence[bytes] = ()

    @property
    def text(self) -> str:
        """The request with the schema, fenced."""
        return f"{self.request}\n\n```json\n{json.dumps(self.schema, indent=2)}\n```"


class ChatVendor(Vendor):
    """A vendor of models; its settings have ``model``, ``max_output_tokens`` and ``attempts``."""

    cap = 5

    @abstractmethod
    def path(self, settings: Any) -> str:
        """Where requests go, below the server's address."""

    @abstractmethod
    def body(self, question: Question, settings: Any) -> dict[str, Any]:
        """The request for the first completion."""

    @abstractmethod
    def again(self, body: dict[str, Any], found: Completion, read: Read) -> dict[str, Any]:
        """The request after one whose completion was of no use."""

    @abstractmethod
    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        """What a reply states of its cost, as Call.billed takes it; only what is there."""

    @abstractmethod
    def completion(self, body: dict[str, Any]) -> Completion:
        """The completion in a reply that holds no error."""

    @abstractmethod
    def without_answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The reply for the record, without the text that became the prediction."""

    def said(self, response: Response) -> Response:
        """The response with the status that an error inside it gives; see Call.send."""
        return response

    def rules(self, line: Line, settings: Any) -> VendorRules:
        """How refusals are read, with the words that lead messages."""
        return line.vendor

    async def talk(self, line: Line, question: Question, settings: Any, read: Reader | None = None) -> Extraction:
        """Asks for completions until one is of use, at most ``settings.attempts`` times.

        ``read``: how a completion becomes an answer; without it by `chat_replies.read`.

        Raises:
            VendorError: the document is refused, the answer was cut off at the token limit, or none is usable.
            AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        rules = self.rules(line, settings)
        return await _Talk(line, self, rules, settings, read or chat_replies.read).asked(self.body(question, settings))


@dataclass(frozen=True, slots=True)
class _Talk:
    """The completions for one document. ``rules`` name the model; ``calls``: answers of no use, as recorded."""

    line: Line
    vendor: ChatVendor
    rules: VendorRules
    settings: Any
    read: Reader
    calls: list[Any] = field(default_factory=list)

    async def asked(self, body: dict[str, Any]) -> Extraction:
        """The first usable answer; a poor one where no better comes, or can be paid or waited for."""
        useless, poor = "", None
        while len(self.calls) < self.settings.attempts:
            if self.calls and not await self._paused():
                if poor:
                    return poor
                raise self._no_time(useless)
            try:
                found = await self._completion(body)
                read = self.read(found, self.rules, self.settings.max_output_tokens)
            except LimitReached as limit:
                if poor:
                    return poor
                if not self.calls:
                    raise
                raise self._no_use(f"{useless}, and there is no money for another try: {limit}") from None
            except DocumentError as error:
                if not self.calls:
                    raise
                raise type(error)(error.message, error.status, {"calls": [*self.calls, error.body]}) from None
            kept = recordable(found.body, self.rules.secrets)
            last = len(self.calls) + 1 == self.settings.attempts
            if read.answer is not None:
                poor = self._extraction(read, found, kept)
                if last or not read.useless:
                    return poor
            self.calls.append(kept)
            useless, body = read.useless, self.vendor.again(body, found, read)
        raise self._no_use(useless)

    def _extraction(self, read: Read, found: Completion, kept: dict[str, Any]) -> Extraction:
        assert read.answer is not None
        raw = {
            "calls": [*self.calls, self.vendor.without_answer(kept)],
            "finish_reason": found.finish,
            "max_output_tokens": self.settings.max_output_tokens,
            "model": self.settings.model,
        }
        answer = prediction_bytes(read.answer)
        return Extraction(
            prediction=answer, raw={**raw, **read.notes}, citations=tuple(read.citations), pages=read.pages
        )

    async def _completion(self, body: dict[str, Any]) -> Completion:
        """One completion that the server gave, after as many refusals as `submit` bears. Its bill is noted."""
        call = self.line.call
        path = self.vendor.path(self.settings)

        async def send() -> Response:
            response = await self.line.send(
                Request("POST", path, json=body, timeout=max(1.0, call.remaining()), reading=self.vendor.said)
            )
            reply = body_of(response.body)
            if isinstance(reply, dict) and (bill := self.vendor.bill(reply)):
                call.billed(**bill)
            return response

        response = await submit(call, send, vendor=self.rules, why=UNUSABLE if self.calls else "first")
        return self.vendor.completion(_reply_in(response, self.rules))

    async def _paused(self) -> bool:
        """Waits before another try; False if no time is left for it."""
        seconds = pause_before_next(len(self.calls))
        if seconds >= self.line.call.remaining():
            return False
        await self.line.call.sleep(seconds)
        return True

    def _no_time(self, useless: str) -> VendorTimeout:
        text = f"{self.rules.name}: {useless}, and no time is left for another try"
        return VendorTimeout(text[:ERROR_LENGTH], body={"calls": self.calls})

    def _no_use(self, useless: str) -> Unreadable:
        count = len(self.calls)
        text = f"{self.rules.name}: no usable answer in {count} completion{'s' * (count != 1)}; last: {useless}"
        return Unreadable(text[:ERROR_LENGTH], 200, {"calls": self.calls})


def data_url(media_type: str, data: bytes) -> str:
    """The bytes as a URL that holds them, in base64 (a third longer)."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode('ascii')}"


def _reply_in(response: Response, rules: VendorRules) -> dict[str, Any]:
    """The object in a reply that was given with success.

    Raises:
        Unreadable: the reply is no object. VendorError: it holds an error without a status.
    """
    body = body_of(response.body)
    if not isinstance(body, dict):
        text = f"{rules.name}: unreadable reply: no JSON object"
        raise Unreadable(text, response.status, recordable(body, rules.secrets))
    if chat_replies.error_of(body):
        kept = recordable(body, rules.secrets)
        text = f"{rules.name}: the reply holds an error: {reason(kept) or 'no reason given'}"
        raise VendorError(text[:ERROR_LENGTH], response.status, kept)
    return body


def pause_before_next(tries: int) -> float:
    """Seconds until a model is asked again after so many answers of no use; not the same for all documents."""
    return 2.0**tries + random.random()
