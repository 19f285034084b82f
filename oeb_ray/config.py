"""Composed configs to a typed Job; the only user of omegaconf, and with jobs/ of Hydra.

In: overrides or a composed config. Out: a Job of plain values, or every problem with it in one error. Secrets are no
part of a config: providers read them from the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from .errors import RequestError, refused, suggestion
from .prices import PriceList, read_prices
from .providers.models import GROUP, HOW, HOW_OPTIONS
from .scorers import SCORERS
from .storage import protocol_of

RETRY = ("", "transient", "all")
MOST_REPEATS = 99
SHORTEST_KEY = 8  # characters from which a value is looked for
_SECRET = re.compile(r"(^|_)(api_?key|key|secret|token|password|credentials?)$", re.IGNORECASE)
GROUPS = ("provider", "corpus", "storage", "cluster", "scorer", "prices", "experiment")


@dataclass(frozen=True)
class Job:
    """What was asked for.

    ``providers``: per provider what its config says; ``repo``: a dataset of the hub, else ``manifest`` is the corpus,
    which ``source`` is laid out as first if it is given;
    ``timeout``: seconds per document; ``scorers``: their names; ``config``: all of it as it was resolved, for the
    record; ``rehearsal``: dials by simulated vendor, None to call the real ones; ``prices``: what models list.
    """

    providers: Mapping[str, Mapping[str, Any]]
    out: str
    corpus_name: str | None
    repo: str | None
    manifest: str
    data_root: str | None
    suites: list[str] | None
    only: list[str] | None
    limit: int
    timeout: float
    verdicts: bool
    rescore: bool
    predict_only: bool
    score_only: bool
    retry_failed: str
    predict_stale: bool
    repeats: int
    dry_run: bool
    confirm: bool
    timings: bool
    events: str | None
    pages: str
    cluster: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    rehearsal: Mapping[str, Any] | None = None
    scorers: tuple[str, ...] = ("field_matching",)
    source: str | None = None
    prices: PriceList | None = None


def conf_dir() -> Path:
    """The folder of the configs that ship: inside the installed package, else beside it in a checkout."""
    inside = Path(__file__).parent / "conf"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "conf"


def sample_manifest() -> str:
    """The manifest of the corpus that ships."""
    return str(Path(__file__).parent / "sample" / "manifest.parquet")


def composed(overrides: Sequence[str], config_dir: str | None = None) -> DictConfig:
    """The config with overrides applied, as Hydra composes it.

    Raises:
        RequestError: an override or file that Hydra refuses, with the nearest right name.
    """
    if config_dir and not Path(config_dir).is_dir():
        raise RequestError(f"--config-dir {config_dir}: there is no such folder")
    refuse_secrets(overrides)
    GlobalHydra.instance().clear()
    extra = [f"hydra.searchpath=[file://{Path(config_dir).resolve()}]"] if config_dir else []
    try:
        with initialize_config_dir(config_dir=str(conf_dir()), version_base="1.3"):
            return compose("config", overrides=[*extra, *overrides])
    except (HydraException, OmegaConfBaseException, AssertionError, ValueError, YAMLError) as error:
        raise RequestError(_hydra_message(error, overrides)) from error


def refuse_secrets(overrides: Sequence[str]) -> None:
    """A key on a command line stands in histories, process lists and job listings; none is taken from there.

    Raises:
        RequestError: names the words, never their values.
    """
    from .providers.registry import PAID

    keys = {os.environ.get(name, "") for vendor in PAID.values() for name in vendor.credential}
    wrong = []
    for word in overrides:
        name, _, value = word.partition("=")
        if _SECRET.search(name.lstrip("+~").rsplit(".", 1)[-1]):
            wrong.append(f"{name}: keys come from the environment (see `oeb providers NAME`), never from a config")
        elif any(len(key) >= SHORTEST_KEY and key in value for key in keys):
            wrong.append(f"{name}: its value holds a key of the environment; keys are no part of a config")
    if wrong:
        raise refused("secrets are refused", wrong)


def _hydra_message(error: Exception, overrides: Sequence[str]) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [f"the configuration is refused: {' '.join(lines[:3]) or type(error).__name__}"]
    for override in overrides:
        key, _, value = override.partition("=")
        name = key.lstrip("+~")
        parts = name.split(".")
        if parts[0] == "providers" and len(parts) > 1 and (len(parts) > 4 or not _is_provider(parts[1])):
            said[0] = "the configuration is refused"
            said.append(f"{name}: dots separate keys, so no model id can be one; write {HOW} {HOW_OPTIONS}")
        elif name in GROUPS:
            known = sorted(path.stem for path in (conf_dir() / name).glob("*.yaml"))
            members = [word.strip(" '\"") for word in value.strip("[]").split(",")]
            if any(f"'{name}/{member}'" in said[0] for member in members if member not in known):
                said[0] = "the configuration is refused"
            said.extend(f"{name}={member}: {_instead(member, known)}" for member in members if member not in known)
            if "," in value and "[" not in value:
                said.append(f"several of a group are written {name}=[{value}], in quotes for the shell")
        elif f"'{name}'" in said[0]:
            said[0] = "the configuration is refused"
            said.append(f"{name}: no such key; {suggestion(name, _KEYS)}")
    return "\n  ".join(said)


def _is_provider(name: str) -> bool:
    return (conf_dir() / "provider" / f"{name}.yaml").is_file()


def _instead(member: str, known: Sequence[str]) -> str:
    """What to choose instead of an unknown member of a group."""
    return f"models are chosen with provider=[{GROUP}] {HOW}" if "/" in member else suggestion(member, known)


# What a job's config holds, by dotted key; what lies below providers is the providers' own.
_KEYS = (
    "suites only limit timeout verdicts rescore predict_only score_only retry_failed predict_stale repeats dry_run "
    "confirm timings events pages storage.root corpus.name corpus.repo corpus.manifest corpus.data_root corpus.source "
    "cluster.kind cluster.cpus cluster.address scorers rehearsal lineup prices.date prices.models providers"
).split()


def read_job(config: DictConfig, values: Mapping[str | tuple[str, ...], Any] | None = None) -> Job:
    """A composed config as a Job; ``values`` replace what the config says, by dotted key or by its parts.

    Raises:
        RequestError: a value of another type, an unknown key, or one that must be given; all at once.
    """
    problems: list[str] = []
    plain = _plain(config, "", problems)
    for key, value in (values or {}).items():
        _put(plain, key, value, problems)
    read = _Reader(plain, problems)
    read.only_known(_KEYS)
    manifest, repo = read.text_or_none("corpus.manifest"), read.text_or_none("corpus.repo")
    if manifest is not None and repo is not None:
        problems.append(f"corpus.manifest={manifest!r} and corpus.repo={repo!r}: give one of them")
    source = read.text_or_none("corpus.source")
    if source is not None and not (manifest or "").endswith("/manifest.parquet"):
        problems.append(f"corpus.source={source!r}: give corpus.manifest=FOLDER/manifest.parquet, where it is laid out")
    if manifest is None and repo is None and not problems:
        if read.text_or_none("corpus.name") == "sample":
            manifest = sample_manifest()
        else:
            problems.append("corpus.manifest: give the path or URL of a manifest, or corpus=hub, or corpus=sample")
    job = Job(
        providers=read.providers(),
        out=read.one("storage.root", str, "a path or URL"),
        corpus_name=read.text_or_none("corpus.name"),
        repo=repo,
        manifest=manifest or "",
        data_root=read.text_or_none("corpus.data_root"),
        suites=read.texts("suites"),
        only=read.texts("only"),
        limit=read.one("limit", int, "a whole number"),
        timeout=read.number("timeout"),
        verdicts=read.one("verdicts", bool, "true or false"),
        rescore=read.one("rescore", bool, "true or false"),
        predict_only=read.one("predict_only", bool, "true or false"),
        score_only=read.one("score_only", bool, "true or false"),
        retry_failed=read.one("retry_failed", str, "a text"),
        predict_stale=read.one("predict_stale", bool, "true or false"),
        repeats=read.one("repeats", int, "a whole number"),
        dry_run=read.one("dry_run", bool, "true or false"),
        confirm=read.one("confirm", bool, "true or false"),
        timings=read.one("timings", bool, "true or false"),
        pages=read.one("pages", str, "a folder or URL"),
        events=read.text_or_none("events"),
        cluster=read.cluster(),
        config=plain,
        rehearsal=read.rehearsal(),
        scorers=read.scorers(),
        source=source,
        prices=read_prices(plain.get("prices"), problems),
    )
    lineup = plain.get("lineup")
    if lineup is not None and not isinstance(lineup, Mapping):
        problems.append(f"lineup={lineup!r}: wants settings of all its models, such as {{evidence: true}}, or {{}}")
    elif lineup is not None and not problems:
        job = _with_lineup(job, lineup)
    if type(job.repeats) is int and not 1 <= job.repeats <= MOST_REPEATS:
        problems.append(f"repeats={job.repeats}: wants a whole number from 1 to {MOST_REPEATS}")
    if job.predict_only is True and job.score_only is True:
        problems.append("predict_only and score_only: together nothing would be done")
    if job.retry_failed not in RETRY:
        problems.append(f"retry_failed={job.retry_failed!r}: must be one of {', '.join(map(repr, RETRY))}")
    if job.out == "" or str(job.out).rstrip("/").endswith(":"):
        problems.append(f"storage.root={job.out!r}: give a folder, or a URL with its bucket")
    elif isinstance(job.out, str) and protocol_of(job.out) == "hf":
        problems.append(f"storage.root={job.out}: datasets of the hub are read, not written; give a folder or a bucket")
    elif job.cluster.get("kind") != "inline" and isinstance(job.out, str) and protocol_of(job.out) == "memory":
        problems.append(
            f"storage.root={job.out}: memory is seen by one process only; use cluster=inline or another place"
        )
    if problems:
        raise refused("the configuration is refused", dict.fromkeys(problems))
    return job


def listed_prices(name: str) -> PriceList:
    """A price list of conf/prices. Raises RequestError."""
    found = read_job(composed(["corpus=sample", f"prices={name}"])).prices
    assert found is not None
    return found


def _with_lineup(job: Job, settings: Mapping[str, Any]) -> Job:
    """The job with the models that the environment selects. Raises RequestError."""
    from .lineup import narrowed

    if job.prices is None:
        raise RequestError("lineup asks the models of a price list; choose one with prices=NAME")
    calls = job.rehearsal is None and not job.score_only
    return replace(job, providers=narrowed(job.providers, settings, job.prices, os.environ, keys=calls))


def _plain(config: DictConfig, prefix: str, problems: list[str]) -> dict[str, Any]:
    """The config as plain values; ``???`` in a provider's entry means its own default and is left out."""
    plain: dict[str, Any] = {}
    for key in map(str, config):
        full = f"{prefix}{key}"
        if OmegaConf.is_missing(config, key):
            if not full.startswith("providers."):
                problems.append(f"{full}: must be given")
            continue
        try:
            value = config[key]
        except OmegaConfBaseException as error:
            problems.append(f"{full}: {str(error).splitlines()[0]}")
            continue
        if isinstance(value, DictConfig):
            plain[key] = _plain(value, f"{full}.", problems)
        else:
            plain[key] = OmegaConf.to_container(value) if OmegaConf.is_config(value) else value
    return plain


