"""Vendors whose document comes in a form, and those where it is uploaded before the submission names it.

In: multipart requests. Out: the document's name and size; `UploadVendor` keeps them by the id that the client gets.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..jsontext import read_json
from .account import Upload
from .vendor import MAX_BODY, BadRequest, JobVendor, check_length, read_body
from .wire import Cut

_MAX_FIELD = 32 << 20  # bytes of a form field


class Form(NamedTuple):
    """A form: the bytes of its part ``file``, and its text fields."""

    data: bytes
    fields: Mapping[str, str]


async def read_form(request: Request) -> Form:
    """Reads a multipart request. Raises BadRequest: it is none, has no file, or exceeds 300 MB."""
    check_length(request)
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise BadRequest(422, "file: Field required")
    parser = MultiPartParser(request.headers, _bounded(request), max_files=4, max_fields=50, max_part_size=_MAX_FIELD)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise BadRequest(400, error.message) from error
    try:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise BadRequest(422, "file: Field required")
        return Form(await file.read(), {name: value for name, value in form.items() if isinstance(value, str)})
    finally:
        await form.close()


async def _bounded(request: Request) -> AsyncGenerator[bytes, None]:
    """The body in pieces. Raises BadRequest when it exceeds 300 MB."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MAX_BODY:
            raise BadRequest(413, "The request is too large")
        yield chunk


class UploadVendor(JobVendor):
    """A vendor that is sent the document first and told of it, in JSON, at the submission."""

    @abstractmethod
    def uploaded(self, digest: str, size: int) -> tuple[str, Any]:
        """A file's id and the JSON body that tells it; ``digest``: 20 hex digits of its own."""

    @abstractmethod
    def named(self, body: dict[str, Any]) -> tuple[Any, Any]:
        """The file's id and the schema in a submission. Raises BadRequest."""

    def check(self, schema: Any) -> None:
        """Raises BadRequest for a schema that the vendor does not take."""
        if not isinstance(schema, dict):
            raise BadRequest(422, "schema: Field required")

    async def upload(self, request: Request) -> Response:
        """An upload, which costs nothing."""
        key, account = self.key(request), self.account
        visit = account.arrive("upload", key)
        try:
            form = await read_form(request)
        except BadRequest as wrong:
            account.note(visit, wrong.status, "bad_request")
            return self.answer(wrong.status, self.problem(wrong.status, wrong.text))
        except ClientDisconnect:
            account.note(visit, None, "client_left")
            return Cut()
        visit.document = await self.library.document(form.data)
        if why := account.refusal(visit, key):
            return self._refused(visit, why)
        if response := self.free_fault(visit, f"upload {visit.document}"):
            return response
        text = f"{account.seed}/{self.name}/{visit.document}/{len(account.files)}"
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:20]
        file, body = self.uploaded(digest, len(form.data))
        account.files[file] = Upload(visit.document, len(form.data))
        account.note(visit, 200)
        return self.answer(200, body)

    async def read(self, request: Request) -> Upload:
        body = await read_body(request)
        try:
            given = read_json(body)
        except ValueError:
            given = None
        if not isinstance(given, dict):
            raise BadRequest(422, "the body is no JSON object")
        file, schema = self.named(given)
        found = self.account.files.get(file) if isinstance(file, str) else None
        if found is None:
            raise BadRequest(404, "The file does not exist")
        self.check(schema)
        return found
