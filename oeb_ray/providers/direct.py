"""What the makers of models have in common that are called at their own interfaces: anthropic, openai, google.

In: a vendor's words for one conversation. Out: a provider that asks once more, with its reason, where an answer is of
no use. With ``evidence`` every value is asked for with its confidence, page and box (see evidence.py).
"""

from __future__ import annotations

import asyncio
import dataclasses
from abc import abstractmethod
from typing import Any

from ..media import PDF
from . import evidence
from .accepts import count_pages, sent_name
from .chat import ChatVendor, Question
from .chat_replies import Completion, Read
from .contract import Call, Document, Extraction, Response, VendorOptions
from .transport import VendorRules, Verdict
from .vendor import Line

COMPLAINT = "That answer cannot be used: {}. Answer again with the whole JSON object, put right, and nothing else."


class DirectVendor(ChatVendor):
    """A vendor whose models are chosen by the setting ``model``.

    ``free``: its models are asked for JSON in words alone, and nothing keeps them to it.
    """

    free = False

    @abstractmethod
    def continued(self, body: dict[str, Any], answer: str, complaint: str) -> dict[str, Any]:
        """The request with the model's answer and what is said to it at the end of the conversation."""

    def judge(self, response: Response) -> Verdict | None:
        """A first opinion on a reply; None leaves it to the rules of all vendors."""
        return None

    def rules(self, line: Line, settings: Any) -> VendorRules:
        return dataclasses.replace(line.vendor, name=f"{self.name} {settings.model}", judge=self.judge)

    def again(self, body: dict[str, Any], found: Completion, read: Read) -> dict[str, Any]:
        """The same, with the faulty answer and why it is none; the same alone where there was no answer."""
        if found.content is None:
            return body
        return self.continued(body, found.content, COMPLAINT.format(read.useless))

    async def extract(
        self, document: Document, schema: dict[str, Any], settings: Any, options: VendorOptions, call: Call | None
    ) -> Extraction:
        """Asks for completions until one holds an object. Raises what `ChatVendor.talk` does."""
        line = self.line(call, settings, options)
        await self.check(document)
        name = sent_name(document, options.send_name)
        if not settings.evidence:
            return await self.talk(line, Question(document, name, schema), settings)
        form = evidence.form_of(schema)
        pages = await asyncio.to_thread(count_pages, document.data) if document.media_type == PDF else 1
        question = Question(document, name, evidence.wanted(form), evidence.INSTRUCTIONS, evidence.REQUEST)
        return await self.talk(line, question, settings, evidence.EvidenceReader(form, pages, self.free))
