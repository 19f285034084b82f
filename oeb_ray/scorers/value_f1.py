"""The scorer of ExtractBench in the runner (METRIC_SPEC.md, "Many documents").

A document's annotations may hold ``field_rules`` and ``tags``; citations are those of its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..errors import NO_PREDICTION
from ..jsontext import line, printable, raw_json, read_json
from ..scoring.value_f1.errors import OutputNotObject, Ungradable
from ..scoring.value_f1.schema import ABSENT
from ..scoring.value_f1.scorer import NAME, TODAY, VERSION, Scored, score_columns
from ..scoring.value_f1.summarize import GROUNDING, VALUES, summarize
from ..scoring.value_f1.walk import MATCHED, OUTCOMES
from ..scoring.value_f1.written import finite
from .contract import Given, Graded, failed, parsed_gold, parsed_schema, scores_schema

_TEXT, _COUNT, _FLAG = pa.string(), pa.int64(), pa.bool_()
_COUNTS = ("matched_cells", "expected_cells", "predicted_cells", "expected_rows", "predicted_rows")
_FLAGS = ("perfect", "value_incomplete", "grounded_incomplete")
_PLACES = tuple(f"{name}_{count}" for name in ("page", "word") for count in ("correct", "expected", "claims"))
SCORE_KEYS = (*VALUES, *_COUNTS, *_FLAGS[1:], *GROUNDING, *_PLACES, "today", "tags")
NOTED = ("tags",)


def _type(key: str) -> pa.DataType:
    if key in _FLAGS:
        return _FLAG
    if key in _COUNTS or key in _PLACES:
        return _COUNT
    return {"today": _TEXT, "tags": pa.list_(_TEXT)}.get(key, pa.float64())


VERDICTS = pa.schema(
    [
        *((key, _TEXT) for key in ("doc_id", "suite", "reference_path", "output_path", "outcome")),
        ("f1_credit", pa.float64()),
        *((key, _TEXT) for key in ("expected", "predicted")),
    ]
)


class ValueF1:
    """See `Scorer`."""

    name = NAME
    label = f"{NAME} {VERSION}"
    scores = scores_schema([(key, _type(key)) for key in SCORE_KEYS])
    figures = SCORE_KEYS
    noted: tuple[str, ...] = NOTED
    verdicts = VERDICTS
    repeating: tuple[str, ...] = ("doc_id", "suite", "outcome")
    means: tuple[str, ...] = VALUES
    reads_annotations = reads_record = True

    def grade(self, given: Given) -> Graded:
        try:
            about = _annotations(given.annotations)
        except ValueError as problem:
            return failed(f"annotations: {problem}")
        graded = self._graded(given, about)
        graded.row["tags"] = about["tags"]
        return graded

    def _graded(self, given: Given, about: Mapping[str, Any]) -> Graded:
        if given.prediction is None:
            return failed(given.error or NO_PREDICTION)
        try:
            output = read_json(given.prediction)
        except ValueError:
            return failed(NO_PREDICTION)
        if isinstance(output, dict) and "__error__" in output:
            return failed(str(output["__error__"] or "empty prediction"))
        try:
            if given.gold is None:
                raise FileNotFoundError("no gold on disk")
            scored = score_columns(
                output,
                parsed_gold(given.gold),
                parsed_schema(given.schema),
                field_rules=about["field_rules"],
                citations=_citations(given.record),
                feedback=given.verdicts,
            )
        except OutputNotObject:
            return failed("not an object")
        except MemoryError:  # the machine's, not the document's
            raise
        except Ungradable as problem:
            return failed(f"cannot be graded: {problem}")
        except Exception as problem:  # whatever a document or schema provokes is that document's row
            return failed(f"{type(problem).__name__}: {problem}")
        return Graded({"status": "scored", **scored.figures, "today": TODAY.isoformat()}, scored)

    def verdict_table(self, doc_id: str, suite: str | None, scored: Scored) -> pa.Table:
        cells = scored.cells
        credit = [scored.credit if outcome == MATCHED else 0.0 for outcome in cells.outcome]
        arrays = {
            "doc_id": pa.repeat(pa.scalar(printable(doc_id)), len(cells)),
            "suite": pa.repeat(pa.scalar(suite and printable(suite), _TEXT), len(cells)),
            "reference_path": pa.array([path and printable(path) for path in cells.reference_path], _TEXT),
            "output_path": pa.array([path and printable(path) for path in cells.output_path], _TEXT),
            "outcome": pa.array([OUTCOMES[outcome] for outcome in cells.outcome], _TEXT),
            "f1_credit": pa.array(credit, pa.float64()),
            "expected": pa.array([_text(value) for value in cells.expected], _TEXT),
            "predicted": pa.array([_text(value) for value in cells.predicted], _TEXT),
        }
        return pa.table(arrays, schema=VERDICTS)

    def summarize(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return summarize(rows)


def _annotations(data: bytes | None) -> dict[str, Any]:
    """Rules and tags; none where the corpus has none. Raises ValueError."""
    found = {} if data is None else read_json(data)
    if not isinstance(found, dict):
        raise ValueError("they must be an object with field_rules and tags")
    tags = found.get("tags") or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError("tags must be a list of texts, such as length:short")
    return {"field_rules": found.get("field_rules"), "tags": tags}


def _citations(record: bytes | None) -> list[dict[str, Any]]:
    """What the provider said of where it read its values, as far as it is said of paths with pages."""
    found = read_json(record).get("citations") if record is not None else None
    return [_citation(entry) for entry in found or () if isinstance(entry, dict)]


def _citation(entry: dict[str, Any]) -> dict[str, Any]:
    """``box`` has the sides of a rectangle, ``bbox`` a corner and lengths."""
    path, box = entry.get("field_path", entry.get("path")), entry.get("bbox")
    sides = entry.get("box")
    if box is None and isinstance(sides, list) and len(sides) == 4 and all(type(side) is float for side in sides):
        left, top, right, bottom = sides
        box = [left, top, right - left, bottom - top]
    return {"field_path": path, "page": entry.get("page"), "bbox": box}


def _text(value: Any) -> str | None:
    """A compared value as JSON text; None where a side has no such cell."""
    if value is ABSENT:
        return None
    return line(finite(value)) if isinstance(value, (list, dict)) else raw_json(value)


SCORER = ValueF1()
