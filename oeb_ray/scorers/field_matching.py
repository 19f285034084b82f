"""The scorer of Omni Extract Bench in the runner (METRIC_SPEC.md, "Many documents")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..jsontext import printable, raw_json
from ..scoring.field_matching.names import known_names
from ..scoring.field_matching.scorer import NAME, VERSION, Scored, score_columns
from ..scoring.field_matching.summarize import MEANS, summarize
from ..scoring.field_matching.verdicts import KINDS, SKIPPED
from ..scoring.field_matching.written import Written
from .contract import Given, Graded, failed, parsed_gold, parsed_schema, prediction_of, scores_schema

RATIOS = ("accuracy", "precision", "recall", "f1", "addresses_found", "addresses_read_right")
SCORE_KEYS = tuple(
    "accuracy precision recall f1 total matched misread unfound fabricated invented_item invented_field asserted "
    "addresses_found addresses_read_right gt_rows pred_rows matched_rows matching_exact approximated skipped_open_maps"
    .split()
)  # fmt: skip


def _metric_type(key: str) -> pa.DataType:
    if key in RATIOS:
        return pa.float64()
    return {
        "matching_exact": pa.bool_(),
        "approximated": pa.list_(pa.int64()),
        "skipped_open_maps": pa.list_(pa.string()),
    }.get(key, pa.int64())


_TEXT = pa.string()
SCORES = scores_schema([(key, _metric_type(key)) for key in SCORE_KEYS])
VERDICTS = pa.schema(
    [(key, _TEXT) for key in "doc_id suite address path field gold_raw pred_raw gold_canon pred_canon verdict".split()]
)


class FieldMatching:
    """See `Scorer`."""

    name = NAME
    label = f"{NAME} {VERSION}"
    scores = SCORES
    figures = SCORE_KEYS
    noted: tuple[str, ...] = ()
    verdicts = VERDICTS
    repeating: tuple[str, ...] = ("doc_id", "suite", "field", "verdict")
    means: tuple[str, ...] = MEANS
    reads_annotations = reads_record = False

    def grade(self, given: Given) -> Graded:
        pred = prediction_of(given)
        if isinstance(pred, Graded):
            return pred
        try:
            if given.gold is None:
                raise FileNotFoundError("no gold on disk")
            truth, rules = parsed_gold(given.gold), parsed_schema(given.schema)
            there = known_names(rules, (pred, truth)) if given.order_matters else ()
            ordered = [name for name in given.order_matters if name in there]
            scored = score_columns(pred, truth, rules, ordered, given.verdicts)
        except MemoryError:  # the machine's, not the document's
            raise
        except Exception as problem:  # whatever a document or schema provokes is that document's row
            return failed(f"{type(problem).__name__}: {problem}")
        return Graded({"status": "scored", **scored.figures}, scored)

    def verdict_table(self, doc_id: str, suite: str | None, scored: Scored) -> pa.Table:
        columns, skipped = scored.columns, len(scored.open_maps)
        texts = Written(scored)
        count = skipped + len(columns)
        keys = pa.array([printable(key) for key in scored.keys] or [""], _TEXT)
        kinds = [SKIPPED] * skipped + columns.kind
        element, leaf = pa.array(texts.element, pa.int32()), pa.array(texts.leaf, pa.int32())
        arrays = {
            "doc_id": pa.repeat(pa.scalar(printable(doc_id)), count),
            "suite": pa.repeat(pa.scalar(suite and printable(suite), _TEXT), count),
            "address": _put_together(texts.outer.address, element, texts.inner.address, leaf),
            "path": _put_together(texts.outer.path, element, texts.inner.path, leaf),
            "field": _printed(texts.inner.field).take(leaf),
            "gold_raw": pa.array([None] * skipped + _raws(columns.gold_raw, columns.gold), _TEXT),
            "pred_raw": pa.array([None] * skipped + _raws(columns.pred_raw, columns.pred), _TEXT),
            "gold_canon": keys.take(pa.array([None] * skipped + [key or None for key in columns.gold], pa.int32())),
            "pred_canon": keys.take(pa.array([None] * skipped + [key or None for key in columns.pred], pa.int32())),
            "verdict": pa.array(KINDS, _TEXT).take(pa.array(kinds, pa.int32())),
        }
        return pa.table(arrays, schema=VERDICTS)

    def summarize(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return summarize(rows)


def _printed(texts: list[str]) -> pa.Array:
    return pa.array([printable(text) for text in texts], _TEXT)  # a prediction's keys may be any text


def _put_together(outer: list[str], element: pa.Array, inner: list[str], leaf: pa.Array) -> pa.Array:
    """Texts in two parts, each given by number."""
    return pc.binary_join_element_wise(_printed(outer).take(element), _printed(inner).take(leaf), "")


class _Texts(dict[str, str]):
    """Texts as JSON, each made once."""

    def __missing__(self, value: str) -> str:
        text = self[value] = raw_json(value)
        return text


def _raws(values: list[Any], present: list[int]) -> list[str | None]:
    texts = _Texts()
    return [
        (texts[value] if type(value) is str else raw_json(value)) if here else None
        for value, here in zip(values, present, strict=True)
    ]


SCORER = FieldMatching()
