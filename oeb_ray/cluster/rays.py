"""The work on Ray: one task per batch and per part, on a local Ray or on the cluster at an address.

Tasks carry addresses and settings and return receipts. Ray does not retry them: a lost worker comes back as Lost, and
the driver decides, since out-of-memory retries of Ray's own have no bound.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from ..clock import phase
from ..errors import InternalError, OebError, RequestError, Unreachable
from ..loops import finished
from ..pool import JobGone
from ..providers.contract import G, R
from ..records import PartTask, PredictBatch, SummaryTask
from . import work
from .account import PING_SECONDS, Account
from .contract import Ended, Lost, Predicted, Work
from .metrics import Metrics

OBJECT_STORE_BYTES = 100_000_000  # only addresses and receipts pass through it
CONNECT_SECONDS = 10.0
SMALL = 100_000_000  # bytes of memory
POOL_ATTEMPTS = 10  # to get or create an account's actor while an old one is going
HEAD = "node:__internal_head__"  # the resource by which Ray marks it
COUNTING_SECONDS = 5.0  # between looks at how large the cluster is
POOL_NAME = "pool "  # begins the actors' names
IDLE_SECONDS = 5.0  # that an actor without jobs and calls stays


async def elsewhere(function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R:
    """A Worker: on the node with the least to do. It needs no processor of Ray's, since the pool says how many run."""
    done = _ELSEWHERE.remote(function, given)
    try:
        found: R = await done
    except asyncio.CancelledError:
        ray.cancel(done, force=True)
        raise
    except RayError as error:
        raise Unreachable(f"the process that it ran in was lost: {type(error).__name__}") from error
    return found


def _finished(function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R:
    return finished(function(given))


_ELSEWHERE: Any = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy="SPREAD")(_finished)


@ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=1000)
class PoolActor:
    """One per vendor account and cluster, named, shared by all jobs; it goes when the last of them has left."""

    def __init__(self, account: str) -> None:
        self.account = Account(account, elsewhere)
        self._reaper: asyncio.Task[None] | None = None

    async def register(self, job: str, member: dict[str, Any]) -> None:
        self.account.register(job, member)
        if self._reaper is None:
            self._reaper = asyncio.ensure_future(self._go_when_idle())

    async def ping(self, job: str) -> None:
        self.account.pool.ping(job)

    async def leave(self, job: str) -> None:
        self.account.pool.leave(job)

    async def predict(self, job: str, batch: PredictBatch) -> Predicted:
        return await self.account.predict(job, batch)

    async def state(self) -> dict[str, Any]:
        return self.account.pool.state()

    async def outputs(self) -> list[str]:
        return self.account.outputs()

    async def _go_when_idle(self) -> None:
        while True:
            await asyncio.sleep(IDLE_SECONDS)
            pool = self.account.pool
            pool.forget_silent()
            if not pool.members and not pool.in_flight:
                os._exit(0)  # exit_actor is for methods that are called; nobody calls any more


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
                    address="local",  # one of our own, whatever else runs here
                    num_cpus=cpus,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    _node_ip_address=host,
                    **quiet,
                )
        except Exception as error:  # whatever hinders Ray, it did not start
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            where = f"no Ray cluster at {address}" if address else "Ray does not start on this machine"
            instead = "" if address else "; try again when it is less busy, or with cluster=inline"
            raise RequestError(f"{where}: {reason[:300]}{instead}") from error
        self._slots, self._memory, self._counted = 0, 0, float("-inf")
        if self.slots < 1:
            ray.shutdown()
            raise RequestError(f"the Ray cluster at {address or 'this machine'} has no CPU to work with")
        self._doing = {kind: ray.remote(num_cpus=1, max_retries=0)(do) for kind, (_, do) in work.DOING.items()}
        self._pending: dict[ray.ObjectRef[Any], Work] = {}
        self._actors: dict[str, Any] = {}
        self._job = uuid.uuid4().hex
        self._pinged = 0.0
        self._held = False
        self._metrics = Metrics()

    @property
    def slots(self) -> int:
        """Processors of the cluster as it is now: with more work than places it grows, where it can."""
        self._count()
        return self._slots

    @property
    def memory(self) -> int:
        """Bytes of the largest node that has been seen; one that has gone can come again."""
        self._count()
        return self._memory

    def _count(self) -> None:
        now = time.monotonic()
        if now - self._counted >= COUNTING_SECONDS:
            self._counted = now
            self._slots = int(ray.cluster_resources().get("CPU", 0)) or self._slots
            sizes = [node["Resources"].get("memory", 0) for node in ray.nodes() if node["Alive"]]
            self._memory = max(self._memory, *map(int, sizes), 0)

    @property
    def under_way(self) -> int:
        return len(self._pending)

    def pool(self, account: str, member: Mapping[str, Any]) -> None:
        for attempt in range(POOL_ATTEMPTS):
            try:
                # A name that has just been given up may still lead to the actor that is going.
                actor = PoolActor.options(  # type: ignore[attr-defined]
                    name=f"{POOL_NAME}{account}",
                    lifetime="detached",
                    get_if_exists=True,
                    scheduling_strategy=_on_the_head(),
                ).remote(account)
                ray.get(actor.register.remote(self._job, dict(member)), timeout=CONNECT_SECONDS * 6)
            except RayTaskError as error:
                raise error.cause if isinstance(error.cause, OebError) else InternalError(str(error)) from error
            except RayError as error:
                if attempt == POOL_ATTEMPTS - 1:
                    raise InternalError(f"no pool for {account}: {error}") from error
                time.sleep(0.5)
            else:
                self._actors[account] = actor
                return

    def send(self, batch: PredictBatch) -> None:
        if batch.run.lane is None:
            self._pending[self._doing[PredictBatch].remote(batch)] = batch
        else:
            actor = self._actors[batch.run.lane.account]
            self._pending[actor.predict.remote(self._job, batch)] = batch

    def score(self, task: PartTask) -> None:
        self._begin(task)

    def summarise(self, task: SummaryTask) -> None:
        self._begin(task)

    def _begin(self, task: PartTask | SummaryTask) -> None:
        do: Any = self._doing[type(task)]
        if task.memory > SMALL:  # so that two giants never meet on one node; what is small Ray need not count
            do = do.options(memory=min(task.memory, self.memory))
        self._pending[do.remote(task)] = task

    def wait(self, seconds: float) -> list[Ended]:
        self._ping()
        if not self._pending:
            return []
        waiting = list(self._pending)
        kinds = {work.DOING[type(item)][0] for item in self._pending.values()}
        with phase(" and ".join(sorted(kinds))):
            done, _ = ray.wait(waiting, num_returns=1, timeout=seconds)
        if done:  # whatever else is ready comes along
            done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return [self._ended(ref) for ref in done]

    def _ended(self, ref: Any) -> Ended:
        item = self._pending.pop(ref)
        try:
            ended: Ended = ray.get(ref)
        except RayTaskError as error:
            last = [line for line in str(error).splitlines() if line.strip()][-1:]
            raise InternalError(f"a worker failed in a way that is a bug: {''.join(last)}") from error
        except RayError as error:
            return Lost(item, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        if isinstance(ended, Predicted) and isinstance(ended.stopped, JobGone) and not self._held:
            return Lost(ended.batch, str(ended.stopped))
        return ended

    def _ping(self) -> None:
        now = time.monotonic()
        if now - self._pinged >= PING_SECONDS and not self._held:
            self._pinged = now
            for actor in self._actors.values():
                actor.ping.remote(self._job)

    def tell(self, run: str, provider: str, now: Mapping[str, float]) -> None:
        self._metrics.tell(run, provider, now)

    def hold(self) -> None:
        self._held = True
        for actor in self._actors.values():
            actor.leave.remote(self._job)

    def close(self) -> None:
        self.hold()
        if self._ours:
            ray.shutdown()


def outputs_at(address: str) -> list[str]:
    """The outputs that the accounts' pools of a running cluster write to. Raises RequestError."""
    cluster = RayCluster(address)
    try:
        pools = [ray.get_actor(name) for name in ray.util.list_named_actors() if name.startswith(POOL_NAME)]
        asked = [pool.outputs.remote() for pool in pools]
        found: set[str] = set()
        for answer in asked:
            with suppress(RayError):  # a pool that is going
                found.update(ray.get(answer, timeout=CONNECT_SECONDS))
        return sorted(found)
    finally:
        cluster.close()


def _on_the_head() -> Any:
    """Where an account lives best: on the node that lasts longest. It may live elsewhere."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    heads = [node["NodeID"] for node in ray.nodes() if node["Alive"] and HEAD in node["Resources"]]
    return NodeAffinitySchedulingStrategy(heads[0], soft=True) if heads else "DEFAULT"


def _check_reachable(address: str) -> None:
    """Ray itself would try for minutes where nothing listens. Raises RequestError."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdigit():  # "auto"
        return
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise RequestError(f"no Ray cluster at {address}: {error.strerror or error}") from error
