"""The settings of the vendors: names, types, defaults and units. They make the names of runs, so a field that is
added or whose default changes renames every run of its provider.
"""

from __future__ import annotations

from dataclasses import dataclass

from .contract import VendorOptions, setting

OPENROUTER = "https://openrouter.ai/api/v1"
CEILINGS = {
    "anthropic/claude-opus-5": 128_000,
    "openai/gpt-5.6-sol": 128_000,
    "openai/gpt-5.6-sol-pro": 128_000,
    "google/gemini-3.7-flash": 65_536,
}
OTHER_CEILING = 64_000


_MODEL = "the model's id at its maker"
_TOKENS = "the most that an answer may have, reasoning included"
_ATTEMPTS = "completions tried for a usable answer"
_EVIDENCE = "ask for the confidence, page and box of every value"


@dataclass(frozen=True, slots=True)
class Anthropic:
    model: str = setting(
        "claude-sonnet-5", help=_MODEL, choices=("claude-opus-4-8", "claude-sonnet-5", "claude-haiku-4-5")
    )
    # Longer answers than this take so long that servers between here and there drop the connection.
    max_output_tokens: int = setting(32_000, help=_TOKENS, unit="tokens", minimum=1)
    attempts: int = setting(2, help=_ATTEMPTS, minimum=1)
    evidence: bool = setting(False, help=_EVIDENCE)


@dataclass(frozen=True, slots=True)
class OpenAi:
    model: str = setting("gpt-5.6-luna", help=_MODEL, choices=("gpt-5.6-sol", "gpt-5.6-luna", "gpt-5.4-mini"))
    max_output_tokens: int = setting(128_000, help=_TOKENS, unit="tokens", minimum=1)
    attempts: int = setting(2, help=_ATTEMPTS, minimum=1)
    evidence: bool = setting(False, help=_EVIDENCE)


@dataclass(frozen=True, slots=True)
class Google:
    model: str = setting(
        "gemini-3.5-flash",
        help=_MODEL,
        choices=("gemini-3.5-flash", "gemini-2.5-pro", "gemini-2.5-flash", "gemini-2.5-flash-lite"),
    )
    max_output_tokens: int = setting(65_536, help=_TOKENS, unit="tokens", minimum=1)
    attempts: int = setting(2, help=_ATTEMPTS, minimum=1)
    evidence: bool = setting(False, help=_EVIDENCE)


@dataclass(frozen=True, slots=True)
class AzureCu:
    endpoint: str = setting("", help="Azure resource to call, such as https://NAME.cognitiveservices.azure.com")
    completion_model: str = setting("gpt-4.1-mini", help="model deployment behind the analyzer")
    api_version: str = setting(
        "2025-05-01-preview",
        help="version of the interface; 2025-05-01-preview was retired in July 2026",
        choices=("2025-11-01", "2026-06-01-preview"),
    )
    poll_interval: float = setting(3.0, help="between polls", unit="s", minimum=0)


@dataclass(frozen=True, slots=True)
class Datalab:
    mode: str = setting("balanced", help="extraction mode", choices=("fast", "balanced", "accurate"))
    base_url: str = setting("https://www.datalab.to", help="server")
    poll_interval: float = setting(5.0, help="between polls", unit="s", minimum=0)


@dataclass(frozen=True, slots=True)
class Extend:
    array_strategy: str = setting(
        "large_array_max_context",
        help="how long arrays are read",
        choices=("large_array_heuristics", "large_array_max_context", "large_array_overlap_context"),
    )
    api_version: str = setting("2026-02-09", help="version of the interface")
    base_url: str = setting("https://api.extend.ai", help="server")


@dataclass(frozen=True, slots=True)
class LlamaExtract:
    tier: str = setting(
        "agentic_plus", help="extraction tier", choices=("cost_effective", "agentic", "agentic_plus", "turbo")
    )
    poll_interval: int = setting(5, help="between polls", unit="s", minimum=0)


@dataclass(frozen=True, slots=True)
class Mistral:
    """No settings at all."""


@dataclass(frozen=True, slots=True)
class Reducto:
    deep_extract_model: str = setting("v2", help="extraction model")
    system_prompt: str = setting("", help="added to the request when not empty")
    agentic_table_mode: str = setting("max", help="table enrichment", choices=("default", "max", "auto"))
    poll_interval: int = setting(5, help="between polls", unit="s", minimum=0)


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat model by its id; ``model`` is the provider's name and cannot be given."""

    model: str = setting("", help="the model's id")
    max_output_tokens: int | None = setting(None, help="null: the model's ceiling", unit="tokens", minimum=0)
    base_url: str = setting(OPENROUTER, help="any OpenAI-compatible server")
    attempts: int = setting(3, help="completions tried for a usable answer", minimum=1)


@dataclass(frozen=True, slots=True)
class ChatOptions(VendorOptions):
    """The run options of chat models."""

    page_images: bool = setting(False, help="send an image of each page of a PDF, for servers that take no PDFs")
