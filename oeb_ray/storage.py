"""One door to storage: folders, ``memory://`` and object stores over fsspec.

In: an address (a path or a URL). Out: whole objects. Writes are whole or absent (backends.py); nothing relies on
rename, and no name is ever taken for a pattern or a chain of file systems.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import unquote

from .backends import Backend, Folder, Remote
from .clock import phase
from .errors import MissingDependency, RequestError, StorageError
from .records import FileStamp

_LITERAL = frozenset(" -_.,()[]+=@!'")
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 \-_.]{0,199}", re.ASCII)  # ids that stay as they are, as most do
LISTED_TOGETHER = 8  # files of one folder from which a listing is cheaper than a look at each
STORAGE = phase("storage")
LONGEST_ID = 240  # bytes of an encoded id, so that the file name with its ending stays below 255


def encode_id(doc_id: str) -> str:
    """A document id as one path component; letters, digits, spaces and common signs stay, the rest becomes %XX.

    Raises:
        ValueError: the id is empty, ``.`` or ``..``, holds ``/`` or NUL, or is too long for a file name.
    """
    if doc_id in ("", ".", ".."):
        raise ValueError(f"the id {doc_id!r} cannot name a file")
    if _PLAIN.fullmatch(doc_id):
        return doc_id
    for sign, name in (("/", "a slash"), ("\0", "a NUL character")):
        if sign in doc_id:
            raise ValueError(f"the id {doc_id!r} holds {name}")
    encoded = "".join(
        c if c.isalnum() or c in _LITERAL else "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "surrogatepass"))
        for c in doc_id
    )
    if encoded[0] == ".":
        encoded = "%2E" + encoded[1:]
    if len(encoded.encode()) > LONGEST_ID:
        raise ValueError(
            f"the id {doc_id[:40]!r}... takes {len(encoded.encode())} bytes as a file name, at most {LONGEST_ID}"
        )
    return encoded


def decode_id(encoded: str) -> str:
    """The document id of a path component made by `encode_id`."""
    return unquote(encoded, errors="surrogatepass")


@cache
def _backend(protocol: str) -> Backend:
    try:
        return Folder() if protocol == "file" else Remote(protocol)
    except ValueError as error:
        raise RequestError(
            f"{protocol}:// is no storage that fsspec knows; use a path, s3:// or another of its kinds"
        ) from error
    except ImportError as error:
        raise MissingDependency(f"{protocol}:// needs a package that is not installed: {error}") from error


def protocol_of(address: str) -> str:
    """``s3`` for ``s3://bucket/key``, ``file`` for a path."""
    return address.split("://", 1)[0] if "://" in address else "file"


def located(address: str) -> tuple[Backend, str]:
    """The backend of an address and the path within it."""
    protocol = protocol_of(address)
    if protocol == "file":
        return _backend("file"), os.path.abspath(address.removeprefix("file://"))
    path = address.split("://", 1)[1]
    return _backend(protocol), f"/{path.lstrip('/')}" if protocol == "memory" else path


def absolute(address: str) -> str:
    """The address independent of the working folder."""
    return os.path.abspath(address.removeprefix("file://")) if protocol_of(address) == "file" else address.rstrip("/")


def join(address: str, *parts: str) -> str:
    """The address of something below ``address``."""
    return "/".join((address.rstrip("/"), *parts))


def parent(address: str) -> str:
    """The folder that holds ``address``."""
    return address.rsplit("/", 1)[0] if "/" in address else "."


def read(address: str) -> bytes:
    """The whole object. Raises FileNotFoundError if it is missing, StorageError if reading fails."""
    backend, path = located(address)
    with _failures("read", address):
        return backend.read(path)


def put(address: str, data: bytes) -> None:
    """Writes the whole object, in place of what is there."""
    backend, path = located(address)
    with _failures("write", address):
        backend.put(path, data)


def put_seen(address: str, data: bytes) -> FileStamp | None:
    """As `put`; the stamp that the object has then, None if another has taken its place, or it is gone."""
    put(address, data)
    try:
        stamp = stat(address)  # before the look into it: what is written later shows
        return stamp if read(address) == data else None
    except FileNotFoundError:
        return None


