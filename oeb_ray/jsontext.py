"""JSON in and out, by one rule each.

Reading: UTF-8 text, as Python's json reads it (NaN and Infinity are numbers, the last of repeated keys counts, a byte
order mark is no JSON). msgspec does it quickly; whatever it refuses the standard library decides. Writing: text that
any JSON reader takes, also for lone surrogates and numbers that JSON cannot say.
"""

from __future__ import annotations

import json
import math
import re
import sys
from contextlib import suppress
from functools import cache
from json.encoder import encode_basestring
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
QUICK_BYTES = 100_000  # below, loading msgspec would take longer than it saves


@cache
def _quick() -> tuple[Any, type[Exception]]:
    """msgspec's decoder and the error of what it does not read."""
    import msgspec

    return msgspec.json.Decoder(), msgspec.DecodeError


def read_json(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: the bytes are no UTF-8, no JSON, or nested too deeply.
    """
    if len(data) >= QUICK_BYTES or "msgspec" in sys.modules:
        decoder, error = _quick()
        with suppress(error, RecursionError):
            return decoder.decode(data)
    text = data.decode("utf-8")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def raw_json(value: Any) -> str:
    """A scalar as JSON text for a table's column; non-finite numbers are ``{"$float": "NaN"}`` and the like."""
    kind = type(value)
    if kind is str:
        text = encode_basestring(value)
        return text if text.isascii() or not _SURROGATE.search(text) else json.dumps(value)
    if kind is int or (kind is float and math.isfinite(value)):
        return repr(value)
    if kind is float:
        return '{"$float": "%s"}' % ("NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity")
    return json.dumps(value)


def from_raw_json(text: str) -> Any:
    """The scalar that `raw_json` wrote."""
    value = json.loads(text)
    return float(value["$float"]) if isinstance(value, dict) else value


def printable(text: str) -> str:
    """The text with lone surrogates written as ``\\udXXX``: it has a UTF-8 form then, and means the same in JSON."""
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """The text on one line for people: control, direction and zero-width characters and half pairs as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def pretty(value: Any) -> bytes:
    """A JSON file for people: two spaces, a line feed at the end."""
    return (printable(json.dumps(value, indent=2, ensure_ascii=False)) + "\n").encode()


def line(value: Any) -> str:
    """One line of a JSON-lines file, without the line feed."""
    return printable(json.dumps(value, ensure_ascii=False))
