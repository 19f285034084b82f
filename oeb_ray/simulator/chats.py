"""What simulated models have in common: what a fault makes of the text that they write, and how many tokens that is.

In: an extraction and its job, or the body of a request. Out: the text as the model would write it, tokens, documents.
"""

from __future__ import annotations

import base64
import binascii
import json
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.requests import Request

from ..jsontext import read_json
from .account import Account, Job, Upload
from .library import Library
from .vendor import CallVendor, value_of
from .wire import Clock

TYPES = ("application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp")
_BYTES_PER_TOKEN = 4
_EVIDENCE = (b'\\"readable\\"', b'\\"bbox\\"', b'\\"confidence\\"')
"""What stands in a request, as JSON inside JSON, that asks for evidence."""


class Written(NamedTuple):
    """What a model wrote. ``cut``: it was ended by the limit of tokens; tokens of the request and of the answer."""

    text: str
    cut: bool
    tokens_in: int
    tokens_out: int


class ChatModel(CallVendor):
    """A vendor of models. A model that is asked for evidence states some for every value of the extraction."""

    def __init__(self, account: Account, library: Library, clock: Clock) -> None:
        super().__init__(account, library, clock)
        self.with_evidence: set[str] = set()

    @abstractmethod
    def document_of(self, body: bytes) -> bytes:
        """The document in a request's body. Raises ValueError that says what the request lacks."""

    async def read(self, request: Request) -> Upload:
        asked: list[bool] = []

        def document_of(body: bytes) -> bytes:
            asked.append(all(word in body for word in _EVIDENCE))
            return self.document_of(body)

        upload = await self.upload_in(request, document_of, 400)
        (self.with_evidence.add if any(asked) else self.with_evidence.discard)(upload.document)
        return upload

    def written(self, job: Job, text: str) -> Written:
        """The extraction as the model writes it, with what the job's fault makes of it."""
        if job.document in self.with_evidence:
            text = _evident(text)
        cut = job.fault == "cut_short"
        if job.fault == "talk":
            text = "I have read the document, but I cannot say it in JSON."
        elif cut:
            text = text[: len(text) // 2]
        return Written(text, cut, job.size // _BYTES_PER_TOKEN, len(text) // _BYTES_PER_TOKEN)


def _evident(text: str) -> str:
    """An extraction with evidence round each value; one that has it already stays as it is."""
    value = value_of(text)
    if not isinstance(value, dict) or not value or value.keys() >= {"readable", "fields"}:
        return text
    return json.dumps({"readable": True, "issues": [], "fields": _around(value)})


def _around(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _around(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_around(item) for item in value]
    place = {"page": None, "bbox": None} if value is None else {"page": 0, "bbox": [0.0, 0.0, 1.0, 1.0]}
    return {"value": value, **place, "confidence": 1.0}


def request_of(body: bytes, *wanted: str) -> dict[str, Any]:
    """A request's JSON object. Raises ValueError that says what it lacks."""
    try:
        request = read_json(body)
    except ValueError:
        raise ValueError("the body is no valid JSON") from None
    if not isinstance(request, dict):
        raise ValueError("the body is no object")
    for name in wanted:
        if not request.get(name):
            raise ValueError(f"{name}: required")
    return request


def parts_in(turns: Any, place: str) -> list[Mapping[str, Any]]:
    """The parts of all turns of a conversation; each has a list of them at ``place``."""
    listed = turns if isinstance(turns, list) else []
    groups = [turn.get(place) for turn in listed if isinstance(turn, dict)]
    return [part for group in groups if isinstance(group, list) for part in group if isinstance(part, dict)]


def document_in_url(url: Any) -> bytes:
    """The document in a data URL. Raises ValueError."""
    head, comma, data = str(url).partition(";base64,")
    return document_in(head.removeprefix("data:") if comma else None, data)


def document_in(media_type: Any, data: Any) -> bytes:
    """The document in base64. Raises ValueError."""
    if media_type not in TYPES or not isinstance(data, str):
        raise ValueError(f"the document is none of {', '.join(TYPES)}")
    try:
        return base64.b64decode(data.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("the document is no valid base64") from None
