"""field_matching: values compared address by address, rows paired by content (see METRIC_SPEC.md beside this file)."""

from .canon import canon_key
from .scorer import NAME, VERSION, score
from .summarize import summarize
from .verdicts import Verdict

__all__ = ["NAME", "VERSION", "Verdict", "canon_key", "score", "summarize"]
