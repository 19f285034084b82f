"""The tables on disk: declared Arrow schemas, parts written and read, receipts.

In: score rows, verdict columns, Receipts. Out: Parquet bytes that are the same for the same input, and back.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from . import storage
from .digests import text_digest
from .errors import InternalError
from .jsontext import printable, raw_json
from .records import FileStamp, Receipt, ScoreItem
from .scoring.field_matching.scorer import Scored
from .scoring.field_matching.verdicts import KINDS, SKIPPED
from .scoring.field_matching.written import Written

RATIOS = ("accuracy", "precision", "recall", "f1", "addresses_found", "addresses_read_right")
SCORE_KEYS = (
    "accuracy precision recall f1 total matched misread unfound fabricated invented_item invented_field asserted "
    "addresses_found addresses_read_right gt_rows pred_rows matched_rows matching_exact approximated skipped_open_maps"
).split()


def _metric_type(key: str) -> pa.DataType:
    if key in RATIOS:
        return pa.float64()
    return {
        "matching_exact": pa.bool_(),
        "approximated": pa.list_(pa.int64()),
        "skipped_open_maps": pa.list_(pa.string()),
    }.get(key, pa.int64())


_TEXT = pa.string()
SCORES = pa.schema(
    [("doc_id", _TEXT), ("suite", _TEXT), ("provider", _TEXT), ("status", _TEXT)]
    + [(key, _metric_type(key)) for key in SCORE_KEYS]
    + [(key, _TEXT) for key in ("run", "error", "scorer", "prediction_sha256", "gold_sha256", "schema_sha256")]
)
VERDICTS = pa.schema(
    [(key, _TEXT) for key in "doc_id suite address path field gold_raw pred_raw gold_canon pred_canon verdict".split()]
)
_VERDICT_DICTIONARIES = ["doc_id", "suite", "field", "verdict"]
RECEIPTS = pa.schema(
    [
        ("doc_id", _TEXT), ("error", _TEXT), ("error_type", _TEXT), ("retryable", pa.bool_()),
        ("prediction_sha256", _TEXT), ("prediction_bytes", pa.int64()), ("schema_sha256", _TEXT), ("doc_sha256", _TEXT),
        ("doc_size", pa.int64()), ("doc_stamp", _TEXT), ("usd", pa.float64()), ("credits", pa.float64()),
        ("tokens_in", pa.int64()), ("tokens_out", pa.int64()), ("wall_s", pa.float64()), ("attempts", pa.int64()),
        ("unpriced", pa.int64()),
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


def part_stamp(scorer: str, items: Iterable[ScoreItem], gold_sha256: dict[str, str]) -> str:
    """What a part was made from: the scorer with its version, and every document's digests."""
    lines = [f"{TABLE_FORMAT} {scorer}"]
    for item in items:
        made_from = item.prediction_sha256 or f"error {item.error}"
        lines.append(json.dumps([item.doc_id, made_from, gold_sha256.get(item.doc_id), item.schema_sha256]))
    return text_digest("\n".join(lines))


def score_table(rows: list[dict[str, Any]], further: pa.Table | None = None) -> pa.Table:
    """Score rows as an Arrow table of schema SCORES; ``further`` columns of the same rows follow theirs."""
    table = pa.Table.from_pylist([{key: _stored(value) for key, value in row.items()} for row in rows], SCORES)
    if further is not None:
        for name, column in zip(further.column_names, further.columns, strict=True):
            table = table.append_column(pa.field(name, column.type), column)
    return table


def score_part(rows: list[dict[str, Any]], stamp: str | None, further: pa.Table | None = None) -> bytes:
    """Score rows, in the order given, as a part; see `score_table`."""
    table = score_table(rows, further)
    return parquet(table, stamp, ["suite", "provider", "status", "run", "error", "scorer"])


