"""Downloads that are whole or absent: a file under its own name is complete and has the digest that was asked for.

In: an address, where the file belongs, its SHA-256 if it is known. Out: what was done, or one error. Bytes arrive in a
part file beside the target, which a later call continues; it is renamed when its digest is right. What has another
digest is deleted. Archives are unpacked beside their place and renamed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path

import httpx

from ..errors import RequestError, StorageError

TIMEOUT = httpx.Timeout(60.0, connect=20.0)
MOST_BYTES = 1 << 40  # of one file, unpacked
Told = Callable[[int, int | None], None]
"""Told of every block: bytes that are here, and how many it will be if the server says so."""


@dataclass(frozen=True)
class Source:
    """One file to fetch. ``secret``: a part of the address that no message may show."""

    url: str
    target: Path
    sha256: str | None = None
    secret: str | None = None

    @property
    def shown(self) -> str:
        """The address for people."""
        return self.hidden(self.url)

    def hidden(self, text: str) -> str:
        """The text without the secret."""
        return text.replace(self.secret, "<token>") if self.secret else text


class Broken(RequestError):
    """A download ended early; the part that is here is continued by the next."""


def file_sha256(path: Path) -> str:
    """The digest of a file, read in blocks."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def download(source: Source, told: Told = lambda here, all: None) -> bool:
    """Brings a file to its target, unless it is there with the right digest already.

    Returns:
        whether anything was asked for.

    Raises:
        RequestError: the server refuses, or what came has another digest (nothing is kept then). Broken: the
            connection broke. StorageError: the target cannot be written.
    """
    target, part = source.target, source.target.with_name(f"{source.target.name}.part")
    with _writing(target):
        if target.exists():
            if source.sha256 is None or file_sha256(target) == source.sha256:
                return False
            target.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(part) as stream:
            actual = _digest(stream)
            if source.sha256 != actual:  # else all of it had come, and only the name is missing
                continued = _receive(source, stream, told)
                actual = _digest(stream)
                if continued and source.sha256 not in (None, actual):
                    stream.truncate(0)  # the part may have been of another file
                    _receive(source, stream, told)
                    actual = _digest(stream)
            if source.sha256 not in (None, actual):
                part.unlink()
                raise RequestError(
                    f"{source.shown} has another content than the pinned one, so nothing of it is kept: its sha256 is "
                    f"{actual}, pinned is {source.sha256}"
                )
            stream.flush()
            os.fsync(stream.fileno())
            part.replace(target)
    return True


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror or error}") from error


@contextmanager
def _alone(part: Path) -> Iterator[BufferedRandom]:
    """The part file, which no other process writes to meanwhile; an empty one does not stay."""
    import fcntl

    with part.open("a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RequestError(f"{part} is being fetched by another process; wait for it") from None
        try:
            yield stream
        finally:
            if part.exists() and not part.stat().st_size:
                part.unlink()


def _receive(source: Source, stream: BufferedRandom, told: Told) -> bool:
    """Appends what is missing, or begins anew where the server sends all; whether it was continued."""
    here = stream.seek(0, os.SEEK_END)
    headers = {"Range": f"bytes={here}-"} if here else {}
    try:
        with (
            httpx.Client(timeout=TIMEOUT, follow_redirects=True) as client,
            client.stream("GET", source.url, headers={"Accept-Encoding": "identity", **headers}) as reply,
        ):
            continued = reply.status_code == 206 and here > 0 and _starts(reply) == here
            if not continued:
                stream.truncate(0)
                if here and reply.status_code in (206, 416):  # of another place, or of none
                    return _receive(source, stream, told)
                here = 0
            if reply.status_code not in (200, 206):
                raise RequestError(f"{source.shown} answered {reply.status_code} {reply.reason_phrase}".rstrip())
            length = reply.headers.get("Content-Length", "")
            whole = here + int(length) if length.isdigit() else None
            for block in reply.iter_raw():
                stream.write(block)
                here += len(block)
                told(here, whole)
    except httpx.HTTPError as error:
        stream.flush()
        raise Broken(
            source.hidden(
                f"{source.shown} could not be fetched: {str(error) or type(error).__name__}; {here:,} bytes are here, "
                "the same command goes on there"
            )
        ) from None
    except httpx.InvalidURL:
        raise RequestError(f"{source.shown} is no address") from None
    return continued


def _starts(reply: httpx.Response) -> int | None:
    found = re.match(r"bytes (\d{1,18})-", reply.headers.get("Content-Range", ""))
    return int(found[1]) if found else None


def _digest(stream: BufferedRandom) -> str:
    stream.flush()
    stream.seek(0)
    return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(archive: Path, folder: Path, needed: str) -> None:
    """Unpacks a zip file to a folder that is not there yet, whole or not at all.

    Args:
        needed: a folder that must be in it.

    Raises:
        RequestError: no zip file, a member that would leave the folder or is a link, more than fits on the disk, or
            ``needed`` is not in it. StorageError: the folder cannot be written.
    """
    beside = folder.with_name(f"{folder.name}.unpacking")
    with _writing(folder):
        shutil.rmtree(beside, ignore_errors=True)
        try:
            with zipfile.ZipFile(archive) as packed:
                _check(packed, archive, shutil.disk_usage(folder.parent).free)
                packed.extractall(beside)
            if not (beside / needed).is_dir():
                raise RequestError(f"{archive.name} holds no folder {needed}; it is no DocILE archive")
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
            if folder.exists():
                raise RequestError(f"{folder} holds something else; move it away, and fetch again")
            beside.rename(folder)
        except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
            raise RequestError(f"{archive.name} is no zip file that can be read: {error}") from error
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _check(packed: zipfile.ZipFile, archive: Path, free: int) -> None:
    for member in packed.infolist():
        parts = member.filename.replace("\\", "/").split("/")
        outside = ".." in parts or member.filename.startswith(("/", "\\")) or ":" in parts[0]
        if outside or stat.S_ISLNK(member.external_attr >> 16):
            raise RequestError(f"{archive.name} is refused: its member {member.filename[:80]!r} leaves the folder")
    if (size := sum(member.file_size for member in packed.infolist())) > min(free, MOST_BYTES):
        raise RequestError(f"{archive.name} unpacks to {size:,} bytes, and {free:,} are free")
