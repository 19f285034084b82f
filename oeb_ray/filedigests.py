"""What the bytes of files are, as far as that is known without reading them again."""

from __future__ import annotations

from collections.abc import Mapping

from . import storage
from .arrow import release_memory
from .digests import digest
from .records import ABSENT, FileStamp
from .tables import digests_table, read_digests


class FileDigests:
    """SHA-256 of golds and documents, kept below the output with size and stamp: only changed files are read again.

    ``stamps``: of the corpus; what is the same is kept once.
    """

    def __init__(self, out: str, stamps: Mapping[str, FileStamp]) -> None:
        self.address = storage.join(out, "digests.parquet")
        self._changed = False
        try:
            known = read_digests(storage.read(self.address))
        except FileNotFoundError:
            known = {}
        self._known: dict[str, tuple[FileStamp, str]] = {}
        for path, stamp in stamps.items():
            if found := known.pop(path, None):
                self._known[path] = (stamp, found[1]) if found[0] == stamp else found
        self._known |= known

    def get(self, path: str, stamp: FileStamp) -> str:
        """The digest of a file that has this stamp. Raises FileNotFoundError if it is not there."""
        if stamp.stamp == ABSENT:
            raise FileNotFoundError(path)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            self.note(path, stamp, digest(storage.read(path)))
        return self._known[path][1]

    def note(self, path: str, stamp: FileStamp, sha256: str) -> None:
        """Takes a digest that a worker has found."""
        if self._known.get(path) != (stamp, sha256):
            self._known[path] = stamp, sha256
            self._changed = True

    def save(self) -> None:
        """Writes what is new."""
        if self._changed:
            storage.put(self.address, digests_table(self._known))
            self._changed = False
            release_memory()
