"""oeb_ray: send a corpus through every extraction vendor at every setting, and say value by value who read it right.

The public names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .benchmark import BenchmarkRun, ProviderRun
    from .errors import AccountFailure, MissingCredential, MissingDependency
    from .harness import apredict, predict
    from .providers.registry import ALL_PROVIDERS, PROVIDERS, settings_for
    from .results import read_scores, read_verdicts
    from .scoring.field_matching import Verdict, canon_key, score

__version__ = "0.1.0"
__all__ = [
    "ALL_PROVIDERS",
    "PROVIDERS",
    "AccountFailure",
    "BenchmarkRun",
    "MissingCredential",
    "MissingDependency",
    "ProviderRun",
    "Verdict",
    "apredict",
    "canon_key",
    "predict",
    "read_scores",
    "read_verdicts",
    "score",
    "settings_for",
]

_HOMES = {
    "score": "scoring.field_matching",
    "canon_key": "scoring.field_matching",
    "Verdict": "scoring.field_matching",
    "read_scores": "results",
    "read_verdicts": "results",
    "BenchmarkRun": "benchmark",
    "ProviderRun": "benchmark",
    "apredict": "harness",
    "predict": "harness",
    "AccountFailure": "errors",
    "MissingCredential": "errors",
    "MissingDependency": "errors",
    "ALL_PROVIDERS": "providers.registry",
    "PROVIDERS": "providers.registry",
    "settings_for": "providers.registry",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'oeb_ray' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
