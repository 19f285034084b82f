"""Which models of a line-up are asked: those whose provider has a key, narrowed by EVAL_PROVIDERS and EVAL_MODELS.

In: a price list, whose order is that of the line-up, and the environment. Out: models by provider, or one error before
anything is read or called.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .errors import MissingCredential, RequestError, suggestion
from .prices import PriceList
from .providers.registry import PAID

PROVIDERS, MODELS = "EVAL_PROVIDERS", "EVAL_MODELS"


def selected(prices: PriceList, environment: Mapping[str, str], *, keys: bool = True) -> dict[str, list[str]]:
    """Models to ask by provider. ``keys``: vendors will be called, so that their keys must be there.

    EVAL_PROVIDERS names providers in the order that they run; without it all that have a key do. EVAL_MODELS names
    models, which run in the order of the line-up. Names are separated by commas and blanks.

    Raises:
        RequestError: an unknown name, a model outside the selected providers, or a variable that names nothing.
        MissingCredential: a named provider has no key, or none has.
    """
    keyless = [] if not keys else [name for name in prices.models if not _has_key(name, environment)]
    named = _names(environment, PROVIDERS)
    if unknown := [name for name in named or () if name not in prices.models]:
        raise RequestError(
            f"{PROVIDERS}: {', '.join(unknown)}: not among the providers; {suggestion(unknown[0], list(prices.models))}"
        )
    if wanting := [name for name in named or () if name in keyless]:
        raise MissingCredential(f"{PROVIDERS} names {', '.join(map(_with_key, wanting))}, and the key is not set")
    providers = [name for name in prices.models if name not in keyless] if named is None else named
    if not providers:
        raise MissingCredential(f"no provider has a key; set one of {', '.join(map(_with_key, prices.models))}")
    available = {name: list(prices.models[name]) for name in providers}
    wanted = _names(environment, MODELS)
    if wanted is None:
        return available
    known = [model for models in available.values() for model in models]
    if missing := [model for model in wanted if model not in known]:
        raise RequestError(f"{MODELS}: {', '.join(missing)}: not among the models that can run: {', '.join(known)}")
    chosen = {name: [model for model in models if model in wanted] for name, models in available.items()}
    return {name: models for name, models in chosen.items() if models}


def narrowed(
    providers: Mapping[str, Mapping[str, Any]],
    settings: Mapping[str, Any],
    prices: PriceList,
    environment: Mapping[str, str],
    *,
    keys: bool = True,
) -> dict[str, dict[str, Any]]:
    """The entries of a config's providers; those of the line-up ask its models, as `selected` has them.

    ``settings`` are those of all models, before what a provider's own entry says. Raises as `selected` does.
    """
    listed = {name: models for name, models in prices.models.items() if name in providers}
    if not listed:
        raise RequestError(f"lineup: choose providers of the price list: {', '.join(prices.models)}")
    asked = {
        name: {**settings, **providers[name], "options": [{"model": model} for model in models]}
        for name, models in selected(replace(prices, models=listed), environment, keys=keys).items()
    }
    return asked | {name: dict(entry) for name, entry in providers.items() if name not in listed}


def _names(environment: Mapping[str, str], variable: str) -> list[str] | None:
    """The names in a variable, each once; None where it is not set or blank. Raises RequestError for no name."""
    given = environment.get(variable, "")
    if not given.strip():
        return None
    names = list(dict.fromkeys(name for name in re.split(r"[,\s]+", given) if name))
    if not names:
        raise RequestError(f"{variable}={given!r} names nothing; unset it for all")
    return names


def _has_key(provider: str, environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").strip() for name in PAID[provider].credential)


def _with_key(provider: str) -> str:
    return f"{provider} ({' or '.join(PAID[provider].credential)})"
