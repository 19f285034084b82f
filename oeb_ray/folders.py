"""Whose work an output holds: corpus.json for all of it, settings.json for each Run, both written before anything else.

In: an output, a corpus, Runs. Out: nothing, or what differs from what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import storage
from .corpus.manifest import Corpus
from .errors import RequestError, refused
from .jsontext import pretty, read_json
from .records import Run

COMMIT = "corpus_commit"  # in settings.json: for people; what has changed since is seen by the digests


def claim_folders(out: str, corpus: Corpus, runs: Sequence[Run]) -> None:
    """Writes corpus.json and each Run's settings.json, where nobody has yet.

    Raises:
        RequestError: somebody has, for other work; or claims of paid calls would not hold there.
    """
    problems: list[str] = []
    if any(run.lane for run in runs):
        storage.require_exclusive(out)
    storage.create(storage.join(out, "corpus.json"), pretty(corpus_file(corpus)))
    check_corpus(out, corpus, problems)
    for run in runs:
        address = storage.join(out, run.name, "settings.json")
        created = storage.create(address, pretty(settings_file(run, corpus)))
        if not created and check_settings(out, run, corpus, problems):
            problems.append(f"{address} is there but cannot be read as a file")
    if problems:
        raise other_work(out, problems)


def other_work(out: str, problems: list[str]) -> RequestError:
    """The refusal of a folder that was made with other settings."""
    return refused(f"{out} holds other work", problems)


def corpus_file(corpus: Corpus) -> dict[str, str]:
    """What stands in corpus.json of an output: the one corpus that its runs are of, and its version at first."""
    return {"corpus": corpus.identity} | ({"commit": corpus.commit} if corpus.commit else {})


def check_corpus(out: str, corpus: Corpus, problems: list[str]) -> str | None:
    """An output holds runs of one corpus only. Returns a warning where that has another version now."""
    try:
        found = read_json(storage.read(storage.join(out, "corpus.json")))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("corpus") != corpus.identity:
        problems.append(f"{out} is of corpus {found}, this job of {corpus_file(corpus)}; choose another output")
        return None
    before = found.get("commit")
    if before == corpus.commit or not (before and corpus.commit):
        return None
    return f"{corpus.identity} is at commit {corpus.commit} now and was at {before} when {out} was begun"


def settings_file(run: Run, corpus: Corpus) -> dict[str, Any]:
    """What stands in settings.json, written before the first document."""
    return {
        "run": run.name,
        "provider": run.provider,
        "settings": run.settings,
        **run.options,
        "corpus": corpus.identity,
        **({COMMIT: corpus.commit} if corpus.commit else {}),
    }


def check_settings(out: str, run: Run, corpus: Corpus, problems: list[str]) -> bool:
    """Whether the Run has no settings.json yet; what differs in one that is there goes to ``problems``."""
    address = storage.join(out, run.name, "settings.json")
    try:
        found = read_json(storage.read(address))
    except FileNotFoundError:
        return True
    except ValueError as error:
        problems.append(f"{address} is no JSON ({error}); restore it or choose another output")
        return False
    if not isinstance(found, dict):
        problems.append(f"{address} holds no settings; restore it or choose another output")
        return False
    for key, value in settings_file(run, corpus).items():
        if found.get(key) != value and key != COMMIT:
            problems.append(
                f"{run.name}: its settings.json says {key}={found.get(key)!r}, this job {value!r}; "
                "choose another output, or ask for the same"
            )
    return False
