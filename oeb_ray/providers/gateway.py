"""The only way out of a room: a proxy on a socket in it that connects to the hosts of a list and to nothing else.

In: a socket's path, the hosts. Out: connections that clients ask for with CONNECT, as they do for https when
HTTPS_PROXY is set. Names are resolved out here, so a room needs no DNS; what is inside a connection is not looked at.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

AT_ONCE = 64  # connections
LONGEST_HEAD = 8_192
HEAD_SECONDS, CONNECT_SECONDS = 20.0, 20.0
HTTPS = 443
_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?")
_ASKED = re.compile(rb"CONNECT ([A-Za-z0-9.-]+):(\d{1,5}) HTTP/1\.[01]\r\n")


def host_fault(host: str) -> str:
    """Why an entry of the list names no host, such as ``api.openai.com``, ``*.example.org``, ``host:8443``."""
    if _HOST.fullmatch(host.lower()):
        return ""
    return f"{host!r} is no host; write api.example.org, *.example.org or host:8443, without https:// and path"


def is_allowed(host: str, port: int, hosts: Sequence[str]) -> bool:
    """Whether an entry of the list names a host; without a port it stands for https alone."""
    host = host.lower().rstrip(".")
    for entry in hosts:
        name, _, wanted = entry.lower().partition(":")
        if port != (int(wanted) if wanted else HTTPS):
            continue
        if host == name or (name.startswith("*.") and host.endswith(name[1:])):
            return True
    return False


@contextlib.asynccontextmanager
async def gateway(path: Path, hosts: Sequence[str], owner: int | None) -> AsyncIterator[list[str]]:
    """Serves on a socket while the context lasts; gives the refused hosts, as they are noted."""
    refused: list[str] = []
    free = asyncio.Semaphore(AT_ONCE)
    busy: set[asyncio.Task[None]] = set()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        busy.add(task)
        try:
            async with free:
                await _connected(reader, writer, hosts, refused)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the client sees a closed connection
        finally:
            busy.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(one, path, limit=LONGEST_HEAD)
    try:
        path.chmod(0o600)
        if owner is not None:
            os.chown(path, owner, owner)
        yield refused
    finally:
        server.close()
        tasks = list(busy)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hosts: Sequence[str], refused: list[str]
) -> None:
    async with asyncio.timeout(HEAD_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    asked = _ASKED.match(head)
    if asked is None:
        await _say(writer, "405 Only CONNECT")
        return
    host, port = asked[1].decode(), int(asked[2])
    if not is_allowed(host, port, hosts):
        if len(refused) < AT_ONCE and f"{host}:{port}" not in refused:
            refused.append(f"{host}:{port}")
        await _say(writer, "403 Host is not on the list")
        return
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            there, thither = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        await _say(writer, "502 Host cannot be reached")
        return
    try:
        await _say(writer, "200 Connected")
        await asyncio.gather(_pump(reader, thither), _pump(there, writer))
    finally:
        thither.close()


async def _say(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
