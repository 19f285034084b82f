"""Inside a room without a network: a local port whose connections go out by the gateway's socket; then the command.

It is copied into the room and run there as ``python3 forwarder.py SOCKET PORT COMMAND...``: only the standard library,
and nothing of this package. It ends as the command does.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Passes bytes on until one side ends."""
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            sink.sendall(piece)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def serve(local: socket.socket, gateway: str) -> None:
    """Takes connections for ever."""
    while True:
        near, _ = local.accept()
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(gateway)
        except OSError:
            near.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    threading.Thread(target=serve, args=(listening, sys.argv[1]), daemon=True).start()
    sys.exit(subprocess.call(sys.argv[3:]) % 256)
