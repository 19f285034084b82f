"""Data for a page's script: JSON, compressed, inside a script of our own, since pages from a disk may not fetch.

The text that reaches the page is base64, so nothing in it can end a script or begin one.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any


def packed(key: str, value: Any) -> bytes:
    """A script that hands ``value`` to the page under a key of letters, digits, ``/`` and ``-``."""
    data = gzip.compress(json.dumps(value, separators=(",", ":")).encode(), compresslevel=6, mtime=0)
    return f'oeb.take("{key}","{base64.b64encode(data).decode()}");\n'.encode()


class Texts:
    """Texts by number, each kept once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._known: dict[str, int] = {}

    def number(self, text: str | None) -> int:
        """The number of a text; -1 for none."""
        if text is None:
            return -1
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = len(self.all)
            self.all.append(text)
        return known
