"""What the runner knows of each scorer: its name, its columns, how a document is graded and rows are summarised.

In: the bytes that are stored of a document. Out: its row and its verdicts. The scorers themselves stand alone in
`oeb_ray.scoring`; one module here wraps each of them, and is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from ..errors import RequestError, suggestion
from .contract import Scorer

SCORERS = {name: f"{__name__}.{name}" for name in ("field_matching", "value_f1", "field_accuracy")}
"""The modules by name; the first one's results lie in the run's own folder, see layout.below."""


def find(name: str) -> Scorer:
    """The scorer of that name. Raises RequestError with the nearest name."""
    if name not in SCORERS:
        raise RequestError(f"no scorer {name!r}; {suggestion(name, list(SCORERS))}")
    return cast(Scorer, import_module(SCORERS[name]).SCORER)
