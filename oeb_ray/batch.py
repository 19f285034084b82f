"""A whole table of predictions scored in this process, or in several, without a cluster.

In: a table with where golds and predictions lie. Out: ``scores.parquet/`` and ``verdicts.parquet/`` below an output,
in parts that depend on the table alone: neither on the number of processes nor on the order of the rows.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import layout, storage
from .corpus.predictions import KNOWN, Predictions, load_predictions
from .digests import digest, text_digest
from .errors import InternalError, refused, suggestion
from .scorers import find
from .scorers.contract import Given, Scorer, parsed_schema
from .scoring.field_matching.names import known_names
from .tables import score_part, verdict_part

READERS = 8  # files of a part that are read at once
SAID_EVERY = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class _Item:
    """One row: where gold and prediction are, and what stands in the table's own columns."""

    doc_id: str
    gt_path: str
    pred_path: str | None
    schema: str
    known: dict[str, str | None]
    annotations: str | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one part, sorted by doc_id, with their ``further`` columns (an Arrow table)."""

    out: str
    name: str
    items: tuple[_Item, ...]
    further: Any
    verdicts: bool
    order_matters: tuple[str, ...]
    scorer: str


class _Done(NamedTuple):
    """``rows``: the score rows as far as a summary needs them; how many golds and predictions were there."""

    rows: list[dict[str, Any]]
    golds: int
    predictions: int


@dataclass
class Tally:
    """What came of a table. ``summary``: see summarize; ``errors``: how often each reason; ``notes`` for people."""

    summary: dict[str, Any]
    errors: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def score_table(
    manifest: str,
    out: str,
    *,
    root: str | None = None,
    jobs: int = 1,
    verdicts: bool = True,
    order_matters: Sequence[str] = (),
    scorer: str = layout.FIRST_SCORER,
    say: Callable[[str], None] = lambda text: None,
) -> Tally:
    """Scores every row of a table and writes the two tables below ``out``, in place of an earlier result there.

    Args:
        manifest: path or URL of the table, see load_predictions. root: where its relative paths start.
        out: folder or URL. jobs: processes. verdicts: also write verdicts.
        order_matters: names of arrays whose order counts, in the documents that have them.
        scorer: its tables lie where a run has them, see layout.below. A column ``annotations_path`` says what it may
            know beside the gold.
        say: told now and then how far it is.

    Raises:
        RequestError: the table, a name in ``order_matters``, or an output with other work; nothing was written.
        StorageError, InternalError: what stopped it.
    """
    used = find(scorer)
    table = load_predictions(manifest, root=root, taken=used.scores.names)
    out = storage.absolute(out)
    tables = [layout.below(scorer, name) for name in (layout.SCORES, layout.VERDICTS)]
    _check(table, out, tables, jobs, order_matters)
    parts = _parts(table, out, verdicts, tuple(order_matters), used)
    for name in tables:  # what is interrupted is short, never a mixture of two
        for key in storage.listed(storage.join(out, name)):
            storage.delete(storage.join(out, name, key))
    done = _all_done(parts, jobs, len(table), say)
    rows = sorted((row for one in done for row in one.rows), key=lambda row: (row["suite"], row["doc_id"]))
    notes = [*table.notes, *_where_to_look(table, done)]
    return Tally(used.summarize(rows), Counter(row["error"] for row in rows if row["status"] == "error"), notes)


def _check(table: Predictions, out: str, tables: list[str], jobs: int, order_matters: Sequence[str]) -> None:
    problems = []
    if jobs < 1:
        problems.append(f"jobs={jobs}: wants at least 1 process")
    if jobs > 1 and storage.protocol_of(out) == "memory":
        problems.append(f"{out}: memory is seen by one process only; use jobs=1 or another place")
    known: set[str] = set()
    if order_matters:
        for schema in table.schemas:
            try:
                known |= known_names(parsed_schema(schema))
            except Exception as error:  # a schema of a shape that nobody expects: its rows say so
                del error
    problems += [
        f"order_matters: no schema of the table has an array {name!r}; {suggestion(name, sorted(known))}"
        for name in order_matters
        if name not in known
    ]
    for name in tables:
        others = [key for key in storage.listed(storage.join(out, name)) if layout.home_of_key(f"suite=/{key}") is None]
        if others:
            problems.append(f"{storage.join(out, name, others[0])} is no part of such a table; choose another --out")
    if problems:
        raise refused("this cannot be scored", problems)


def _parts(
    table: Predictions, out: str, verdicts: bool, order_matters: tuple[str, ...], scorer: Scorer
) -> dict[str, _Part]:
    """The parts by file name; a document's depends on its id, the size of its gold and the number of rows."""
    stamps = storage.stat_many(set(table.gt_paths))
    annotations = table.annotations() if scorer.reads_annotations else [None] * len(table)
    sizes = [stamps[path].size if path in stamps else 0 for path in table.gt_paths]
    members: dict[str, list[int]] = {}
    for position, home in enumerate(layout.homes(table.ids, [""] * len(table), sizes)):
        members.setdefault(home.part, []).append(position)
    parts = {}
    for name in sorted(members, key=lambda name: -sum(sizes[position] for position in members[name])):
        positions = sorted(members[name], key=table.ids.__getitem__)
        items = tuple(
            _Item(
                table.ids[position],
                table.gt_paths[position],
                table.pred_paths[position],
                table.schemas[table.schema_of[position]],
                {column: table.known[column][position] for column in KNOWN},
                annotations[position],
            )
            for position in positions
        )
        parts[name] = _Part(out, name, items, table.further.take(positions), verdicts, order_matters, scorer.name)
    return parts


