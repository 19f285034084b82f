"""The log of all requests: one dict each, in memory and as JSON lines.

In: entries without secrets. Out: a list, and a file that each entry is appended to by one unbuffered write, so that a
crash loses at most the last line; a line that an earlier crash left unfinished is ended first.
"""

from __future__ import annotations

from typing import Any

from ..errors import StorageError
from ..jsontext import line


class Journal:
    """Entries since the start or the last `clear`; the file keeps all. Raises StorageError if it cannot be opened."""

    def __init__(self, path: str = "") -> None:
        self.entries: list[dict[str, Any]] = []
        self._stream = None
        if path:
            try:
                self._stream = open(path, "a+b", buffering=0)  # noqa: SIM115 - closed by close()
                size = self._stream.seek(0, 2)
                if size and self._stream.seek(size - 1) >= 0 and self._stream.read(1) != b"\n":
                    self._stream.write(b"\n")
            except OSError as error:
                raise StorageError(f"cannot write the log {path}: {error.strerror}") from error

    def add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        if self._stream is not None:
            self._stream.write(line(entry).encode() + b"\n")

    def clear(self) -> None:
        """Forgets the entries in memory."""
        self.entries = []

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
