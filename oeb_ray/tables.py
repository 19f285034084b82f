"""The tables on disk: declared Arrow schemas, parts written and read, receipts.

In: score rows, what verdicts are made from, Receipts. Out: Parquet bytes, the same for the same input, and back.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from . import storage
from .arrow import release_memory
from .digests import text_digest
from .errors import InternalError
from .jsontext import printable
from .records import FileStamp, Receipt, ScoreItem
from .scorers.contract import Scorer

_TEXT = pa.string()
RECEIPTS = pa.schema(
    [
        ("doc_id", _TEXT), ("error", _TEXT), ("error_type", _TEXT), ("retryable", pa.bool_()),
        ("prediction_sha256", _TEXT), ("prediction_bytes", pa.int64()), ("schema_sha256", _TEXT), ("doc_sha256", _TEXT),
        ("doc_size", pa.int64()), ("doc_stamp", _TEXT), ("usd", pa.float64()), ("credits", pa.float64()),
        ("tokens_in", pa.int64()), ("tokens_out", pa.int64()), ("wall_s", pa.float64()), ("attempts", pa.int64()),
        ("unpriced", pa.int64()), ("pages", pa.int64()),
    ]
)  # fmt: skip
STAMP = b"oeb.stamp"
TABLE_FORMAT = "1"  # goes into the stamp: parts of another format are made again


def parquet(table: pa.Table, stamp: str | None = None, dictionaries: Sequence[str] = ()) -> bytes:
    """A table as Parquet: zstd, one row group, ``stamp`` in its metadata."""
    if stamp is not None:
        table = table.replace_schema_metadata({STAMP: stamp.encode()})
    sink = io.BytesIO()
    pq.write_table(
        table, sink, compression="zstd", use_dictionary=list(dictionaries) if dictionaries else False,
        row_group_size=max(1, table.num_rows), write_statistics=True,
    )  # fmt: skip
    return sink.getvalue()


def parquet_of(tables: Iterable[pa.Table], schema: pa.Schema, dictionaries: Sequence[str]) -> bytes:
    """Tables, one after the other, as one Parquet file with a row group of each; never all in memory uncompressed."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=list(dictionaries)) as writer:
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))
    return sink.getvalue()


ROWS_AT_ONCE = 5_000  # of an index
FOOTER_BYTES = 16_384  # what is read of a part to learn its stamp


def stamp_at(address: str) -> str | None:
    """The stamp of a stored part, from its last bytes; None if there is no part, or none of ours."""
    try:
        tail = storage.read_tail(address, FOOTER_BYTES)
        length = int.from_bytes(tail[-8:-4], "little") + 8
        if length > len(tail):
            tail = storage.read_tail(address, length)
        # To the reader a file is its first and last four bytes and the footer before them.
        metadata = pq.read_metadata(io.BytesIO(b"PAR1" + tail[-length:])).metadata
    except (FileNotFoundError, pa.ArrowException, OSError):
        return None
    return metadata[STAMP].decode() if metadata and STAMP in metadata else None


def part_stamp(scorer: Scorer, items: Iterable[ScoreItem], digests: Mapping[str, str]) -> str:
    """What a part was made from: the scorer with its version, and every document's ``digests``, by address."""
    lines = [f"{TABLE_FORMAT} {scorer.label}"]
    for item in items:
        made_from = item.prediction_sha256 or f"error {item.error}"
        annotated = [digests.get(item.annotations)] if item.annotations and scorer.reads_annotations else []
        lines.append(json.dumps([item.doc_id, made_from, digests.get(item.gt_path), item.schema_sha256, *annotated]))
    return text_digest("\n".join(lines))


def score_table(scorer: Scorer, rows: list[dict[str, Any]], further: pa.Table | None = None) -> pa.Table:
    """A scorer's rows as an Arrow table of its schema; ``further`` columns of the same rows follow theirs."""
    stored = [{key: _stored(value) for key, value in row.items()} for row in rows]
    table = pa.Table.from_pylist(stored, scorer.scores)
    if further is not None:
        for name, column in zip(further.column_names, further.columns, strict=True):
            table = table.append_column(pa.field(name, column.type), column)
    return table


def score_part(scorer: Scorer, rows: list[dict[str, Any]], stamp: str | None, further: pa.Table | None = None) -> bytes:
    """Score rows, in the order given, as a part; see `score_table`."""
    table = score_table(scorer, rows, further)
    return parquet(table, stamp, ["suite", "provider", "status", "run", "error", "scorer"])


