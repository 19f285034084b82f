"""`oeb serve`: the pages of a report from a folder or a bucket, read only, and nothing but them."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from oeb_ray.report.build import build
from oeb_ray.report.facts import gather
from oeb_ray.stored import runs_at
from tests.helpers import start_oeb


@pytest.fixture
def server(out: str) -> Iterator[tuple[str, str]]:
    """The address of a server, and the output that it serves."""
    process = start_oeb("serve", out, "--port", "0")
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address), address
    yield address, out
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def asked(address: str, path: str, method: str = "GET", host: str | None = None) -> tuple[int, bytes, dict[str, str]]:
    """What a server answers to a path as it is, dots and all."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 0, timeout=60)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    connection.putheader("Host", host or where.netloc)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read(), {key.lower(): value for key, value in answer.getheaders()}
    connection.close()
    return found


SERVED = (
    "index.html documents.html fields.html documents/7.html data/values/7-1.js data/fields.js data/compare.js "
    "data/index.js csv/leaderboard.csv static/report.js static/d3.min.js"
).split()
NOWHERE = (
    "/../../etc/passwd /static/../../pyproject.toml /static/%2e%2e/site.py /static//etc/passwd //etc/passwd "
    "/corpus.json /data/values/7-99.js /documents/999999.html /documents/-1.html /documents/7.html/ /pages/7/1.webp "
    "/pages/0/0.webp /data/values/../../x.js /static/..%2f..%2fcli/main.py /templates/base.html /csv/../index.html "
    "/documents/%D9%A7.html /documents/%00.html"
).split()


def test_it_serves_what_a_report_holds_and_nothing_else(
    server: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    address, out = server
    folder = tmp_path_factory.mktemp("served")
    build(gather(out), str(folder))
    for name in SERVED:
        status, data, headers = asked(address, f"/{name}")
        assert status == 200, name
        if name != "documents.html":  # which tells pages, as far as they are known
            assert data == (folder / name).read_bytes(), name
        assert "script-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    assert asked(address, "/")[0] == 307
    for path in (*NOWHERE, f"/{runs_at(out)[0].name}/summary.json"):
        assert asked(address, path)[0] in (404, 400), path
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert asked(address, "/index.html", method)[0] == 405
    assert asked(address, "/index.html", host="evil.example")[0] == 400, "no other site's name leads to it"


def test_an_address_that_is_taken_is_one_message(finished: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = start_oeb("serve", finished, "--port", str(taken.getsockname()[1]), env=dict(os.environ))
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "") and "cannot listen at 127.0.0.1:" in err
    assert "Traceback" not in err
