"""Scores and verdicts as Arrow tables, over all runs of an output or some of them.

In: an output (or one run) and what to select. Out: tables that polars, pandas and duckdb take as they are. Only the
parts that can hold what is wanted are read: the path of a part tells run and suite, its name which documents lie in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from . import layout, storage
from .errors import RequestError, refused, suggestion
from .scorers import find
from .scoring.field_matching.verdicts import KINDS
from .stored import StoredRun, runs_at
from .tables import read_part

Some = str | Collection[str] | None  # one, several, or None for all
AT_ONCE = 8  # parts read together


@dataclass(frozen=True)
class Wanted:
    """Which rows: those whose columns hold one of the values given; None for all.

    ``field`` holds written names of fields or of what they lie under, or paths of single values.
    """

    suite: frozenset[str] | None = None
    doc_id: frozenset[str] | None = None
    field: frozenset[str] | None = None
    verdict: frozenset[str] | None = None

    def may_lie_in(self, home: layout.Home) -> bool:
        """Whether a part can hold any of the rows; one without a suite's folder holds documents of any."""
        if self.suite is not None and home.suite and home.suite not in self.suite:
            return False
        return self.doc_id is None or any(layout.may_hold(home.part, doc_id) for doc_id in self.doc_id)

    def of(self, table: pa.Table) -> pa.Table:
        """The rows of a table."""
        for name in ("suite", "doc_id", "verdict"):
            values = getattr(self, name)
            if values is not None:
                table = table.filter(_is_one_of(table, name, values))
        if self.field is not None:
            chosen = pc.or_(_is_one_of(table, "field", self.field), _is_one_of(table, "path", self.field))
            for name in self.field:
                for below in (f"{name}.", f"{name}["):
                    chosen = pc.or_(chosen, pc.starts_with(table.column("field"), pattern=below))
            table = table.filter(chosen)
        return table


EVERYTHING = Wanted()


def chosen(suite: Some = None, doc_id: Some = None, field: Some = None, verdict: Some = None) -> Wanted:
    """What a caller asks for. Raises RequestError for an unknown kind of verdict."""
    wanted = Wanted(_values(suite), _values(doc_id), _values(field), _values(verdict))
    unknown = [
        f"no verdict {kind!r}; {suggestion(kind, KINDS)}" for kind in sorted(wanted.verdict or ()) if kind not in KINDS
    ]
    if unknown:
        raise refused("verdicts", unknown)
    return wanted


def _is_one_of(table: pa.Table, name: str, values: Iterable[str]) -> Any:
    return pc.is_in(table.column(name), value_set=pa.array(sorted(values), pa.string()))


def read_scores(
    out: str,
    run: Some = None,
    doc_id: Some = None,
    *,
    suite: Some = None,
    columns: Iterable[str] | None = None,
    scorer: str = layout.FIRST_SCORER,
) -> pa.Table:
    """One row per recorded document and run, sorted by run, suite and doc_id.

    Args:
        out: an output, or the folder of one run; a path or URL.
        run, doc_id, suite: one name or several; None for all.
        columns: these only, in this order. Ratios are 0 to 1; counts are of values; ``status`` is ``scored`` or
            ``error`` (then ``error`` says why and the figures are null). Further columns of a table of predictions
            follow.
        scorer: whose rows.

    Raises:
        RequestError: nothing is there, an unknown run, column or scorer. InternalError: a part is damaged.
    """
    wanted, schema = Wanted(_values(suite), _values(doc_id)), find(scorer).scores
    name = layout.below(scorer, layout.SCORES)
    tables = [_named(table, stored) for stored in _runs(out, run) for table in parts(stored, name, schema, wanted)]
    table = pa.concat_tables(tables, promote_options="default") if tables else schema.empty_table()
    names = _columns(table.schema, columns)
    return table.sort_by([(key, "ascending") for key in ("run", "suite", "doc_id")]).select(names)


def _named(scores: pa.Table, stored: StoredRun) -> pa.Table:
    """Score rows with the name of their run, which tables of predictions scored alone lack."""
    where = scores.column_names.index("run")
    return scores.set_column(where, "run", pc.fill_null(scores.column("run"), stored.name))