def _stored(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return [_stored(member) for member in value] if isinstance(value, list) else value


def verdict_part(scorer: Scorer, tables: Sequence[pa.Table], stamp: str | None) -> bytes:
    """Verdicts of documents, in the order given, as a part."""
    return parquet(verdict_table(scorer, tables).combine_chunks(), stamp, scorer.repeating)


def verdict_table(scorer: Scorer, tables: Sequence[pa.Table]) -> pa.Table:
    """Verdicts of documents, in the order given, as one table."""
    return pa.concat_tables(tables) if tables else scorer.verdicts.empty_table()


def _read(data: bytes, schema: pa.Schema, *, further: bool = False) -> pa.Table:
    """A whole file with the declared columns, and after them its ``further`` ones if they are wanted.

    Not by pyarrow.parquet.read_table: its scanner's threads may still be there when a short process ends, and abort it.
    """
    table = pq.ParquetFile(io.BytesIO(data)).read(None if further else schema.names, use_threads=False)
    others = [name for name in table.column_names if name not in schema.names]
    declared = table.select(schema.names).cast(schema)
    for name in others:
        declared = declared.append_column(name, table.column(name))
    return declared


# --- receipts -----------------------------------------------------------------------------------------------------


def receipts_table(receipts: Iterable[Receipt]) -> bytes:
    """Receipts as one Parquet file, sorted by doc_id."""
    listed = sorted(receipts, key=lambda receipt: receipt.doc_id)
    columns = {name: [getattr(receipt, name) for receipt in listed] for name in RECEIPTS.names if name != "error"}
    errors = [printable(receipt.error) if receipt.error else receipt.error for receipt in listed]
    return parquet(pa.table(columns | {"error": errors}, RECEIPTS), None, ["error", "error_type"])


def merged_receipts(files: Iterable[bytes], without: Collection[str]) -> bytes:
    """Files of receipts as one, with the receipt of the latest attempt of each document; those ``without`` left out.

    A file that is damaged is passed over. No receipt becomes a Python object: there may be millions.
    """
    tables = [RECEIPTS.empty_table()]
    for data in files:
        with suppress(pa.ArrowException, KeyError, ValueError, OSError):
            tables.append(_read(data, RECEIPTS))
    table = pa.concat_tables(tables)
    if without:
        named = pa.array(sorted(without), pa.string())
        table = table.filter(pc.invert(pc.is_in(table.column("doc_id"), value_set=named)))
    order = pa.array(range(len(table)), pa.int64())  # of two with as many attempts the later one
    table = table.append_column("order", order).sort_by(
        [(name, "ascending") for name in ("doc_id", "attempts", "order")]
    )
    ids = table.column("doc_id").combine_chunks()
    if len(ids):
        is_last = pa.concat_arrays([pc.not_equal(ids[:-1], ids[1:]), pa.array([True])])
        table = table.filter(is_last)
    return parquet(table.select(RECEIPTS.names).combine_chunks(), None, ["error", "error_type"])


def read_receipts(data: bytes) -> Iterator[Receipt]:
    """The receipts of one file, as far as it can be read, since they can be made again from the records."""
    return (Receipt(*row) for row in _rows(data, RECEIPTS))


def _rows(data: bytes, schema: pa.Schema) -> Iterator[tuple[Any, ...]]:
    """Rows of an index, some at a time; those before a damage, none if it has other columns: it can be made again."""
    try:
        batches = pq.ParquetFile(io.BytesIO(data)).iter_batches(ROWS_AT_ONCE, columns=schema.names, use_threads=False)
        for batch in batches:  # each thread of Arrow's would keep memory of its own
            yield from zip(*map(_values, batch.select(schema.names).cast(schema).columns), strict=True)
    except (pa.ArrowException, KeyError, ValueError, OSError):
        return
    release_memory()


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; equal texts that repeat are one object, since there are very many rows."""
    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        words = coded.dictionary.to_pylist()
        if 2 * len(words) < len(column):
            return [None if number is None else words[number] for number in coded.indices.to_pylist()]
    return list(column.to_pylist())


DIGESTS = pa.schema([("address", _TEXT), ("size", pa.int64()), ("stamp", _TEXT), ("sha256", _TEXT)])


def digests_table(known: dict[str, tuple[FileStamp, str]]) -> bytes:
    """Digests of files with the size and stamp that they had, as a Parquet file."""
    rows = ((printable(address), *known[address][0], known[address][1]) for address in sorted(known))
    return parquet_of(
        (pa.table([list(column) for column in zip(*some, strict=True)], DIGESTS) for some in _chunks(rows)), DIGESTS, []
    )


def _chunks(rows: Iterable[Any]) -> Iterator[list[Any]]:
    rows = iter(rows)
    while some := list(itertools.islice(rows, ROWS_AT_ONCE)):
        yield some


def read_digests(data: bytes) -> dict[str, tuple[FileStamp, str]]:
    """What `digests_table` wrote; nothing if it is damaged, since digests can be made again."""
    return {address: (FileStamp(size, stamp), sha256) for address, size, stamp, sha256 in _rows(data, DIGESTS)}


# --- reading what was written -------------------------------------------------------------------------------------


class DamagedPart(InternalError):
    """A part that cannot be read; ``address`` says which."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address

    def __str__(self) -> str:
        return f"{self.address} is damaged: {self.args[1]}"


def read_parts(addresses: Sequence[str], schema: pa.Schema) -> pa.Table:
    """Parts of one table, concatenated in the order given. Raises DamagedPart."""
    with ThreadPoolExecutor(8) as threads:
        tables = list(threads.map(lambda address: read_part(address, schema), addresses))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def read_part(address: str, schema: pa.Schema, *, further: bool = False) -> pa.Table:
    """One part with the columns of ``schema``, and after them its ``further`` ones if wanted. Raises DamagedPart."""
    try:
        return _read(storage.read(address), schema, further=further).replace_schema_metadata(None)
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise DamagedPart(address, str(error)) from error
