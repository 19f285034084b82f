"""SHA-256 in hex: of bytes, and of text that may hold lone surrogates."""

from __future__ import annotations

import hashlib


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def text_digest(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))
