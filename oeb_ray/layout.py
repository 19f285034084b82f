"""Where everything of a run lies below the output address, and which part is a document's home.

One definition of each name; storage.py does the reading and writing.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote

from .storage import encode_id, join

DOCS_PER_PART = 64
OWN_PART_BYTES = 512_000  # a document whose gold is larger has a part of its own
FIRST_SCORER = "field_matching"
SCORES, VERDICTS, RECEIPTS = "scores.parquet", "verdicts.parquet", "receipts.parquet"


class Home(NamedTuple):
    """The part that a document's rows lie in."""

    suite: str
    part: str


def prediction(out: str, run: str, doc_id: str) -> str:
    return join(out, run, "predictions", f"{encode_id(doc_id)}.json")


def earlier_prediction(out: str, run: str, doc_id: str, before: int) -> str:
    """What stood in the prediction's place until attempt ``before``."""
    return join(out, run, "predictions-before", f"{encode_id(doc_id)}.{before}.json")


def record(out: str, run: str, doc_id: str) -> str:
    return join(out, run, "records", f"{encode_id(doc_id)}.json")


def below(scorer: str, name: str) -> str:
    """Where a scorer's file or table lies in a run's folder: the first scorer's in the folder itself."""
    return name if scorer == FIRST_SCORER else f"{scorer}/{name}"


def part(out: str, run: str, table: str, home: Home) -> str:
    """``table``: as `below` gives it."""
    return join(out, run, table, part_key(home))


def part_key(home: Home) -> str:
    """The part's path within its table: a hive folder per suite."""
    return f"suite={quote(home.suite, safe=' ')}/{home.part}"


def home_of_key(key: str) -> Home | None:
    """The Home that a path within a table stands for; None for a foreign file."""
    folder, _, name = key.partition("/")
    if not folder.startswith("suite=") or not name.endswith(".parquet") or "/" in name:
        return None
    return Home(unquote(folder.removeprefix("suite=")), name)


def homes(ids: Sequence[str], suites: Sequence[str], gold_bytes: Sequence[int]) -> list[Home]:
    """The home of each document; depends on the manifest alone, never on what is selected or recorded."""
    parts = {suite: parts_for(count) for suite, count in Counter(suites).items()}
    made: dict[Home, Home] = {}  # one object for each
    found = []
    for doc_id, suite, size in zip(ids, suites, gold_bytes, strict=True):
        home = Home(suite, _own_part(doc_id) if size > OWN_PART_BYTES else _shared_part(doc_id, parts[suite]))
        found.append(made.setdefault(home, home))
    return found


def parts_for(documents: int) -> int:
    """How many parts a suite of so many documents has."""
    return _power_of_two(-(-documents // DOCS_PER_PART))


def _own_part(doc_id: str) -> str:
    return f"part-{_digest(doc_id)[:8].hex()}.parquet"


def _shared_part(doc_id: str, parts: int) -> str:
    return f"part-{int.from_bytes(_digest(doc_id), 'big') % parts:05}-of-{parts:05}.parquet"


def _digest(doc_id: str) -> bytes:
    return hashlib.sha256(doc_id.encode()).digest()


_SHARED = re.compile(r"part-\d+-of-(\d+)\.parquet")
_OWN = re.compile(r"part-[0-9a-f]{16}\.parquet")


def may_hold(part: str, doc_id: str) -> bool:
    """Whether a document can lie in a part, as far as the part's name tells."""
    if shared := _SHARED.fullmatch(part):
        return part == _shared_part(doc_id, int(shared[1]))
    return part == _own_part(doc_id) if _OWN.fullmatch(part) else True


def precedence(part: str) -> int:
    """Which part counts while a document lies in two, since its corpus has grown: that of the highest precedence."""
    shared = _SHARED.fullmatch(part)
    return int(shared[1]) if shared else 1 << 62


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()
