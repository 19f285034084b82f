"""What a Run was when it was last found complete, so that a resume need not look at every part again.

In: listings of a Run's tables, what their parts must be made from, and the files derived from them. Out: settled.json
in the Run's folder. It holds what was seen, never a figure: where anything differs, all is looked at again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from . import layout, storage
from .digests import text_digest
from .jsontext import pretty, read_json
from .records import FileStamp

NAME = "settled.json"


@dataclass(frozen=True)
class Settled:
    """``listings``: by table a digest of its files with their stamps; ``made_from``: by scorer a digest of what all its
    parts were made from; ``files``: of each derived file its size, stamp and digest; ``errors``: the first scorer's
    error rows, text by doc_id.
    """

    listings: dict[str, str] = field(default_factory=dict)
    made_from: dict[str, str] = field(default_factory=dict)
    files: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def covers(self, tables: Mapping[str, Mapping[str, FileStamp]], scorer: str, made_from: str) -> bool:
        """Whether the files of a scorer's tables are still those that were made from just this."""
        same = all(self.listings.get(table) == of_listing(files) for table, files in tables.items())
        return same and self.made_from.get(scorer) == made_from

    def untouched(self, out: str, run: str, names: set[str]) -> bool:
        """Whether the derived files of these names, and none else, are those that were written then."""
        if self.files.keys() != names:
            return False
        there = storage.stat_many(storage.join(out, run, name) for name in names)
        known = {storage.join(out, run, name): FileStamp(*entry[:2]) for name, entry in self.files.items()}
        return there == known


def read_settled(out: str, run: str) -> Settled:
    """What was last found; nothing if nobody has looked, or it is damaged."""
    try:
        found = read_json(storage.read(storage.join(out, run, NAME)))
        files = {name: (int(size), str(stamp), str(sha256)) for name, (size, stamp, sha256) in found["files"].items()}
        return Settled(dict(found["listings"]), dict(found["made_from"]), files, dict(found["errors"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return Settled()


def write_settled(out: str, run: str, found: Settled) -> None:
    """Notes that all is well."""
    storage.put(storage.join(out, run, NAME), pretty(asdict(found)))


def of_listing(files: Mapping[str, FileStamp]) -> str:
    """A digest of names, sizes and stamps."""
    return text_digest("\n".join(json.dumps([name, *stamp]) for name, stamp in sorted(files.items())))


def of_parts(stamps: Mapping[layout.Home, str]) -> str:
    """A digest of what each part was made from."""
    return text_digest("\n".join(json.dumps([*home, stamp]) for home, stamp in sorted(stamps.items())))


def summary_of(out: str, run: str, name: str) -> Any:
    """A stored summary."""
    return read_json(storage.read(storage.join(out, run, name)))
