"""Whose work an output holds: corpus.json for all of it, settings.json for each Run, both written before anything else.

In: an output, a corpus, Runs. Out: nothing, or what differs from what is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import storage
from .corpus.columns import column_of
from .corpus.manifest import Corpus, load
from .errors import RequestError, refused
from .jsontext import pretty, read_json
from .records import Run
from .stored import CORPUS, stored_corpus

COMMIT = "corpus_commit"  # in settings.json: for people; what has changed since is seen by the digests


def claim_folders(out: str, corpus: Corpus, runs: Sequence[Run]) -> None:
    """Writes corpus.json, and each Run's settings.json where nobody has yet.

    Raises:
        RequestError: somebody has, for other work; or claims of paid calls would not hold there.
    """
    problems: list[str] = []
    if any(run.lane for run in runs):
        storage.require_exclusive(out)
    storage.create(storage.join(out, CORPUS), pretty(corpus_file(corpus)))
    check_corpus(out, corpus, problems)
    if not problems:
        found = stored_corpus(out)
        now = corpus_file(corpus) | {key: found[key] for key in ("commit",) if key in found}
        if found != now:  # it has grown, or moved
            storage.put(storage.join(out, CORPUS), pretty(now))
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


def corpus_file(corpus: Corpus) -> dict[str, Any]:
    """What stands in corpus.json of an output: the corpus of its runs, its size and place, and its version at first."""
    about = {
        "corpus": corpus.identity,
        "documents": len(corpus),
        "manifest": corpus.address,
        "data_root": corpus.root,
    }
    return about | ({"commit": corpus.commit} if corpus.commit else {})


def corpus_at(out: str, manifest: str | None, data_root: str | None) -> Corpus:
    """The corpus of a manifest, or else the one that an output is of, where it was last. Raises RequestError."""
    stored = stored_corpus(out)
    if manifest is None:
        manifest, data_root = stored.get("manifest"), data_root or stored.get("data_root")
        if manifest is None:
            raise RequestError(f"{out} does not say where its corpus is; give --manifest")
    same = stored if storage.absolute(manifest) == stored.get("manifest") else {}
    return load(manifest, data_root=data_root, identity=same.get("corpus"), commit=same.get("commit"))


def manifest_of(out: str, manifest: str | None = None) -> str:
    """The address of a manifest, or else of the one that an output is of. Raises RequestError."""
    found = manifest or stored_corpus(out).get("manifest")
    if not found:
        raise RequestError(f"{out} does not say where its corpus is; give --manifest")
    return storage.absolute(found)


def clusters_of(out: str, manifest: str | None, column: str) -> dict[str, str]:
    """The label that each document has in a column of the manifest. Raises RequestError."""
    found = column_of(manifest_of(out, manifest), column)
    return {doc_id: " ".join(values) for doc_id, values in found.items()}


def check_corpus(out: str, corpus: Corpus, problems: list[str]) -> str | None:
    """An output holds runs of one corpus only. Returns a warning where that has another version now."""
    found = stored_corpus(out)
    if not found:
        return None
    if found.get("corpus") != corpus.identity:
        problems.append(
            f"{out} is of corpus {found.get('corpus')!r}, this job of {corpus.identity!r}; choose another output"
        )
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
