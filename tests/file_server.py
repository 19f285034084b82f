"""Files over HTTP on loopback, with the faults that downloads meet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class FileServer:
    """``files``: content by path. ``faults`` by path: ``404`` and the like (a status), ``cut`` (the connection breaks
    midway), ``unsized`` (half of it, and nothing says how much it should be), ``other`` (other bytes), ``whole`` (no
    ranges). ``asked``: path and first byte asked for, of every request; ``sent``: bytes of contents that were sent."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, int]] = field(default_factory=list)
    sent: int = 0


@contextmanager
def file_server() -> Iterator[FileServer]:
    """A running server."""
    state = FileServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
            state.asked.append((self.path, first))
            fault, data = state.faults.get(self.path, ""), state.files.get(self.path)
            if fault.isdigit() or data is None:
                self.send_response(int(fault) if fault.isdigit() else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            data = bytes(reversed(data)) if fault == "other" else data
            ranged = first > 0 and fault != "whole"
            if ranged and first >= len(data):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = data[first:] if ranged else data
            self.send_response(206 if ranged else 200)
            if ranged:
                self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
            if fault != "unsized":
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            body = body[: len(body) // 2] if fault in ("cut", "unsized") else body
            state.sent += len(body)
            self.wfile.write(body)
            if fault in ("cut", "unsized"):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
