"""What all vendors have in common: the server, the key, the run options, requests in the vendor's words.

In: a vendor's attributes. Out: the parts of a provider that do not depend on how it is asked; `jobs` has the vendors
that are submitted to and polled.
"""

from __future__ import annotations

import asyncio
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ..errors import InternalError, Unreadable, VendorError
from ..records import Doc
from .accepts import refused_document, sent_name
from .contract import Call, Document, Response, VendorOptions
from .replies import ERROR_LENGTH, body_of, reason, recordable, value_at
from .schema import as_it_is
from .transport import VendorRules, ask, key_of, server, server_problems


@dataclass(frozen=True, slots=True)
class Request:
    """One request in a vendor's words. ``path`` follows the server's address; ``timeout`` in seconds.

    ``reading``: see Call.send.
    """

    method: str
    path: str
    params: Mapping[str, str | Sequence[str]] | None = None
    json: Any = None
    data: Mapping[str, str] | None = None
    files: Mapping[str, tuple[str, bytes, str]] | None = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 120.0
    reading: Callable[[Response], Response] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """What every request for one document needs."""

    call: Call
    vendor: VendorRules
    server: str
    headers: Mapping[str, str] = field(repr=False)
    settings: Any
    options: VendorOptions

    async def send(self, request: Request, *, late: bool = False) -> Response:
        """Sends it once."""
        return await self.call.send(
            request.method,
            self.server + request.path,
            headers={**self.headers, **request.headers},
            params=request.params,
            json=request.json,
            data=request.data,
            files=request.files,
            content=request.content,
            timeout=request.timeout,
            late=late,
            reading=request.reading,
        )

    async def ask(self, request: Request, what: str, job: str = "") -> Any:
        """Sends a request that costs nothing and gives the JSON of its answer, an object or a list.

        Raises Unreadable if it is none, and what `transport.ask` raises.
        """
        response = await ask(self.call, lambda: self.send(request), vendor=self.vendor, job=job)
        body = body_of(response.body)
        if not isinstance(body, dict | list):
            raise self.unusable(what, response.status, body)
        return body

    async def upload(self, request: Request, *places: str) -> str:
        """Sends the document and gives the file's id, which stands at the first of ``places`` (as ``file.id``)."""
        response = await ask(self.call, lambda: self.send(request), vendor=self.vendor)
        body = body_of(response.body)
        for place in places:
            found = value_at(body, place)
            if isinstance(found, str) and found:
                return found
        raise self.unusable("the upload's reply names no file", response.status, body)

    def unusable(self, what: str, status: int, body: Any) -> Unreadable:
        """The error for a reply that lacks what everything else needs."""
        kept = recordable(body, self.vendor.secrets)
        words = reason(kept) if isinstance(kept, dict) else ""
        text = f"{self.vendor.name}: {what}: {words or 'no reason given'}"
        return Unreadable(text[:ERROR_LENGTH], status, kept)

    def file(self, document: Document) -> tuple[str, bytes, str]:
        """The document as a part of a form."""
        return sent_name(document, self.options.send_name), document.data, document.media_type


class Vendor(ABC):
    """One vendor; see contract.PaidProvider for what the attributes mean.

    ``own_server``: where the vendor is, unless a setting ``base_url`` says so. ``account_phrases`` and
    ``account_statuses``: see VendorRules.
    """

    name: str
    Settings: type[Any]
    Options: type[Any] = VendorOptions
    credential: tuple[str, ...]
    cap: int
    paid = True
    states_usd = False
    own_server = ""
    account_phrases: tuple[str, ...] = ()
    account_statuses: tuple[int, ...] = ()

    @abstractmethod
    def headers(self, key: str, settings: Any) -> dict[str, str]:
        """What goes with each request; the key among it."""

    def server_of(self, settings: Mapping[str, Any]) -> str:
        """The vendor's own server."""
        return str(settings.get("base_url", self.own_server))

    def prepare_schema(self, schema: dict[str, Any], settings: Any) -> dict[str, Any]:
        """The vendor's dialect. Raises DialectError."""
        return as_it_is(schema)

    @property
    def address_variable(self) -> str:
        """The environment variable with the server to call, where no option names one."""
        return f"OEB_{self.name.upper().replace('-', '_')}_ADDRESS"

    def host(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return server(options["address"], self.address_variable, self.server_of(settings))

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return doc.doc_path

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """A server that cannot be called. The key is looked for when a document is asked for."""
        return server_problems(options.get("address", ""), self.address_variable, self.server_of(settings))

    def line(self, call: Call | None, settings: Any, options: Any) -> Line:
        """What the requests for one document need. Raises MissingCredential."""
        if call is None:
            raise InternalError(f"{self.name} is a paid provider and was given no call")
        key = key_of(self.credential, self.name)
        return Line(
            call=call,
            vendor=VendorRules(self.name, self.account_phrases, account_statuses=self.account_statuses, secrets=(key,)),
            server=self.host(dataclasses.asdict(settings), {"address": options.address}),
            headers=self.headers(key, settings),
            settings=settings,
            options=options,
        )

    async def check(self, document: Document) -> None:
        """Raises VendorError for a document that the vendor does not take."""
        problem = await asyncio.to_thread(refused_document, self.name, document)
        if problem:
            raise VendorError(problem)


def without(body: dict[str, Any], *keys: str) -> dict[str, Any]:
    """A reply without some of its keys."""
    return {key: value for key, value in body.items() if key not in keys}


def quoted(job: str) -> str:
    """A job's id as a part of a path, which it cannot leave."""
    return quote(job, safe="")
