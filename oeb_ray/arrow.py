"""pyarrow, without the half second and the 40 MB that it takes to load pandas where that is installed.

With its first array pyarrow looks whether there is pandas, to know its objects when it meets them; it meets none of
them here. Who converts a table to pandas later gets it all the same.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa


class _NoPandas:
    """An importer that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name, name=name)


def _look_in_vain() -> None:
    if "pandas" in sys.modules:
        return
    finder: Any = _NoPandas
    sys.meta_path.insert(0, finder)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(finder)


_look_in_vain()


def release_memory() -> None:
    """Gives back what Arrow has held for tables that are gone."""
    pa.default_memory_pool().release_unused()
