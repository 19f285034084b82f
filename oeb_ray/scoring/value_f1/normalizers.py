"""The comparisons that a rule may allow beside equality (METRIC_SPEC.md, "Normalizers").

Each turns a value into marks; two values agree if they have a mark in common.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Hashable
from typing import Any

from .dates import date_readings
from .texts import folded

_LAST_SIGN = re.compile(r"\s*[.,;:]\s*\Z")
_SPACED_SIGN = re.compile(r"\s*([.,;:])\s*")
NUMBER_DIGITS = 10
NONE: frozenset[Hashable] = frozenset()


def marks(name: str, value: Any, today: dt.date) -> frozenset[Hashable]:
    """What stands for a value under a normalizer; empty if it agrees with nothing there."""
    if name == "null_equals_false":
        return frozenset(("nothing",)) if value is None or value is False else NONE
    if not isinstance(value, str):
        return NONE
    if name == "lenient_date":
        return frozenset(date_readings(value, today))
    mark = TEXTS[name](value)
    return NONE if mark is None else frozenset((mark,))


def _without_last_sign(text: str) -> str | None:
    return folded(_LAST_SIGN.sub("", text, count=1)) or None


def _tight(text: str) -> str:
    return folded(_SPACED_SIGN.sub(r"\1", text))


def _same_case(text: str) -> str:
    return folded(text).casefold()


def _phone(text: str) -> str | None:
    digits = "".join(sign for sign in text if sign.isdigit())
    return digits[-NUMBER_DIGITS:] or None


TEXTS: dict[str, Callable[[str], str | None]] = {
    "optional_terminal_punctuation": _without_last_sign,
    "punctuation_spacing": _tight,
    "case_insensitive": _same_case,
    "phone_digits": _phone,
}
NAMES = frozenset((*TEXTS, "null_equals_false", "lenient_date"))
