"""Scores one recorded document: no Ray, no storage.

In: the bytes of prediction and gold, and the schema. Out: the document's row, and its verdicts if it was scored
(METRIC_SPEC.md, "Many documents").
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .errors import NO_PREDICTION
from .jsontext import read_json
from .scoring.field_matching.names import known_names
from .scoring.field_matching.scorer import NAME, VERSION, Scored, score_columns

SCORER = f"{NAME} {VERSION}"


class Graded(NamedTuple):
    """The row: ``status`` and ``error`` or the figures. ``scored`` is None for an error row."""

    row: dict[str, Any]
    scored: Scored | None


def grade(
    prediction: bytes | None,
    error: str | None,
    gold: bytes | None,
    schema: str,
    *,
    verdicts: bool,
    order_matters: Sequence[str] = (),
) -> Graded:
    """Grades one document.

    Args:
        prediction: the stored prediction, or None where there is none; then ``error`` says why.
        gold: the gold document's bytes; None if it cannot be read.
        schema: JSON text of the schema.
        verdicts: also make the verdict columns.
        order_matters: names of arrays; they count in the documents that have such an array.
    """
    if prediction is None:
        return _failed(error or NO_PREDICTION)
    try:
        pred = read_json(prediction)
    except ValueError:
        return _failed(NO_PREDICTION)
    if not isinstance(pred, dict):
        return _failed("not an object")
    if not pred:
        return _failed("empty prediction")
    if "__error__" in pred:
        return _failed(str(pred["__error__"]) if pred["__error__"] else "empty prediction")
    try:
        if gold is None:
            raise FileNotFoundError("no gold on disk")
        truth, rules = parsed_gold(gold), parsed_schema(schema)
        ordered = [name for name in order_matters if name in known_names(rules, (pred, truth))] if order_matters else ()
        scored = score_columns(pred, truth, rules, ordered, verdicts)
    except MemoryError:  # the machine's, not the document's
        raise
    except Exception as problem:  # whatever a document or schema provokes is that document's row
        return _failed(f"{type(problem).__name__}: {problem}")
    return Graded({"status": "scored", **scored.figures}, scored)


def _failed(error: str) -> Graded:
    return Graded({"status": "error", "error": error}, None)


@lru_cache(maxsize=64)
def parsed_schema(text: str) -> Any:
    """A schema is read once by a worker, not once per document."""
    return read_json(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=16)
def parsed_gold(data: bytes) -> Any:
    """A gold is read once by a worker, not once per Run; parsed documents are never changed."""
    return read_json(data)
