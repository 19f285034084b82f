"""Written names of arrays and addresses (METRIC_SPEC.md, "order_matters").

In: a schema and documents. Out: the names by which ``order_matters`` may call arrays, or the error of a bad entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .schema import chosen, inlined

Path = tuple[str | None, ...]  # key steps as text, index steps as None


def quoted(key: str) -> str:
    """A key as it stands in a written name; one that holds a point or bracket goes in brackets and quotes."""
    return f"[{key!r}]" if any(c in key for c in ".[]") else key


def joined(name: str, key: str) -> str:
    """``name`` continued by ``key``."""
    part = quoted(key)
    return f"{name}.{part}" if name and not part.startswith("[") else name + part


def written(path: Path) -> str:
    """``("books", None, "chapters")`` as ``books[*].chapters``."""
    name = ""
    for key in path:
        name = name + "[*]" if key is None else joined(name, key)
    return name


def has_empty_key(value: Any) -> bool:
    """Whether ``""`` is a key anywhere below: the one way to two arrays of one written name."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "" in value:
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


def known_names(schema: dict[str, Any], documents: Iterable[Any] = ()) -> set[str]:
    """The written names of all arrays of a schema, whose references are inlined here, and of documents."""
    return {written(path) for path in _arrays(inlined(schema), documents)}


def ordered_arrays(order_matters: Any, schema: dict[str, Any], documents: Iterable[Any]) -> frozenset[Path]:
    """The arrays that ``order_matters`` names.

    Raises:
        TypeError: an entry is no text, or the whole is no collection.
        ValueError: two arrays share a written name, or an entry names no known array.
    """
    known: dict[str, Path] = {}
    for path in _arrays(schema, documents):
        name = written(path)
        if known.setdefault(name, path) != path:
            raise ValueError(f"two different arrays are both written {name!r}: {known[name]} and {path}")
    chosen_paths = set()
    for name in order_matters:
        if not isinstance(name, str):
            raise TypeError(f"order_matters holds names of arrays, not {name!r}")
        if name not in known:
            raise ValueError(
                f"order_matters names no array of the schema or the documents: {name!r}; known: {sorted(known)}"
            )
        chosen_paths.add(known[name])
    return frozenset(chosen_paths)


def _arrays(schema: dict[str, Any], documents: Iterable[Any]) -> Iterator[Path]:
    yield from _schema_arrays(schema, ())
    for document in documents:
        yield from _document_arrays(document, ())


def _schema_arrays(node: Any, path: Path) -> Iterator[Path]:
    node = chosen(node)
    if node.get("type") == "array" or "items" in node:
        yield path
    if "items" in node:
        yield from _schema_arrays(node["items"], (*path, None))
    for key, member in (node.get("properties") or {}).items():
        yield from _schema_arrays(member, (*path, key))


def _document_arrays(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _document_arrays(member, (*path, key))
    elif isinstance(value, list):
        yield path
        for member in value:
            yield from _document_arrays(member, (*path, None))
