"""Chat models as a config names them: together, under one name, each of them a provider.

In: entries by provider, of which ``openrouter`` may list models. Out: one entry per provider and model. An entry for
all models holds what they share; ``options`` may tell them apart by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import suggestion

GROUP = "openrouter"
EXAMPLES = ("openai/gpt-5.6-sol", "anthropic/claude-opus-5", "google/gemini-3.7-flash")
HOW = f"providers.{GROUP}.models=[{EXAMPLES[0]}]"
HOW_OPTIONS = f"'providers.{GROUP}.options={{{EXAMPLES[0]}: [{{attempts: 1}}]}}'"


class Named(NamedTuple):
    """A provider and what its config says. ``prefix`` leads the keys in messages."""

    name: str
    entry: Mapping[str, Any]
    prefix: str


def named(providers: Mapping[str, Mapping[str, Any]], problems: list[str]) -> Iterator[Named]:
    """Every provider and model with its own entry; what is wrong about the models goes to ``problems``."""
    for name, entry in providers.items():
        prefix = f"providers.{name}"
        if name != GROUP:
            yield Named(name, entry, prefix)
            continue
        models = _models(entry.get("models"), problems)
        shared = {key: value for key, value in entry.items() if key not in ("models", "options")}
        options = _options(entry.get("options"), models, problems)
        for model in models:
            yield Named(model, {**shared, "options": options.get(model)}, prefix)


def _models(given: Any, problems: list[str]) -> list[str]:
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or not listed:
        problems.append(f"providers.{GROUP}.models={given!r}: wants a list of model ids, such as {HOW}")
        return []
    models = []
    for model in dict.fromkeys(item if isinstance(item, str) else repr(item) for item in listed):
        if "/" in model and model.isprintable():
            models.append(model)
        else:
            problems.append(f"providers.{GROUP}.models: {model!r} is no model id; one is written org/model")
    return models


def _options(given: Any, models: list[str], problems: list[str]) -> dict[str, Any]:
    """The option sets by model: the same for all, or as a mapping by model id has them."""
    by_name = isinstance(given, Mapping) and any("/" in str(key) for key in given)
    if not by_name:
        return dict.fromkeys(models, given)
    problems.extend(
        f"providers.{GROUP}.options: {key!r} is not among the models; {suggestion(str(key), models)}"
        for key in given
        if key not in models
    )
    return dict(given)
