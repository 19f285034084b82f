"""All work in this process: for debugging, small tables and most tests.

Free predictions and scoring are done one at a time within `wait`. Paid calls run on an event loop of their own, in a
thread, so that a call in flight goes on while a part is scored.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import uuid
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

from ..clock import phase
from ..records import PartTask, PredictBatch, SummaryTask
from . import work
from .account import PING_SECONDS, Account
from .contract import Ended, Predicted, Work

SHARE = 0.7  # of the machine's memory that one document may take


class InlineCluster:
    """See contract.Cluster."""

    slots = 1

    def __init__(self) -> None:
        self.memory = int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * SHARE)
        self._waiting: deque[Work] = deque()
        self._calls: set[concurrent.futures.Future[Predicted]] = set()
        self._accounts: dict[str, Account] = {}
        self._job = uuid.uuid4().hex
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def under_way(self) -> int:
        return len(self._calls)  # whatever else is begun ends within `wait`

    def pool(self, account: str, member: Mapping[str, Any]) -> None:
        self._on_loop(self._register(account, member))

    async def _register(self, account: str, member: Mapping[str, Any]) -> None:
        if account not in self._accounts:
            self._accounts[account] = Account(account)
        self._accounts[account].register(self._job, member)

    def send(self, batch: PredictBatch) -> None:
        if batch.run.lane is None:
            self._waiting.append(batch)
            return
        assert self._loop is not None
        account = self._accounts[batch.run.lane.account]
        self._calls.add(asyncio.run_coroutine_threadsafe(account.predict(self._job, batch), self._loop))

    def score(self, task: PartTask) -> None:
        self._waiting.append(task)

    def summarise(self, task: SummaryTask) -> None:
        self._waiting.append(task)

    def wait(self, seconds: float) -> list[Ended]:
        if self._calls and not self._waiting:
            with phase("predicting"):
                concurrent.futures.wait(self._calls, seconds, concurrent.futures.FIRST_COMPLETED)
        done = {call for call in self._calls if call.done()}
        self._calls -= done
        if done or not self._waiting:
            return [call.result() for call in done]
        item = self._waiting.popleft()
        kind, do = work.DOING[type(item)]
        with phase(kind):
            return [do(item)]

    def tell(self, run: str, provider: str, now: Mapping[str, float]) -> None:
        pass  # there is no cluster to watch

    def hold(self) -> None:
        self._waiting.clear()
        if self._loop is not None:
            self._on_loop(self._leave())

    async def _leave(self) -> None:
        for account in self._accounts.values():
            account.pool.leave(self._job)

    def close(self) -> None:
        self._waiting.clear()
        if self._loop is not None and self._thread is not None:
            self._on_loop(self._close())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = None

    async def _close(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for account in self._accounts.values():
            await account.close()

    def _on_loop(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Runs something on the loop of the calls, which begins with the first."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="oeb-calls", daemon=True)
            self._thread.start()
            asyncio.run_coroutine_threadsafe(self._stay_alive(), self._loop)
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _stay_alive(self) -> None:
        """The job lives as long as the process: a long scoring must not make it look silent."""
        while True:
            for account in self._accounts.values():
                account.pool.ping(self._job)
            await asyncio.sleep(PING_SECONDS)
