"""The scorer of Omni Extract Bench in the runner (METRIC_SPEC.md, "Many documents")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

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

    def summarize(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        return summarize(rows)


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


SCORER = FieldMatching()
