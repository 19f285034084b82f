"""A command with all that it needs, run in a fresh room on whatever machine it is sent to.

In: an Errand, which travels; keys do not, they are taken from the environment where it runs. Out: what it left and how
it went, bounded and without keys.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import storage
from ..errors import RequestError
from . import sandbox
from .sandbox import BUBBLEWRAP, Ended, Limits, Room

OUTPUT, USAGE = "output.json", "usage.json"
LARGEST_OUTPUT, LARGEST_USAGE = 64 * 2**20, 2**20
SHORTEST_KEY = 8  # signs from which a value is taken for a secret


@dataclass(frozen=True, slots=True)
class Errand:
    """``files`` of the working folder by name; ``shown``: addresses of folders that are copied in, read only, by where
    they are seen; ``keys``: names of the environment variables that the command gets beside ``env``; ``setup``: a
    command before it, with a network, in at most ``setup_seconds``; ``hosts``: what it may reach by https itself.
    """

    command: str
    seconds: float
    files: Mapping[str, bytes]
    shown: Mapping[str, str]
    env: Mapping[str, str]
    keys: Sequence[str]
    setup: str
    setup_seconds: float
    disk: int
    isolation: str
    hosts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Done:
    """``fault``: why the command was not run, empty if it was; ``output``, ``usage``: the files that it left, None if
    there is none; ``unusable``: why the output cannot be taken; ``late``: it was stopped since its time was up;
    ``ended``: how it went, in a few words; ``raw``: the evidence for the record.
    """

    raw: dict[str, Any]
    fault: str = ""
    output: bytes | None = None
    usage: bytes | None = None
    unusable: str = ""
    late: bool = False
    ended: str = ""


async def run_errand(errand: Errand) -> Done:
    """Runs setup and command in a fresh room, which is gone afterwards."""
    if errand.isolation == BUBBLEWRAP and (fault := await asyncio.to_thread(sandbox.bubblewrap_fault)):
        return Done({}, fault=fault)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="oeb-room-"))
    try:
        try:
            shown = await asyncio.to_thread(_furnish, folder, errand)
        except RequestError as error:
            return Done({}, fault=str(error))
        return await _in_room(folder, shown, errand)
    finally:
        await asyncio.shield(asyncio.to_thread(sandbox.clear_room, folder))


async def _in_room(folder: Path, shown: Mapping[str, str], errand: Errand) -> Done:
    secrets = {name: os.environ[name] for name in errand.keys if os.environ.get(name)}
    limits = Limits(disk=errand.disk)
    if errand.setup:
        room = Room(folder, shown, errand.env, network=True, isolation=errand.isolation)
        ended = await sandbox.run(errand.setup, room, limits, errand.setup_seconds)
        if ended.code or ended.cut:
            return Done(_evidence(ended, secrets), fault=f"the setup ended with {ended.cut or ended.code}")
    room = Room(folder, shown, {**errand.env, **secrets}, isolation=errand.isolation, hosts=errand.hosts)
    ended = await sandbox.run(errand.command, room, limits, errand.seconds)
    output, usage, unusable = await asyncio.to_thread(_taken, folder, secrets)
    late = ended.cut.startswith(sandbox.TOO_LONG)
    told = ended.cut or f"it ended with {ended.code}"
    return Done(_evidence(ended, secrets), "", output, usage, unusable, late, told)


def _taken(folder: Path, secrets: Mapping[str, str]) -> tuple[bytes | None, bytes | None, str]:
    """The two files that a command may leave, and why the first cannot be taken."""
    try:
        usage = sandbox.take_file(folder, USAGE, LARGEST_USAGE)
    except ValueError:
        usage = None
    try:
        output = sandbox.take_file(folder, OUTPUT, LARGEST_OUTPUT)
    except ValueError as error:
        return None, usage, str(error)
    if output is not None and any(value.encode() in output for value in secrets.values() if len(value) >= SHORTEST_KEY):
        return None, usage, f"{OUTPUT} holds a key of the environment; it is not kept"
    return output, usage, ""


def _furnish(folder: Path, errand: Errand) -> dict[str, str]:
    """Makes the room with its files and copies of the folders that are shown; where these are, by where they are seen.

    Raises RequestError for a folder that is empty.
    """
    sandbox.make_room(folder)
    for name, data in errand.files.items():
        sandbox.put_file(folder, f"app/{name}", data)
    places = {}
    for number, (inside, outside) in enumerate(errand.shown.items()):
        found = storage.listed(outside)
        if not found:
            raise RequestError(f"show: there is nothing at {outside}")
        for path in found:
            sandbox.put_file(folder, f"shown-{number}/{path}", storage.read(storage.join(outside, path)))
        places[inside] = f"shown-{number}"
    return places


def _evidence(ended: Ended, secrets: Mapping[str, str]) -> dict[str, Any]:
    """What the record keeps of how it went, without keys."""
    said = ended.said
    for name, value in secrets.items():
        if len(value) >= SHORTEST_KEY:
            said = said.replace(value, f"<{name}>")
    refused = {"hosts_refused": list(ended.refused)} if ended.refused else {}
    return {"exit_code": ended.code, "stopped": ended.cut or None, "said": said, **refused}
