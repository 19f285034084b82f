"""Field names that a vendor does not take, told in its alphabet and read back, one to one.

In: names of a schema. Out: names that the vendor takes; a name that it takes stays unless it reads like a told one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_ESCAPE = re.compile(r"__u([0-9a-f]{0,6})__")


@dataclass(frozen=True, slots=True)
class Names:
    """A vendor's alphabet. ``takes``: whether a character may stand in a name; ``_`` and ASCII letters and digits may.

    ``reserved``: names that the vendor keeps for itself, and what they are told as.
    """

    takes: Callable[[str], bool]
    reserved: Mapping[str, str] = field(default_factory=dict)

    def told(self, name: str) -> str:
        """The name as the vendor is told it; every other character becomes ``__u<hex>__``."""
        if name in self.reserved:
            return self.reserved[name]
        if name and all(map(self.takes, name)) and self.meant(name) == name:
            return name
        return "".join(c if self.takes(c) and c != "_" else f"__u{ord(c):x}__" for c in name) or "__u__"

    def meant(self, told: str) -> str:
        """The name that was told so."""
        for name, word in self.reserved.items():
            if told == word:
                return name
        return _ESCAPE.sub(lambda found: _character(found[1]), told)

    def restored(self, value: Any) -> Any:
        """An answer with the keys of its objects as they were meant."""
        if isinstance(value, dict):
            return {self.meant(key): self.restored(item) for key, item in value.items()}
        return [self.restored(item) for item in value] if isinstance(value, list) else value

    def meant_path(self, path: str) -> str:
        """A path such as ``rows[0].id__`` with its names as they were meant."""
        return re.sub(r"[^.\[\]]+", lambda found: self.meant(found[0]), path)


def _character(code: str) -> str:
    return chr(int(code, 16)) if code and int(code, 16) <= 0x10FFFF else ""


def is_plain(c: str) -> bool:
    """ASCII letters and digits, ``_`` and ``-``."""
    return c.isascii() and (c.isalnum() or c in "_-")
