"""Where objects lie: the local disk, and every other file system that fsspec knows.

In: an absolute path. Out: whole objects. Writes are whole or absent: a folder gets a temporary file and a link or
rename on the same disk, an object store one request.
"""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .records import FileStamp

T = TypeVar("T")
CONFLICTS = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
RENEWAL_SECONDS = 1.0  # between looks for new keys, while there are only expired ones
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"})


class Backend(Protocol):
    """Whole objects by absolute path. Missing ones raise FileNotFoundError."""

    def read(self, path: str) -> bytes: ...
    def put(self, path: str, data: bytes) -> None: ...
    def create(self, path: str, data: bytes) -> bool: ...
    def delete(self, path: str) -> None: ...
    def stat(self, path: str) -> FileStamp: ...
    def list(self, folder: str, deep: bool) -> dict[str, FileStamp]: ...
    def names(self, folder: str) -> set[str]: ...
    def read_tail(self, path: str, size: int) -> bytes: ...
    def is_folder(self, path: str) -> bool: ...
    def folders(self, path: str) -> set[str]: ...
    def age(self, path: str) -> float: ...


class Folder:
    """The local disk."""

    TEMPORARY = ".tmp-"

    def read(self, path: str) -> bytes:
        try:
            return Path(path).read_bytes()
        except (IsADirectoryError, NotADirectoryError) as error:  # there is no such object
            raise FileNotFoundError(errno.ENOENT, "not a file", path) from error

    def put(self, path: str, data: bytes) -> None:
        temporary = self._write(path, data)
        try:
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise

    def create(self, path: str, data: bytes) -> bool:
        temporary = self._write(path, data)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            os.unlink(temporary)
        return True

    def _write(self, path: str, data: bytes) -> str:
        folder = os.path.dirname(path)
        temporary = os.path.join(folder, f"{self.TEMPORARY}{uuid.uuid4().hex}")
        try:
            stream = open(temporary, "xb")  # noqa: SIM115 - closed below, removed on failure
        except FileNotFoundError:
            os.makedirs(folder, exist_ok=True)
            stream = open(temporary, "xb")  # noqa: SIM115
        try:
            with stream:
                stream.write(data)
        except OSError:
            os.unlink(temporary)
            raise
        return temporary

    def delete(self, path: str) -> None:
        os.unlink(path)

    def stat(self, path: str) -> FileStamp:
        found = os.stat(path)
        if not os.path.isfile(path):
            raise FileNotFoundError(errno.ENOENT, "not a file", path)
        return FileStamp(found.st_size, str(found.st_mtime_ns))

    def list(self, folder: str, deep: bool) -> dict[str, FileStamp]:
        files: dict[str, FileStamp] = {}
        start = len(folder.rstrip("/")) + 1
        for entry in self._files(folder, deep):
            try:
                found = entry.stat()
            except OSError:  # gone since, or a link to nowhere
                continue
            files[entry.path[start:]] = FileStamp(found.st_size, str(found.st_mtime_ns))
        return files

    def names(self, folder: str) -> set[str]:
        return {entry.name for entry in self._files(folder, deep=False) if entry.is_file()}

    def _files(self, folder: str, deep: bool) -> Iterator[os.DirEntry[str]]:
        """One entry after the other, since there may be millions."""
        waiting = [folder]
        while waiting:
            try:
                entries = os.scandir(waiting.pop())
            except (FileNotFoundError, NotADirectoryError):
                continue
            with entries:
                for entry in entries:
                    try:
                        if not entry.is_dir():
                            if not entry.name.startswith(self.TEMPORARY):
                                yield entry
                        elif deep and not entry.is_symlink():
                            waiting.append(entry.path)
                    except OSError:  # gone since, or a link to itself
                        continue

    def read_tail(self, path: str, size: int) -> bytes:
        with open(path, "rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - size))
            return stream.read()

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def folders(self, path: str) -> set[str]:
        try:
            return {entry.name for entry in os.scandir(path) if entry.is_dir()}
        except (FileNotFoundError, NotADirectoryError):
            return set()

    def age(self, path: str) -> float:
        return time.time() - os.stat(path).st_mtime


class Remote:
    """Any other fsspec file system, without its caches of listings. Keys that expire are read anew where they stand."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self._fs = self._opened()
        # In one request: a second one for the size would be followed by a listing where there is no such object.
        self._reading = {"max_concurrency": 1} if protocol in ("s3", "s3a") else {}
        self._renewing = threading.Lock()
        self._renewed = float("-inf")

    def _opened(self, **options: Any) -> Any:
        import fsspec

        if self.protocol != "memory":
            options["use_listings_cache"] = False
        if self.protocol == "hf" and (endpoint := os.environ.get("HF_ENDPOINT", "").strip().rstrip("/")):
            options["endpoint"] = endpoint
        return fsspec.filesystem(self.protocol, **options)

    def _do(self, work: Callable[[Any], T]) -> T:
        """Works on the file system; once more on a new one if the keys of this one have expired."""
        fs = self._fs
        try:
            return work(fs)
        except Exception as error:
            if _code(error) not in EXPIRED:
                raise
            with self._renewing:
                if self._fs is fs:
                    if time.monotonic() - self._renewed < RENEWAL_SECONDS:
                        raise
                    self._renewed = time.monotonic()
                    self._fs = self._opened(skip_instance_cache=True)
        return work(self._fs)

    def read(self, path: str) -> bytes:
        return bytes(self._do(lambda fs: fs.cat_file(path, **self._reading)))

    def put(self, path: str, data: bytes) -> None:
        self._do(lambda fs: fs.pipe_file(path, data))

    def create(self, path: str, data: bytes) -> bool:
        try:
            self._do(lambda fs: fs.pipe_file(path, data, mode="create"))
        except OSError as error:
            if not isinstance(error, FileExistsError) and _code(error) not in CONFLICTS:
                raise
            # The answer to our own write may have been lost and the write repeated: then what is there is ours.
            return self.read(path) == data
        return True

    def delete(self, path: str) -> None:
        self._do(lambda fs: fs.rm_file(path))

    def read_tail(self, path: str, size: int) -> bytes:
        return bytes(self._do(lambda fs: fs.tail(path, size)))

    def is_folder(self, path: str) -> bool:
        return bool(self._do(lambda fs: fs.isdir(path)))

    def folders(self, path: str) -> set[str]:
        try:
            found = self._do(lambda fs: fs.ls(path, detail=True))
        except (FileNotFoundError, NotADirectoryError):
            return set()
        return {info["name"].rstrip("/").rsplit("/", 1)[-1] for info in found if info["type"] == "directory"}

    def age(self, path: str) -> float:
        probe = f"{path}.{uuid.uuid4().hex}"
        written = self._do(lambda fs: fs.modified(path))
        self.put(probe, b"")
        try:
            return float((self._do(lambda fs: fs.modified(probe)) - written).total_seconds())
        finally:
            self.delete(probe)

    def stat(self, path: str) -> FileStamp:
        found = self._do(lambda fs: fs.info(path))
        if found.get("type") == "directory":
            raise FileNotFoundError(errno.ENOENT, "not a file", path)
        return _remote_stamp(found)

    def list(self, folder: str, deep: bool) -> dict[str, FileStamp]:
        try:
            found = self._do(lambda fs: fs.find(folder, maxdepth=None if deep else 1, detail=True))
        except FileNotFoundError:
            return {}
        strip = self._fs._strip_protocol
        start = len(strip(folder)) + 1  # what is left empty stands for the folder itself
        keys = {strip(path)[start:]: info for path, info in found.items()}
        return {key: _remote_stamp(info) for key, info in keys.items() if key}

    def names(self, folder: str) -> set[str]:
        return set(self.list(folder, deep=False))


def _remote_stamp(info: dict[str, Any]) -> FileStamp:
    for key in ("ETag", "etag", "sha256", "blob_id", "LastModified", "created", "mtime"):
        if info.get(key) is not None:
            return FileStamp(int(info["size"] or 0), str(info[key]))
    return FileStamp(int(info["size"] or 0), "")


def _code(error: BaseException) -> str:
    """What an object store calls an error, if one stands behind it; else ""."""
    for behind in (error, error.__cause__):
        response = getattr(behind, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""
