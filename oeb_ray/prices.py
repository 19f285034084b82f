"""List prices of models: what measured tokens come to. A derived figure, never what a vendor states.

In: a price list of conf/prices, as plain values. Out: prices by provider and model, and dollars of tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MTOK = 1_000_000
_KEYS = ("in", "out", "cached")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens read and written; ``cached``: read from a cache, None as any other."""

    given: float
    made: float
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class PriceList:
    """``date``: when the prices were listed; ``models`` by provider, both in the order of the line-up."""

    date: str
    models: Mapping[str, Mapping[str, Price]]

    def of(self, provider: str, settings: Mapping[str, Any]) -> Price | None:
        """The price of the model that a Run asks; None if it is not listed."""
        return self.models.get(provider, {}).get(settings.get("model", ""))

    def of_model(self, model: str) -> Price | None:
        """As `of`, by the model alone; their names do not repeat."""
        return next((listed[model] for listed in self.models.values() if model in listed), None)


def cost(price: Price | None, given: float | None, made: float | None, cached: float | None = None) -> float | None:
    """Dollars of tokens read (``cached`` among them) and written; None without a price or without counts."""
    if price is None or given is None or made is None:
        return None
    from_cache = 0.0 if price.cached is None else min(cached or 0.0, given)
    return ((given - from_cache) * price.given + from_cache * (price.cached or 0.0) + made * price.made) / MTOK


def read_prices(entry: Any, problems: list[str]) -> PriceList | None:
    """A price list as a config has it; what is wrong with it goes to ``problems``. None for no list."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping) or not isinstance(entry.get("models"), Mapping):
        problems.append(f"prices={entry!r}: choose a list with prices=NAME, such as prices=2026-07")
        return None
    if not isinstance(entry.get("date"), str):
        problems.append(f"prices.date={entry.get('date')!r}: wants the day that the prices were listed, in quotes")
    models: dict[str, dict[str, Price]] = {}
    for provider, listed in entry["models"].items():
        if not isinstance(listed, Mapping):
            problems.append(f"prices.models.{provider}: wants prices by model")
            continue
        for model, price in listed.items():
            if found := _price(price):
                models.setdefault(provider, {})[model] = found
            else:
                problems.append(
                    f"prices.models.{provider}.{model}={price!r}: wants in and out, perhaps cached, "
                    "in dollars per million tokens"
                )
    return PriceList(str(entry.get("date")), models)


def _price(entry: Any) -> Price | None:
    if not isinstance(entry, Mapping) or not {"in", "out"} <= entry.keys() <= set(_KEYS):
        return None
    figures = [entry.get(key) for key in _KEYS]
    if not all(_is_price(figure) for figure in figures[:2]) or not (figures[2] is None or _is_price(figures[2])):
        return None
    given, made, cached = (None if figure is None else float(figure) for figure in figures)
    return None if given is None or made is None else Price(given, made, cached)


def _is_price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 and math.isfinite(value)
