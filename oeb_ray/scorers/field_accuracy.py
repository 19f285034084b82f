"""The scorer of the extractkit harness in the runner (METRIC_SPEC.md, "Many documents").

A document's annotations are its fields with their places, as `oeb corpus make` writes them. A prediction has bare
values; where they stand is told by the record's citations: ``path``, ``page`` from 1, and ``box`` (left, top, right,
bottom) or ``bbox`` (left, top, width, height) as shares of the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ..jsontext import printable, read_json
from ..scoring.field_accuracy.gold import Gold, read_gold
from ..scoring.field_accuracy.scorer import (
    NAME,
    VERSION,
    FieldResult,
    bare_leaf_at,
    extra_items,
    failed_results,
    field_results,
)
from ..scoring.field_accuracy.summarize import HIT
from ..scoring.geometry import Box
from .contract import Given, Graded, failed, parsed_gold, prediction_of, scores_schema

_COUNTS = ("fields", "correct", "scoreable", "hits")
NOTED = (*_COUNTS, "iou_sum", "extra_line_items")
RATIOS = ("accuracy", "hit_at_50", "mean_iou")
FIGURES = (*RATIOS, *NOTED)
_TEXT = pa.string()
VERDICTS = pa.schema(
    [
        *((key, _TEXT) for key in ("doc_id", "suite", "path", "compare", "expected", "predicted")),
        ("value_correct", pa.bool_()),
        ("iou", pa.float64()),
        ("predicted_page", pa.int64()),
    ]
)
_INDEX = re.compile(r"\[(\d+)\]")
_FAR = 1e9
Place = tuple[int | None, Box | None]


class Scored(NamedTuple):
    """The results of one document's fields."""

    results: Sequence[FieldResult]


class FieldAccuracy:
    """See `Scorer`."""

    name = NAME
    label = f"{NAME} {VERSION}"
    scores = scores_schema([(key, pa.float64() if key in (*RATIOS, "iou_sum") else pa.int64()) for key in FIGURES])
    figures = FIGURES
    noted: tuple[str, ...] = NOTED
    verdicts = VERDICTS
    repeating: tuple[str, ...] = ("doc_id", "suite", "path", "compare")
    means: tuple[str, ...] = RATIOS
    reads_annotations = reads_record = True

    def grade(self, given: Given) -> Graded:
        if given.annotations is None:
            return failed("the corpus has no fields of this document; make it with oeb corpus make")
        try:
            gold = read_gold(parsed_gold(given.annotations))
        except ValueError as problem:
            return failed(str(problem))
        pred = prediction_of(given)
        if isinstance(pred, Graded):
            return Graded({**pred.row, **_counts(failed_results(gold), 0)})
        try:
            results = _results(pred, gold, places_in(given.record))
        except MemoryError:  # the machine's, not the document's
            raise
        except Exception as problem:  # whatever a document provokes is that document's row
            row = failed(f"{type(problem).__name__}: {problem}").row
            return Graded({**row, **_counts(failed_results(gold), 0)})
        counts = _counts(results, extra_items(pred, gold))
        return Graded({"status": "scored", **_ratios(counts), **counts}, Scored(results))

    def verdict_table(self, doc_id: str, suite: str | None, scored: Scored) -> pa.Table:
        results = scored.results
        arrays = {
            "doc_id": pa.repeat(pa.scalar(printable(doc_id)), len(results)),
            "suite": pa.repeat(pa.scalar(suite and printable(suite), _TEXT), len(results)),
            "path": pa.array([printable(result.path) for result in results], _TEXT),
            "compare": pa.array([result.compare for result in results], _TEXT),
            "expected": pa.array([_text(result.expected) for result in results], _TEXT),
            "predicted": pa.array([_text(result.predicted) for result in results], _TEXT),
            "value_correct": pa.array([result.correct for result in results], pa.bool_()),
            "iou": pa.array([result.iou for result in results], pa.float64()),
            "predicted_page": pa.array([_small(result.page) for result in results], pa.int64()),
        }
        return pa.table(arrays, schema=VERDICTS)

    def summarize(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        listed = list(rows)
        suites = sorted({row["suite"] for row in listed})
        per_suite = {suite: _block([row for row in listed if row["suite"] == suite]) for suite in suites}
        return {**_block(listed), "per_suite": per_suite}


def places_in(record: bytes | None) -> dict[str, Place]:
    """By dot path the page, from 0, and the box that a provider stated; of several the first."""
    found = read_json(record).get("citations") if record is not None else None
    places: dict[str, Place] = {}
    for entry in found if isinstance(found, list) else ():
        path = entry.get("path", entry.get("field_path")) if isinstance(entry, dict) else None
        if isinstance(path, str):
            page = entry.get("page")
            place = page - 1 if type(page) is int else None, _box(entry)
            places.setdefault(_INDEX.sub(r".\1", path), place)
    return places


def _box(entry: Mapping[str, Any]) -> Box | None:
    sides, corner = entry.get("box"), entry.get("bbox")
    given = sides if sides is not None else corner
    if not isinstance(given, list) or len(given) != 4:
        return None
    if not all(type(side) in (int, float) and -_FAR < side < _FAR for side in given):
        return None
    left, top, right, bottom = map(float, given)
    return (left, top, right, bottom) if sides is not None else (left, top, left + right, top + bottom)


def _results(pred: dict[str, Any], gold: Gold, places: Mapping[str, Place]) -> list[FieldResult]:
    leaves = [bare_leaf_at(pred, field.path, *places.get(field.path, (None, None))) for field in gold.fields]
    return field_results(gold, leaves)


def _counts(results: Sequence[FieldResult], extra: int) -> dict[str, Any]:
    places = [result.iou for result in results if result.iou is not None]
    return {
        "fields": len(results), "correct": sum(result.correct for result in results), "scoreable": len(places),
        "hits": sum(place >= HIT for place in places), "iou_sum": math.fsum(places), "extra_line_items": extra,
    }  # fmt: skip


def _ratios(counts: Mapping[str, Any]) -> dict[str, float | None]:
    scoreable = counts["scoreable"]
    return {
        "accuracy": counts["correct"] / counts["fields"] if counts["fields"] else 0.0,
        "hit_at_50": counts["hits"] / scoreable if scoreable else None,
        "mean_iou": counts["iou_sum"] / scoreable if scoreable else None,
    }


def _block(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Figures over documents, those without an answer included; every field weighs the same."""
    counts: dict[str, Any] = {key: sum(row.get(key) or 0 for row in rows) for key in (*_COUNTS, "extra_line_items")}
    counts["iou_sum"] = math.fsum(row.get("iou_sum") or 0.0 for row in rows)
    scored = sum(row["status"] == "scored" for row in rows)
    coverage = scored / len(rows) if rows else 0.0
    figures = {key: counts[key] for key in (*_COUNTS, "extra_line_items")}
    return {"documents": len(rows), "scored": scored, "coverage": coverage, **_ratios(counts), **figures}


def _text(value: str | None) -> str | None:
    return None if value is None else printable(value)


def _small(page: int | None) -> int | None:
    return page if page is not None and -(2**63) <= page < 2**63 else None


SCORER = FieldAccuracy()
