"""A command line in a closed room: a few folders of its own, the system's programs read only, no home, no network.

In: a shell command, the room's folders, limits. Out: how it ended, with the tail of what it said. Bubblewrap makes the
room where it works; without it nothing is run unless isolation is turned off in so many words. Whatever the command
starts dies with it, at the deadline, or when it takes more space or processes than it may.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import subprocess
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ..untrusted import read_untrusted
from .gateway import gateway

BUBBLEWRAP, NO_ISOLATION = "bubblewrap", "none"
APP, HOME = "/app", "/home/agent"
SAID = 16_384
"""Bytes of standard output and of standard error that are kept, from the end."""
LOOK_SECONDS = 0.2
TOO_LONG = "not done within"
ETC = (
    "alternatives", "ssl", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "fonts", "localtime",
    "mime.types", "magic", "nsswitch.conf", "protocols", "services", "java-17-openjdk",
)  # fmt: skip
NAMES = ("resolv.conf", "hosts")  # of /etc, where there is a network
GATEWAY, PORT = "/run/gateway", "3128"
FORWARDER = Path(__file__).with_name("forwarder.py")
_PROXY = f"http://127.0.0.1:{PORT}"
PROXIED = {"HTTPS_PROXY": _PROXY, "HTTP_PROXY": _PROXY, "https_proxy": _PROXY, "http_proxy": _PROXY}
PATH = f"{HOME}/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Limits:
    """What a room may take: bytes on disk in all and in one file, files and folders, processes."""

    disk: int = 4 * 2**30
    file: int = 2**30
    entries: int = 200_000
    processes: int = 512


@dataclass(frozen=True)
class Room:
    """The folders of a command. ``folder`` holds app, home and tmp; ``shown``: more folders in it that are seen read
    only, by the place where they are seen; ``env``: the environment but for PATH and HOME; ``network``: the host's;
    ``hosts``: without it, those that may be reached by https through a gateway."""

    folder: Path
    shown: Mapping[str, str]
    env: Mapping[str, str]
    network: bool = False
    isolation: str = BUBBLEWRAP
    hosts: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """``code``: exit status, negative for a signal; ``cut``: why it was killed, empty if it was not; ``refused``: hosts
    that it tried to reach and was not let."""

    code: int
    cut: str
    said: str
    refused: Sequence[str] = ()


@cache
def bubblewrap_fault() -> str:
    """Why no room can be made on this machine; empty if it can."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed (Debian: apt-get install bubblewrap)"
    trial = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        ended = subprocess.run(trial, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not work here: {error}"
    said = ended.stderr.decode("utf-8", "replace").strip()[:200]
    return f"bwrap does not work here: {said}" if ended.returncode else ""


def make_room(folder: Path) -> None:
    """Makes a room's folders. As root they belong to nobody who has anything else here."""
    owner = _owner(folder)
    for place in (folder, folder / "app", folder / "home", folder / "tmp"):
        place.mkdir(mode=0o700, exist_ok=True)
        if owner is not None:
            os.chown(place, owner, owner)


def put_file(room: Path, name: str, data: bytes) -> None:
    """Writes a file into a room, such as ``app/schema.json``, before anything has run there."""
    path, owner = room / name, _owner(room)
    missing = [folder for folder in reversed(path.parents) if not folder.exists()]
    for folder in missing:
        folder.mkdir(mode=0o700)
    path.write_bytes(data)
    if owner is not None:
        for made in (*missing, path):
            os.chown(made, owner, owner)


def take_file(room: Path, name: str, most: int) -> bytes | None:
    """A file of the working folder; None if there is none.

    Raises:
        ValueError: it is no regular file, or longer than ``most`` bytes.
    """
    try:
        return read_untrusted(str(room / "app" / name), most)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def clear_room(folder: Path) -> None:
    """Removes a room, however deep its folders are."""
    remove = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    if subprocess.run(remove, check=False, capture_output=True).returncode:  # folders that their owner has closed
        subprocess.run(["chmod", "-R", "u+rwX", "--", str(folder)], check=False, capture_output=True)
        subprocess.run(remove, check=False, capture_output=True)


async def run(command: str, room: Room, limits: Limits, seconds: float) -> Ended:
    """Runs a shell command in a room until it ends, is over a limit, or its time is up; then nothing of it is left."""
    if room.network or not room.hosts:
        return await _run(command, room, limits, seconds)
    await asyncio.to_thread(put_file, room.folder, f"gateway/{FORWARDER.name}", FORWARDER.read_bytes())
    proxied = replace(room, env={**PROXIED, **room.env}, shown={**room.shown, GATEWAY: "gateway"})
    async with gateway(room.folder / "gateway" / "socket", room.hosts, _owner(room.folder)) as refused:
        ended = await _run(command, proxied, limits, seconds)
    return replace(ended, refused=tuple(refused))


async def _run(command: str, room: Room, limits: Limits, seconds: float) -> Ended:
    owner = _owner(room.folder) if room.isolation == BUBBLEWRAP else None
    env = {"PATH": PATH, "HOME": HOME, "TMPDIR": "/tmp", "LANG": "C.UTF-8", **room.env}
    if room.isolation != BUBBLEWRAP:
        env |= {"HOME": str(room.folder / "home"), "TMPDIR": str(room.folder / "tmp"), "PATH": os.environ["PATH"]}
    process = await asyncio.create_subprocess_exec(
        *_command_line(command, room, limits),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=room.folder / "app",
        env=env,
        start_new_session=True,
        user=owner,
        group=owner,
        extra_groups=None if owner is None else [],
    )
    said = asyncio.ensure_future(_tail(process.stdout))
    try:
        cut = await _watched(process, room, limits, seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
        with contextlib.suppress(TimeoutError):  # a descendant that left the group may hold the pipe
            await asyncio.wait_for(asyncio.shield(said), 1.0)
        said.cancel()
    text = said.result() if said.done() and not said.cancelled() else b""
    return Ended(process.returncode or 0, cut, text.decode("utf-8", "replace"))


async def _watched(process: asyncio.subprocess.Process, room: Room, limits: Limits, seconds: float) -> str:
    """Waits for the end; returns why it must not be waited for any longer, or nothing."""
    ending = asyncio.ensure_future(process.wait())
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    try:
        while True:
            left = until - loop.time()
            if left <= 0:
                return f"{TOO_LONG} {seconds:.0f} s"
            done, _ = await asyncio.wait({ending}, timeout=min(LOOK_SECONDS, left))
            if over := await asyncio.to_thread(_over, room.folder, limits):
                return over
            if done:
                return ""
    finally:
        ending.cancel()


def _over(folder: Path, limits: Limits) -> str:
    """Which limit a room is over; empty if none. It is looked at while somebody works in it."""
    size = entries = 0
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    entries += 1
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if entries > limits.entries:
                        return f"more than {limits.entries} files"
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return "folders nested too deeply"
            if error.errno == errno.EACCES:  # what lies in there could be of any size
                return "a folder that cannot be looked into"
    return f"more than {limits.disk} bytes on disk" if size > limits.disk else ""


async def _tail(stream: asyncio.StreamReader | None) -> bytes:
    kept = b""
    while stream is not None and (piece := await stream.read(65_536)):
        kept = (kept + piece)[-SAID:]
    return kept


def _owner(folder: Path) -> int | None:
    """As root, the user that a room belongs to: of a range that no account is in, so that its processes are counted."""
    return 61_184 + zlib.crc32(str(folder).encode()) % 4_000 if os.geteuid() == 0 else None


def _command_line(command: str, room: Room, limits: Limits) -> Sequence[str]:
    limited = ["prlimit", f"--fsize={limits.file}", f"--nproc={limits.processes}", "--core=0", "--"]
    if GATEWAY in room.shown:
        limited += ["python3", f"{GATEWAY}/{FORWARDER.name}", f"{GATEWAY}/socket", PORT]
    limited += ["sh", "-c", command]
    if room.isolation != BUBBLEWRAP:
        return limited
    words = ["bwrap", "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
    words += ["--die-with-parent", "--new-session", "--hostname", "room", *(["--share-net"] if room.network else [])]
    words += ["--ro-bind", "/usr", "/usr", "--ro-bind-try", "/opt", "/opt"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64"):
        if os.path.islink(f"/{name}"):
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif os.path.isdir(f"/{name}"):
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in (*ETC, *(NAMES if room.network else ())):
        words += ["--ro-bind-try", os.path.realpath(f"/etc/{name}"), f"/etc/{name}"]
    words += ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev", "--perms", "1777"]
    words += ["--size", str(64 * 2**20), "--tmpfs", "/dev/shm"]
    words += ["--bind", str(room.folder / "app"), APP, "--bind", str(room.folder / "home"), HOME]
    words += ["--bind", str(room.folder / "tmp"), "/tmp"]
    for inside, name in room.shown.items():
        words += ["--ro-bind", str(room.folder / name), inside]
    return [*words, "--remount-ro", "/", "--chdir", APP, "--", *limited]
