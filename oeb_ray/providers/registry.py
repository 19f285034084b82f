"""Which providers there are, and what each one takes.

In: a provider's name and options as given. Out: its resolved settings, or every problem with them in one error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..digests import text_digest
from ..errors import RequestError, refused, suggestion
from ..records import Lane
from . import (
    anthropic,
    azure_cu,
    command,
    datalab,
    extend,
    google,
    llamaextract,
    mistral,
    models,
    openai,
    openrouter,
    pdftext,
    reducto,
    replay,
    vendors,
)
from .contract import PaidProvider, Provider, typed
from .transport import key_of

_VENDORS: tuple[PaidProvider, ...] = (
    anthropic.Anthropic(),
    azure_cu.AzureCu(),
    datalab.Datalab(),
    extend.Extend(),
    google.Google(),
    llamaextract.LlamaExtract(),
    mistral.Mistral(),
    openai.OpenAi(),
    reducto.Reducto(),
)
PAID: dict[str, PaidProvider] = {provider.name: provider for provider in _VENDORS}
OFFLINE: dict[str, Provider] = {provider.name: provider for provider in (pdftext.PdfText(), replay.Replay())}
PROVIDERS = ["azure-cu", "datalab", "extend", "llamaextract", "mistral", "reducto"]  # those of omni_extract_bench
ALL_PROVIDERS = sorted([*PAID, *OFFLINE, command.Command.name])

CARD_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "claude": ("anthropic/claude-opus-5", {}),
    "datalab-accurate": ("datalab", {"mode": "accurate"}),
    "gemini": ("google/gemini-3.7-flash", {}),
    "gpt": ("openai/gpt-5.6-sol", {}),
    "gpt-pro": ("openai/gpt-5.6-sol-pro", {}),
}
"""What the dataset card's names stand for: a provider, and the options that are set with it."""


def is_paid(name: str) -> bool:
    """Whether a provider, or whatever has this name, bills what it is asked for."""
    return name not in OFFLINE


def settings_class(name: str) -> type[Any]:
    """The Settings class behind a provider name; any name with ``/`` is a chat model.

    Raises:
        RequestError: no such provider.
    """
    if "/" in name:
        return vendors.Chat
    if name == models.GROUP:
        raise RequestError(f"{name}: name a model instead, such as {models.EXAMPLES[0]}; in a config {models.HOW}")
    if name in OFFLINE:
        return OFFLINE[name].Settings
    if name in PAID:
        return PAID[name].Settings
    if name == command.Command.name:
        return command.CommandSettings
    raise RequestError(f"unknown provider {name!r}: {suggestion(name, ALL_PROVIDERS)}, or a model id org/model")


def find(name: str, settings: Mapping[str, Any] | None = None) -> Provider:
    """The provider that extracts; of a chat model that at the server of its settings, without them OpenRouter's.

    Raises:
        RequestError: no such provider.
    """
    settings_class(name)  # raises for what is not there
    found = OFFLINE.get(name) or paid(name, settings)
    assert found is not None
    return found


def paid(name: str, settings: Mapping[str, Any] | None = None) -> PaidProvider | None:
    """As `find`, for a vendor that bills; None for every other provider."""
    if "/" in name:
        return openrouter.served_by((settings or {}).get("base_url", vendors.OPENROUTER))
    return command.with_keys(settings) if name == command.Command.name else PAID.get(name)


def lane_of(
    provider: PaidProvider, settings: Mapping[str, Any], options: Mapping[str, Any], limits: Mapping[str, Any]
) -> Lane:
    """The account that a paid Run goes through: adapter, server and a fingerprint of the key, with the limits on it.

    Raises:
        MissingCredential: the key is not in the environment.
    """
    key = key_of(provider.credential, provider.name)
    host = urlsplit(provider.host(settings, options)).netloc.lower()
    fingerprint = text_digest(f"account of oeb_ray {key}")[:8]
    cap = limits["in_flight"] or provider.cap
    account = f"{provider.name}@{host}#{fingerprint}"
    return Lane(account, cap, limits["rpm"], limits["max_usd"], limits["usd_per_doc"])


def settings_for(name: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Every setting of a provider, defaults included, with ``options`` applied.

    Raises:
        RequestError: unknown provider or option, or a value of another type; all problems at once.
    """
    values, problems = resolved(name, options or {}, name)
    if problems:
        raise refused(f"options of {name}", problems)
    return values


def resolved(name: str, options: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], list[str]]:
    """As `settings_for`, with the problems returned; ``prefix`` leads their keys."""
    kind = settings_class(name)
    given = dict(options)
    problems = []
    if kind is vendors.Chat:
        if "model" in given:
            problems.append(f"{prefix}.model: the model is the provider's name, {name!r}; it cannot be an option")
            del given["model"]
        if given.get("max_output_tokens", ...) is None:
            del given["max_output_tokens"]
    values, more = typed(kind, given, prefix)
    if kind is vendors.Chat:
        values["model"] = name
        if values["max_output_tokens"] is None:
            values["max_output_tokens"] = vendors.CEILINGS.get(name, vendors.OTHER_CEILING)
    if kind is vendors.AzureCu and isinstance(values["endpoint"], str):
        values["endpoint"] = values["endpoint"].rstrip("/")
    return values, problems + more


def run_name(provider: str, options: Mapping[str, Any] | None = None) -> str:
    """The folder of a run: the provider's name and eight characters of the digest of its settings."""
    return name_of(provider, settings_for(provider, options))


def name_of(provider: str, settings: Mapping[str, Any]) -> str:
    """As `run_name`, from resolved settings."""
    text = json.dumps(settings, sort_keys=True, default=str)
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", provider.replace("/", "__"))
    return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
