"""What a scorer of the runner is, and what all of them share: the columns of rows, and how stored text is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from .. import arrow  # noqa: F401 - pyarrow without pandas
from ..errors import NO_PREDICTION
from ..jsontext import read_json

HEAD = ("doc_id", "suite", "provider", "status")
_TAIL = ("run", "error", "scorer", "prediction_sha256", "gold_sha256", "schema_sha256")


@dataclass(frozen=True, slots=True)
class Given:
    """One recorded document, as bytes.

    ``prediction``: None where there is none; then ``error`` says why. ``gold``: None if it cannot be read. ``schema``:
    JSON text. ``annotations``: what the corpus has on the document beside its gold; ``record``: what the provider
    answered, where the scorer reads it. ``verdicts``: also make the verdicts. ``order_matters``: names of arrays; they
    count in the documents that have such an array.
    """

    prediction: bytes | None
    error: str | None
    gold: bytes | None
    schema: str
    annotations: bytes | None = None
    record: bytes | None = None
    verdicts: bool = True
    order_matters: Sequence[str] = ()


class Graded(NamedTuple):
    """The row: ``status`` and ``error`` or the figures. ``scored``: what verdicts are made from, or None."""

    row: dict[str, Any]
    scored: Any = None


class Scorer(Protocol):
    """``label``: name and version, as rows name it. ``scores``: schema of rows, ``figures`` its own columns in it;
    ``noted``: those of them that failed documents have as well.

    ``verdicts``: schema of the verdicts' table, and ``repeating`` its columns whose values repeat. ``means``: figures
    of a summary that people look at, best first. ``reads_annotations``, ``reads_record``: whether it looks at what the
    corpus has beside golds, and at what was answered beside values.
    """

    name: str
    label: str
    scores: pa.Schema
    figures: tuple[str, ...]
    noted: tuple[str, ...]
    verdicts: pa.Schema
    repeating: tuple[str, ...]
    means: tuple[str, ...]
    reads_annotations: bool
    reads_record: bool

    def grade(self, given: Given) -> Graded:
        """Grades one document; whatever a document provokes is its row, never an exception but MemoryError."""
        ...

    def verdict_table(self, doc_id: str, suite: str | None, scored: Any) -> pa.Table:
        """One document's verdicts, of schema ``verdicts``."""
        ...

    def summarize(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """The summary of rows: ``documents``, ``scored``, ``coverage``, ``means``, and ``per_suite`` the same."""
        ...


def scores_schema(figures: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """The columns of score rows: what names the document, the scorer's figures, and what they were made from."""
    return pa.schema([(key, pa.string()) for key in HEAD] + list(figures) + [(key, pa.string()) for key in _TAIL])


def failed(error: str) -> Graded:
    """An error row."""
    return Graded({"status": "error", "error": error})


def prediction_of(given: Given) -> dict[str, Any] | Graded:
    """The prediction as an object that holds something; else the document's error row."""
    if given.prediction is None:
        return failed(given.error or NO_PREDICTION)
    try:
        value = read_json(given.prediction)
    except ValueError:
        return failed(NO_PREDICTION)
    if not isinstance(value, dict):
        return failed("not an object")
    if not value:
        return failed("empty prediction")
    if "__error__" in value:
        return failed(str(value["__error__"]) if value["__error__"] else "empty prediction")
    return value


LARGE_GOLD = 65_536  # bytes from which few are kept, since what is read of them is ten times as large


@lru_cache(maxsize=64)
def parsed_schema(text: str) -> Any:
    """A schema is read once by a worker, not once per document."""
    return read_json(text.encode("utf-8", "surrogatepass"))


def parsed_gold(data: bytes) -> Any:
    """A gold is read once by a worker, not once per Run; parsed documents are never changed."""
    return _few(data) if len(data) > LARGE_GOLD else _many(data)


_few = lru_cache(maxsize=16)(read_json)
_many = lru_cache(maxsize=64)(read_json)  # as many as a part has: that of another Run often follows
