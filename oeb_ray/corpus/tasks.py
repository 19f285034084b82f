"""A folder of Harbor tasks as a corpus: each task is a document, its schema and its reference.

In: where the folder's harbor-manifest.json is or would be. Out: the rows of a Parquet manifest. What a task is made
of is found by looking at its folder, so tasks of others are read too: a document of any name, the schema beside it, the
solution as gold, and, where an export of ours has put it, the reference with rules and tags.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa

from .. import storage
from ..errors import refused

MANIFEST = "harbor-manifest.json"
REFERENCE = "tests/reference.json"
GOLD = "solution/expected.json"
SCHEMA = "environment/schema.json"
KINDS = ("pdf", "docx", "png", "jpg", "jpeg", "jfif", "tiff", "gif", "bmp", "webp", "html", "xml", "csv", "txt", "bin")
COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("doc_id", "suite", "doc_path", "gt_path", "schema", "annotations_path")]
)


def task_folders(root: str) -> list[str]:
    """The tasks' folders, by their path below ``root``: in its folder ``tasks``, or right in it."""
    for below in ("tasks/", ""):
        names = storage.folders(storage.join(root, below.rstrip("/")) if below else root)
        with ThreadPoolExecutor(16) as threads:
            are = threads.map(lambda name, below=below: _is_task(storage.join(root, f"{below}{name}")), names)
            if found := [f"{below}{name}" for name, is_task in zip(names, are, strict=True) if is_task]:
                return found
    return []


def _is_task(folder: str) -> bool:
    try:
        storage.stat(storage.join(folder, "task.toml"))
    except FileNotFoundError:
        return False
    return True


def read_tasks(root: str) -> pa.Table | None:
    """The rows of a folder of tasks, sorted by task; None if it holds none.

    Raises:
        RequestError: tasks without a document, schema or solution, each with what is missing.
    """
    folders = task_folders(root)
    if not folders:
        return None
    with ThreadPoolExecutor(16) as threads:
        rows = list(threads.map(lambda folder: _row(root, folder), folders))
    if faults := [fault for row in rows if isinstance(row, str) for fault in [row]]:
        raise refused(f"tasks in {root}", faults[:50])
    return pa.Table.from_pylist([row for row in rows if isinstance(row, dict)], schema=COLUMNS)


def _row(root: str, folder: str) -> dict[str, Any] | str:
    """A task's row, or what is wrong with it."""
    place = storage.join(root, folder)
    files = storage.listed(place)
    documents = list(_documents(files))
    if len(documents) != 1:
        return f"{folder}/environment holds {len(documents)} documents, not one"
    if missing := [path for path in (SCHEMA, GOLD) if path not in files]:
        return f"{folder}: no {' and no '.join(missing)}"
    try:
        told = tomllib.loads(storage.read(storage.join(place, "task.toml")).decode())
        schema = storage.read(storage.join(place, SCHEMA)).decode()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return f"{folder}: task.toml or schema cannot be read: {error}"
    about = told.get("metadata")
    split = about.get("split") if isinstance(about, dict) else None
    return {
        "doc_id": folder.rsplit("/", 1)[-1],
        "suite": split if isinstance(split, str) and split else "tasks",
        "doc_path": f"{folder}/{documents[0]}",
        "gt_path": f"{folder}/{GOLD}",
        "schema": schema,
        "annotations_path": f"{folder}/{REFERENCE}" if REFERENCE in files else None,
    }


def _documents(files: Any) -> Iterator[str]:
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
        if folder == "environment" and (name == "document" or ending in KINDS):
            yield path
