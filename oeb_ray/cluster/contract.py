"""The verbs between the driver and whatever does the work.

`pool` registers this job at a vendor account; `send` hands out documents to predict, `score` a part to score,
`summarise` a Run whose parts are all there; `wait` returns what has ended; `close` stops. `hold` comes before it where
calls in flight are to end: nothing more is begun. `tell` gives the figures of a Run to whoever watches the cluster.
Work items are addresses and settings, outcomes are values: an exception that comes out of `wait` is a bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from ..errors import OebError
from ..records import PartReceipt, PartTask, PredictBatch, Receipt, SummaryTask
from ..summaries import Written


class Predicted(NamedTuple):
    """A batch has ended. ``stopped``: the error that concerns the whole account, if there was one."""

    batch: PredictBatch
    receipts: tuple[Receipt, ...]
    stopped: OebError | None = None


class Graded(NamedTuple):
    """A part has been written, or could not be: ``failed``."""

    task: PartTask
    receipt: PartReceipt | None
    failed: OebError | None = None


class Summed(NamedTuple):
    """What is derived of a Run has been written, or could not be: ``failed``."""

    task: SummaryTask
    written: tuple[Written, ...]
    failed: OebError | None = None


Work = PredictBatch | PartTask | SummaryTask


class Lost(NamedTuple):
    """The worker died before it could answer."""

    work: Work
    reason: str


Ended = Predicted | Graded | Summed | Lost


class Cluster(Protocol):
    """See the module's text.

    ``slots``: how many things are worth doing at once; ``memory``: bytes that one of them may take at most;
    ``under_way``: how many are begun.
    """

    @property
    def slots(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def under_way(self) -> int: ...

    def pool(self, account: str, member: Mapping[str, Any]) -> None: ...
    def send(self, batch: PredictBatch) -> None: ...
    def score(self, task: PartTask) -> None: ...
    def summarise(self, task: SummaryTask) -> None: ...
    def wait(self, seconds: float) -> list[Ended]: ...
    def tell(self, run: str, provider: str, now: Mapping[str, float]) -> None: ...
    def hold(self) -> None: ...
    def close(self) -> None: ...
