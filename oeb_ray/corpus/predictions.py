"""A table of predictions to score: one row per document, with where its gold and its prediction lie.

In: a Parquet file, or a folder of them, with doc_id, gt_path, pred_path, schema and any further columns. Out:
Predictions, or one error that names every fault. Golds and predictions are not opened here. Also how such a table is
made of a manifest whose documents have been asked for.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from .. import storage
from ..errors import RequestError, refused
from ..jsontext import printable
from .columns import faulty, is_text, path_fault, read_file, resolved, schema_fault, schema_text, schemas_of, texts
from .manifest import ANNOTATIONS

COLUMNS = ("doc_id", "gt_path", "pred_path", "schema")
KNOWN = ("suite", "provider", "run", "error")
"""Further columns with a meaning of their own; null where the table has none."""


@dataclass(frozen=True)
class Predictions:
    """The rows of a table, column by column.

    ``gt_paths`` and ``pred_paths`` are absolute paths or URLs; a prediction that is None is missing, and ``error`` may
    say why. ``known`` has the columns of KNOWN, ``further`` the others, as they are. ``notes`` are for people.
    """

    root: str
    ids: list[str]
    gt_paths: list[str]
    pred_paths: list[str | None]
    schemas: list[str]
    schema_of: list[int]
    known: dict[str, list[str | None]]
    further: pa.Table
    notes: list[str]

    def __len__(self) -> int:
        return len(self.ids)

    def annotations(self) -> list[str | None]:
        """Where that lies which a scorer may know beside the gold, of each row; a column that a table may have."""
        if ANNOTATIONS not in self.further.column_names:
            return [None] * len(self)
        return [path and resolved(path, self.root) for path in texts(self.further, ANNOTATIONS)]


def load_predictions(address: str, *, root: str | None = None, taken: Sequence[str] = ()) -> Predictions:
    """Reads and checks a table of predictions.

    Args:
        address: path or URL of a Parquet file, or of a folder that holds several.
        root: where relative paths start; the table's folder if None.
        taken: names that scoring gives to its own columns; no further column may have one.

    Raises:
        RequestError: no such table, no Parquet, missing columns, faulty rows.
    """
    address = storage.absolute(address)
    tables, is_folder = _files(address)
    root = storage.absolute(root) if root else address if is_folder else storage.parent(address)
    notes: list[str] = []
    table = _together(tables, notes)
    problems = [
        f"column {name!r} is one that scoring writes; rename it or leave it out"
        for name in table.column_names
        if name in taken and name not in (*COLUMNS, *KNOWN)
    ]
    problems += [
        f"column {name!r} holds {table.schema.field(name).type}, not text"
        for name in (*KNOWN, ANNOTATIONS)
        if name in table.column_names and not is_text(table.schema.field(name).type)
    ]
    if problems:
        raise refused(f"table {address}", problems)
    if faults := _row_faults(table, root):
        raise faulty("table", address, faults)
    distinct, schema_of = schemas_of(table)
    return Predictions(
        root,
        texts(table, "doc_id"),
        [resolved(path, root) for path in texts(table, "gt_path")],
        [path and resolved(path, root) for path in texts(table, "pred_path")],
        [schema_text(schema) for schema in distinct],
        [number for number in schema_of if number is not None],  # all of them, or it would be a fault
        {name: texts(table, name) if name in table.column_names else [None] * len(table) for name in KNOWN},
        table.drop_columns([name for name in table.column_names if name in (*COLUMNS, *KNOWN)]),
        notes,
    )


def check_place(address: str, run: str) -> None:
    """Raises RequestError if something other than the predictions of this run lies at an address."""
    try:
        table = read_file(address, "table", ("run", "pred_path"), others=False)
        there = set(texts(table, "run"))
    except FileNotFoundError:
        return
    except RequestError:
        there = {"something else"}
    if there != {run}:
        raise RequestError(f"{address} holds {', '.join(sorted(map(str, there)))}, not {run}; choose another --out")


def predictions_of(manifest: str, made: Mapping[str, tuple[str | None, str | None]], provider: str, run: str) -> bytes:
    """A manifest as a table of predictions, as Parquet: its rows and columns, of the documents that were asked for.

    Args:
        made: by doc_id where the prediction lies, or None and why there is none.
    """
    table = read_file(manifest, "manifest", ("doc_id",), others=True)
    rows = [row for row, doc_id in enumerate(texts(table, "doc_id")) if doc_id in made]
    table = table.take(rows)
    told = [made[doc_id] for doc_id in texts(table, "doc_id")]
    columns = {
        "pred_path": [path for path, _ in told],
        "provider": [provider] * len(rows),
        "run": [run] * len(rows),
        "error": [error and printable(error) for _, error in told],
    }
    table = table.drop_columns([name for name in columns if name in table.column_names])
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values, pa.string()))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def _files(address: str) -> tuple[list[pa.Table], bool]:
    """The tables at an address, and whether it is a folder."""
    names = sorted(name for name in storage.listed(address) if name.endswith(".parquet"))
    paths = [storage.join(address, name) for name in names] or [address]
    try:
        return [read_file(path, "table", COLUMNS, others=True) for path in paths], bool(names)
    except FileNotFoundError:
        raise RequestError(f"no table at {address}; give a Parquet file with {', '.join(COLUMNS)}") from None


def _together(tables: list[pa.Table], notes: list[str]) -> pa.Table:
    """One table of all files. A column with two types is kept as text, as is one that is null in every row."""
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    columns = {}
    for name in names:
        chunks = [_column(table, name) for table in tables]
        kinds = {chunk.type for chunk in chunks if not pa.types.is_null(chunk.type)}
        if len(kinds) == 1:
            chunks = [chunk.cast(*kinds) for chunk in chunks]
        else:
            if kinds and name not in COLUMNS:
                notes.append(f"column {name!r} holds {' and '.join(sorted(map(str, kinds)))}: it is kept as text")
            chunks = [_as_text(chunk) for chunk in chunks]
        columns[name] = pa.chunked_array([piece for chunk in chunks for piece in chunk.chunks], chunks[0].type)
    return pa.table(columns)


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(len(table))])
    column = table.column(name)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = column.to_pylist()
    said = [value if value is None or isinstance(value, str) else _said(value) for value in values]
    return pa.chunked_array([pa.array(said, pa.string())])


def _said(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return json.dumps(value, ensure_ascii=False, default=str)


def _row_faults(table: pa.Table, root: str) -> list[str]:
    faults: list[str] = []
    ids, golds, predictions = (texts(table, name) for name in ("doc_id", "gt_path", "pred_path"))
    beside = texts(table, ANNOTATIONS) if ANNOTATIONS in table.column_names else [None] * len(ids)
    distinct, schema_of = schemas_of(table)
    schema_faults = [schema_fault(schema) for schema in distinct]
    first: dict[str, int] = {}
    for row, doc_id in enumerate(ids):
        said = [path_fault("gt_path", golds[row], root)]
        if doc_id is None:
            said.append("doc_id is null; give every document an id")
        elif first.setdefault(doc_id, row) != row:
            said.append(
                f"the same doc_id as row {first[doc_id]}; score each system's predictions as a table of its own"
            )
        if predictions[row] is not None:
            said.append(path_fault("pred_path", predictions[row], root))
        if beside[row]:
            said.append(path_fault(ANNOTATIONS, beside[row], root))
        number = schema_of[row]
        said.append("schema is null; give the JSON Schema itself" if number is None else schema_faults[number])
        faults.extend(f"row {row}, doc_id {doc_id!r}: {fault}" for fault in said if fault)
    return faults
