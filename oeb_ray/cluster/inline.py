"""All work in this process, one thing at a time: for debugging, small tables and most tests."""

from __future__ import annotations

from collections import deque

from ..records import PartTask, PredictBatch
from . import work
from .contract import Ended


class InlineCluster:
    """See contract.Cluster."""

    slots = 1

    def __init__(self) -> None:
        self._waiting: deque[PredictBatch | PartTask] = deque()

    @property
    def under_way(self) -> int:
        return 0  # whatever is begun ends within `wait`

    def pool(self, provider: str, cap: int) -> None:
        """Nothing to announce: one thing is done at a time."""

    def send(self, batch: PredictBatch) -> None:
        self._waiting.append(batch)

    def score(self, task: PartTask) -> None:
        self._waiting.append(task)

    def wait(self, seconds: float) -> list[Ended]:
        if not self._waiting:
            return []
        item = self._waiting.popleft()
        return [work.do_predict(item) if isinstance(item, PredictBatch) else work.do_score(item)]

    def close(self) -> None:
        self._waiting.clear()
