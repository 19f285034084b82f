"""A proxy in front of an S3 server that loses answers, refuses keys or is out of order, as a test says."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from oeb_ray import storage
from oeb_ray.simulator.wire import Cut, protocol_with

Rule = Callable[[Request], str]
_OWN = {"connection", "keep-alive", "transfer-encoding", "date", "server"}
_ERROR = "<?xml version='1.0'?><Error><Code>{0}</Code><Message>{0}</Message></Error>"


class S3Proxy:
    """Passes requests on to ``upstream``, unless ``rule`` names something else for them.

    A rule gives ``""`` (pass on), ``lost`` (pass on, then cut the connection instead of answering), ``cut`` (cut it at
    once), ``hang`` (wait until it says something else), or the code of an S3 error such as ``ExpiredToken``. ``seen``
    counts requests by verdict.
    """

    def __init__(self, upstream: str) -> None:
        self.rule: Rule = lambda request: ""
        self.seen: dict[str, int] = {}
        self._upstream = upstream
        end = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{end.getsockname()[1]}"
        methods = ["GET", "HEAD", "PUT", "POST", "DELETE"]
        app = Starlette(routes=[Route("/{rest:path}", self._pass, methods=methods)])
        config = uvicorn.Config(
            app, http=protocol_with(lambda method, path: ""), ws="none", lifespan="off", log_config=None,
            date_header=False, server_header=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(end)), daemon=True)
        self._thread.start()

    async def _serve(self, end: socket.socket) -> None:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(trust_env=False, limits=limits, timeout=60) as self._client:
            await self._server.serve([end])

    def close(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(20)

    async def _pass(self, request: Request) -> Response:
        verdict = self.rule(request)
        self.seen[verdict] = self.seen.get(verdict, 0) + 1
        if verdict == "hang":
            while self.rule(request) == "hang":
                await asyncio.sleep(0.1)
            verdict = self.rule(request)
        if verdict == "cut":
            return Cut()
        if verdict not in ("", "lost"):
            status = {"SlowDown": 503, "InternalError": 500}.get(verdict, 400)
            return Response(_ERROR.format(verdict), status, media_type="application/xml")
        path = request.scope["raw_path"].decode()
        query = request.scope["query_string"].decode()
        answer = await self._client.request(
            request.method,
            self._upstream + path + (f"?{query}" if query else ""),
            headers=request.headers.raw,
            content=await request.body(),
        )
        if verdict == "lost":
            return Cut()
        response = Response(answer.content, answer.status_code)
        kept = [(name, value) for name, value in answer.headers.raw if name.lower().decode() not in _OWN]
        if request.method != "HEAD":
            kept = [
                (name, value) for name, value in kept if name.lower() not in (b"content-length", b"content-encoding")
            ]
            kept.append((b"content-length", str(len(answer.content)).encode()))
        response.raw_headers = kept
        return response


@contextmanager
def endpoint(url: str, **more: str) -> Iterator[None]:
    """S3 is at another address, with other variables, for a while."""
    import s3fs

    def forget() -> None:
        storage._backend.cache_clear()
        s3fs.S3FileSystem.clear_instance_cache()

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"AWS_ENDPOINT_URL": url, **more}.items():
            patch.setenv(name, value)
        forget()
        try:
            yield
        finally:
            forget()
