"""SHA-256 in hex: of bytes, of text that may hold lone surrogates, and of what score rows were made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))


def made_from(rows: Iterable[Mapping[str, Any]]) -> str:
    """Digest of what score rows were made from: golds, schemas, predictions (or why there is none) and the scorer.

    Equal digests mean equal figures. SHA-256 in hex over one JSON line per row, sorted.
    """
    keys = ("doc_id", "gold_sha256", "schema_sha256", "prediction_sha256", "error", "scorer")
    return text_digest("\n".join(sorted(json.dumps([row.get(key) for key in keys]) for row in rows)))
