"""Canonical keys: the text by which two scalars are compared (METRIC_SPEC.md, "Canonical keys").

In: one JSON value. Out: its key. Two values are equal exactly when their keys are equal texts. Routes are tried
in a fixed order: absent, boolean, decimal, date or time, text. Every route has a cheap gate before its parser,
since a corpus holds millions of values and most of them are plain words or small numbers.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any

_DIGIT = re.compile(r"\d")


def canon_key(value: Any) -> str:
    """The canonical key of one JSON value; ``""`` for null, a blank string, an empty list or object.

    >>> canon_key("03/31/2024") == canon_key("2024-03-31")
    True
    """
    kind = type(value)
    if kind is str:
        return text_key(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return int_key(value)
    if kind is float:
        return float_key(value)
    if value is None or value == [] or value == {}:
        return ""
    return _routed(str(value))


def int_key(value: int) -> str:
    """The key of a native whole number; beyond 2**53 it goes through a float, as its text would."""
    if -9007199254740992 <= value <= 9007199254740992:
        return str(value)
    return _routed(str(value))


def float_key(value: float) -> str:
    """The key of a native float; ``12.0`` is ``12``, and what Python writes with an exponent is text."""
    text = repr(value)
    if "e" in text or "n" in text:
        return _routed(text)
    if text.endswith(".0"):
        whole = text[:-2]
        return "0" if whole == "-0" else whole
    if len(text) - text.index(".") <= 8:  # at most seven decimals: nothing to round
        return text
    return _routed(text)


def text_key(value: str) -> str:
    """The key of a text."""
    if value.isascii() and not _DIGIT.search(value):
        stripped = value.strip().lower()
        return _ascii_words(stripped) if stripped else ""
    return _routed(value)


def _routed(value: str) -> str:
    stripped = value.strip()
    if not stripped:
        return ""
    if _DIGIT.search(stripped):
        if "." in stripped:
            number = _decimal_key(stripped)
            if number is not None:
                return number
        if len(stripped) <= 34:
            moment = _moment_key(stripped)
            if moment is not None:
                return moment
    try:
        key = _fold(stripped)
    except OverflowError:  # a number beyond the float range
        return " ".join(value.split()).lower()[:64]
    return key or "".join(stripped.lower().split())


# --- decimals -----------------------------------------------------------------------------------------------------

_ASCII_NUMBER = re.compile(r"[\s0-9().,$%+\-_eE]*")
_PARENTHESES = re.compile(r"\((.*)\)")
_PLAIN_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,7}", re.ASCII)
_DROPPED = str.maketrans("", "", ",$% ")
_DEFAULT_CONTEXT = Context(prec=28)


def _decimal_key(text: str) -> str | None:
    if text.isascii():
        if not _ASCII_NUMBER.fullmatch(text):
            return None
        if _PLAIN_DECIMAL.fullmatch(text):
            return _number_text(float(text))
    negative = False
    inside = _PARENTHESES.fullmatch(text)
    if inside:
        negative = True
        text = inside[1].strip()
    text = text.replace("\u2212", "-").replace("\u2013", "-")
    if text.endswith("-"):
        negative = not negative
        text = text[:-1].strip()
    while text[:1] in ("-", "+"):
        negative ^= text[0] == "-"
        text = text[1:].strip()
    text = text.translate(_DROPPED)
    if "." not in text:
        return None
    try:
        number = Decimal("-" + text if negative else text)
    except InvalidOperation:
        return None
    if not number.is_finite() or not -100 <= number.adjusted() <= 100:
        return None
    return _number_text(float(_written(_rounded(number))))


def _rounded(number: Decimal) -> Decimal:
    """Seven significant digits of the fraction, half to even; the whole part stays as it is."""
    digits = number.as_tuple()
    assert isinstance(digits.exponent, int)
    exact = Context(prec=len(digits.digits) + abs(digits.exponent) + 120)
    fraction = exact.subtract(abs(number), Decimal(int(abs(number))))
    if not fraction:
        return number
    places = 7 - fraction.adjusted() - 1
    if -digits.exponent <= places:
        return number
    return number.quantize(Decimal(1).scaleb(-places, exact), ROUND_HALF_EVEN, exact)


def _written(number: Decimal) -> str:
    whole = int(number)
    if number == whole:
        return str(whole)
    return format(number.normalize(_DEFAULT_CONTEXT), "f")


def _number_text(number: float) -> str:
    """Raises OverflowError for infinity."""
    whole = int(number)
    return str(whole) if whole == number else str(number)


# --- dates and times ----------------------------------------------------------------------------------------------

_DAY = r"(\d{1,2}| \d)"
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sep,october oct,"
        "november nov,december dec".split(","),
        start=1,
    )
    for name in names.split()
}
_FULL_MONTHS = {name for name in _MONTHS if len(name) > 3 or name == "may"}
_SHORT_MONTHS = {name for name in _MONTHS if len(name) == 3}

_YEAR_FIRST = re.compile(rf"(\d{{4}})([-/])(\d{{1,2}})\2{_DAY}", re.ASCII)
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.]){_DAY}\2(\d{{4}}|\d\d)", re.ASCII)
_MONTH_FIRST = re.compile(rf"([a-z]{{3,9}})\s+{_DAY}(,?)\s+(\d{{4}})", re.IGNORECASE)
_DAY_FIRST = re.compile(r"(\d{1,2})(\s+|-|)([a-z]{3,9})(\s+|-|)(\d{4})", re.IGNORECASE)
_CLOCK = re.compile(
    rf"(\d{{4}})-(\d{{1,2}})-{_DAY}(?:T|\s+)(\d{{1,2}}):(\d{{1,2}})(?::(\d{{1,2}})(?:\.(\d{{1,6}}))?(Z|.*))?",
    re.IGNORECASE,
)
_SIMPLE_ZONE = re.compile(r"[+-](?:[01]\d|2[0-3]):?[0-5]\d", re.ASCII)

_DATE_FORMATS = (
    "%Y-%m-%d", "%m/%d/%Y", "%m-%d-%Y", "%d/%m/%Y", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d-%b-%Y", "%d%b%Y",
    "%m/%d/%y", "%Y/%m/%d", "%d.%m.%Y", "%m.%d.%Y", "%b %d %Y", "%B %d %Y",
)  # fmt: skip
_TIME_FORMATS = (
    "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %H:%M:%S.%f%z",
    "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M",
)  # fmt: skip


def _moment_key(text: str) -> str | None:
    """Key of a date or an instant, or None; ``text`` is stripped, holds a digit and has at most 34 characters."""
    if not text.isascii():
        # Only foreign digits and white space could still make a date; any other such character rules it out.
        if all(c.isascii() or c.isdecimal() or c.isspace() for c in text):
            return _moment_by_strptime(text)
        return None
    if text[0].isdigit():
        if m := _YEAR_FIRST.fullmatch(text):
            return _day_key(m[1], m[3], m[4])
        if m := _YEAR_LAST.fullmatch(text):
            return _year_last_key(m[1], m[2], m[3], m[4])
        if m := _CLOCK.fullmatch(text):
            return _clock_key(text, m)
        if m := _DAY_FIRST.fullmatch(text):
            return _day_first_key(*m.groups())
    elif (m := _MONTH_FIRST.fullmatch(text)) and (month := _MONTHS.get(m[1].lower())):
        return _day_key(m[4], str(month), m[2])
    return None


def _day_key(year: str, month: str, day: str) -> str | None:
    try:
        return f"#d{date(int(year), int(month), int(day)).isoformat()}"
    except ValueError:
        return None


def _year_last_key(first: str, separator: str, second: str, year: str) -> str | None:
    if len(year) == 2:
        if separator != "/":
            return None
        return _day_key(str(int(year) + (1900 if int(year) >= 69 else 2000)), first, second)
    month_first = _day_key(year, first, second)
    if separator == "-":
        return month_first
    # A space before the second number is a day's, never a month's.
    day_first = None if second[0] == " " else _day_key(year, second, first)
    return day_first or month_first if separator == "." else month_first or day_first


def _day_first_key(day: str, gap: str, name: str, gap_after: str, year: str) -> str | None:
    if gap.isspace():
        named = gap_after.isspace() and name.lower() in _FULL_MONTHS
    else:
        named = gap == gap_after and name.lower() in _SHORT_MONTHS
    return _day_key(year, str(_MONTHS[name.lower()]), day) if named else None


def _clock_key(text: str, m: re.Match[str]) -> str | None:
    year, month, day, hour, minute, second, fraction, zone = m.groups()
    if zone and zone != "Z" and not _SIMPLE_ZONE.fullmatch(zone):
        return _moment_by_strptime(text)
    try:
        when = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second or 0),
            int((fraction or "").ljust(6, "0")),
        )
    except ValueError:
        return None
    return _instant_key(when)


def _instant_key(when: datetime) -> str:
    when = when.replace(tzinfo=None)
    if (when.hour, when.minute, when.second, when.microsecond) == (0, 0, 0, 0):
        return f"#d{when.date().isoformat()}"
    return f"#t{when.isoformat(timespec='microseconds')}"


def _moment_by_strptime(text: str) -> str | None:
    """The rule itself, format by format; what the patterns above do not settle comes here."""
    for form in _DATE_FORMATS:
        try:
            return f"#d{datetime.strptime(text, form).date().isoformat()}"
        except ValueError:
            continue
    for form in _TIME_FORMATS:
        try:
            return _instant_key(datetime.strptime(text, form))
        except ValueError:
            continue
    return None


# --- text ---------------------------------------------------------------------------------------------------------

_FOOTNOTE = re.compile(r"\s*\[\s*(?:\d{1,2}|[a-z])\s*\]")
_TYPOGRAPHY = str.maketrans(
    dict.fromkeys("’‘′", "'")
    | dict.fromkeys("“”„″", '"')
    | dict.fromkeys("–—‐‑−―", "-")
    | {"\u201a": ",", "\u2044": "/"}
)
_LIST_MARKER = re.compile("[\u2022\u2023\u25e6\u25aa\u25b6\u2219\u25cf\u25a0](?=\\s|$)")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_ZERO_PADDED = re.compile(r"-?0\d")
_SAFE_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_MONEY = str.maketrans("", "", ",$%")
_ASCII_SPACE = "".join(chr(c) for c in range(128) if chr(c).isspace())
_PUNCTUATION: dict[int, str | None] = {**{ord(c): None for c in _ASCII_SPACE + ",-."}, 0: "."}
_PUNCTUATION_AND_BRACKETS: dict[int, str | None] = {**_PUNCTUATION, **{ord(c): None for c in "()/"}}
_BRACKETS = str.maketrans("", "", "()/")
DASH = "#ph_dash"


def _ascii_words(text: str) -> str:
    """Folds for stripped, lower-cased ASCII without a digit: no number, no accent, no typography can be in it."""
    folded = text
    if "[" in folded:
        folded = _without_footnotes(folded)
    if folded[0] == "-" and not folded.translate(_PUNCTUATION) and not set(folded) - set("-" + _ASCII_SPACE):
        return DASH
    if '"' in folded or "'" in folded:
        folded = folded.translate(_PUNCTUATION).strip("\"'").translate(_BRACKETS)
    else:
        folded = folded.translate(_PUNCTUATION_AND_BRACKETS)
    return folded or "".join(text.split())


def _fold(stripped: str) -> str:
    """All folds in order; may come out empty. Raises OverflowError for a number beyond the float range."""
    text = stripped.lower()
    if not text.isascii():
        text = _without_accents(text)
    if "[" in text:
        text = _without_footnotes(text)
    if not text.isascii():
        text = text.translate(_TYPOGRAPHY)
        if _LIST_MARKER.match(text):
            text = text[1:]
    number = text.translate(_MONEY).strip()
    if _NUMBER.fullmatch(number) and not _ZERO_PADDED.match(number):
        return _number_text(float(number))
    return _without_punctuation(text)


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    kept = "".join(c for c in decomposed if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
    return kept.replace("\u03bc", "u")


def _without_footnotes(text: str) -> str:
    shorter = _FOOTNOTE.sub("", text)
    return shorter if shorter.strip() else text


def _without_punctuation(text: str) -> str:
    bare = "".join(text.split())
    if bare and not bare.strip("-"):
        return DASH
    points = list(_SAFE_POINT.finditer(text)) if "." in text else []
    if len(points) == 1:
        at = points[0].start()
        text = f"{text[:at]}\0{text[at + 1 :]}"
    if not text.isascii():
        text = "".join(text.split())
    return text.translate(_PUNCTUATION).strip("\"'").translate(_BRACKETS)
