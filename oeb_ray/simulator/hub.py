"""A small Hugging Face hub: folders of this machine as dataset repositories, for HF_ENDPOINT=<url>/hub.

In: dataset ids and their folders. Out: what huggingface_hub asks for when it fetches a dataset: the commit of a
revision, the tree, and files. A repository has one revision, ``main``, whose commit is a digest of all files.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ..errors import RequestError

MAIN = "main"


class Hub:
    """See the module's text. ``requests`` counts what was asked for: ``info``, ``tree``, ``file``, ``look`` (by HEAD),
    ``refused``.

    Args:
        repositories: folder by dataset id, such as ``org/name``.
        token: the only one that is let in; anybody is if it is empty.

    Raises:
        RequestError: a folder is not there.
    """

    def __init__(self, repositories: Mapping[str, str], token: str = "") -> None:
        missing = [f"{name}: no folder {folder}" for name, folder in repositories.items() if not Path(folder).is_dir()]
        if missing:
            raise RequestError(f"hub: {'; '.join(missing)}")
        self.folders = {name: Path(folder).resolve() for name, folder in repositories.items()}
        self.token = token
        self.requests: Counter[str] = Counter()
        self._digests: dict[tuple[Path, int, int], str] = {}
        dataset = "/api/datasets/{org}/{name}"
        self.routes = [
            Route(dataset, self._info),
            Route(f"{dataset}/revision/{{revision}}", self._info),
            Route(f"{dataset}/tree/{{revision}}", self._tree),
            Route(f"{dataset}/tree/{{revision}}/{{path:path}}", self._tree),
            Route("/datasets/{org}/{name}/resolve/{revision}/{path:path}", self._file),
        ]

    async def _info(self, request: Request) -> Response:
        return await self._answer("info", request)

    async def _tree(self, request: Request) -> Response:
        return await self._answer("tree", request)

    async def _file(self, request: Request) -> Response:
        return await self._answer("look" if request.method == "HEAD" else "file", request)

    async def _answer(self, kind: str, request: Request) -> Response:
        name = f"{request.path_params['org']}/{request.path_params['name']}"
        folder = self.folders.get(name)
        if folder is None or (self.token and request.headers.get("authorization") != f"Bearer {self.token}"):
            # As the real one does, which tells strangers nothing of what is private.
            self.requests["refused"] += 1
            return _refusal(401, "RepoNotFound", "Invalid username or password.")
        files = await asyncio.to_thread(self._files, folder)
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        if request.path_params.get("revision", MAIN) not in (MAIN, commit):
            self.requests["refused"] += 1
            return _refusal(404, "RevisionNotFound", "Invalid rev id")
        self.requests[kind] += 1
        if kind == "info":
            siblings = [{"rfilename": path} for path in sorted(files)]
            return JSONResponse({"id": name, "sha": commit, "private": False, "tags": [], "siblings": siblings})
        if kind == "tree":
            entries = _entries(folder, files, _prefix(request))
            deep = request.query_params.get("recursive", "").lower() == "true"
            shown = [entry for entry in entries if deep or "/" not in entry["path"][len(_prefix(request)) :]]
            return JSONResponse(shown) if shown else _refusal(404, "EntryNotFound", "Entry not found")
        path = request.path_params["path"]
        if path not in files:
            return _refusal(404, "EntryNotFound", "Entry not found")
        headers = {"ETag": f'"{files[path]}"', "X-Repo-Commit": commit}
        return FileResponse(folder / path, headers=headers)

    def _files(self, folder: Path) -> dict[str, str]:
        """The files of a folder by path, with their digests; hidden ones are none of the repository's."""
        found = {}
        for path in folder.rglob("*"):
            relative = path.relative_to(folder)
            if path.is_file() and not any(part.startswith(".") for part in relative.parts):
                found[relative.as_posix()] = self._digest(path)
        return found

    def _digest(self, path: Path) -> str:
        stat = path.stat()
        key = path, stat.st_size, stat.st_mtime_ns
        if key not in self._digests:
            self._digests[key] = hashlib.sha1(path.read_bytes()).hexdigest()
        return self._digests[key]


def _prefix(request: Request) -> str:
    path = str(request.path_params.get("path", "")).strip("/")
    return f"{path}/" if path else ""


def _entries(folder: Path, files: Mapping[str, str], start: str) -> list[dict[str, Any]]:
    """All files and folders whose path begins with ``start``, as the hub lists them."""
    inside = [path for path in sorted(files) if path.startswith(start)]
    parents = {str(parent) for path in inside for parent in PurePosixPath(path).parents}
    folders = sorted(parent for parent in parents if parent.startswith(start) and parent != ".")
    return [{"type": "directory", "oid": "", "size": 0, "path": path} for path in folders] + [
        {"type": "file", "oid": files[path], "size": (folder / path).stat().st_size, "path": path} for path in inside
    ]


def _refusal(status: int, code: str, message: str) -> Response:
    headers = {"X-Error-Code": code, "X-Error-Message": message}
    return JSONResponse({"error": message}, status, headers=headers)
