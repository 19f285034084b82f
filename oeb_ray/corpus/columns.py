"""What manifests and tables of predictions share: a Parquet file with text columns and a JSON Schema in every row.

In: an address, and the columns that must be there. Out: a checked Arrow table, and what is wrong with its rows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .. import (
    arrow,  # noqa: F401 - pyarrow without pandas
    storage,
)
from ..errors import RequestError, refused, suggestion
from ..jsontext import read_json

SHOWN_FAULTS = 50


def resolved(path: str, root: str) -> str:
    """A table's path: absolute ones and URLs as they are, others below ``root``."""
    return path if path.startswith("/") or "://" in path else storage.join(root, path)


def read_file(
    address: str, what: str, needed: Sequence[str], *, optional: Sequence[str] = (), others: bool = False
) -> pa.Table:
    """A Parquet file's ``needed`` and ``optional`` columns, which hold texts, and its ``others`` if they are wanted.

    Raises:
        RequestError: no Parquet, columns missing or of another type, or bytes that are no UTF-8. ``what`` and the
            address lead every message.
        FileNotFoundError: there is no such file.
    """
    data = storage.read(address)
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        columns = file.schema_arrow.names
        known = [*needed, *(name for name in optional if name in columns)]
        table = file.read([name for name in columns if others or name in known], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise RequestError(f"{what} {address} is no readable Parquet file: {error}") from error
    missing = [f"no column {name!r}; it has {', '.join(columns)}" for name in needed if name not in columns]
    if missing:
        raise refused(f"{what} {address}", missing)
    if twice := {name for name in columns if columns.count(name) > 1}:
        raise refused(f"{what} {address}", [f"two columns are named {name!r}" for name in sorted(twice)])
    if not table.num_rows:
        raise RequestError(f"{what} {address} has no rows")
    wrong = [
        f"column {name!r} holds {table.schema.field(name).type}, not text"
        for name in known
        if not is_text(table.schema.field(name).type, binary=name == "schema")
    ]
    if wrong:
        raise refused(f"{what} {address}", wrong)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RequestError(f"{what} {address} holds text that is no UTF-8: {error}") from error
    return table


def is_text(kind: pa.DataType, *, binary: bool = False) -> bool:
    """Whether a column of this type holds texts, or bytes where ``binary`` ones will do."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(text or (binary and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))))


def texts(table: pa.Table, name: str) -> list[Any]:
    """A column as a list of texts and None; equal texts are one object, since there may be millions of rows."""
    coded = table.column(name).combine_chunks().dictionary_encode()
    words = coded.dictionary.to_pylist()
    return [None if number is None else words[number] for number in coded.indices.to_pylist()]


def schemas_of(table: pa.Table) -> tuple[list[bytes | str], list[int | None]]:
    """The distinct schemas of the column ``schema``, and which of them each row has; None where it is null."""
    column = table.column("schema")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    return encoded.dictionary.to_pylist(), encoded.indices.to_pylist()


def schema_text(schema: bytes | str) -> str:
    return schema.decode() if isinstance(schema, bytes) else schema


def schema_fault(schema: bytes | str) -> str | None:
    """Why a schema is none; None if it is one."""
    try:
        value = read_json(schema.encode() if isinstance(schema, str) else schema)
    except ValueError as error:
        return f"schema is no JSON ({error}); give the JSON Schema itself, not its path"
    if not isinstance(value, dict) or not value:
        return "schema must be a JSON object that is not empty"
    return None


def path_fault(name: str, path: str | None, root: str) -> str | None:
    """Why a path cannot be used; None if it can."""
    if not path:
        return f"{name} is empty; give a path below {root} or an absolute one"
    if "\0" in path:
        return f"{name} holds a NUL character; give the path as it is on disk"
    if "://" not in path and not path.startswith("/") and ".." in path.split("/"):
        return f"{name} {path!r} leaves the folder {root}; give an absolute path if that is meant"
    return None


def faulty(what: str, address: str, faults: list[str]) -> RequestError:
    """One error with all faults, as far as anyone would read them."""
    shown = faults[:SHOWN_FAULTS]
    if len(faults) > len(shown):
        shown.append(f"and {len(faults) - len(shown)} more")
    return refused(f"{what} {address}", shown)


def column_of(address: str, name: str, *, optional: bool = False) -> dict[str, list[str]]:
    """What a further column of a manifest says of each document: texts, one or, in a column of lists, several.

    Documents whose value is null are left out; one of another type counts as its text. ``optional``: no such column
    says nothing.

    Raises:
        RequestError: no readable manifest, or no such column.
    """
    try:
        table = read_file(address, "manifest", ["doc_id"], others=True)
    except FileNotFoundError:
        raise RequestError(f"no manifest file at {address}; give one with --manifest") from None
    if name not in table.column_names:
        if optional:
            return {}
        raise RequestError(f"manifest {address} has no column {name!r}; {suggestion(name, table.column_names)}")
    found = {}
    for doc_id, value in zip(texts(table, "doc_id"), table.column(name).to_pylist(), strict=True):
        several = value if isinstance(value, list) else [value]
        if listed := [str(one) for one in several if one is not None]:
            found[doc_id] = listed
    return found
