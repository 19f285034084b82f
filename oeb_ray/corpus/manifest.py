"""The Parquet manifest: one row per document, its schema inline.

In: the address of a manifest (path or URL), and what to select. Out: a Corpus, or one error that names every fault of
the manifest at once. Documents and golds are not opened here.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from .. import storage
from ..digests import text_digest
from ..errors import RequestError, refused
from ..jsontext import read_json
from ..records import Doc, FileStamp

COLUMNS = ("doc_id", "suite", "doc_path", "gt_path", "schema")
SHOWN_FAULTS = 50
LONGEST_SUITE = 200
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Corpus:
    """All documents of a corpus, column by column in the order of the manifest, and which of them are selected.

    ``identity`` is what makes it the same corpus on resume. ``doc_paths`` and ``gt_paths`` are absolute paths or URLs;
    ``stamps`` maps them to size and ETag or modification time. ``schemas`` are the distinct schemas as JSON text with
    their digests, ``schema_of`` the position in them. ``selected`` holds positions of documents.
    """

    identity: str
    ids: list[str]
    suites: list[str]
    doc_paths: list[str]
    gt_paths: list[str]
    schemas: list[str]
    schema_sha256: list[str]
    schema_of: list[int]
    stamps: dict[str, FileStamp]
    selected: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def doc(self, position: int) -> Doc:
        """The document at a position of the manifest."""
        return Doc(
            self.ids[position],
            self.suites[position],
            self.doc_paths[position],
            self.gt_paths[position],
            self.schemas[self.schema_of[position]],
            self.schema_sha256[self.schema_of[position]],
        )


def resolved(path: str, root: str) -> str:
    """A manifest's path: absolute ones and URLs as they are, others below ``root``."""
    return path if path.startswith("/") or "://" in path else storage.join(root, path)


def load(
    address: str,
    *,
    data_root: str | None = None,
    suites: Sequence[str] | None = None,
    limit: int = 0,
    only: Sequence[str] | None = None,
    identity: str | None = None,
) -> Corpus:
    """Reads and checks a manifest.

    Args:
        address: path or URL of the Parquet file.
        data_root: where relative paths start; the manifest's folder if None.
        suites: select these suites only. only: select these doc_ids only. limit: then the first so many; 0 for all.
        identity: the corpus's name; the manifest's address if None.

    Raises:
        RequestError: no such file, no Parquet, missing columns, faulty rows or files, or nothing selected.
    """
    address = storage.absolute(address)
    table = _read(address)
    root = storage.absolute(data_root) if data_root else storage.parent(address)
    faults = _row_faults(table, root)
    if faults:
        raise _faulty(address, faults)
    paths = {name: [resolved(path, root) for path in _texts(table, name)] for name in ("doc_path", "gt_path")}
    stamps = storage.stat_many({*paths["doc_path"], *paths["gt_path"]})
    ids, of_suite = _texts(table, "doc_id"), _texts(table, "suite")
    faults = [
        f"row {row}, doc_id {ids[row]!r}: no {what} at {path}; fetch the corpus or set data_root"
        for name, what in (("doc_path", "document"), ("gt_path", "gold"))
        for row, path in enumerate(paths[name])
        if path not in stamps
    ]
    if faults:
        raise _faulty(address, faults)
    encoded = table.column("schema").combine_chunks()
    schemas = [_schema_text(schema) for schema in encoded.dictionary.to_pylist()]
    return Corpus(
        identity or address,
        ids,
        of_suite,
        paths["doc_path"],
        paths["gt_path"],
        schemas,
        [text_digest(schema) for schema in schemas],
        encoded.indices.to_pylist(),
        stamps,
        _select(ids, of_suite, suites, limit, only),
    )


def _texts(table: pa.Table, name: str) -> list[Any]:
    return list(table.column(name).to_pylist())


def _schema_text(schema: bytes | str) -> str:
    return schema.decode() if isinstance(schema, bytes) else schema


def _faulty(address: str, faults: list[str]) -> RequestError:
    shown = faults[:SHOWN_FAULTS]
    if len(faults) > len(shown):
        shown.append(f"and {len(faults) - len(shown)} more")
    return refused(f"manifest {address}", shown)