def create(address: str, data: bytes) -> bool:
    """Writes the object if there is none; False if another's is there. ``data`` must be unlike any other writer's."""
    backend, path = located(address)
    with _failures("write", address):
        return backend.create(path, data)


def require_exclusive(address: str) -> None:
    """Raises RequestError if `create` below an address does not keep what is there; some stores overwrite silently."""
    probe = join(address, f"probe-{uuid.uuid4().hex}")
    try:
        if create(probe, b"first") and not create(probe, b"second") and read(probe) == b"first":
            return
    finally:
        delete(probe)
    raise RequestError(
        f"{address} overwrites objects that are created twice, so claims do not hold and documents could be bought "
        "twice; write to another storage"
    )


def delete(address: str) -> None:
    """Removes the object; one that is gone already is no error."""
    backend, path = located(address)
    try:
        with _failures("delete", address):
            backend.delete(path)
    except FileNotFoundError:
        pass


def listed(address: str, *, deep: bool = True) -> dict[str, FileStamp]:
    """All objects below a folder, or only those right in it, by their path within it; empty if there is none."""
    backend, path = located(address)
    with _failures("list", address):
        return backend.list(path, deep)


def names(address: str) -> set[str]:
    """Names of the objects right in a folder; none if there is no such folder."""
    backend, path = located(address)
    with _failures("list", address):
        return backend.names(path)


def read_tail(address: str, size: int) -> bytes:
    """The last ``size`` bytes of an object, or all of a shorter one."""
    backend, path = located(address)
    with _failures("read", address):
        return backend.read_tail(path, size)


def age(address: str) -> float:
    """Seconds since an object was written, by the clock of the storage. Raises FileNotFoundError."""
    backend, path = located(address)
    with _failures("read", address):
        return backend.age(path)


def is_folder(address: str) -> bool:
    """Whether anything lies below an address."""
    backend, path = located(address)
    with _failures("list", address):
        return backend.is_folder(path)


def folders(address: str) -> list[str]:
    """Names of the folders right in a folder, sorted; none if there is no such folder."""
    backend, path = located(address)
    with _failures("list", address):
        return sorted(backend.folders(path))


def stat(address: str) -> FileStamp:
    """Size and stamp of one object. Raises FileNotFoundError."""
    backend, path = located(address)
    with _failures("read", address):
        return backend.stat(path)


@STORAGE
def stat_many(addresses: Iterable[str]) -> dict[str, FileStamp]:
    """Stamps of those of the addresses that exist, from one listing per folder that holds them."""
    folders: dict[str, list[str]] = {}
    for address in addresses:
        folders.setdefault(parent(address), []).append(address)
    found: dict[str, FileStamp] = {}
    single: list[str] = []
    for folder, members in folders.items():
        if len(members) < LISTED_TOGETHER:
            single.extend(members)
            continue
        files = listed(folder, deep=False)
        for address in members:
            stamp = files.get(address[len(folder) + 1 :])
            if stamp is not None:
                found[address] = stamp
    with ThreadPoolExecutor(16) as threads:
        stamps = threads.map(_stat_or_none, single)
        found.update({address: stamp for address, stamp in zip(single, stamps, strict=True) if stamp})
    return found


def _stat_or_none(address: str) -> FileStamp | None:
    try:
        return stat(address)
    except FileNotFoundError:
        return None


class _failures:
    """Turns what file systems raise into StorageError with the address; FileNotFoundError passes."""

    def __init__(self, verb: str, address: str) -> None:
        self.verb, self.address = verb, address

    def __enter__(self) -> None:
        STORAGE.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        STORAGE.__exit__()
        if error is None or isinstance(error, StorageError) or not isinstance(error, Exception):
            return
        if isinstance(error, FileNotFoundError) and self.verb != "write":
            return
        if isinstance(error, OSError) or type(error).__module__.split(".")[0] not in {"builtins", "oeb_ray"}:
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise StorageError(f"cannot {self.verb} {self.address}: {reason}") from error
