"""Which document a submission holds, and what is answered for it.

In: the addresses of a profile and the bytes of a submission. Out: the stem of the document's file (or the SHA-256 of
the bytes), and the text of ``<answers>/<stem>.json``. Nothing is kept in memory but the index of the digests.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from typing import NamedTuple

from .. import storage
from ..errors import RequestError

_INLINE = 1 << 20  # bytes that are hashed without leaving the event loop


class Scripted(NamedTuple):
    """An answer that is sent byte for byte."""

    body: bytes
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


class Library:
    """The documents and answers of a profile.

    Raises:
        RequestError: ``documents`` is given and holds no file.
    """

    def __init__(self, answers: str, documents: str) -> None:
        self.answers = answers
        self.stems: dict[str, str] = {}  # SHA-256 in hex: stem; of files with equal bytes the first by path
        paths = sorted(storage.listed(documents)) if documents else []
        if documents and not paths:
            raise RequestError(f"the documents folder {documents} holds no file")
        for path in paths:
            digest = hashlib.sha256(storage.read(storage.join(documents, path))).hexdigest()
            name = path.rsplit("/", 1)[-1]
            self.stems.setdefault(digest, name.rsplit(".", 1)[0] or name)

    async def document(self, data: bytes) -> str:
        """The name of the document with these bytes."""
        if len(data) > _INLINE:
            digest = await asyncio.to_thread(_digest, data)
        else:
            digest = _digest(data)
        return self.stems.get(digest, digest)

    async def answer(self, document: str) -> str | None:
        """The answer's text, None if there is none."""
        found = await asyncio.to_thread(_read, self.answers, document)
        return None if found is None else found.decode("utf-8", "replace")

    async def scripted(self, folder: str, document: str, nth: int) -> Scripted | None:
        """The whole answer that ``folder`` has for the nth submission of a document, None if it has none.

        That is ``<document>.<nth>.json``, else ``<document>.json``. A text beside it that ends in ``.head`` instead
        holds the status in its first line and a header, ``name: value``, in each other.
        """
        if not folder:
            return None
        for name in (f"{document}.{nth}", document):
            body = await asyncio.to_thread(_read, folder, name)
            if body is not None:
                head = await asyncio.to_thread(_read, folder, name, ".head")
                return _headed(head.decode("latin-1"), body) if head else Scripted(body)
        return None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _headed(head: str, body: bytes) -> Scripted:
    status, *lines = head.splitlines()
    headers = (line.partition(":") for line in lines)
    return Scripted(body, int(status), tuple((name.strip(), value.strip()) for name, _, value in headers))


def _read(folder: str, document: str, ending: str = ".json") -> bytes | None:
    """``<folder>/<document>.json``, named as it is or as ids are encoded in file names."""
    names = [document]
    with contextlib.suppress(ValueError):
        names.append(storage.encode_id(document))
    for name in dict.fromkeys(names):
        try:
            return storage.read(storage.join(folder, f"{name}{ending}"))
        except FileNotFoundError:
            continue
    return None
