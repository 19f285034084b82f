"""Every value as a small number, so that equality is decided once per distinct value (METRIC_SPEC.md, "Agreement").

Two values agree by the base rule exactly if they have one code. 0 stands for a key that is not there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable
from typing import Any

from .dates import as_date
from .schema import ABSENT, Fixed
from .texts import Nearness, folded, loose, near

NOTHING = 0


class _Codes(dict[Any, int]):
    """Codes by the value as it stands, made where there is none; NaN, which a dict would find, is not kept."""

    def __init__(self, today: dt.date) -> None:
        super().__init__({ABSENT: NOTHING})
        self.texts: list[str | None] = [None]  # by code: the folded text, None for what is no text
        self._today = today
        self._compared: dict[Hashable, int] = {}  # by what the value is compared as

    def __missing__(self, value: Any) -> int:
        code = self.made(value)
        if value == value:
            self[value] = code
        return code

    def made(self, value: Any) -> int:
        """The code of a value that may be no key, or is none yet."""
        compared: Hashable
        text = None
        if isinstance(value, str):
            compared = text = folded(as_date(value, self._today))
        elif isinstance(value, Fixed):
            compared = text = folded(value.text)
        elif isinstance(value, (list, dict)):
            compared = _frozen(value, self._today)
        else:
            compared = value
        code = self._compared.get(compared) if compared == compared else None
        if code is None:
            code = len(self.texts)
            if compared == compared:
                self._compared[compared] = code
            self.texts.append(text)
        return code


class Vocabulary:
    """The codes of one document's values. ``today`` decides two-digit years."""

    def __init__(self, today: dt.date) -> None:
        self.today = today
        self._codes = _Codes(today)
        self._look = self._codes.__getitem__
        self._loose: dict[int, str] = {}

    def code(self, value: Any) -> int:
        """The code of a value, or of ABSENT."""
        try:
            return self._look(value)
        except TypeError:  # a list or an object
            return self._codes.made(value)

    def codes(self, values: list[Any]) -> tuple[int, ...]:
        """The code of each value."""
        try:
            return tuple(map(self._look, values))
        except TypeError:
            return tuple(map(self.code, values))

    def loose_text(self, code: int) -> str | None:
        """The text behind a code as near texts are compared; None if it is no text."""
        if (made := self._loose.get(code)) is not None:
            return made
        text = self._codes.texts[code]
        if text is not None:
            self._loose[code] = text = loose(text)
        return text

    def agree(self, one: int, other: int, nearness: Nearness | None) -> bool:
        """The base rule."""
        if one == other:
            return True
        if nearness is None:
            return False
        left, right = self.loose_text(one), self.loose_text(other)
        return left is not None and right is not None and near(left, right, nearness)

    def exact(self, value: Any) -> Any:
        """A value with its dates written as such, at any depth; Fixed texts as they are."""
        return _exact(value, self.today)


def _exact(value: Any, today: dt.date) -> Any:
    if isinstance(value, str):
        return as_date(value, today)
    if isinstance(value, Fixed):
        return value.text
    if isinstance(value, list):
        return [_exact(member, today) for member in value]
    if isinstance(value, dict):
        return {key: _exact(member, today) for key, member in value.items()}
    return value


def _frozen(value: Any, today: dt.date) -> Hashable:
    """Something that is equal exactly if the values are, NaN nowhere; texts in it are compared as they stand."""
    if isinstance(value, list):
        return (list, *[_frozen(member, today) for member in value])
    if isinstance(value, dict):
        return (dict, frozenset([(key, _frozen(member, today)) for key, member in value.items()]))
    if value != value:
        return object()
    frozen: Hashable = _exact(value, today)
    return frozen
