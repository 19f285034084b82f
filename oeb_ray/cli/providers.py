"""`oeb providers`: what can be run, and what each takes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ..errors import RequestError
from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb providers`."""
    parser = declare(commands, "providers", "The providers, or what one of them takes.", "oeb providers datalab")
    parser.add_argument("name", nargs="?", help="a provider, or a model id org/model")
    parser.set_defaults(command=_providers)


def _providers(given: argparse.Namespace) -> int:
    from ..providers.contract import LaneOptions
    from ..providers.registry import ALL_PROVIDERS, find, resolved, settings_class

    if given.name is None:
        print("\n".join(ALL_PROVIDERS))
        print("any OpenRouter model id org/model, such as openai/gpt-5.6-sol")
        return 0
    kind = settings_class(given.name)
    print(given.name)
    values, _ = resolved(given.name, {}, given.name)
    _show("settings, in the name of the run", kind, values)
    try:
        provider: Any = find(given.name)
    except RequestError as error:
        print(error)
        return 0
    _show("run options, not in the name", provider.Options, {})
    if provider.paid:
        _show("limits that a job puts on the account", LaneOptions, {"in_flight": provider.cap})
        print(f"key: {' or '.join(provider.credential)} in the environment")
    return 0


def _show(title: str, kind: type[Any], values: Mapping[str, Any]) -> None:
    """Prints the fields of a Settings or Options class, with ``values`` where they are not the defaults."""
    import dataclasses

    rows = dataclasses.fields(kind)
    if rows:
        print(f"{title}:")
    for field in rows:
        value = values.get(field.name, field.default)
        default = "(must be given)" if value is dataclasses.MISSING else repr(value)
        more = [
            field.metadata.get("help", ""),
            *(["one of " + ", ".join(field.metadata["choices"])] if field.metadata.get("choices") else []),
        ]
        unit = f" {field.metadata['unit']}" if field.metadata.get("unit") else ""
        print(f"  {field.name} = {default}{unit}  {'; '.join(more)}")
