"""`oeb providers`: what can be run, and what each takes."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from typing import Any

from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb providers`."""
    parser = declare(commands, "providers", "The providers, or what one of them takes.", "oeb providers datalab")
    parser.add_argument("name", nargs="?", help="a provider, or a model id org/model")
    parser.set_defaults(command=_providers)


def _providers(given: argparse.Namespace) -> int:
    from ..providers.contract import LaneOptions
    from ..providers.models import EXAMPLES
    from ..providers.registry import ALL_PROVIDERS, find, paid, resolved, settings_class

    if given.name is None:
        print("\n".join([*ALL_PROVIDERS, "", *EXAMPLES]))
        print(
            "\nthe three model ids are examples: any OpenRouter model id org/model works, and by base_url any server's"
        )
        return 0
    values, _ = resolved(given.name, {}, given.name)
    print(given.name)
    if (vendor := paid(given.name)) is not None and vendor.credential:  # a command has neither key nor terms of its own
        _print_terms(vendor, given.name)
    _print_fields("settings, in the name of the run", settings_class(given.name), values)
    _print_fields("run options, not in the name", find(given.name).Options, {})
    if vendor is not None:
        _print_fields("limits that a job puts on the account", LaneOptions, {"in_flight": vendor.cap})
    if first := next((name for name in settings_class(given.name).__dataclass_fields__ if name != "model"), None):
        print(f'\noeb benchmark --providers {given.name} --options \'{{"{given.name}": {{"{first}": ...}}}}\'')
    return 0


def _print_terms(vendor: Any, name: str) -> None:
    """Which variables hold the key, what documents are taken, and whether a price is stated."""
    from ..providers.accepts import LIMITS, MB, UNKNOWN
    from ..providers.openrouter import COMPATIBLE

    print(f"key in the environment: {' or '.join(vendor.credential)}")
    if "/" in name:
        print(
            f"  at a base_url that is not OpenRouter's: {COMPATIBLE.credential[0]}; a server reached by http needs none"
        )
    limits = LIMITS.get(vendor.name, UNKNOWN)
    size = f"up to {limits.max_bytes // MB} MB" if limits.max_bytes else "of no known limit in size"
    from_bytes = f" (files over {limits.pages_from_bytes // MB} MB)" if limits.pages_from_bytes else ""
    pages = f"up to {limits.max_pages:,} pages{from_bytes}" if limits.max_pages else "no known limit of pages"
    print(f"documents: {', '.join(limits.media_types)}; {size}, {pages}")
    print(f"price: {'stated in dollars' if vendor.states_usd else 'not stated in dollars, max_usd needs usd_per_doc'}")


def _print_fields(title: str, kind: Any, values: Mapping[str, Any]) -> None:
    """The fields of a class of settings, with their values, units, choices and meaning."""
    rows = dataclasses.fields(kind)
    if rows:
        print(f"{title}:")
    for field in rows:
        value = values.get(field.name, field.default)
        default = "(must be given)" if value is dataclasses.MISSING else repr(value)
        choices = field.metadata.get("choices")
        more = [field.metadata.get("help", ""), *(["one of " + ", ".join(choices)] if choices else [])]
        unit = f" {field.metadata['unit']}" if field.metadata.get("unit") else ""
        print(f"  {field.name} = {default}{unit}  {'; '.join(more)}")
