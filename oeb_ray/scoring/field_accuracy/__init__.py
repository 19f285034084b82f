"""field_accuracy: values field by field as printed, items by position, and where they stand (see METRIC_SPEC.md)."""

from .kinds import KINDS, normalized, values_match
from .scorer import NAME, VERSION, score, score_failure
from .summarize import per_thousand, summarize, token_cost

__all__ = [
    "KINDS", "NAME", "VERSION", "normalized", "per_thousand", "score", "score_failure", "summarize", "token_cost",
    "values_match",
]  # fmt: skip