def _read(address: str) -> pa.Table:
    try:
        data = storage.read(address)
    except FileNotFoundError:
        raise RequestError(f"no manifest file at {address}; give one with --manifest or corpus.manifest=") from None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        columns = file.schema_arrow.names
        table = file.read([name for name in COLUMNS if name in columns], use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise RequestError(f"manifest {address} is no readable Parquet file: {error}") from error
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise refused(f"manifest {address}", [f"no column {name!r}; it has {', '.join(columns)}" for name in missing])
    if not table.num_rows:
        raise RequestError(f"manifest {address} has no rows")
    wrong = [
        f"column {name!r} holds {table.schema.field(name).type}, not text"
        for name in COLUMNS
        if not _is_text(table.schema.field(name).type, binary=name == "schema")
    ]
    if wrong:
        raise refused(f"manifest {address}", wrong)
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RequestError(f"manifest {address} holds text that is no UTF-8: {error}") from error
    schema = table.column("schema")
    if not pa.types.is_dictionary(schema.type):
        schema = schema.dictionary_encode()
    return table.set_column(table.column_names.index("schema"), "schema", schema.unify_dictionaries())


def _is_text(kind: pa.DataType, *, binary: bool) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(text or (binary and (pa.types.is_binary(kind) or pa.types.is_large_binary(kind))))


def _row_faults(table: pa.Table, root: str) -> list[str]:
    """Faults that the rows themselves show, each with row number (from 0), doc_id, what is wrong and the fix."""
    faults: list[str] = []
    columns = {name: table.column(name).to_pylist() for name in COLUMNS if name != "schema"}
    times = Counter(columns["doc_id"])
    first: dict[str, int] = {}
    encoded = table.column("schema").combine_chunks()
    schema_faults = [_schema_fault(schema) for schema in encoded.dictionary.to_pylist()]
    for row, schema in enumerate(encoded.indices.to_pylist()):
        doc_id = columns["doc_id"][row]
        said = []
        if doc_id is None:
            said.append("doc_id is null; give every document an id")
        else:
            try:
                storage.encode_id(doc_id)
            except ValueError as error:
                said.append(f"{error}; choose an id that can name a file")
            if times[doc_id] > 1 and first.setdefault(doc_id, row) != row:
                said.append(f"the same doc_id as row {first[doc_id]}; ids must be unique")
        suite = columns["suite"][row]
        if suite == HIVE_NULL:
            said.append(f"suite {suite!r} is what readers of hive tables take for null; choose another name")
        elif not suite:
            said.append("suite is empty; name the part of the corpus the document belongs to")
        elif len(quote(suite)) > LONGEST_SUITE or "\0" in suite:
            said.append(
                f"suite {suite[:40]!r}... cannot name a folder; at most {LONGEST_SUITE} characters when encoded"
            )
        for name in ("doc_path", "gt_path"):
            path = columns[name][row]
            if not path:
                said.append(f"{name} is empty; give a path below {root} or an absolute one")
            elif "\0" in path:
                said.append(f"{name} holds a NUL character; give the path as it is on disk")
            elif "://" not in path and not path.startswith("/") and ".." in path.split("/"):
                said.append(f"{name} {path!r} leaves the folder {root}; give an absolute path if that is meant")
        if fault := "schema is null; give the JSON Schema itself" if schema is None else schema_faults[schema]:
            said.append(fault)
        faults.extend(f"row {row}, doc_id {doc_id!r}: {what}" for what in said)
    return faults


def _schema_fault(schema: bytes | str) -> str | None:
    try:
        value = read_json(schema.encode() if isinstance(schema, str) else schema)
    except ValueError as error:
        return f"schema is no JSON ({error}); give the JSON Schema itself, not its path"
    if not isinstance(value, dict) or not value:
        return "schema must be a JSON object that is not empty"
    return None


def _select(
    ids: list[str], of_suite: list[str], suites: Sequence[str] | None, limit: int, only: Sequence[str] | None
) -> tuple[int, ...]:
    problems = [*_unknown("suite", suites, of_suite), *_unknown("doc_id", only, ids)]
    if limit < 0:
        problems.append(f"limit={limit}: must be 0 for all documents, or more")
    if problems:
        raise refused("nothing to select", problems)
    wanted_suites, wanted_ids = set(suites or of_suite), set(only or ids)
    rows = [row for row in range(len(ids)) if of_suite[row] in wanted_suites and ids[row] in wanted_ids]
    if not rows:
        raise RequestError(
            f"the selection is empty: none of {sorted(wanted_ids)[:5]} is in suites {sorted(wanted_suites)}"
        )
    return tuple(rows[:limit] if limit else rows)


def _unknown(what: str, wanted: Iterable[str] | None, known: list[str]) -> list[str]:
    have = set(known)
    return [
        f"no {what} {name!r}; there are {', '.join(sorted(have)[:20])}" for name in wanted or () if name not in have
    ]
