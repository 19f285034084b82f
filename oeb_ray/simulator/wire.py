"""Answers as bytes on a connection, and connections that are cut.

In: status, body, and how the connection is treated. Out: ASGI responses. uvicorn's protocol class is extended so that
the transport of a request is known to its handler and a submission can be cut before its headers are parsed. Every cut
is a TCP reset (linger 0): the client reads ECONNRESET, never a tidy end.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Iterable
from typing import Any

import h11
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_CHUNK = 1 << 18  # bytes
_DRIPS = 20

Gate = Callable[[str, str], str]


class Clock:
    """Sleeps that end early when the server closes."""

    def __init__(self) -> None:
        self.closing = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.closing.wait(), seconds)

    async def leaves(self, receive: Receive, seconds: float) -> bool:
        """Sleeps; whether the client has left meanwhile, which ends the sleep."""
        leaving, closing = asyncio.ensure_future(gone(receive)), asyncio.ensure_future(self.closing.wait())
        done, _ = await asyncio.wait({leaving, closing}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (leaving, closing):
            task.cancel()
        return leaving in done


def reset(transport: asyncio.Transport) -> None:
    """Cuts a connection: what is not sent yet is lost, the peer gets a TCP reset."""
    end = transport.get_extra_info("socket")
    if end is not None and not transport.is_closing():
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def gone(receive: Receive) -> None:
    """Returns when the client has left or the connection is cut."""
    while (await receive())["type"] != "http.disconnect":
        pass


class Cut(Response):
    """No answer: the connection is reset."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reset(scope["state"]["transport"])
        await gone(receive)


class Answer(Response):
    """A JSON answer. ``drip``: seconds it takes to send the body; ``cut``: half the body is sent, then a reset."""

    def __init__(
        self,
        status: int,
        body: bytes,
        headers: Iterable[tuple[str, str]] = (),
        *,
        clock: Clock,
        drip: float = 0.0,
        cut: bool = False,
    ) -> None:
        super().__init__(body, status, media_type="application/json")
        for name, value in headers:
            self.headers.append(name, value)
        self.clock, self.drip, self.cut = clock, drip, cut

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        if self.cut:
            body = body[: len(body) // 2]
        size = min(_CHUNK, -(-len(body) // _DRIPS) or 1) if self.drip else _CHUNK
        pause = self.drip * size / max(len(body), 1)
        for start in range(0, len(body), size):
            await self.clock.sleep(pause)
            await send({"type": "http.response.body", "body": bytes(body[start : start + size]), "more_body": True})
        if self.cut:
            transport = scope["state"]["transport"]
            for _ in range(500):
                await self.clock.sleep(0.01)
                if not transport.get_write_buffer_size() or transport.is_closing():
                    break
            reset(transport)
            await gone(receive)
        else:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def protocol_with(gate: Gate) -> type[H11Protocol]:
    """uvicorn's HTTP/1.1 protocol that asks ``gate(method, path)`` at each request line what happens to the request.

    ``drop_before_accept`` cuts at once: neither headers nor body are parsed. Any other word is handed to the handler as
    ``scope["state"]["arrival"]``, beside ``scope["state"]["transport"]``.
    """

    class Protocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.app_state: dict[str, Any] = {**self.app_state, "transport": transport, "arrival": ""}

        def data_received(self, data: bytes) -> None:
            if self.conn.their_state is h11.IDLE:
                self.app_state["arrival"] = ""
                words = data.split(b"\r\n", 1)[0].split(b" ")
                if len(words) == 3 and not self.conn.trailing_data[0]:
                    method, target = words[0].decode("latin-1"), words[1].decode("latin-1")
                    self.app_state["arrival"] = gate(method, target.partition("?")[0])
                    if self.app_state["arrival"] == "drop_before_accept":
                        reset(self.transport)
                        return
            super().data_received(data)

    return Protocol
