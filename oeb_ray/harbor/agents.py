"""Who works at tasks: the reference solution, nobody, a known coding agent, or a command of the user's.

In: a folder of tasks and an agent's name. Out: a Job over them as a corpus, with provider `command`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import storage
from ..config import Job
from ..corpus.tasks import MANIFEST, task_folders
from ..errors import RequestError
from ..request import job_of

ORACLE, NOP = "oracle", "nop"
HUB = "hf://"


def tasks_at(address: str) -> str:
    """The folder of tasks at an address; ``hf://org/name@revision`` stands for a dataset of the hub.

    Raises:
        RequestError: there is no task.
    """
    if address.startswith(HUB) and not address.startswith((f"{HUB}datasets/", f"{HUB}spaces/")):
        address = f"{HUB}datasets/{address.removeprefix(HUB)}"
    address = storage.absolute(address)
    if not task_folders(address):
        raise RequestError(f"no task at {address}; give the folder that holds tasks/, as `oeb harbor export` writes it")
    return address


def job_for(
    tasks: str,
    agent: str,
    *,
    model: str | None,
    hosts: Sequence[str],
    at_once: int,
    values: Mapping[str, Any],
    overrides: Sequence[str] = (),
    config_dir: str | None = None,
) -> Job:
    """The Job that runs tasks with an agent; what it leaves is judged afterwards.

    Args:
        model: for the agent. hosts: that it may reach. at_once: tasks at a time. values: see request.job_of.

    Raises:
        RequestError: no task, an unknown agent, or what cannot be run.
    """
    root = tasks_at(tasks)
    own: dict[str, Any] = {"in_flight": at_once}
    if agent in (ORACLE, NOP):
        own |= {"agent": agent, "command": "true"}
    if agent == ORACLE:
        below = task_folders(root)[0].rpartition("/")[0]
        place = storage.join(root, below) if below else root
        own |= {"command": "sh /solution/solve.sh", "show": f"/solution={place}/{{doc_id}}/solution"}
    own |= {"model": model} if model else {}
    own |= {"allow_hosts": ",".join(hosts)} if hosts else {}
    config = "command" if agent in (ORACLE, NOP) else agent
    return job_of(
        None,
        values={
            **values,
            "predict_only": True,
            **{f"providers.command.{key}": value for key, value in own.items()},
        },
        manifest=storage.join(root, MANIFEST),
        overrides=[f"provider=[{config}]", *overrides],
        config_dir=config_dir,
    )