def _stored(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return [_stored(member) for member in value] if isinstance(value, list) else value


def verdict_part(scored: Iterable[tuple[str, str | None, Scored]], stamp: str | None) -> bytes:
    """Verdicts of (doc_id, suite, Scored), in the order given, as a part."""
    return parquet(verdict_tables(scored).combine_chunks(), stamp, _VERDICT_DICTIONARIES)


def verdict_tables(scored: Iterable[tuple[str, str | None, Scored]]) -> pa.Table:
    """Verdicts of (doc_id, suite, Scored), in the order given, as one table."""
    tables = [verdict_table(doc_id, suite, one) for doc_id, suite, one in scored]
    return pa.concat_tables(tables) if tables else VERDICTS.empty_table()


def verdict_table(doc_id: str, suite: str | None, scored: Scored) -> pa.Table:
    """One document's verdicts as an Arrow table of schema VERDICTS."""
    columns, skipped = scored.columns, len(scored.open_maps)
    texts = Written(scored)
    count = skipped + len(columns)
    none: list[str | None] = [None] * skipped
    keys = [printable(key) for key in scored.keys] if columns.kind else []
    arrays = {
        "doc_id": pa.repeat(pa.scalar(printable(doc_id)), count),
        "suite": pa.repeat(pa.scalar(suite and printable(suite), _TEXT), count),
        "address": pa.array(texts.address, _TEXT),
        "path": pa.array([printable(path) for path in texts.path], _TEXT),  # a prediction's keys may be any text
        "field": pa.array([printable(field) for field in texts.field], _TEXT),
        "gold_raw": pa.array(none + _raws(columns.gold_raw, columns.gold), _TEXT),
        "pred_raw": pa.array(none + _raws(columns.pred_raw, columns.pred), _TEXT),
        "gold_canon": pa.array(none + [keys[number] if number else None for number in columns.gold], _TEXT),
        "pred_canon": pa.array(none + [keys[number] if number else None for number in columns.pred], _TEXT),
        "verdict": pa.array([KINDS[SKIPPED]] * skipped + [KINDS[kind] for kind in columns.kind], _TEXT),
    }
    return pa.table(arrays, schema=VERDICTS)


def _raws(values: list[Any], present: list[int]) -> list[str | None]:
    known: dict[str, str] = {}
    texts: list[str | None] = []
    for value, here in zip(values, present, strict=True):
        if not here:
            texts.append(None)
        elif type(value) is str:
            text = known.get(value)
            if text is None:
                text = known[value] = raw_json(value)
            texts.append(text)
        else:
            texts.append(raw_json(value))
    return texts


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

_RECEIPT_FIELDS = [field.name for field in fields(Receipt)]


def receipts_table(receipts: Iterable[Receipt]) -> bytes:
    """Receipts as one Parquet file, sorted by doc_id."""
    rows = sorted((asdict(receipt) for receipt in receipts), key=lambda row: row["doc_id"])
    for row in rows:
        row["error"] = printable(row["error"]) if row["error"] else row["error"]
    return parquet(pa.Table.from_pylist(rows, RECEIPTS), None, ["error", "error_type"])


def read_receipts(data: bytes) -> list[Receipt]:
    """The receipts of one file; none if it is damaged, since they can be made again from the records."""
    return [Receipt(**{name: row[name] for name in _RECEIPT_FIELDS}) for row in _rows(data, RECEIPTS)]


def _rows(data: bytes, schema: pa.Schema) -> list[dict[str, Any]]:
    """Rows of an index; none if it is damaged or has other columns, since an index can be made again."""
    try:
        return list(_read(data, schema).to_pylist())
    except (pa.ArrowException, KeyError, ValueError, OSError):
        return []


DIGESTS = pa.schema([("address", _TEXT), ("size", pa.int64()), ("stamp", _TEXT), ("sha256", _TEXT)])


def digests_table(known: dict[str, tuple[FileStamp, str]]) -> bytes:
    """Digests of files with the size and stamp that they had, as a Parquet file."""
    rows = [
        {"address": printable(address), "size": stamp.size, "stamp": stamp.stamp, "sha256": sha256}
        for address, (stamp, sha256) in sorted(known.items())
    ]
    return parquet(pa.Table.from_pylist(rows, DIGESTS))


def read_digests(data: bytes) -> dict[str, tuple[FileStamp, str]]:
    """What `digests_table` wrote; nothing if it is damaged, since digests can be made again."""
    return {row["address"]: (FileStamp(row["size"], row["stamp"]), row["sha256"]) for row in _rows(data, DIGESTS)}


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
