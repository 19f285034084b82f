"""Scores one answer against the truth about its document, field by field (METRIC_SPEC.md).

In: an answer, whose leaves are ``{value, confidence, page, bbox}``, and a gold. Out: one result per gold field, in the
gold's order, and how many line items were made up.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..geometry import Box, iou
from .gold import ITEMS, Gold, GoldField, box_of, read_gold
from .kinds import number_text, values_match

NAME, VERSION = "field_accuracy", "1"
LEAF_KEYS = frozenset({"value", "confidence", "page", "bbox"})
_INDEX = re.compile("0|[1-9][0-9]{0,8}")


class FieldResult(NamedTuple):
    """What became of one field. ``iou``: 0 to 1, None where the place does not count; ``page``: the predicted one."""

    path: str
    compare: str
    expected: str | None
    predicted: str | None
    correct: bool
    iou: float | None
    page: int | None

    def as_json(self) -> dict[str, Any]:
        """As run records have it."""
        return {
            "path": self.path, "compare": self.compare, "expected": self.expected, "predicted": self.predicted,
            "valueCorrect": self.correct, "iou": self.iou, "predictedPage": self.page,
        }  # fmt: skip


class Leaf(NamedTuple):
    """What an answer says of one field: nothing at all is value None without a place."""

    value: str | None = None
    page: int | None = None
    box: Box | None = None


def score(pred: Any, gold: Any) -> dict[str, Any]:
    """Grades an answer.

    Args:
        pred: the answer, parsed JSON; what has no leaf at a field's path says null there. Never changed.
        gold: the truth, as `read_gold` takes it. Never changed.

    Returns:
        ``fields``: per gold field path, compare, expected, predicted, valueCorrect, iou (0 to 1, or None where the
        place does not count) and predictedPage; ``extraLineItems``: items that the document does not have.

    Raises:
        ValueError: the gold is none.
    """
    truth = read_gold(gold)
    return _as_json(
        field_results(truth, (leaf_at(pred, field.path) for field in truth.fields)), extra_items(pred, truth)
    )


def score_failure(gold: Any) -> dict[str, Any]:
    """The result, as from `score`, of a document that was asked for and gave no answer: every field is wrong."""
    return _as_json(failed_results(read_gold(gold)), 0)


def _as_json(results: list[FieldResult], extra: int) -> dict[str, Any]:
    return {"fields": [result.as_json() for result in results], "extraLineItems": extra}


def field_results(gold: Gold, leaves: Iterable[Leaf]) -> list[FieldResult]:
    """One result per field, in the gold's order, which the leaves are in too."""
    return [_result(leaf, field) for leaf, field in zip(leaves, gold.fields, strict=True)]


def failed_results(gold: Gold) -> list[FieldResult]:
    """The results of a document without an answer."""
    return [
        FieldResult(field.path, field.compare, field.value, None, False, 0.0 if field.regions else None, None)
        for field in gold.fields
    ]


def extra_items(pred: Any, gold: Gold) -> int:
    """How many more line items the answer has than the document."""
    items = pred.get(ITEMS) if isinstance(pred, dict) else None
    return max(0, len(items) - gold.line_items) if isinstance(items, list) else 0


def leaf_at(pred: Any, path: str) -> Leaf:
    """What an answer says at a dot path such as ``lineItems.0.amount``."""
    node = _node_at(pred, path)
    if not isinstance(node, dict) or not node.keys() >= LEAF_KEYS:
        return Leaf()
    return Leaf(_printed(node["value"]), _page(node["page"]), box_of(node["bbox"]))


def bare_leaf_at(pred: Any, path: str, page: int | None, box: Box | None) -> Leaf:
    """As `leaf_at`, also for an answer of bare values; the place of such a value is told beside it."""
    node = _node_at(pred, path)
    return leaf_at(pred, path) if isinstance(node, (dict, list)) else Leaf(_printed(node), page, box)


def _node_at(pred: Any, path: str) -> Any:
    node = pred
    for step in path.split("."):
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and _INDEX.fullmatch(step) and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def _result(leaf: Leaf, field: GoldField) -> FieldResult:
    correct = values_match(field.value, leaf.value, field.compare) or (
        leaf.value is not None and any(values_match(other, leaf.value, field.compare) for other in field.others)
    )
    place = best_overlap(leaf, field) if correct and field.regions else None
    return FieldResult(field.path, field.compare, field.value, leaf.value, correct, place, leaf.page)


def best_overlap(leaf: Leaf, field: GoldField) -> float:
    """The largest ratio of overlap with one of the true places on the predicted page; 0 without box or page."""
    if leaf.box is None or leaf.page is None:
        return 0.0
    return max((iou(leaf.box, region.box) for region in field.regions if region.page == leaf.page), default=0.0)


def _printed(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return number_text(value) if isinstance(value, (int, float)) else json.dumps(value)


def _page(value: Any) -> int | None:
    if type(value) is float and math.isfinite(value) and value == int(value):
        return int(value)
    return value if type(value) is int else None
