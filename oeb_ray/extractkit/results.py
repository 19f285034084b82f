"""What became of one document, as run records have it.

In: the gold, and the answer with its places or why there is none. Out: a document result: every field judged, line
items that were made up, tokens and cost.
"""

from __future__ import annotations

from typing import Any

from ..scoring.field_accuracy import score, score_failure, token_cost
from .record import Json

MISSING = "MissingRequiredFieldsError"
Prices = tuple[float, float]
"""US dollars per million tokens, in and out."""


def document_result(doc_id: str, form: str, gold: Any, answer: Any, error: str | None, usage: Json | None) -> Json:
    """The result of one document.

    Args:
        doc_id: as the harness names it, such as ``cord/test/4``. form: ``receipt`` or ``invoice``.
        answer: fields with their places; None where there is no answer, which counts as wrong in every field. One that
            lacks required fields has an error beside it, and is scored as far as it goes.
        usage: see `usage_of`; None where nothing is known of it.
    """
    scored = score_failure(gold) if answer is None else score(answer, gold)
    return {
        "docId": doc_id, "dataset": doc_id.split("/")[0], "schema": form, "error": error, **scored, "usage": usage,
    }  # fmt: skip


def usage_of(tokens_in: int, tokens_out: int, calls: int, prices: Prices | None) -> Json:
    """Measured tokens of all calls for a document, and what they cost at list prices; null without prices."""
    cost = token_cost(tokens_in, tokens_out, prices)
    return {"inputTokens": tokens_in, "outputTokens": tokens_out, "modelCalls": calls, "costUSD": cost}