def _all_done(parts: dict[str, _Part], jobs: int, total: int, say: Callable[[str], None]) -> list[_Done]:
    done: list[_Done] = []
    said = time.monotonic()
    try:
        for one in _one_by_one(parts.values()) if jobs == 1 else _in_processes(parts.values(), jobs):
            done.append(one)
            if time.monotonic() - said >= SAID_EVERY:
                said = time.monotonic()
                say(f"{sum(len(each.rows) for each in done)}/{total} documents scored")
    except MemoryError as error:
        raise InternalError("scoring takes more memory than there is; use fewer jobs") from error
    except BrokenProcessPool as error:
        raise InternalError("a process that scored was killed, most likely for its memory; use fewer jobs") from error
    return done


def _one_by_one(parts: Iterable[_Part]) -> Iterator[_Done]:
    return map(_score_part, parts)


def _in_processes(parts: Iterable[_Part], jobs: int) -> Iterator[_Done]:
    # Not by fork: readers of object stores have threads.
    processes = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _leave_interrupts_to_the_parent)
    try:
        for future in as_completed([processes.submit(_score_part, part) for part in parts]):
            yield future.result()
    finally:
        processes.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _score_part(part: _Part) -> _Done:
    """Scores and writes one part, verdicts first."""
    with ThreadPoolExecutor(READERS) as threads:
        golds = list(threads.map(_read, [item.gt_path for item in part.items]))
        predictions = list(threads.map(_read, [item.pred_path for item in part.items]))
        annotations = list(threads.map(_read, [item.annotations for item in part.items]))
    scorer = find(part.scorer)
    rows, verdicts = [], []
    for item, gold, prediction, beside in zip(part.items, golds, predictions, annotations, strict=True):
        error = item.known["error"] if item.pred_path is None else None
        given = Given(
            prediction, error, gold, item.schema, beside, verdicts=part.verdicts, order_matters=part.order_matters
        )
        graded = scorer.grade(given)
        suite = item.known["suite"]
        head = {"doc_id": item.doc_id, "suite": suite, "provider": item.known["provider"]}
        tail = {
            "run": item.known["run"],
            "scorer": scorer.label,
            "prediction_sha256": None if prediction is None else digest(prediction),
            "gold_sha256": None if gold is None else digest(gold),
            "schema_sha256": text_digest(item.schema),
        }
        rows.append({**head, **graded.row, **tail})
        if graded.scored is not None and part.verdicts:
            verdicts.append(scorer.verdict_table(item.doc_id, suite, graded.scored))
    if part.verdicts:
        at = storage.join(part.out, layout.below(part.scorer, layout.VERDICTS), part.name)
        storage.put(at, verdict_part(scorer, verdicts, None))
    at = storage.join(part.out, layout.below(part.scorer, layout.SCORES), part.name)
    storage.put(at, score_part(scorer, rows, None, part.further))
    brief = [{**row, "suite": row["suite"] or ""} for row in rows]
    return _Done(brief, *(sum(data is not None for data in files) for files in (golds, predictions)))


def _read(path: str | None) -> bytes | None:
    try:
        return None if path is None else storage.read(path)
    except FileNotFoundError:
        return None


def _where_to_look(table: Predictions, done: list[_Done]) -> list[str]:
    """Hints where every file is missing: then the paths are read from the wrong folder."""
    notes = []
    given = [path for path in table.pred_paths if path]
    for what, found, paths in (
        ("golds", sum(one.golds for one in done), table.gt_paths),
        ("predictions", sum(one.predictions for one in done), given),
    ):
        if paths and not found:
            notes.append(f"none of the {len(paths)} {what} is there; looked for {paths[0]}; relative paths start at "
                         f"{table.root} (--root)")  # fmt: skip
    return notes
