"""Whether a gold fits the schema that it is graded by.

In: a gold document and its schema. Out: notes for people; scoring goes on whatever they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import jsonschema_rs

from .. import storage
from ..jsontext import read_json
from ..records import Doc
from ..scoring.field_matching.names import Path, written
from ..scoring.field_matching.schema import chosen, inlined, is_open
from .manifest import Corpus

SHOWN = 5  # notes per document
LOOKED_AT = 10_000  # faults of one gold that are counted


def gold_notes(doc_id: str, gold: Any, schema: dict[str, Any]) -> list[str]:
    """What in a gold its schema does not allow or does not ask for, one note per field, a handful per document.

    Nulls are passed over: a gold says with them that the document is silent, whatever the schema's types.
    """
    times: Counter[str] = Counter()
    first: dict[str, str] = {}
    try:
        for field, what in (*_invalid(gold, schema), *_undeclared_in(gold, schema)):
            times[field] += 1
            first.setdefault(field, what)
    except (RecursionError, TypeError, AttributeError) as error:  # a schema or gold of a shape that nobody expects
        times["<schema>"] += 1
        first["<schema>"] = f"cannot be looked through: {type(error).__name__}"
    notes = [
        f"gold of {doc_id!r}: {field}: {first[field]}" + (f" ({count} times)" if count > 1 else "")
        for field, count in times.items()
    ]
    return (
        [*notes[:SHOWN], f"gold of {doc_id!r}: and {len(notes) - SHOWN} more fields"] if len(notes) > SHOWN else notes
    )


def _invalid(gold: Any, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_no_retrieval)
        for error in islice(validator.iter_errors(gold), LOOKED_AT):
            if error.instance is not None:
                path = tuple(None if isinstance(step, int) else step for step in error.instance_path)
                yield written(path) or "<root>", " ".join(error.message.split())[:200]
    except ValueError as error:
        yield "<schema>", f"not valid: {' '.join(str(error).split())[:200]}"


def _no_retrieval(uri: str) -> Any:
    """A schema is never a reason to open a file or a connection."""
    raise ValueError(f"{uri} lies outside the schema")


def _undeclared_in(gold: Any, schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        for path in _undeclared(gold, inlined(schema), ()):
            yield written(path), "the schema has no such property, so no system can earn it"
    except ValueError as error:
        yield "<schema>", str(error)


def _undeclared(value: Any, node: Any, path: Path) -> Iterator[Path]:
    node = chosen(node)
    if is_open(node):
        return
    if isinstance(value, list):
        for member in value:
            yield from _undeclared(member, node.get("items"), (*path, None))
    elif isinstance(value, dict):
        properties = node.get("properties")
        for key, member in value.items():
            if not isinstance(properties, dict):
                continue
            if properties and key not in properties:
                yield (*path, key)
            else:
                yield from _undeclared(member, properties.get(key), (*path, key))


def check_golds(corpus: Corpus) -> tuple[list[str], int]:
    """Notes on every selected gold in the order of the manifest, and how many cannot be scored against at all."""
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(_notes_of, (corpus.doc(position) for position in corpus.selected)))
    return [note for notes, _ in found for note in notes], sum(unusable for _, unusable in found)


def _notes_of(doc: Doc) -> tuple[list[str], bool]:
    try:
        gold = read_json(storage.read(doc.gt_path))
    except (ValueError, FileNotFoundError) as error:
        return [f"gold of {doc.doc_id!r}: no JSON ({error}); its rows will be errors"], True
    schema = read_json(doc.schema.encode("utf-8", "surrogatepass"))
    notes, unusable = gold_notes(doc.doc_id, gold, schema), False
    try:
        inlined(schema)
    except ValueError:
        unusable = True
    if gold is not None and not isinstance(gold, dict):
        return [f"gold of {doc.doc_id!r}: no object; its rows will be errors"], True
    return notes, unusable