def read_verdicts(
    out: str,
    run: Some = None,
    doc_id: Some = None,
    *,
    suite: Some = None,
    field: Some = None,
    verdict: Some = None,
    columns: Iterable[str] | None = None,
    scorer: str = layout.FIRST_SCORER,
) -> pa.Table:
    """One row per value, grouped by run, suite and document, each document's in reading order.

    Args:
        out: an output, or the folder of one run; a path or URL.
        run, doc_id, suite: one name or several; None for all.
        field: written names such as ``line_items[*].qty``; ``line_items`` for all that lies under it; a value's path.
        verdict: kinds such as ``misread``.
        columns: these only, in this order. ``gold_raw`` and ``pred_raw`` are JSON texts with every digit.
        scorer: whose verdicts; ``field`` and ``verdict`` select among those of field_matching.

    Raises:
        RequestError: nothing is there, an unknown run, column, kind or scorer. InternalError: a part is damaged.
    """
    verdicts = find(scorer).verdicts
    schema = pa.schema([("run", pa.string()), *verdicts])
    names = _columns(schema, columns)
    wanted = chosen(suite, doc_id, field, verdict)
    # Columns that select are read as well.
    needed = {"doc_id", *names, *(name for name in ("suite", "field", "verdict") if getattr(wanted, name) is not None)}
    needed |= {"path"} if wanted.field is not None else set()
    _columns(schema, sorted(needed))
    stored_schema = pa.schema([column for column in verdicts if column.name in needed])
    tables = [
        with_run(table, stored).select(names)
        for stored in _runs(out, run)
        for table in parts(stored, layout.below(scorer, layout.VERDICTS), stored_schema, wanted)
    ]
    return pa.concat_tables(tables) if tables else schema.empty_table().select(names)


def with_run(verdicts: pa.Table, stored: StoredRun) -> pa.Table:
    """Verdict rows with the name of their run in front."""
    return verdicts.add_column(0, "run", pa.repeat(pa.scalar(stored.name), verdicts.num_rows))


def parts(stored: StoredRun, table: str, schema: pa.Schema, wanted: Wanted = EVERYTHING) -> Iterator[pa.Table]:
    """What is wanted of a run's table, part by part; ``schema`` must hold doc_id and the columns that select.

    A document that lies in two parts for a while, since the corpus has grown, is given once.
    """
    folder = storage.join(stored.address, table)
    found = [(layout.home_of_key(key), key) for key in storage.listed(folder) if key.endswith(".parquet")]
    homes = {key: home or layout.Home("", key) for home, key in found if home or "/" not in key}
    keys = [key for key, home in homes.items() if wanted.may_lie_in(home)]
    keys.sort(key=lambda key: (homes[key].suite, -layout.precedence(homes[key].part), key))
    for _, members in itertools.groupby(keys, key=lambda key: homes[key].suite):
        listed = list(members)
        mixed = len({layout.precedence(homes[key].part) for key in listed}) > 1
        seen: set[Any] = set()
        for read in _read_all(
            [storage.join(folder, key) for key in listed], schema, further=table.endswith(layout.SCORES)
        ):
            fresh = read
            if mixed:
                ids = set(pc.unique(read.column("doc_id")).to_pylist())
                if ids & seen:
                    fresh = read.filter(pc.invert(pc.is_in(read.column("doc_id"), value_set=pa.array(sorted(seen)))))
                seen |= ids
            chosen = wanted.of(fresh)
            if chosen.num_rows:
                yield chosen


def _read_all(addresses: list[str], schema: pa.Schema, *, further: bool) -> Iterator[pa.Table]:
    """Parts in the order given, a few ahead."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for start in range(0, len(addresses), AT_ONCE):
            some = addresses[start : start + AT_ONCE]
            yield from threads.map(lambda address: read_part(address, schema, further=further), some)


def _runs(out: str, run: Some) -> list[StoredRun]:
    names = _values(run)
    return [] if names is not None and not names else runs_at(str(out), sorted(names or ()))


def _values(given: Some) -> frozenset[str] | None:
    return None if given is None else frozenset([given] if isinstance(given, str) else given)


def _columns(schema: pa.Schema, chosen: Iterable[str] | None) -> list[str]:
    names = list(schema.names if chosen is None else chosen)
    for name in names:
        if name not in schema.names:
            raise RequestError(f"no column {name!r}; {suggestion(name, schema.names)}")
    return names
