"""Which runs an output holds.

In: the address of an output, or of one run, and names. Out: StoredRuns, or an error that gives the nearest right name.
A run is a folder with settings.json in it, or with tables alone, as scoring a table of predictions leaves them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from . import layout, storage
from .errors import InternalError, RequestError, StorageError, nearest, refused, suggestion
from .jsontext import read_json

CORPUS = "corpus.json"


@dataclass(frozen=True, order=True)
class StoredRun:
    """A run that is there: the output it lies in, and its name."""

    out: str
    name: str

    @property
    def address(self) -> str:
        return storage.join(self.out, self.name)

    def file(self, name: str) -> Any:
        """What one of its JSON files holds; None if there is no such file. Raises InternalError if it is damaged."""
        address = storage.join(self.address, name)
        try:
            return read_json(storage.read(address))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InternalError(f"{address} is damaged: it is no JSON ({error})") from error


def run_at(address: str) -> StoredRun:
    """The run whose folder is at ``address``. Raises RequestError."""
    address = storage.absolute(address).rstrip("/")
    if _is_run(address):
        return StoredRun(storage.parent(address), address.rsplit("/", 1)[-1])
    if names := _names(address):
        raise RequestError(f"{address} is an output with {len(names)} runs; give one of them: {_some(address, names)}")
    raise _nothing_at(address)


def runs_at(address: str, names: Collection[str] = ()) -> list[StoredRun]:
    """The runs of an output, by name; those called ``names`` only, in that order, if there are any.

    An address that is a run itself stands for that one.

    Raises:
        RequestError: nothing is there, or no run of a name.
    """
    address = storage.absolute(address).rstrip("/")
    if not names and _is_run(address):
        return [run_at(address)]
    known = _names(address)
    if not known:
        if _is_run(address):
            raise RequestError(f"{address} is a run itself; give the folder that holds it: {storage.parent(address)}")
        raise _nothing_at(address)
    wanted = [_within(address, name) for name in names]
    unknown = [f"no run {name!r}; {suggestion(name, known)}" for name in wanted if name not in known]
    if unknown:
        raise refused(f"runs of {address}", unknown)
    return [StoredRun(address, name) for name in wanted or known]


def stored_corpus(out: str) -> dict[str, Any]:
    """What corpus.json of an output says (see folders.corpus_file), as far as it can be read."""
    try:
        found = read_json(storage.read(storage.join(out, CORPUS)))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _within(out: str, name: str) -> str:
    """The name of a run that may be given as the path to it."""
    return name.rstrip("/").rsplit("/", 1)[-1] if storage.absolute(name.rstrip("/")).startswith(f"{out}/") else name


def _is_run(address: str) -> bool:
    with suppress(FileNotFoundError):
        storage.stat(storage.join(address, "settings.json"))
        return True
    return storage.is_folder(storage.join(address, layout.SCORES))


def _names(out: str) -> list[str]:
    names = storage.folders(out)
    with ThreadPoolExecutor(16) as threads:
        are = threads.map(_is_run, (storage.join(out, name) for name in names))
    return [name for name, is_run in zip(names, are, strict=True) if is_run]


def _some(address: str, names: Iterable[str]) -> str:
    return ", ".join(storage.join(address, name) for name in list(names)[:10])


def _nothing_at(address: str) -> RequestError:
    path = address.split("://", 1)[-1]
    near = None
    if "/" in path.strip("/"):
        with suppress(StorageError):
            near = nearest(path.rsplit("/", 1)[-1], storage.folders(storage.parent(address)))
    better = f"; did you mean {storage.join(storage.parent(address), near)}?" if near else ""
    return RequestError(f"there are no runs at {address}{better}")
