"""When two printed values are the same (METRIC_SPEC.md, "Comparing values").

In: two texts or None, and the kind of their field. Out: whether they match. Each kind has one normal form; two values
match if their normal forms are equal.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal

KINDS = ("text", "money", "count")
# Spelt out: Python's own class takes some control characters as well, and leaves the byte order mark.
_BLANK = "\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_BLANKS = re.compile(f"[{_BLANK}]+")
_IN_BRACKETS = re.compile(rf"\([{_BLANK}]*[0-9.,]+[{_BLANK}]*\)")
_NO_AMOUNT = re.compile("[^0-9-]")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_LARGEST_PLAIN, _SMALLEST_PLAIN = 21, -6  # powers of ten between which numbers are written without an exponent


def values_match(expected: str | None, predicted: str | None, compare: str) -> bool:
    """Whether two values are the same under a kind; None is the same as None only.

    Raises:
        ValueError: no such kind.
    """
    if expected is None or predicted is None:
        return expected is predicted
    return normalized(expected, compare) == normalized(predicted, compare)


def normalized(value: str, compare: str) -> str:
    """The normal form of a printed value under a kind, one of KINDS."""
    if compare == "text":
        return _text(value)
    if compare == "money":
        return _money(value)
    if compare == "count":
        return _count(value)
    raise ValueError(f"compare {compare!r}: known: {', '.join(KINDS)}")


def number_text(value: int | float) -> str:
    """A number as text, without a fraction that says nothing: 2.0 is ``2``, 1e24 is ``1e+24``, 1e-7 is ``1e-7``."""
    if isinstance(value, int):
        try:
            return str(value)
        except ValueError:  # thousands of digits
            value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    point = len(digits) + int(exponent)  # places of the digits before the decimal point
    minus = "-" if sign else ""
    if len(text) <= point <= _LARGEST_PLAIN:
        return minus + text.ljust(point, "0")
    if 0 < point <= _LARGEST_PLAIN:
        return f"{minus}{text[:point]}.{text[point:]}"
    if _SMALLEST_PLAIN < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+d}"


def _text(value: str) -> str:
    return _BLANKS.sub(" ", unicodedata.normalize("NFKC", value).lower()).strip(" ")


def _money(value: str) -> str:
    kept = _NO_AMOUNT.sub("", value)
    minus = "-" if kept.startswith("-") or _IN_BRACKETS.search(value) else ""
    digits = kept.replace("-", "")
    return minus + (digits.lstrip("0") or "0") if digits else ""


def _count(value: str) -> str:
    found = _NUMBER.search(value.replace(",", "."))
    number = float(found[0]) if found else math.inf
    return number_text(number) if math.isfinite(number) else _text(value)
