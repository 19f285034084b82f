"""`oeb providers`: what can be run, and what each takes."""

from __future__ import annotations

import argparse
from typing import Any

from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb providers`."""
    parser = declare(commands, "providers", "The providers, or what one of them takes.", "oeb providers datalab")
    parser.add_argument("name", nargs="?", help="a provider, or a model id org/model")
    parser.set_defaults(command=_providers)


def _providers(given: argparse.Namespace) -> int:
    import dataclasses

    from ..providers.contract import NoOptions
    from ..providers.registry import ALL_PROVIDERS, OFFLINE, settings_class, settings_for

    if given.name is None:
        print("\n".join(ALL_PROVIDERS))
        print("any OpenRouter model id org/model, such as openai/gpt-5.6-sol")
        return 0
    kind = settings_class(given.name)
    options = OFFLINE[given.name].Options if given.name in OFFLINE else NoOptions
    print(given.name)
    if given.name not in OFFLINE:
        print("this version knows its settings, and so names its runs, but cannot call it yet")
    for title, fields in (("settings, in the name of the run", kind), ("run options, not in the name", options)):
        rows = list(dataclasses.fields(fields))
        if rows:
            print(f"{title}:")
        required = {field.name for field in rows if field.default is dataclasses.MISSING}
        values = {} if required or fields is options else settings_for(given.name)
        for field in rows:
            default = "(must be given)" if field.name in required else repr(values.get(field.name, field.default))
            more = [
                field.metadata.get("help", ""),
                *(["one of " + ", ".join(field.metadata["choices"])] if field.metadata.get("choices") else []),
            ]
            unit = f" {field.metadata['unit']}" if field.metadata.get("unit") else ""
            print(f"  {field.name} = {default}{unit}  {'; '.join(more)}")
    return 0
