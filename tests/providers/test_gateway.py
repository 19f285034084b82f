"""The gateway of a room: hosts of the list and no other, and no way round it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from oeb_ray.errors import RequestError
from oeb_ray.plan import expand
from oeb_ray.providers.gateway import host_fault, is_allowed
from tests.providers.test_command import needs_rooms, run

REACH = """python3 - <<'END'
import http.client, os, socket
proxy = os.environ["HTTPS_PROXY"].removeprefix("http://").split(":")
for host, port in {targets}:
    try:
        connection = http.client.HTTPConnection(proxy[0], int(proxy[1]), timeout=10)
        connection.set_tunnel(host, port)
        connection.request("GET", "/")
        print(host, connection.getresponse().read().decode())
    except OSError as error:
        print(host, "refused", "403" in str(error))
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
    print("direct")
except OSError:
    print("no way round")
END
echo '{{}}' > output.json"""


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"reached")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@needs_rooms
def test_a_command_reaches_the_hosts_of_its_list_and_no_other(port: int) -> None:
    targets = [("127.0.0.1", port), ("localhost", port), ("example.org", 443)]
    made = run(REACH.format(targets=targets, port=port), allow_hosts=f"127.0.0.1:{port}, api.example.org")
    assert made.raw["said"].splitlines() == [
        "127.0.0.1 reached", "localhost refused True", "example.org refused True", "no way round"
    ]  # fmt: skip
    assert made.raw["hosts_refused"] == [f"localhost:{port}", "example.org:443"]


@needs_rooms
def test_the_exit_code_is_that_of_the_command_and_the_deadline_holds() -> None:
    assert run("echo '{}' > output.json; exit 7", allow_hosts="api.example.org").raw["exit_code"] == 7
    made = run("echo '{}' > output.json; sleep 3174.5", seconds=1.0, allow_hosts="api.example.org")
    assert made.raw["stopped"] == "not done within 1 s"


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("api.openai.com", 443, True),
        ("API.OpenAI.com.", 443, True),
        ("api.openai.com", 80, False),
        ("openai.com", 443, False),
        ("evil-api.openai.com", 443, False),
        ("api.openai.com.evil.org", 443, False),
        ("a.example.org", 443, True),
        ("example.org", 443, False),
        ("aexample.org", 443, False),
        ("model", 8443, True),
        ("model", 443, False),
    ],
)
def test_an_entry_stands_for_one_host_or_what_is_below_a_domain(host: str, port: int, allowed: bool) -> None:
    assert is_allowed(host, port, ("api.openai.com", "*.example.org", "model:8443")) is allowed


@pytest.mark.parametrize("host", ["https://api.openai.com", "api.openai.com/v1", "", "*", "a b", "host:", "*.*.org"])
def test_what_is_no_host_is_refused(host: str) -> None:
    assert host_fault(host)


def test_without_a_room_no_list_can_be_kept() -> None:
    with pytest.raises(RequestError, match="isolation=none cannot enforce a list of hosts"):
        expand({"command": {"command": "true", "isolation": "none", "allow_hosts": "api.openai.com"}}, 60.0)
