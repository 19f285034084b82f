"""harbor-manifest.json: which tasks a folder holds, what they were made of, and a digest of every file.

In: a folder of tasks. Out: its manifest, or every difference between the manifest and what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .. import storage
from ..digests import digest
from ..errors import RequestError
from ..jsontext import pretty, read_json
from .leaks import leaks
from .tasks import MANIFEST, REFERENCE

FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """What all tasks of a folder have in common: the dataset and its revision, and scorer and prompt of the tasks."""

    dataset: str
    source_revision: str | None
    scorer_name: str
    scorer_version: str
    prompt_sha256: str


def manifest_bytes(origin: Origin, tasks: list[dict[str, Any]]) -> bytes:
    """The manifest of tasks, each with name, path, case_id, split, tags and the digests of its ``files``."""
    return pretty(
        {
            "format": FORMAT,
            "dataset": origin.dataset,
            "source_revision": origin.source_revision,
            "scorer": {"name": origin.scorer_name, "version": origin.scorer_version},
            "prompt_sha256": origin.prompt_sha256,
            "tasks": sorted(tasks, key=lambda task: str(task["name"])),
        }
    )


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a folder, with its shape checked.

    Raises:
        RequestError: there is none, or it is not as an export writes it.
    """
    address = storage.join(folder, MANIFEST)
    try:
        found = read_json(storage.read(address))
    except FileNotFoundError:
        raise RequestError(f"{address} is not there; give the folder that `oeb harbor export` wrote") from None
    except ValueError as error:
        raise RequestError(f"{address} is no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("tasks"), list):
        raise RequestError(f"{address} is no manifest of format {FORMAT}; export the tasks again")
    for task in found["tasks"]:
        texts = isinstance(task, dict) and all(isinstance(task.get(key), str) for key in ("name", "path", "case_id"))
        if not texts or not isinstance(task.get("files"), dict) or _leaves(task["path"]):
            raise RequestError(f"{address}: {str(task)[:100]} is no entry of a task; export the tasks again")
    return found


def _leaves(path: str) -> bool:
    return path.startswith("/") or ".." in path.split("/")


def differences(folder: str) -> Iterator[str]:
    """Every file that is missing, changed or not in the manifest, and everything that shows an agent the reference.

    Raises:
        RequestError: see `read_manifest`.
    """
    folder = storage.absolute(folder)
    manifest = read_manifest(folder)
    with ThreadPoolExecutor(8) as threads:
        yield from (
            text for found in threads.map(lambda task: _of_task(folder, task), manifest["tasks"]) for text in found
        )
    known = {task["path"].removeprefix("tasks/") for task in manifest["tasks"]}
    for name in storage.folders(storage.join(folder, "tasks")):
        if name not in known:
            yield f"tasks/{name}: not in the manifest"


def _of_task(folder: str, task: Mapping[str, Any]) -> list[str]:
    place, said = task["path"], []
    files: dict[str, bytes] = {}
    for path in storage.listed(storage.join(folder, place)):
        files[path] = storage.read(storage.join(folder, place, path))
    for path in sorted(task["files"].keys() | files.keys()):
        if path not in files:
            said.append(f"{place}/{path}: missing")
        elif path not in task["files"]:
            said.append(f"{place}/{path}: not in the manifest")
        elif digest(files[path]) != task["files"][path]:
            said.append(f"{place}/{path}: changed")
    try:
        kept = read_json(files[REFERENCE])
        document = next(path for path in sorted(files) if path.startswith("environment/document"))
        said += [f"{place}/{text}" for text in leaks(files, kept["reference"], document)]
    except (KeyError, TypeError, ValueError, StopIteration):
        said.append(f"{place}: document or {REFERENCE} cannot be read, so nobody knows whether it leaks")
    return said
