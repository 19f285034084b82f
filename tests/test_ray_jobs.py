"""Jobs that share a Ray cluster: one account for all of them, and no key in anything that Ray shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from oeb_ray.errors import RequestError
from oeb_ray.pool import SILENCE_SECONDS
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.simulator.history import Limits, faults
from tests.conftest import free_ports
from tests.helpers import KEY, ROUNDS, SmallCorpus, contents, make_pdf_corpus, start_oeb
from tests.nodes import Nodes

HOST = "127.0.0.4"
SHOWN = (
    "/api/jobs/", "/api/v0/actors?detail=1", "/api/v0/tasks?detail=1", "/api/v0/workers?detail=1",
    "/nodes?view=summary", "/logical/actors",
)  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> SmallCorpus:
    return make_pdf_corpus(tmp_path_factory.mktemp("corpus"), documents=60)


@pytest.fixture
def simulator(corpus: SmallCorpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    monkeypatch.setenv("DATALAB_API_KEY", KEY)
    dials = {"latency": 0.3, "price": 0.03}
    profile = {"answers": str(corpus.predictions / "good"), "documents": str(corpus.folder / "docs")}
    with Simulator(Profile.from_dict(profile | {"vendors": {"datalab": dials}})) as opened:
        yield opened


def words_of(corpus: SmallCorpus, simulator: Simulator, out: Path, *more: str) -> list[str]:
    return [
        "corpus=manifest", f"corpus.manifest='{corpus.manifest}'", "provider=[datalab]",
        f"providers.datalab.address='{simulator.url}/datalab'", "providers.datalab.poll_interval=0.1",
        f"storage.root='{out}'", *more,
    ]  # fmt: skip


@pytest.mark.ray
@pytest.mark.s3
def test_jobs_with_one_key_share_its_limits(corpus, simulator, nodes: Nodes, tmp_path) -> None:
    """BR-48: two jobs write to one folder, a third to another; the smallest cap and rate hold for all together."""
    place = ["cluster=existing", f"cluster.address='{nodes.address}'"]
    jobs = [
        (tmp_path / "one", ["providers.datalab.in_flight=5"]),
        (tmp_path / "one", ["providers.datalab.in_flight=8"]),
        (tmp_path / "two", ["providers.datalab.in_flight=6", "providers.datalab.rpm=900"]),
    ]
    drivers = [start_oeb("benchmark", *words_of(corpus, simulator, out, *place, *more)) for out, more in jobs]
    for driver in drivers:
        _, err = driver.communicate(timeout=110)
        assert driver.returncode == 0, err
    assert not faults(simulator.log(), [str(tmp_path / "one"), str(tmp_path / "two")], {"datalab": Limits(8)})
    stats = simulator.stats()["datalab"]
    assert set(stats["submissions"].values()) == {2}, "one for each folder"
    assert stats["peak_in_flight"] <= 8
    one, two = (contents(str(tmp_path / name)) for name in ("one", "two"))
    assert one == two


def test_a_cluster_that_is_not_there_or_can_do_nothing_is_refused_at_once(monkeypatch) -> None:
    """BR-54"""
    from oeb_ray.cluster.rays import RayCluster

    began = time.monotonic()
    with pytest.raises(RequestError, match=r"no Ray cluster at 127.0.0.9:9: Connection refused"):
        RayCluster("127.0.0.9:9")
    assert time.monotonic() - began < 30
    left = pretended_ray(monkeypatch, {"memory": 1e9})
    with pytest.raises(RequestError, match="the Ray cluster at this machine has no CPU to work with"):
        RayCluster()
    assert left


def test_a_cluster_that_grows_gets_more_work(monkeypatch) -> None:
    from oeb_ray.cluster.rays import RayCluster

    resources = {"CPU": 1.0, "memory": 4e9}
    pretended_ray(monkeypatch, resources)
    monkeypatch.setattr("oeb_ray.cluster.rays.COUNTING_SECONDS", 0.0)
    cluster = RayCluster()
    assert (cluster.slots, cluster.memory) == (1, 4e9)
    resources |= {"CPU": 33.0, "memory": 30e9}
    assert (cluster.slots, cluster.memory) == (33, 30e9)
    resources.clear()
    assert (cluster.slots, cluster.memory) == (33, 30e9), "what cannot be counted at the moment has not gone"


def pretended_ray(monkeypatch: pytest.MonkeyPatch, resources: dict[str, float]) -> list[bool]:
    """A Ray that this process has connected to; the list gets an entry when it is left."""
    import ray

    left: list[bool] = []
    node = {"Alive": True, "Resources": resources}
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cluster_resources", lambda: resources)
    monkeypatch.setattr(ray, "nodes", lambda: [node])
    monkeypatch.setattr(ray, "shutdown", lambda: left.append(True))
    return left


@pytest.mark.ray
@pytest.mark.s3
@pytest.mark.skipif(ROUNDS <= 2, reason="waits for 25 s; make chaos runs it")
@pytest.mark.chaos
def test_nothing_is_sent_for_a_driver_that_is_dead(corpus, simulator, nodes: Nodes, tmp_path) -> None:
    simulator.dials("datalab", latency=2.0)
    place = ["cluster=existing", f"cluster.address='{nodes.address}'", "providers.datalab.in_flight=10"]
    driver = start_oeb("benchmark", *words_of(corpus, simulator, tmp_path / "out", *place))
    while driver.poll() is None and sum(simulator.stats()["datalab"]["submissions"].values()) < 10:
        time.sleep(0.02)
    driver.kill()
    driver.communicate()
    time.sleep(SILENCE_SECONDS + 1)
    sent = sum(simulator.stats()["datalab"]["submissions"].values())
    time.sleep(8)
    assert sum(simulator.stats()["datalab"]["submissions"].values()) == sent <= 30 < 60


class Head(NamedTuple):
    """A Ray head with dashboard and job server: addresses of its dashboard and metrics, the folder of its logs."""

    url: str
    metrics: str
    logs: Path


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    import tempfile

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # loopback only
    port, dashboard, agent, client, metrics = free_ports(5)
    monkeypatch.setenv("RAY_metrics_report_interval_ms", "200")
    with tempfile.TemporaryDirectory(prefix="r", dir="/tmp") as folder:  # sockets in it want a short path
        command = [
            str(Path(sys.executable).parent / "ray"), "start", "--head", f"--node-ip-address={HOST}", f"--port={port}",
            "--include-dashboard=true", f"--dashboard-host={HOST}", f"--dashboard-port={dashboard}", "--num-cpus=1",
            f"--dashboard-agent-listen-port={agent}", f"--ray-client-server-port={client}",
            f"--metrics-export-port={metrics}", f"--temp-dir={folder}", "--object-store-memory=100000000",
            "--disable-usage-stats", "--block",
        ]  # fmt: skip
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        started = subprocess.Popen(
            command, env=os.environ | {"PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        url = f"http://{HOST}:{dashboard}"
        try:
            for _ in range(1000):
                assert started.poll() is None, started.communicate()[0]
                try:
                    get(f"{url}/api/version")
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise AssertionError("the dashboard does not answer")
            yield Head(url, f"http://{HOST}:{metrics}/metrics", Path(folder))
        finally:
            started.terminate()
            started.communicate(timeout=30)


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.ray
def test_no_key_is_seen_in_a_submitted_job(corpus, simulator, head, tmp_path) -> None:
    """BR-55: the job list, the dashboard's answers, Ray's logs, metrics, events and all that is written."""
    url, metrics, logs = head
    submit = [
        str(Path(sys.executable).parent / "ray"), "job", "submit", f"--address={url}", "--submission-id=sweep-1", "--",
        "python", "-m", "jobs.benchmark",
    ]  # fmt: skip
    words = words_of(corpus, simulator, tmp_path / "out", "cluster=existing", "cluster.address=auto", "limit=10",
                     f"events='{tmp_path}/out/events.jsonl'")  # fmt: skip
    for _ in range(30):
        ended = subprocess.run([*submit, *words], capture_output=True, text=True, timeout=110)
        if "No available agent" not in ended.stderr:  # the dashboard is up a little before its agent
            break
    assert ended.returncode == 0, ended.stdout + ended.stderr
    figures = get(metrics)
    for name in ("predictions", "spend_usd", "vendor_seconds", "parts"):  # gauges end with the job
        assert f"ray_oeb_{name}_total" in figures
    assert sum(simulator.stats()["datalab"]["submissions"].values()) == 10
    seen = {"the submitter's output": ended.stdout + ended.stderr}
    seen |= {path: get(url + path) for path in SHOWN}
    assert "sweep-1" in seen["/api/jobs/"] and "PoolActor" in seen["/api/v0/actors?detail=1"]
    for folder in (logs, tmp_path / "out"):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_socket():
                seen[str(path)] = path.read_bytes().decode("utf-8", "replace")
    assert any("/logs/" in name for name in seen) and any("/calls/" in name for name in seen)
    assert not [name for name, text in seen.items() if KEY in text]
    assert json.loads(seen["/api/jobs/"])[0]["status"] == "SUCCEEDED"
