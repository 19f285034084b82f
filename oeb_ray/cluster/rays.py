"""The work on Ray: one task per batch and per part, on a local Ray or on the cluster at an address.

Tasks carry addresses and settings and return receipts. Ray does not retry them: a lost worker comes back as Lost, and
the driver decides, since out-of-memory retries of Ray's own have no bound.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import Any

import ray
from ray.exceptions import OutOfMemoryError, RayError, RayTaskError, WorkerCrashedError

from ..errors import InternalError, RequestError
from ..records import PartTask, PredictBatch
from . import work
from .contract import Ended, Graded, Lost, Predicted

OBJECT_STORE_BYTES = 100_000_000  # only addresses and receipts pass through it
CONNECT_SECONDS = 10.0


class RayCluster:
    """See contract.Cluster.

    A Ray that this process has connected to already is used as it is, and left when we go.

    Args:
        address: of a running cluster; None starts a Ray of our own on loopback, which ends with `close`.
        cpus: processor slots of a Ray of our own; None for all of the machine.
    """

    def __init__(self, address: str | None = None, cpus: int | None = None) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False, "namespace": "oeb"}
        if address:
            _check_reachable(address)
        self._ours = not ray.is_initialized()
        try:
            if not self._ours:
                pass  # a notebook or test that has connected already
            elif address:
                ray.init(address=address, **quiet)
            else:
                # Linux gives every 127.x.y.z to loopback; 127.0.0.1 itself Ray would rewrite.
                host = "127.0.0.2" if sys.platform == "linux" else "127.0.0.1"
                ray.init(
                    num_cpus=cpus,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    _node_ip_address=host,
                    **quiet,
                )
        except Exception as error:  # whatever hinders Ray, it did not start
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            where = f"no Ray cluster at {address}" if address else "Ray does not start on this machine"
            raise RequestError(f"{where}: {reason[:300]}") from error
        self.slots = int(ray.cluster_resources().get("CPU", 0))
        if self.slots < 1:
            self.close()
            raise RequestError(f"the Ray cluster at {address or 'this machine'} has no CPU to work with")
        self._predict = ray.remote(work.do_predict).options(num_cpus=1, max_retries=0)
        self._score = ray.remote(work.do_score).options(num_cpus=1, max_retries=0)
        self._pending: dict[ray.ObjectRef[Any], PredictBatch | PartTask] = {}

    @property
    def under_way(self) -> int:
        return len(self._pending)

    def pool(self, provider: str, cap: int) -> None:
        """Free providers share the cluster's processors; nothing to announce."""

    def send(self, batch: PredictBatch) -> None:
        self._pending[self._predict.remote(batch)] = batch

    def score(self, task: PartTask) -> None:
        self._pending[self._score.remote(task)] = task

    def wait(self, seconds: float) -> list[Ended]:
        if not self._pending:
            return []
        waiting = list(self._pending)
        done, _ = ray.wait(waiting, num_returns=1, timeout=seconds)
        if done:  # whatever else is ready comes along
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [self._ended(ref) for ref in done]

    def _ended(self, ref: Any) -> Ended:
        item = self._pending.pop(ref)
        try:
            ended: Predicted | Graded = ray.get(ref)
            return ended
        except RayTaskError as error:
            last = [line for line in str(error).splitlines() if line.strip()][-1:]
            raise InternalError(f"a worker failed in a way that is a bug: {''.join(last)}") from error
        except (WorkerCrashedError, OutOfMemoryError, RayError) as error:
            return Lost(item, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")

    def close(self) -> None:
        if self._ours:
            ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes where nothing listens. Raises RequestError."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():  # "auto"
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise RequestError(f"no Ray cluster at {address}: {error.strerror or error}") from error
