"""The five verbs between the driver and whatever does the work.

`pool` announces a Run's provider and how many documents may be in flight for it; `send` hands out documents to
predict, `score` a part to score; `wait` returns what has ended; `close` stops. Work items are addresses and settings,
outcomes are values: an exception that comes out of `wait` is a bug.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..errors import OebError
from ..records import PartReceipt, PartTask, PredictBatch, Receipt


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


class Lost(NamedTuple):
    """The worker died before it could answer."""

    work: PredictBatch | PartTask
    reason: str


Ended = Predicted | Graded | Lost


class Cluster(Protocol):
    """See the module's text. ``slots``: how many things are worth doing at once; ``under_way``: how many are begun."""

    slots: int

    @property
    def under_way(self) -> int: ...

    def pool(self, provider: str, cap: int) -> None: ...
    def send(self, batch: PredictBatch) -> None: ...
    def score(self, task: PartTask) -> None: ...
    def wait(self, seconds: float) -> list[Ended]: ...
    def close(self) -> None: ...
