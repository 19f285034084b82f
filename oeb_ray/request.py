"""What people ask for, by flags or from Python, as a Job: provider names, option sets, and numbers per provider.

In: names as on the dataset card or of `oeb providers`, model ids, options by name. Out: a Job, composed from the same
config files as any other, or one error that names every problem.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .config import Job, composed, read_job, refuse_secrets
from .errors import RequestError, refused
from .providers.models import GROUP
from .providers.registry import CARD_NAMES, is_paid

PerProvider = float | Mapping[str, float] | None
"""One number for all providers that are paid, or by name; ``*`` stands for the others."""


def job_of(
    providers: Sequence[str] | None,
    options: Mapping[str, Any] | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    manifest: str | None = None,
    repo: str | None = None,
    data_root: str | None = None,
    in_flight: PerProvider = None,
    max_usd: PerProvider = None,
    run_options: Mapping[str, Mapping[str, Any]] | None = None,
    overrides: Sequence[str] = (),
    config_dir: str | None = None,
) -> Job:
    """A Job of what was asked for.

    Args:
        providers: names; those that the config chooses if None.
        options: an option set, or a list of them, by provider name.
        values: single values by dotted config key; None is left out. Here nothing needs quoting.
        manifest, repo: the corpus, if it is not that of the config; at most one of them. data_root: its folder.
        in_flight: calls in flight by provider; 0 means the provider's own number. max_usd: dollars for each Run.
        run_options: of the providers, which are in no run's name.
        overrides: words as on Hydra's command line.

    Raises:
        RequestError: what cannot be composed or read; all problems at once.
    """
    refuse_secrets([f"options.{name}={json.dumps(sets, default=str)}" for name, sets in (options or {}).items()])
    names = list(dict.fromkeys(providers or ()))
    kinds = [CARD_NAMES[name][0] if name in CARD_NAMES else name for name in names]
    models = [name for name in dict.fromkeys(kinds) if "/" in name]
    groups = list(dict.fromkeys(map(_group, kinds)))
    if manifest and repo:
        raise RequestError(f"manifest {manifest} and repo {repo}: give one of them")
    words = [*(["corpus=manifest"] if manifest else ["corpus=hub"] if repo else []), *overrides]
    if providers is not None:
        # Names are separate already; Hydra's list syntax takes them quoted.
        words.insert(0, "provider=[" + ",".join(f"'{name}'" for name in groups) + "]")
    config = composed(words, config_dir)
    chosen = list(dict.fromkeys([*(name for name in map(str, config.get("providers") or ()) if name != GROUP), *kinds]))
    corpus = {"corpus.manifest": manifest, "corpus.repo": repo, "corpus.data_root": data_root}
    given: dict[str | tuple[str, ...], Any] = {
        key: value for key, value in {**(values or {}), **corpus}.items() if value is not None
    }
    if models:
        given["providers", GROUP, "models"] = models
    for name, sets in _option_sets(names, options or {}).items():
        given[("providers", GROUP, "options", name) if "/" in name else ("providers", name, "options")] = sets
    for name, own in (run_options or {}).items():
        given |= {("providers", _group(name), key): value for key, value in own.items()}
    problems: list[str] = []
    for setting, numbers in (("in_flight", in_flight), ("max_usd", max_usd)):
        for name, number in _numbers(setting, numbers, chosen, problems).items():
            if number or setting != "in_flight":
                place = "providers", _group(name), setting
                given[place] = min(number, given.get(place, number))  # models share one entry
    if problems:
        raise refused("this cannot run", problems)
    return read_job(config, given)


def _group(name: str) -> str:
    """The entry of the config that a provider stands in."""
    return GROUP if "/" in name else name


def _option_sets(names: Iterable[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Option sets by provider. What a name of the card stands for is set in each of its own."""
    asked: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for name in names:
        provider, own = CARD_NAMES.get(name, (name, {}))
        asked.setdefault(provider, []).append((name, own))
    known = {*asked, *(name for pairs in asked.values() for name, _ in pairs)}
    sets = {name: given for name, given in options.items() if name not in known}
    for provider, pairs in asked.items():
        given = {name: options.get(name, options.get(provider)) for name, _ in pairs}
        if len(pairs) > 1 or pairs[0][1]:
            sets[provider] = [
                {**one, **own} if isinstance(one, Mapping) else one
                for name, own in pairs
                for one in _listed(given[name])
            ]
        elif (only := given[pairs[0][0]]) is not None:
            sets[provider] = only
    return sets


def _listed(given: Any) -> list[Any]:
    listed = given if isinstance(given, list | tuple) else [given]
    return [{} if one is None else one for one in listed]


def _numbers(setting: str, given: PerProvider, chosen: Sequence[str], problems: list[str]) -> dict[str, float]:
    """What a setting is for each of the paid providers that were chosen."""
    if given is None:
        return {}
    paid = [name for name in chosen if is_paid(name)]
    if not isinstance(given, Mapping):
        return dict.fromkeys(paid, given)
    numbers = dict.fromkeys(paid, given["*"]) if "*" in given else {}
    for name, number in given.items():
        provider = CARD_NAMES[name][0] if name in CARD_NAMES else name
        if provider in paid:
            numbers[provider] = number
        elif provider in chosen:
            problems.append(f"{setting} of {name!r}: it calls no vendor")
        elif name != "*":
            problems.append(f"{setting} of {name!r}, which is not among the providers to run: {', '.join(chosen)}")
    return numbers


def numbers_by_name(flag: str, text: str | None) -> PerProvider:
    """``3``, or ``datalab=3,openai/gpt-5.6-sol=2``, as a flag has it.

    Raises:
        RequestError: anything else; says how names and numbers are separated.
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, at, number = part.rpartition("=")
        try:
            value = float(number) if "." in number else int(number)
        except ValueError:
            value = -1
        if value < 0 or "=" in name or (at and not name) or (not at and "," in text):
            raise RequestError(
                f"{flag} {text}: {part!r} is neither a number nor name=number; several are separated by commas, the "
                "last = of each parts name and number"
            )
        found[name] = value
    return found.get("", found)
