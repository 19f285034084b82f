"""The server: all vendors and a hub on one port of 127.0.0.1; beside them ``/stats``, ``/log`` and the dials' posts.

In: a Profile. Out: a running server, in a thread (`Simulator`, for tests) or in the foreground (`serve`). All state
is touched by the server's event loop alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import socket
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from ..errors import InternalError, RequestError, suggestion
from ..jsontext import read_json
from .account import Account
from .hub import Hub
from .journal import Journal
from .library import Library
from .profile import VENDORS, Dials, Profile
from .vendor import BadRequest, Vendor, read_body
from .wire import Clock, protocol_with

T = TypeVar("T")
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


class Desk:
    """The vendors of a profile behind one ASGI application. Raises RequestError or StorageError."""

    def __init__(self, profile: Profile) -> None:
        self.clock = Clock()
        library = Library(profile.answers, profile.documents)
        self.journal = Journal(profile.log)
        self.vendors: dict[str, Vendor] = {}
        for name, kind in VENDORS.items():
            vendor = getattr(importlib.import_module(f".{name.replace('-', '_')}", __package__), kind)
            account = Account(name, profile.seed, profile.vendors.get(name, Dials()), self.journal)
            self.vendors[name] = vendor(account, library, self.clock)
        self.refuse: Callable[[float], None] = lambda seconds: None  # set by the server
        routes: list[BaseRoute] = [
            Mount(f"/{name}", routes=[*vendor.table, Route("/{rest:path}", vendor.other, methods=_METHODS)])
            for name, vendor in self.vendors.items()
        ]
        self.hub = Hub(profile.hub, profile.hub_token)
        routes += [
            Mount("/hub", routes=self.hub.routes),
            Route("/stats", self._get_stats),
            Route("/log", self._get_log),
            Route("/reset", self._post_reset, methods=["POST"]),
            Route("/dials", self._post_dials, methods=["POST"]),
            Route("/refuse", self._post_refuse, methods=["POST"]),
        ]
        self.app = Starlette(routes=routes)

    def gate(self, method: str, path: str) -> str:
        """What happens to a request by its request line: the name of an arrival fault, or ""."""
        _, name, *rest = *path.split("/", 2), ""
        vendor = self.vendors.get(name)
        if vendor is None or not vendor.is_submission(method, f"/{rest[0]}"):
            return ""
        fault = vendor.account.arrival_fault()
        if fault == "drop_before_accept":
            vendor.account.note(vendor.account.arrive("submit", ""), None, fault)
        return fault

    def stats(self) -> dict[str, Any]:
        counts = {name: vendor.account.stats() for name, vendor in self.vendors.items()}
        return counts | ({"hub": dict(self.hub.requests)} if self.hub.folders else {})

    def log(self) -> list[dict[str, Any]]:
        return [dict(entry) for entry in self.journal.entries]

    def reset(self) -> None:
        """Empties the books: counts, jobs, attempts, credit and the log in memory. Dials stay."""
        self.journal.clear()
        self.hub.requests.clear()
        for vendor in self.vendors.values():
            vendor.account = vendor.account.fresh()

    def set_dials(self, given: Any) -> None:
        """Changes dials by vendor, all or none. Raises RequestError."""
        if not isinstance(given, dict) or not given:
            raise RequestError("the dials are no object of dials by vendor")
        for name in given:
            if name not in self.vendors:
                raise RequestError(f"{name}: unknown, {suggestion(name, self.vendors)}")
        changed = {name: self.vendors[name].account.dials.changed(fields, name) for name, fields in given.items()}
        for name, dials in changed.items():
            self.vendors[name].account.dials = dials

    async def _get_stats(self, request: Request) -> Response:
        return JSONResponse(self.stats())

    async def _get_log(self, request: Request) -> Response:
        return JSONResponse(self.log())

    async def _post_reset(self, request: Request) -> Response:
        self.reset()
        return JSONResponse({})

    async def _post_dials(self, request: Request) -> Response:
        try:
            self.set_dials(read_json(await read_body(request)))
        except (RequestError, ValueError, BadRequest) as error:
            return JSONResponse({"detail": str(error)}, 400)
        return JSONResponse({})

    async def _post_refuse(self, request: Request) -> Response:
        try:
            seconds = read_json(await read_body(request))["seconds"]
            if not 0 <= float(seconds) <= 3600:
                raise ValueError("seconds: not between 0 and 3600")
        except (ValueError, TypeError, KeyError, BadRequest) as error:
            return JSONResponse({"detail": str(error)}, 400)
        asyncio.get_running_loop().call_later(0.05, self.refuse, float(seconds))  # after this answer
        return JSONResponse({})


class _Server(uvicorn.Server):
    """uvicorn that says when it listens, ends without waiting for clients, and can refuse connections for a time."""

    def __init__(self, desk: Desk, end: socket.socket, listening: Callable[[], None]) -> None:
        config = uvicorn.Config(
            desk.app, loop="asyncio", http=protocol_with(desk.gate), ws="none", lifespan="off", log_config=None,
            access_log=False, proxy_headers=False, server_header=False, timeout_keep_alive=75,
        )  # fmt: skip
        super().__init__(config)
        self.desk, self.end, self.listening = desk, end, listening
        self.address = end.getsockname()
        self.reopening: asyncio.Task[None] | None = None
        desk.refuse = self.refuse

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.desk.clock.closing.set()
        if self.reopening is not None:
            await self.reopening
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)
        await super().shutdown(sockets)
        self.desk.journal.close()

    def refuse(self, seconds: float) -> None:
        """Connections are refused for some seconds, idle ones closed; requests under way go on."""
        if self.reopening is not None and not self.reopening.done():
            return
        listener = self.servers.pop()
        listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        self.end = _bound(self.address[1])  # bound, not listening: the port stays ours and refuses
        self.reopening = asyncio.get_running_loop().create_task(self._reopen(seconds))

    async def _reopen(self, seconds: float) -> None:
        await self.desk.clock.sleep(seconds)
        loop = asyncio.get_running_loop()
        kind = cast(Any, self.config.http_protocol_class)
        self.servers.append(
            await loop.create_server(
                lambda: kind(config=self.config, server_state=self.server_state, app_state={}),
                sock=self.end,
                backlog=self.config.backlog,
            )
        )


class Simulator:
    """A server in a thread: ``with Simulator(profile) as simulator: ... simulator.url``.

    Raises:
        RequestError: the profile names what is not there.
    """

    def __init__(self, profile: Profile) -> None:
        self._desk = Desk(profile)
        end = _bound(0)
        self.url = _url(end)
        self._ready = threading.Event()
        self._server = _Server(self._desk, end, self._listening)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve([end])), name="simulator", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(10):
            raise InternalError("the simulator did not start within 10 s")

    def _listening(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready.set()

    def __enter__(self) -> Simulator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Cuts all connections and ends the server. What was counted can still be asked for."""
        self._server.should_exit = True
        self._thread.join(20)
        if self._thread.is_alive():
            raise InternalError("the simulator did not end within 20 s")

    def stats(self) -> dict[str, Any]:
        """What ``GET /stats`` says, by vendor."""
        return self._on_loop(self._desk.stats)

    def log(self) -> list[dict[str, Any]]:
        """One dict per request since the start or the last reset."""
        return self._on_loop(self._desk.log)

    def reset(self) -> None:
        """Empties the books; dials stay."""
        self._on_loop(self._desk.reset)

    def dials(self, vendor: str, **fields: Any) -> None:
        """Changes dials of a vendor. Raises RequestError."""
        self._on_loop(lambda: self._desk.set_dials({vendor: fields}))

    def refuse(self, seconds: float) -> None:
        """Refuses connections from now on, for some seconds."""
        self._on_loop(lambda: self._server.refuse(seconds))

    def _on_loop(self, work: Callable[[], T]) -> T:
        async def call() -> T:
            return work()

        if self._loop is None or not self._thread.is_alive():
            return work()
        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(30)


def serve(profile: Profile, port: int = 0) -> None:
    """Runs in the foreground until a signal ends it; prints the URL as one line as soon as it listens.

    Raises:
        RequestError: the port is taken, or the profile names what is not there.
    """
    desk = Desk(profile)
    end = _bound(port)
    url = _url(end)
    server = _Server(desk, end, lambda: print(url, flush=True))
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(server.serve([end]))


def _bound(port: int) -> socket.socket:
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that asyncio sets nodelay
    end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        end.bind(("127.0.0.1", port))
    except OSError as error:
        end.close()
        raise RequestError(f"cannot listen on port {port}: {error.strerror}") from error
    return end


def _url(end: socket.socket) -> str:
    return f"http://127.0.0.1:{end.getsockname()[1]}"
