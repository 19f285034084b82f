"""value_f1: the cells of two documents compared, tables paired row by row (see METRIC_SPEC.md beside this file)."""

from .errors import OutputNotObject, Ungradable
from .schema import ABSENT
from .scorer import NAME, TODAY, VERSION, Cell, score

__all__ = ["ABSENT", "NAME", "TODAY", "VERSION", "Cell", "OutputNotObject", "Ungradable", "score"]
