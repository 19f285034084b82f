"""scipy's `linear_sum_assignment`, without the rest of `scipy.optimize`, whose import takes most of a second.

The function is one compiled module of its own. Where it cannot be loaded alone, scipy is imported as usual.
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any


def linear_sum_assignment(costs: Any) -> tuple[Any, Any]:
    """Rows and columns of the pairs of least total cost: see scipy.optimize.linear_sum_assignment."""
    return _solver()(costs)  # type: ignore[no-any-return]


@cache
def _solver() -> Any:
    try:
        scipy = find_spec("scipy")
        places = [str(Path(place, "optimize")) for place in (scipy and scipy.submodule_search_locations) or ()]
        found = PathFinder.find_spec("_lsap", places)
        assert found is not None and found.loader is not None
        module = module_from_spec(found)
        found.loader.exec_module(module)
        return module.linear_sum_assignment
    except (AssertionError, AttributeError, ImportError):
        from scipy.optimize import linear_sum_assignment as usual

        return usual
