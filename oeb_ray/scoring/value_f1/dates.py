"""Texts that are dates, as ``YYYY-MM-DD`` (METRIC_SPEC.md, "Dates").

A text of one of eight shapes is given to dateutil as a whole, month first. Two-digit years are read as the year within
50 years of a given day: nothing here looks at the clock.
"""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Any

from ..months import MONTHS

SHORTEST, LONGEST = 4, 50
FIRST_YEAR, LAST_YEAR = 1900, 2100
_SHAPES = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}"
    r"|\d{1,2}/\d{1,2}/(?:\d{4}|\d{2}\b)"
    r"|\d{1,2}-\d{1,2}-(?:\d{4}|\d{2}\b)"
    r"|[A-Za-z]+ \d{1,2},? \d{4}"
    r"|[A-Za-z]+\.? [A-Za-z]+\.? \d{1,2},? \d{4}"
    r"|\d{1,2} [A-Za-z]+ \d{4}"
)
_IN_EVERY_SHAPE = re.compile(r"\d[-/]\d|(?: |,\s*)\d{4}")  # before commas are spaced; found much quicker than a shape
_LONG_NUMBER = re.compile(r"\d{10}")
_COMMA = re.compile(r"\s*,\s*")
_YEAR_FIRST = re.compile(
    r"([0-9]{4})([-/])([0-9]{1,2})\2([0-9]{1,2})"
    r"(?:(?<=-[0-9]{2}-[0-9]{2})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])?"
)
_MONTH_FIRST = re.compile(r"([0-9]{1,2})([-/])([0-9]{1,2})\2([0-9]{4})")
_DAY_FIRST_IN_WORDS = re.compile(r"(?P<day>[0-9]{1,2}) (?P<month>[A-Za-z]+) (?P<year>[0-9]{4})")
_MONTH_FIRST_IN_WORDS = re.compile(r"(?P<month>[A-Za-z]+) (?P<day>[0-9]{1,2}),? (?P<year>[0-9]{4})")
_MONTHS = MONTHS | {"sept": 9}  # what dateutil knows
_SPLIT_YEAR = re.compile(r"\b(19|20)\s+(\d{2})\b")
_SHORT_YEAR = re.compile(r"(.*\d.*[\s,/-])(\d{2})", re.DOTALL)


def as_date(text: str, today: dt.date) -> str:
    """The text as ``YYYY-MM-DD`` if it is a date; else the text itself."""
    if not SHORTEST <= len(text) <= LONGEST or not _IN_EVERY_SHAPE.search(text):
        return text
    return _read(_COMMA.sub(", ", text), today) or text


def date_readings(text: str, today: dt.date) -> frozenset[str]:
    """The dates that a text may mean if its year is cut apart or short; the text itself if it is none."""
    readings = {as_date(text, today)}
    split = _SPLIT_YEAR.search(text)
    joined = None
    if split and any(sign.isdigit() for sign in text[: split.start()]):
        joined = text[: split.start()] + split[1] + split[2] + text[split.end() :]
    longer = [joined]
    for base in (text, joined):
        if base is not None and (short := _SHORT_YEAR.fullmatch(base)):
            longer += [f"{short[1]}{century}{short[2]}" for century in ("19", "20")]
    for candidate in longer:
        if candidate is not None and (date := as_date(candidate, today)) != candidate:
            readings.add(date)
    return frozenset(readings)


@lru_cache(maxsize=50_000)
def _read(text: str, today: dt.date) -> str | None:
    if (date := _plain(text)) or not _SHAPES.search(text) or _LONG_NUMBER.search(text):
        return date
    return _parsed(text, today)


def _plain(text: str) -> str | None:
    """The commonest shapes without dateutil; None for what it must decide."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, _, month, day = found.groups()
    elif found := _MONTH_FIRST.fullmatch(text):
        month, _, day, year = found.groups()
        if int(month) > 12:
            month, day = day, month
    elif found := _DAY_FIRST_IN_WORDS.fullmatch(text) or _MONTH_FIRST_IN_WORDS.fullmatch(text):
        day, year = found["day"], found["year"]
        month = str(_MONTHS.get(found["month"].lower(), 0))
    else:
        return None
    if not FIRST_YEAR <= int(year) <= LAST_YEAR:
        return None
    try:
        return dt.date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _parsed(text: str, today: dt.date) -> str | None:
    try:
        moment = _parser(today).parse(text, default=dt.datetime(today.year, today.month, today.day), ignoretz=True)
    except (ValueError, OverflowError, TypeError, LookupError, ArithmeticError, AttributeError):  # dateutil's, all seen
        return None
    return moment.date().isoformat() if FIRST_YEAR <= moment.year <= LAST_YEAR else None


@lru_cache(maxsize=16)
def _parser(today: dt.date) -> Any:
    from dateutil import parser

    class Pivoted(parser.parserinfo):  # type: ignore[misc]
        """Two-digit years lie less than 50 years after the given day's year, and at most 50 before."""

        def convertyear(self, year: int, century_specified: bool = False) -> int:
            if year < 100 and not century_specified:
                year += today.year // 100 * 100
                if year >= today.year + 50:
                    year -= 100
                elif year < today.year - 50:
                    year += 100
            return year

    return parser.parser(Pivoted())
