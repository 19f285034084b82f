"""A corpus on the Hugging Face hub: a dataset repository with manifest.parquet at its root.

In: ``org/name`` or ``org/name@revision``. Out: where it lies on this machine, or for a plan would lie, its name for
resuming, and the commit that was fetched. HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE mean what they mean to
huggingface_hub.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote

from .. import storage
from ..errors import MissingCredential, RequestError

MANIFEST = "manifest.parquet"
HUB = "hf://datasets/"
_ON_THE_HUB = re.compile(r"hf://datasets/(?P<repo>[^/]+/[^/]+)(?P<path>(?:/.*)?)", re.DOTALL)
_REPO = re.compile(r"[\w.-]+/[\w.-]+")


class Fetched(NamedTuple):
    """A dataset on this machine. ``commit`` is None where nobody could tell it (offline, in a folder of one's own).

    ``root``: where the manifest's paths start, if not in its own folder; ``absent``: sizes in bytes of the files that a
    survey has left where they are, by the path that they would get.
    """

    manifest: str
    commit: str | None
    root: str | None = None
    absent: Mapping[str, int] = MappingProxyType({})


def identity(repo: str) -> str:
    """What names the corpus in an output: two revisions that were asked for by name are two corpora."""
    return f"huggingface {repo}"


def check_repo(repo: str) -> str | None:
    """Why this is no dataset's name; None if it can be one."""
    name, at, revision = repo.partition("@")
    if _REPO.fullmatch(name) and (revision or not at):
        return None
    return f"{repo!r} names no dataset; write org/name or org/name@revision"


def fetch(repo: str, data_root: str | None = None) -> Fetched:
    """Brings a dataset to this machine; only what is new or changed is downloaded.

    Args:
        repo: the dataset. data_root: the folder to put it in; the Hugging Face cache if None.

    Raises:
        RequestError: no such dataset or revision, the hub cannot be reached and nothing is there from before, or it
            holds no manifest. MissingCredential: it is not public and there is no token.
    """
    return _asked(repo, data_root, lambda: _snapshot(repo, data_root, only_local=False))


def survey(repo: str, data_root: str | None, folder: str) -> Fetched:
    """What `fetch` would bring. The manifest alone is downloaded, into ``folder``, if it is not on this machine.

    Raises:
        RequestError, MissingCredential: as `fetch`.
    """
    return _asked(repo, data_root, lambda: _surveyed(repo, data_root, folder))


def pinned(address: str) -> tuple[str, str | None]:
    """An address on the hub, ``hf://datasets/<org>/<name>[@revision]/<path>``, at the commit that it means now.

    So all nodes read the same files while the dataset moves on, and what they know of them stays right. The commit is
    None, and the address as it was, for every other address.

    Raises:
        RequestError, MissingCredential: as `fetch`.
    """
    found = _ON_THE_HUB.fullmatch(address)
    if found is None:
        return address, None
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    repo, path = found["repo"], found["path"]
    name, _, revision = repo.partition("@")
    if wrong := check_repo(repo):
        raise RequestError(f"{address}: {wrong}")
    try:
        commit = HfApi(endpoint=_endpoint()).dataset_info(name, revision=unquote(revision) or None).sha
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise _explained(repo, error) from error
    return f"{HUB}{name}@{commit}{path}", commit


def _asked(repo: str, data_root: str | None, ask: Callable[[], Fetched]) -> Fetched:
    """Asks the hub; takes what lies here already where it cannot be reached."""
    from huggingface_hub.errors import HfHubHTTPError

    if wrong := check_repo(repo) or _no_folder(data_root):
        raise RequestError(wrong)
    try:
        return ask()
    except (HfHubHTTPError, OSError, ValueError) as problem:
        error: Exception = problem
    except Exception as problem:  # of the HTTP library that huggingface_hub uses
        if not type(problem).__module__.startswith(("httpx", "httpcore", "requests")):
            raise
        error = problem
    refusal = getattr(error, "response", None) is not None
    there = None if refusal else cached(repo, data_root)
    if there is None:
        raise _explained(repo, error) from error
    return there


def cached(repo: str, data_root: str | None = None) -> Fetched | None:
    """What an earlier `fetch` has left here; None if there is nothing, or not all of it. Asks nobody."""
    if check_repo(repo) or _no_folder(data_root):
        return None
    if data_root:
        manifest = Path(data_root, MANIFEST)
        return Fetched(str(manifest), None) if manifest.is_file() else None
    try:
        return _snapshot(repo, None, only_local=True)
    except (OSError, ValueError, RequestError):
        return None


def _snapshot(repo: str, data_root: str | None, *, only_local: bool) -> Fetched:
    from huggingface_hub import HfApi, snapshot_download

    name, _, revision = repo.partition("@")
    place: dict[str, Any] = {"endpoint": _endpoint(), "revision": revision or None}
    commit = None
    if data_root and not only_local:  # the cache keeps commits apart, a folder does not say whose its files are
        commit = HfApi(endpoint=_endpoint()).dataset_info(name, revision=revision or None).sha
        place["revision"] = commit
    with _no_bars():
        folder = Path(
            snapshot_download(name, repo_type="dataset", local_dir=data_root, local_files_only=only_local, **place)
        )
    if not (folder / MANIFEST).is_file():
        raise RequestError(_no_corpus(repo))
    return Fetched(str(folder / MANIFEST), commit if data_root else folder.name)


def _surveyed(repo: str, data_root: str | None, folder: str) -> Fetched:
    from huggingface_hub import hf_hub_download, snapshot_download

    name, _, revision = repo.partition("@")
    place: dict[str, Any] = {"repo_type": "dataset", "endpoint": _endpoint()}
    looked = folder if data_root and not Path(data_root).is_dir() else data_root  # looking makes subfolders
    with _no_bars():
        files = snapshot_download(name, revision=revision or None, local_dir=looked, dry_run=True, **place)
        if not any(file.will_download for file in files):
            return _snapshot(repo, data_root, only_local=False)
        places = {
            os.path.abspath(Path(data_root, file.filename) if data_root else file.local_path): file for file in files
        }
        manifest = next((path for path, file in places.items() if file.filename == MANIFEST), None)
        if manifest is None:
            raise RequestError(_no_corpus(repo))
        absent = {
            path: file.file_size for path, file in places.items() if file.will_download or not os.path.exists(path)
        }
        here, commit = manifest, places[manifest].commit_hash
        if manifest in absent:
            here = hf_hub_download(name, MANIFEST, revision=commit, local_dir=folder, **place)
    return Fetched(str(here), commit, os.path.dirname(manifest), absent)


def _no_corpus(repo: str) -> str:
    return f"the dataset {repo} holds no {MANIFEST}, so it is no corpus"


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or "https://huggingface.co"


def _no_folder(data_root: str | None) -> str | None:
    if data_root is None or storage.protocol_of(data_root) == "file":
        return None
    return f"data_root={data_root}: a dataset of the hub is fetched into a folder; leave it out for the cache"


@contextmanager
def _no_bars() -> Iterator[None]:
    """No progress bars where nobody sees them move."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    quiet = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if quiet:
        disable_progress_bars()
    try:
        yield
    finally:
        if quiet:
            enable_progress_bars()


def _explained(repo: str, error: Exception) -> RequestError:
    from huggingface_hub import errors, get_token

    name, _, revision = repo.partition("@")
    where = _endpoint()
    token = "the token in use does not open it" if get_token() else "it is not public: then set HF_TOKEN"
    if isinstance(error, errors.GatedRepoError):
        kind = RequestError if get_token() else MissingCredential
        return kind(f"the dataset {name} at {where} is gated: accept its terms there, and set HF_TOKEN")
    if isinstance(error, errors.RepositoryNotFoundError):
        kind = RequestError if get_token() else MissingCredential
        return kind(f"no dataset {name} at {where}, or {token}")
    if isinstance(error, errors.RevisionNotFoundError):
        return RequestError(f"the dataset {name} at {where} has no revision {revision or 'main'!r}")
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.HfHubHTTPError) and status is not None:
        return RequestError(f"{where} answered {status} when {name} was fetched; try later, or give --manifest")
    reason = str(error.__cause__ or error).strip().splitlines()[:1]
    return RequestError(
        f"the dataset {name} cannot be fetched from {where} and is not on this machine from before: "
        f"{''.join(reason) or type(error).__name__}; give --manifest for a corpus of your own, or corpus=sample"
    )
