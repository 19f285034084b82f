"""Canonical keys: the text by which two scalars are compared (METRIC_SPEC.md, "Canonical keys").

In: one JSON value. Out: its key. Two values are equal exactly when their keys are equal texts. Routes are tried
in a fixed order: absent, boolean, decimal, date or time, text. Every route has a cheap gate before its parser,
since a corpus holds millions of values and most of them are plain words or small numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation
from typing import Any, NamedTuple

from .moments import could_name_a_month, moment_key

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
    if not value.isascii():
        return _routed(value)
    stripped = value.strip()
    if not stripped:
        return ""
    if not _DIGIT.search(stripped):
        return _ascii_words(stripped.lower()) or kept_whole(stripped)
    try:
        key = _decimal_key(stripped) if "." in stripped else None
        if key is None and (stripped[0].isdigit() or could_name_a_month(stripped)):
            key = moment_key(stripped)
        return key or _ascii_words_and_digits(stripped.lower()) or kept_whole(stripped)
    except OverflowError:
        return cut_short(value)


def _routed(value: str) -> str:
    stripped = value.strip()
    if not stripped:
        return ""
    if _DIGIT.search(stripped):
        for route in _ROUTES:
            key: str | None = route(stripped)
            if key is not None:
                return key
    try:
        return _folded(stripped) or kept_whole(stripped)
    except OverflowError:
        return cut_short(value)


def _folded(text: str) -> str:
    for apply, final in _ASCII if text.isascii() else _ANY:
        key: str | None = apply(text)
        if key is not None:
            if final:
                return key
            text = key
    return text


def has_digit(text: str) -> bool:
    """Whether a text can be a decimal or a date at all."""
    return _DIGIT.search(text) is not None


def kept_whole(stripped: str) -> str:
    """The key of a text that the folds would leave nothing of."""
    return "".join(stripped.lower().split())


def cut_short(value: str) -> str:
    """The key of a number beyond the float range."""
    return " ".join(value.split()).lower()[:64]


# --- decimals -----------------------------------------------------------------------------------------------------

_ASCII_NUMBER = re.compile(r"[\s0-9().,$%+\-_eE]*")
_PARENTHESES = re.compile(r"\((.*)\)")
_PLAIN_DECIMAL = re.compile(r"-?(?:0|[1-9]\d{0,14})\.\d{1,7}", re.ASCII)
_DROPPED = str.maketrans("", "", ",$% ")
_DEFAULT_CONTEXT = Context(prec=28)


def _decimal_key(text: str) -> str | None:
    if "." not in text:
        return None
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
    if negative:
        text = "-" + text  # a second sign, uncovered only now, makes it no decimal: ($-1.5)
    if _PLAIN_DECIMAL.fullmatch(text):
        return _number_text(float(text))
    try:
        number = Decimal(text)
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
_NUMBER_STARTS = frozenset("0123456789+-,$%")  # of text that is a number once , $ % are gone, or dashes
_NUMBER_ENDS = frozenset("0123456789,$%-")
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_SAFE_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_MONEY = str.maketrans("", "", ",$%")
_ASCII_SPACE = "".join(chr(c) for c in range(128) if chr(c).isspace())
_PUNCTUATION: dict[int, str | None] = {**{ord(c): None for c in _ASCII_SPACE + ",-."}, 0: "."}
_PUNCTUATION_AND_BRACKETS: dict[int, str | None] = {**_PUNCTUATION, **{ord(c): None for c in "()/"}}
_BRACKETS = str.maketrans("", "", "()/")
DASH = "#ph_dash"


def _ascii_words(text: str) -> str:
    """Folds for stripped, lower-cased ASCII without a digit: no number, no accent, no typography can be in it."""
    if "[" in text:
        text = _without_footnotes(text).strip()
    return DASH if text[0] == "-" and _is_dashes(text) else _ascii_letters(text)


def _ascii_words_and_digits(text: str) -> str:
    """As `_ascii_words`, for text with a digit that is neither a decimal nor a date.

    Raises OverflowError for a number beyond the float range.
    """
    if "[" in text:
        text = _without_footnotes(text).strip()
    if text[-1] in _NUMBER_ENDS and text[0] in _NUMBER_STARTS:
        if len(text) <= 15 and text[0] != "0" and text.isdigit():
            return text
        number = _number_key(text)
        if number is not None:
            return number
        if text[0] == "-" and _is_dashes(text):
            return DASH
    if "." in text:
        points = list(_SAFE_POINT.finditer(text))
        if len(points) == 1:
            at = points[0].start()
            text = f"{text[:at]}\0{text[at + 1 :]}"
    return _ascii_letters(text)


def _ascii_letters(text: str) -> str:
    if '"' in text or "'" in text:
        return text.translate(_PUNCTUATION).strip("\"'").translate(_BRACKETS)
    return text.translate(_PUNCTUATION_AND_BRACKETS)


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    for c in set(_NOT_ASCII.findall(decomposed)):
        if unicodedata.combining(c) or unicodedata.category(c) == "Cf":
            decomposed = decomposed.replace(c, "")
    return decomposed.replace("\u03bc", "u")


def _without_footnotes(text: str) -> str:
    if "[" not in text:
        return text
    shorter = _FOOTNOTE.sub("", text)
    return shorter if shorter.strip() else text


def _plain_signs(text: str) -> str:
    return text.translate(_TYPOGRAPHY)


def _without_list_marker(text: str) -> str:
    return text[1:] if _LIST_MARKER.match(text) else text


def _number_key(text: str) -> str | None:
    """Raises OverflowError for a number beyond the float range."""
    number = text.translate(_MONEY).strip()
    return _number_text(float(number)) if _NUMBER.fullmatch(number) and not _ZERO_PADDED.match(number) else None


def _dash_key(text: str) -> str | None:
    return DASH if text.lstrip()[:1] == "-" and _is_dashes(text) else None


def _is_dashes(text: str) -> bool:
    return not "".join(text.split()).strip("-")


def _without_punctuation(text: str) -> str:
    points = list(_SAFE_POINT.finditer(text)) if "." in text else []
    if len(points) == 1:
        at = points[0].start()
        text = f"{text[:at]}\0{text[at + 1 :]}"
    if not text.isascii():
        text = "".join(text.split())
    return text.translate(_PUNCTUATION)


def _without_brackets(text: str) -> str:
    return text.strip("\"'").translate(_BRACKETS)


# --- the rules in their order -------------------------------------------------------------------------------------


class Rule(NamedTuple):
    """One step on the way to a key. ``final``: a text that it gives is the key, and None goes on with the next."""

    name: str
    what: str
    apply: Callable[[str], Any]
    final: bool = False


ROUTES = (
    Rule("decimal", "a number with a point: without sign, , $ % and spaces; the fraction keeps seven digits",
         _decimal_key, final=True),
    Rule("date", "a day, or a day and a time, in one of the forms that are known", moment_key, final=True),
)  # fmt: skip
FOLDS = (
    Rule("case", "lower case, no white space at the ends", str.lower),
    Rule("accents", "compatibility forms without accents and invisible signs", _without_accents),
    Rule("footnote", "marks such as [1] or [a] go", _without_footnotes),
    Rule("typography", "quotes and dashes become plain ones", _plain_signs),
    Rule("list marker", "one in front goes", _without_list_marker),
    Rule("number", "a plain number once , $ % are gone", _number_key, final=True),
    Rule("dash", "nothing but hyphens", _dash_key, final=True),
    Rule("punctuation", "white space , - and points go, but a single point between digits", _without_punctuation),
    Rule("brackets", "quotes at both ends go, and ( ) /", _without_brackets),
)
# What the hot path takes of them; accents, typographic signs and list markers are not ASCII.
_ROUTES = tuple(route.apply for route in ROUTES)
_ANY = tuple((fold.apply, fold.final) for fold in FOLDS)
_ASCII = tuple((fold.apply, fold.final) for fold in FOLDS if fold.name not in ("accents", "typography", "list marker"))
