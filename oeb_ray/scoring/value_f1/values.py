"""Every value as a small number, so that equality is decided once per distinct value (METRIC_SPEC.md, "Agreement").

Two values agree by the base rule exactly if they have one code. 0 stands for a key that is not there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Hashable
from typing import Any

from .dates import as_date
from .schema import ABSENT, Fixed
from .texts import Nearness, folded, loose, near

NOTHING = 0


class _Seen(dict[Any, int]):
    """Codes by the value as it stands, made where there is none; NaN, which a dict would find, is not kept."""

    def __init__(self, make: Callable[[Any], int]) -> None:
        super().__init__({ABSENT: NOTHING})
        self._make = make

    def __missing__(self, value: Any) -> int:
        code = self._make(value)
        if value == value:
            self[value] = code
        return code


class Vocabulary:
    """The codes of one document's values. ``today`` decides two-digit years."""

    def __init__(self, today: dt.date) -> None:
        self.today = today
        self._codes: dict[Hashable, int] = {}  # by what the value is compared as
        self._seen = _Seen(self._new_code)
        self._last = NOTHING
        self._texts: list[str | None] = [None]  # by code: the folded text, None for what is no text
        self._loose: dict[int, str] = {}

    def code(self, value: Any) -> int:
        """The code of a value, or of ABSENT."""
        try:
            return self._seen[value]
        except TypeError:  # a list or an object
            return self._new_code(value)

    def codes(self, values: list[Any]) -> tuple[int, ...]:
        """The code of each value."""
        try:
            return tuple(map(self._seen.__getitem__, values))
        except TypeError:
            return tuple(map(self.code, values))

    def loose_text(self, code: int) -> str | None:
        """The text behind a code as near texts are compared; None if it is no text."""
        if (made := self._loose.get(code)) is not None:
            return made
        text = self._texts[code]
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
        if isinstance(value, str):
            return as_date(value, self.today)
        if isinstance(value, Fixed):
            return value.text
        if isinstance(value, list):
            return [self.exact(member) for member in value]
        if isinstance(value, dict):
            return {key: self.exact(member) for key, member in value.items()}
        return value

    def _new_code(self, value: Any) -> int:
        compared: Hashable
        text = None
        if isinstance(value, str):
            compared = text = folded(as_date(value, self.today))
        elif isinstance(value, Fixed):
            compared = text = folded(value.text)
        elif isinstance(value, (list, dict)):
            compared = self._frozen(value)
        else:
            compared = value
        code = self._codes.get(compared) if compared == compared else None
        if code is None:
            code = self._last = self._last + 1
            if compared == compared:
                self._codes[compared] = code
            self._texts.append(text)
        return code

    def _frozen(self, value: Any) -> Hashable:
        """Something that is equal exactly if the values are, NaN nowhere; texts in it are compared as they stand."""
        if isinstance(value, list):
            return (list, *map(self._frozen, value))
        if isinstance(value, dict):
            return (dict, frozenset((key, self._frozen(member)) for key, member in value.items()))
        if value != value:
            return object()
        frozen: Hashable = self.exact(value)
        return frozen
