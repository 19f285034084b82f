"""Keys of dates and times (METRIC_SPEC.md, "Canonical keys").

In: a stripped text. Out: its key if all of it is a day or an instant, else None. Patterns settle what a corpus holds;
`strptime`, which states the rule, decides the rest.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, datetime

from ..months import MONTHS

LONGEST = 34  # characters of a date or time

_DAY = r"(\d{1,2}| \d)"
_FULL_MONTHS = {name for name in MONTHS if len(name) > 3 or name == "may"}
_SHORT_MONTHS = {name for name in MONTHS if len(name) == 3}

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


def could_name_a_month(text: str) -> bool:
    """Whether a text begins with the letters of a month."""
    return text[:3].lower() in _SHORT_MONTHS


def moment_key(text: str) -> str | None:
    """Key of a date or an instant, or None; ``text`` is stripped and not empty."""
    if len(text) > LONGEST:
        return None
    if not text.isascii():
        # Only foreign digits and white space could still make a date; any other such character rules it out.
        if all(c.isascii() or c.isdecimal() or c.isspace() for c in text):
            return _moment_by_strptime(text)
        return None
    if len(text) == 10 and text[4] == text[7] == "-":
        with suppress(ValueError):
            date.fromisoformat(text)
            return f"#d{text}"
    if text[0].isdigit():
        if m := _YEAR_FIRST.fullmatch(text):
            return _day_key(m[1], m[3], m[4])
        if m := _YEAR_LAST.fullmatch(text):
            return _year_last_key(m[1], m[2], m[3], m[4])
        if m := _CLOCK.fullmatch(text):
            return _clock_key(text, m)
        if m := _DAY_FIRST.fullmatch(text):
            return _day_first_key(*m.groups())
    elif (m := _MONTH_FIRST.fullmatch(text)) and (month := MONTHS.get(m[1].lower())):
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
    return _day_key(year, str(MONTHS[name.lower()]), day) if named else None


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
