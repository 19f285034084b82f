"""Scores one prediction against one gold document (METRIC_SPEC.md).

In: two parsed JSON documents and the schema. Out: the figures, and the verdicts where they are asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .align import Alignment
from .names import has_empty_key, ordered_arrays
from .schema import Trie, inlined
from .tree import Element, Steps, Vocabulary, Walker, prepared
from .verdicts import KINDS, SKIPPED, Columns, Reader, Verdict, reading_key

NAME, VERSION = "field_matching", "1"


class Scored(NamedTuple):
    """The figures of one document, the open maps met (addresses, in reading order) and the columns of its verdicts.

    ``keys`` are the canonical keys by number, for the numbers in ``columns``; both are empty without verdicts.
    """

    figures: dict[str, Any]
    open_maps: list[Steps]
    columns: Columns
    keys: list[str]


def score(pred: Any, gt: Any, schema: Any, order_matters: Any = (), verdicts: bool = False) -> dict[str, Any]:
    """Grades a prediction: how much of what either document states is read right.

    Args:
        pred: the prediction, parsed JSON; what is no object counts as an empty one. Never changed.
        gt: the gold document: an object, or None for an empty one. Never changed.
        schema: the JSON Schema that the prediction was made for; says which arrays, slots and open maps there are.
        order_matters: written names of the arrays whose order counts, such as ``["steps"]``.
        verdicts: also return ``verdicts``, one Verdict per address, in reading order. Changes no figure.

    Returns:
        ``accuracy``, ``precision``, ``recall``, ``f1`` (ratios, 0 to 1), the counts of leaves behind them, rows, how
        the arrays were solved, and the open maps left out.

    Raises:
        TypeError: gold or schema of a wrong type, no schema, or order_matters that is no collection of texts.
        ValueError: a ``$ref`` that cannot be inlined, or a name in order_matters that no array has.
    """
    scored = score_columns(pred, gt, schema, order_matters, verdicts)
    if verdicts:
        scored.figures["verdicts"] = verdict_list(scored)
    return scored.figures


def verdict_list(scored: Scored) -> list[Verdict]:
    """The verdicts as values: open maps first, then every address in reading order."""
    columns, keys = scored.columns, scored.keys
    listed = [Verdict(at, None, None, None, None, KINDS[SKIPPED]) for at in scored.open_maps]
    for place in range(len(columns)):
        gold, pred = columns.gold[place], columns.pred[place]
        listed.append(
            Verdict(
                columns.address(place),
                columns.gold_raw[place],
                columns.pred_raw[place],
                keys[gold] if gold else None,
                keys[pred] if pred else None,
                KINDS[columns.kind[place]],
            )
        )
    return listed


def score_columns(pred: Any, gt: Any, schema: Any, order_matters: Any = (), verdicts: bool = False) -> Scored:
    """As `score`, with the verdicts as columns."""
    schema = _checked(gt, schema, order_matters)
    gold_document = {} if gt is None else gt
    pred_document = pred or {}
    ordered = (
        ordered_arrays(order_matters, schema, _name_sources(pred_document, gold_document)) if order_matters else None
    )
    trie, words = Trie(schema, ordered or frozenset()), Vocabulary()
    gold_side = Walker(trie, words, sidecars=False, raws=verdicts)
    pred_side = Walker(trie, words, sidecars=True, raws=verdicts)
    gold, found = gold_side.read(gold_document), pred_side.read(pred_document)
    if ordered is None and (
        not _is_empty_collection(order_matters) or gold_side.empty_key or pred_side.empty_key or has_empty_key(schema)
    ):
        ordered_arrays(order_matters, schema, _name_sources(pred_document, gold_document))
    alignment = Alignment(trie, words, found.leaves + 1, verdicts)
    alignment.align(found, gold)
    open_maps = sorted({*gold_side.open_maps, *pred_side.open_maps}, key=reading_key)
    figures = _figures(gold, found, gold_side.rows, pred_side.rows, alignment, open_maps)
    reader = Reader(alignment)
    if verdicts:
        reader.pair(found, gold, ())
    return Scored(figures, open_maps, reader.columns, words.texts)


def _checked(gt: Any, schema: Any, order_matters: Any) -> dict[str, Any]:
    if gt is not None and not isinstance(gt, dict):
        raise TypeError(f"the gold document must be an object or null, not {type(gt).__name__}")
    if not isinstance(schema, dict):
        raise TypeError(f"the schema must be an object, not {type(schema).__name__}")
    if not schema:
        raise TypeError("the schema is empty: without it no value can be placed")
    whole = inlined(schema)
    if isinstance(order_matters, str):
        raise TypeError(f"order_matters is a collection of names, not one text; write [{order_matters!r}]")
    return whole


def _is_empty_collection(order_matters: Any) -> bool:
    return isinstance(order_matters, (tuple, list, set, frozenset)) and not order_matters


def _name_sources(pred: Any, gold: Any) -> tuple[Any, ...]:
    return pred, gold, prepared(pred, sidecars=True), prepared(gold, sidecars=False)


def _figures(
    gold: Element, pred: Element, gold_rows: int, pred_rows: int, alignment: Alignment, open_maps: list[Steps]
) -> dict[str, Any]:
    matched, shared, asserted = alignment.matched, alignment.shared, pred.leaves
    total = gold.leaves + asserted - shared
    precision = matched / asserted if asserted else 0.0
    recall = matched / gold.leaves if gold.leaves else 0.0
    both = precision + recall
    greedy = sorted(alignment.greedy, reverse=True)
    return {
        "accuracy": matched / total if total else 0.0,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / both if both else 0.0,
        "total": total,
        "matched": matched,
        "misread": shared - matched,
        "unfound": gold.leaves - shared,
        "fabricated": alignment.fabricated,
        "invented_item": alignment.invented_item,
        "invented_field": asserted - shared - alignment.fabricated - alignment.invented_item,
        "asserted": asserted,
        "addresses_found": shared / total if total else 0.0,
        "addresses_read_right": matched / shared if shared else 0.0,
        "gt_rows": gold_rows,
        "pred_rows": pred_rows,
        "matched_rows": alignment.matched_rows,
        "matching_exact": not greedy,
        "approximated": greedy,
        "skipped_open_maps": [written_address(at) for at in open_maps],
    }


def written_address(address: Steps) -> str:
    """``rows[1].m``; keys are written as they are, the root is ``<root>``."""
    text = ""
    for kind, name in address:
        text += f"[{name}]" if kind == "i" else f".{name}" if text else name
    return text if address else "<root>"
