"""A Ray cluster of several nodes on loopback, and the processes of it that tests kill."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil

FAST_DEATHS = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
STORE_BYTES = 100_000_000
START_ATTEMPTS = 4


class Nodes:
    """A head and other nodes, each with one CPU. The environment at the start is that of all workers.

    ``memory``: bytes that each of them has for work; unless given, what Ray finds.
    """

    def __init__(self, others: int = 1, memory: int | None = None) -> None:
        from ray.cluster_utils import Cluster

        os.environ["RAY_AUTH_MODE"] = "disabled"  # loopback only
        head = {
            "num_cpus": 1, "include_dashboard": False, "object_store_memory": STORE_BYTES,
            "node_ip_address": "127.0.0.2", "_system_config": FAST_DEATHS,
        }  # fmt: skip
        self._more = {} if memory is None else {"memory": memory}
        self._cluster: Any = Cluster(initialize_head=True, head_node_args=head | self._more)
        self._added = 0
        self._others: list[Any] = [self._add() for _ in range(others)]

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def _add(self) -> Any:
        self._added += 1
        address = f"127.0.0.{2 + self._added}"
        wanted = {"num_cpus": 1, "object_store_memory": STORE_BYTES, "node_ip_address": address, **self._more}
        for _ in range(START_ATTEMPTS - 1):
            with suppress(Exception):  # Ray gives its own processes 30 s, which is short beside much else to do
                return self._cluster.add_node(**wanted)
        return self._cluster.add_node(**wanted)

    def close(self) -> None:
        self._cluster.shutdown()

    def kill_raylet(self) -> None:
        """A node that is not the head dies, and another takes its place."""
        self.kill_node()
        self._others.append(self._add())

    def kill_node(self, title: str = "", *, alive: Callable[[], bool] = lambda: True) -> bool:
        """A node that is not the head dies, as soon as one has a process whose title begins so; False as for `kill`."""
        while alive():
            for node in self._others:
                if not title or next(_titled(node, title), None):
                    self._others.remove(node)
                    for process in _titled(node, "ray::"):  # else they live on for a moment, and may yet answer
                        with suppress(psutil.Error):
                            process.kill()
                    self._cluster.remove_node(node, allow_graceful=False)
                    return True
            time.sleep(0.02)
        return False

    def kill(self, title: str, *, alive: Callable[[], bool]) -> bool:
        """Kills one process whose title begins so, as soon as there is one; False if `alive` ends before."""
        while alive():
            for node in self._cluster.list_all_nodes():
                if process := next(_titled(node, title), None):
                    process.kill()
                    return True
            time.sleep(0.02)
        return False


def _titled(node: Any, title: str) -> Iterator[psutil.Process]:
    """The processes of a node whose title begins so."""
    for started in node.all_processes.get("raylet", []):
        with suppress(psutil.Error):
            for process in psutil.Process(started.process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if " ".join(process.cmdline()).startswith(title):
                        yield process
