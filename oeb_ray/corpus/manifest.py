"""The Parquet manifest: one row per document, its schema inline.

In: the address of a manifest (path or URL), and what to select. Out: a Corpus, or one error that names every fault of
the manifest at once. Documents and golds are not opened here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from urllib.parse import quote

import pyarrow as pa

from .. import storage
from ..digests import text_digest
from ..errors import RequestError, refused
from ..records import ABSENT, Doc, FileStamp
from . import tasks
from .columns import faulty, path_fault, read_file, resolved, schema_fault, schema_text, schemas_of, texts
from .hub import pinned

COLUMNS = ("doc_id", "suite", "doc_path", "gt_path", "schema")
ANNOTATIONS = "annotations_path"  # a column that a manifest may have
LONGEST_SUITE = 200
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Corpus:
    """All documents of a corpus, column by column in the order of the manifest, and which of them are selected.

    ``identity`` is what makes it the same corpus on resume; ``commit`` its version, if it has one. ``doc_paths``,
    ``gt_paths`` and ``annotations`` (see Doc; empty if the manifest has none) are absolute paths or URLs; ``stamps``
    maps them to size and ETag or modification time. ``schemas`` are the distinct schemas as JSON text with their
    digests, ``schema_of`` the position in them. ``selected`` holds positions of documents. ``address``: of the
    manifest; ``root``: where its relative paths start.
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
    address: str
    root: str
    commit: str | None = None
    annotations: Sequence[str | None] = ()

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
            self.annotations[position] if self.annotations else None,
        )


def load(
    address: str,
    *,
    data_root: str | None = None,
    suites: Sequence[str] | None = None,
    limit: int = 0,
    only: Sequence[str] | None = None,
    identity: str | None = None,
    commit: str | None = None,
    absent: Mapping[str, int] = MappingProxyType({}),
) -> Corpus:
    """Reads and checks a manifest.

    Args:
        address: path or URL of the Parquet file, or of harbor-manifest.json beside Harbor tasks (see tasks.py).
        data_root: where relative paths start; the manifest's folder if None.
        suites: select these suites only. only: select these doc_ids only. limit: then the first so many; 0 for all.
        identity: the corpus's name; the manifest's address if None. commit: its version, if it has one.
        absent: sizes of files that a plan may count on and that are not to be opened, by address.

    Raises:
        RequestError: no such file, no Parquet, missing columns, faulty rows or files, or nothing selected.
    """
    address = storage.absolute(address)
    source, at = pinned(address)
    table = _table(source, address)
    root = storage.absolute(data_root) if data_root else storage.parent(address)
    faults = _row_faults(table, root)
    if faults:
        raise faulty("manifest", address, faults)
    place = pinned(root)[0] if data_root else storage.parent(source)
    place_of = cache(lambda path: resolved(path, place))
    paths = {name: list(map(place_of, texts(table, name))) for name in ("doc_path", "gt_path")}
    place_of.cache_clear()
    annotations: list[str | None] = [None] * len(table)
    if ANNOTATIONS in table.column_names:
        annotations = [path and resolved(path, place) for path in table.column(ANNOTATIONS).to_pylist()]
    wanted = {*paths["doc_path"], *paths["gt_path"], *filter(None, annotations)}
    stamps = storage.stat_many(wanted) | {path: FileStamp(absent[path], ABSENT) for path in wanted & absent.keys()}
    ids, of_suite = texts(table, "doc_id"), texts(table, "suite")
    faults = [
        f"row {row}, doc_id {ids[row]!r}: no {what} at {path}; fetch the corpus or set data_root"
        for what, column in (("document", paths["doc_path"]), ("gold", paths["gt_path"]), ("annotations", annotations))
        for row, path in enumerate(column)
        if path and path not in stamps
    ]
    if faults:
        raise faulty("manifest", address, faults)
    distinct, schema_of = schemas_of(table)
    schemas = [schema_text(schema) for schema in distinct]
    return Corpus(
        identity or address,
        ids,
        of_suite,
        paths["doc_path"],
        paths["gt_path"],
        schemas,
        [text_digest(schema) for schema in schemas],
        [number for number in schema_of if number is not None],  # all of them, or it would be a fault
        stamps,
        _select(ids, of_suite, suites, limit, only),
        address,
        root,
        commit or at,
        annotations,
    )


def _table(source: str, address: str) -> pa.Table:
    """The rows of a Parquet file, or of the tasks that lie beside a Harbor manifest. ``address``: as it was given."""
    if source.rsplit("/", 1)[-1] == tasks.MANIFEST:
        if (table := tasks.read_tasks(storage.parent(source))) is None:
            raise RequestError(f"no task at {storage.parent(address)}; give the folder that holds them")
        return table
    try:
        return read_file(source, "manifest", COLUMNS, optional=[ANNOTATIONS])
    except FileNotFoundError:
        raise RequestError(f"no manifest file at {address}; give one with --manifest or corpus.manifest=") from None


def _row_faults(table: pa.Table, root: str) -> list[str]:
    """Faults that the rows themselves show, each with row number (from 0), doc_id, what is wrong and the fix."""
    faults: list[str] = []
    columns = {name: table.column(name).to_pylist() for name in table.column_names if name != "schema"}
    times = Counter(columns["doc_id"])
    first: dict[str, int] = {}
    distinct, schema_of = schemas_of(table)
    schema_faults = [schema_fault(schema) for schema in distinct]
    suite_faults = {suite: _suite_fault(suite) for suite in set(columns["suite"])}
    for row, schema in enumerate(schema_of):
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
        if suite_fault := suite_faults[columns["suite"][row]]:
            said.append(suite_fault)
        given = {name: columns[name][row] for name in columns if name.endswith("_path")}
        paths = (path_fault(name, path, root) for name, path in given.items() if path or name != ANNOTATIONS)
        said.extend(fault for fault in paths if fault)
        if fault := "schema is null; give the JSON Schema itself" if schema is None else schema_faults[schema]:
            said.append(fault)
        faults.extend(f"row {row}, doc_id {doc_id!r}: {what}" for what in said)
    return faults


def _suite_fault(suite: str | None) -> str:
    if suite == HIVE_NULL:
        return f"suite {suite!r} is what readers of hive tables take for null; choose another name"
    if not suite:
        return "suite is empty; name the part of the corpus the document belongs to"
    if len(quote(suite)) > LONGEST_SUITE or "\0" in suite:
        return f"suite {suite[:40]!r}... cannot name a folder; at most {LONGEST_SUITE} characters when encoded"
    return ""


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