def _put(plain: dict[str, Any], key: str | tuple[str, ...], value: Any, problems: list[str]) -> None:
    *parents, last = key.split(".") if isinstance(key, str) else key
    node = plain
    for depth, part in enumerate(parents):
        if part not in node and depth == 1 and parents[0] == "providers":
            problems.append(
                f"options for {last if part == GROUP else part!r}, which is not among the providers to run: "
                f"{', '.join(node) or '(none)'}"
            )
            return
        if not isinstance(node.get(part), dict):
            node[part] = {}
        node = node[part]
    node[last] = value
    dotted = ".".join((*parents, last))
    problems[:] = [problem for problem in problems if not problem.startswith(f"{dotted}:")]


class _Reader:
    """Values by dotted key, with what is wrong about them noted."""

    def __init__(self, plain: Mapping[str, Any], problems: list[str]) -> None:
        self.plain, self.problems = plain, problems

    def _value(self, key: str) -> Any:
        value: Any = self.plain
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def only_known(self, known: Sequence[str]) -> None:
        """Notes keys that mean nothing."""
        for key, value in self.plain.items():
            inner = value if isinstance(value, Mapping) and key not in ("providers", *known) else None
            for full in [f"{key}.{name}" for name in inner] if inner is not None else [key]:
                if full not in known and not any(name.startswith(f"{full}.") for name in known):
                    self.problems.append(f"{full}: no such key; {suggestion(full, known)}")

    def providers(self) -> dict[str, dict[str, Any]]:
        """The entries of the providers by name."""
        entries = self._value("providers")
        if entries is None:
            return {}
        if not isinstance(entries, Mapping):
            self.problems.append(f"providers={entries!r}: choose some with provider=[...]")
            return {}
        for name, entry in entries.items():
            if not isinstance(entry, Mapping):
                self.problems.append(f"providers.{name}={entry!r}: wants the provider's settings, such as {{}}")
        return {name: dict(entry) for name, entry in entries.items() if isinstance(entry, Mapping)}

    def cluster(self) -> dict[str, Any]:
        """Where to work: kind, cpus, address."""
        entry = self._value("cluster")
        if not isinstance(entry, Mapping):
            self.problems.append(f"cluster={entry!r}: choose one with cluster=local, inline or existing")
            return {}
        cpus, address, kind = entry.get("cpus"), entry.get("address"), entry.get("kind")
        if kind not in ("local", "inline", "existing"):
            self.problems.append(f"cluster.kind={kind!r}: known: local, inline, existing")
        if kind == "existing" and address is None:
            self.problems.append("cluster.address: give HOST:PORT of the cluster")
        if cpus is not None and (type(cpus) is not int or cpus < 1):
            self.problems.append(f"cluster.cpus={cpus!r}: wants a whole number of at least 1, or null for all")
        if address is not None and not re.fullmatch(r"(ray://)?[^/\s:]+:\d+|auto", str(address)):
            self.problems.append(f"cluster.address={address!r}: wants HOST:PORT")
        return dict(entry)

    def scorers(self) -> tuple[str, ...]:
        """The scorers that are chosen, in the order of the package."""
        entries = self._value("scorers")
        if not isinstance(entries, Mapping) or not entries:
            self.problems.append(f"scorers={entries!r}: choose some with scorer=[{','.join(SCORERS)}]")
            return ()
        unknown = [f"scorers.{name}: {suggestion(name, list(SCORERS))}" for name in entries if name not in SCORERS]
        set_ = [
            f"scorers.{name}.{key}: the scorer has no such option" for name in entries for key in entries[name] or ()
        ]
        self.problems.extend([*unknown, *set_])
        return tuple(name for name in SCORERS if name in entries)

    def rehearsal(self) -> dict[str, Any] | None:
        """Dials by vendor; what they hold is checked by whoever uses them."""
        entry = self._value("rehearsal")
        if entry is not None and not isinstance(entry, Mapping):
            self.problems.append(f"rehearsal={entry!r}: wants dials by vendor; choose experiment=rehearsal")
            return None
        return None if entry is None else dict(entry)

    def text_or_none(self, key: str) -> str | None:
        value = self._value(key)
        if value is not None and not isinstance(value, str):
            self.problems.append(f"{key}={value!r}: wants a text")
            return None
        return value

    def one(self, key: str, kind: type, wanted: str) -> Any:
        value = self._value(key)
        if type(value) is not kind and not any(problem.startswith(f"{key}:") for problem in self.problems):
            self.problems.append(f"{key}={value!r}: wants {wanted}")
        return value

    def number(self, key: str) -> float:
        value = self._value(key)
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            self.problems.append(f"{key}={value!r}: wants a number above 0")
            return 0.0
        return float(value)

    def texts(self, key: str) -> list[str] | None:
        value = self._value(key)
        if value is None:
            return None
        listed = value if isinstance(value, list) else [value]
        if not listed:
            self.problems.append(f"{key}=[]: selects nothing; leave it out for all")
        for member in listed:
            if not isinstance(member, str):
                self.problems.append(f"{key}: {member!r} is read as {type(member).__name__}, not text; quote it")
        return [str(member) for member in listed]
