"""Scores one output against one reference (METRIC_SPEC.md).

In: parsed JSON documents, the schema, perhaps rules and citations, and the day that two-digit years are read by. Out:
the figures, and every cell where they are asked for.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

from .errors import OutputNotObject, Ungradable
from .grounding import Ratio
from .layout import opened, projected, reconciled
from .rules import Rule, read_citations, read_rules
from .schema import Node, root_nodes
from .values import Vocabulary
from .walk import MATCHED, OUTCOMES, Cells, Walker

NAME, VERSION = "value_f1", "1"
TODAY = dt.date(2026, 12, 1)
"""By it two-digit years are read unless another day is given: the same output has the same score in any year."""
MOST_PAIRS = 100_000_000
NOT_WALKED = {"_provenance"}


class Cell(NamedTuple):
    """What became of one cell.

    ``reference_path`` or ``output_path`` is None where that side has no such cell; ``expected`` and ``predicted`` are
    the values, ABSENT there.
    """

    reference_path: str | None
    output_path: str | None
    outcome: str
    f1_credit: float
    expected: Any
    predicted: Any


class Scored(NamedTuple):
    """The figures of one document, its cells column by column (empty unless asked for), and what a match is worth."""

    figures: dict[str, Any]
    cells: Cells
    credit: float


def score(
    output: Any,
    reference: Any,
    schema: Any,
    *,
    today: dt.date = TODAY,
    field_rules: Any = None,
    citations: Any = None,
    most_pairs: int = MOST_PAIRS,
    feedback: bool = False,
) -> dict[str, Any]:
    """Grades an output: the share of cells that it reads right, as an F1.

    Args:
        output: parsed JSON; a list at the root is read as an object where that can be said. Never changed.
        reference: the expected object. Never changed.
        schema: the JSON Schema that the output was made for; says which arrays are tables.
        today: the day that decides the century of two-digit years.
        field_rules: by path of the reference (or a list with ``field_path``): further readings, places, normalizers.
        citations: list of ``field_path``, ``page`` from 1, ``bbox``: where the output says it read its values.
        most_pairs: plain tables with more pairs of unequal rows than this stay unpaired; ``value_incomplete`` says so.
        feedback: also return ``feedback``, one Cell per cell. Changes no figure.

    Returns:
        ``f1``, ``precision``, ``recall`` (0 to 1), ``perfect``, the counts of cells and rows behind them, and for page
        and word grounding the same three figures (None where the reference has no place) and counts.

    Raises:
        OutputNotObject: the output is no object and cannot be read as one; it earns nothing.
        Ungradable: reference, schema or rules give nothing to score against; there is no figure for anyone.
        TypeError: citations that are no list.
    """
    scored = score_columns(
        output,
        reference,
        schema,
        today=today,
        field_rules=field_rules,
        citations=citations,
        most_pairs=most_pairs,
        feedback=feedback,
    )
    if feedback:
        scored.figures["feedback"] = cell_list(scored)
    return scored.figures


def score_columns(
    output: Any,
    reference: Any,
    schema: Any,
    *,
    today: dt.date = TODAY,
    field_rules: Any = None,
    citations: Any = None,
    most_pairs: int = MOST_PAIRS,
    feedback: bool = False,
) -> Scored:
    """As `score`, with the cells as columns."""
    if not isinstance(schema, dict):
        raise Ungradable(f"the schema must be an object, not {_kind(schema)}")
    if not isinstance(reference, dict):
        raise Ungradable(f"the reference must be an object, not {_kind(reference)}")
    rules, cited = read_rules(field_rules), read_citations(citations)
    cells = Cells()
    walker = Walker(Vocabulary(today), rules, cited, most_pairs, cells if feedback else None)
    try:
        nodes = root_nodes(schema)
        expected, found = _prepared(reference, output, nodes, rules)
        for name in sorted((nodes.keys() | expected.keys() | found.keys()) - NOT_WALKED):
            node = nodes.get(name) or Node(None, name)
            walker.walk(name, name, node.value(expected), node.value(found), node)
    except RecursionError:
        raise Ungradable("a document or the schema is nested too deeply to be scored") from None
    if not walker.expected and not walker.predicted:
        raise Ungradable("neither reference nor output has a single cell under this schema")
    if feedback:
        _check_counts(walker, cells)
    return Scored(_figures(walker), cells, 2 / (walker.expected + walker.predicted))


def cell_list(scored: Scored) -> list[Cell]:
    """The cells as values, in the order of the walk."""
    cells = scored.cells
    return [
        Cell(ours, theirs, OUTCOMES[outcome], scored.credit if outcome == MATCHED else 0.0, expected, predicted)
        for ours, theirs, outcome, expected, predicted in zip(
            cells.reference_path, cells.output_path, cells.outcome, cells.expected, cells.predicted, strict=True
        )
    ]


def _prepared(
    reference: Any, output: Any, nodes: dict[str, Node], rules: dict[str, Rule]
) -> tuple[dict[str, Any], dict[str, Any]]:
    expected, found = reconciled(reference, projected(output, nodes, rules))
    expected, found = opened(expected), opened(found)
    if not isinstance(expected, dict):
        raise Ungradable(f"the reference holds {_kind(expected)} under its only key `value`, not an object")
    if not isinstance(found, dict):
        raise OutputNotObject(f"the output is {_kind(found)}, not an object")
    return expected, found


def _check_counts(walker: Walker, cells: Cells) -> None:
    counted = (walker.expected, walker.predicted, walker.matched)
    listed = (
        sum(path is not None for path in cells.reference_path),
        sum(path is not None for path in cells.output_path),
        cells.outcome.count(MATCHED),
    )
    if counted != listed:  # one pass makes both
        raise AssertionError(f"feedback lists {listed} cells, {counted} were counted")


def _figures(walker: Walker) -> dict[str, Any]:
    matched, expected, predicted = walker.matched, walker.expected, walker.predicted
    precision, recall, f1 = _ratios(matched, predicted, expected)
    page, word = walker.grounding.page, walker.grounding.word
    incomplete = walker.grounding.incomplete
    return {
        "f1": f1,
        "precision": precision,
        "recall": recall,
        "perfect": matched == expected == predicted,
        "matched_cells": matched,
        "expected_cells": expected,
        "predicted_cells": predicted,
        "expected_rows": walker.expected_rows,
        "predicted_rows": walker.predicted_rows,
        "value_incomplete": walker.incomplete,
        "grounded_incomplete": incomplete,
        **_grounding("page", page, incomplete),
        **_grounding("word", word, incomplete),
    }


def _grounding(name: str, ratio: Ratio, incomplete: bool) -> dict[str, Any]:
    precision = recall = f1 = None
    if ratio.expected and not incomplete:
        precision, recall, f1 = _ratios(ratio.correct, ratio.claims, ratio.expected)
    return {
        f"{name}_f1": f1,
        f"{name}_precision": precision,
        f"{name}_recall": recall,
        f"{name}_correct": ratio.correct,
        f"{name}_expected": ratio.expected,
        f"{name}_claims": ratio.claims,
    }


def _ratios(matched: int, predicted: int, expected: int) -> tuple[float, float, float]:
    precision = matched / predicted if predicted else 0.0
    recall = matched / expected if expected else 0.0
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both else 0.0


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
