"""Turns printed text into words to match and into values of a schema's type, for `pdftext_fill`.

In: names, labels and printed values (hostile text, any length). Out: normalised word tuples, and JSON values.
Nothing is guessed: text that is not plainly of the wanted type gives None. Dates stay as printed.
"""

from __future__ import annotations

import re
from typing import Any

MAX_VALUE_WORDS = 80
"""Words kept of one value."""
MAX_NUMBER_CHARS = 40
"""Longest text read as a number."""
MAX_ENUM = 1_000
"""Members of an enum that are tried."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+|#", re.UNICODE)
_NUMBER = re.compile(r"\d[\d.,'\u2019\u00a0\u202f]*|[.,]\d+")
_CURRENCY = re.compile(r"[A-Z]{0,3}[$\u20ac\u00a3\u00a5\u20aa]|[A-Z]{3}|kr\.?")
_SAME = {
    "no": "number", "nr": "number", "num": "number", "#": "number", "qty": "quantity", "amt": "amount",
    "tel": "phone", "telephone": "phone", "addr": "address", "desc": "description", "acct": "account",
    "mi": "miles", "gal": "gallons", "juris": "jurisdiction", "yr": "year", "veh": "vehicle", "pct": "percent",
}  # fmt: skip
_SMALL = frozenset(re.findall(r"\w+", "a an and as at be by for from if in is it of on or the this to was with"))
_TRUE = frozenset(["yes", "y", "true", "x", "\u2611", "\u2612", "\u2713", "\u2714", "\u2705", "[x]"])
_FALSE = frozenset(["no", "n", "false", "\u2610", "[]", "\u2717", "\u2718"])


def words_of(text: str) -> tuple[str, ...]:
    """Normalised words of a name, label or description: camelCase and _ split, lower case, a few abbreviations."""
    return tuple(_SAME.get(word, word) for word in _WORD.findall(_CAMEL.sub(" ", text[:5_000]).casefold()))


def content_words(text: str) -> tuple[str, ...]:
    """`words_of` without the small words that say nothing."""
    return tuple(word for word in words_of(text) if word not in _SMALL)


def convert(text: str, schema: dict[str, Any], kind: str) -> Any:
    """`text` as a JSON value of type `kind` (or a member of the schema's enum); None when it is not one."""
    words = text.split()[:MAX_VALUE_WORDS]
    text = " ".join(words)
    if not text:
        return None
    members = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(members, list):
        return _member(text, members[:MAX_ENUM])
    if kind == "boolean":
        return _boolean(words)
    if kind in ("number", "integer"):
        number = parse_number(text)
        if number is None or kind == "number":
            return number
        return int(number) if number == int(number) else None
    return text if kind == "string" else None


def _member(text: str, members: list[Any]) -> Any:
    """The enum member that occurs in `text` as whole words; the longest wins, then the first of the schema."""
    haystack = f" {' '.join(words_of(text))} "
    found = None
    longest = 0
    for member in members:
        if member is None or isinstance(member, (dict, list)):
            continue
        needle = " ".join(words_of(str(member)))
        if len(needle) > longest and f" {needle} " in haystack:
            found, longest = member, len(needle)
    return found


def _boolean(words: list[str]) -> bool | None:
    first = words[0].casefold().strip(".,;:()")
    if first == "[" and len(words) > 1:
        first = "[]" if words[1].startswith("]") else first + words[1].casefold().rstrip("]") + "]"
    return True if first in _TRUE else False if first in _FALSE else None


def parse_number(text: str) -> float | int | None:
    """The number `text` starts with: currency signs, thousands separators, percent, (1.00) and 1.00- as negative.

    "1,234" is a thousand and "12,5" a decimal comma; with both separators the last one is the decimal point. A percent
    keeps its printed digits ("12 %" is 12). Text with words before the number is no number.
    """
    text = text.strip()[:MAX_NUMBER_CHARS]
    match = _NUMBER.search(text)
    if match is None:
        return None
    before, after = text[: match.start()], text[match.end() :].lstrip()
    rest = _CURRENCY.sub("", before).strip()
    if rest.strip("(-\u2212\u2013+ ") or _glued(after) or len(rest) > 3:
        return None
    negative = any(sign in rest for sign in "-\u2212\u2013") or ("(" in rest and ")" in after)
    negative = negative or (after[:1] in ("-", "\u2212") and not after[1:].strip())
    value = _digits_to_number(match.group().rstrip(".,'"))
    return None if value is None else -value if negative else value


def _glued(after: str) -> bool:
    """True when the digits are part of something else: a date, a code, a range."""
    return after[:1] in ("/", ":") or (after[:1] == "-" and after[1:2].isalnum()) or after[:1] == "_"


def _digits_to_number(digits: str) -> float | int | None:
    digits = re.sub(r"['\u2019\u00a0\u202f]", "", digits)
    comma, point = digits.rfind(","), digits.rfind(".")
    mark = "," if comma > point else "."
    if comma >= 0 and point >= 0:
        digits = digits.replace("." if mark == "," else ",", "")
        if digits.count(mark) > 1:
            return None
    elif mark in digits:
        groups = digits.split(mark)
        thousands = groups[0] and len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
        if thousands and (mark == "," or len(groups) > 2):
            digits = digits.replace(mark, "")
        elif len(groups) > 2:
            return None
    digits = digits.replace(mark, ".")
    try:
        return float(digits) if "." in digits else int(digits)
    except ValueError:
        return None
