"""Where the time of a command goes: wall seconds by phase, for whoever asks with --timings.

A clock belongs to the thread that started it; what other threads and processes do counts as the wait for them. Phases
may lie within each other, and a second counts for the innermost alone, so they add up to the whole.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager, suppress

STARTING = "starting"
REST = "the rest"
PHASES = (
    STARTING, "your answer", "Ray", "predicting", "scoring", "storage", "summarising", REST
)  # fmt: skip
_here = threading.local()


class Clock:
    """Runs from the start of the process; ``seconds`` by phase, in the order of PHASES, mixed ones with their first."""

    def __init__(self) -> None:
        self._spent = {STARTING: process_age()}
        self._phases = [STARTING]
        self._since = time.monotonic()

    def _turn(self) -> None:
        now = time.monotonic()
        self._spent[self._phases[-1]] = self._spent.get(self._phases[-1], 0.0) + now - self._since
        self._since = now

    def enter(self, name: str) -> None:
        """What follows counts as this phase, until `leave`."""
        self._turn()
        self._phases.append(name)

    def leave(self) -> None:
        """Back to the phase around it."""
        self._turn()
        self._phases.pop()

    def seconds(self) -> dict[str, float]:
        """Wall seconds so far."""
        self._turn()
        return {name: self._spent[name] for name in sorted(self._spent, key=_place)}


def _place(name: str) -> tuple[int, str]:
    """Where a phase is told: things done at once ("predicting and scoring") after the first of them."""
    return PHASES.index(name.split(" and ")[0]), name


@contextmanager
def ticking() -> Iterator[Clock]:
    """A clock for what this thread does inside."""
    _here.clock = Clock()
    try:
        yield _here.clock
    finally:
        _here.clock = None


class phase(ContextDecorator):
    """What is done inside counts as this phase; nothing happens where this thread has no clock."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        if (clock := getattr(_here, "clock", None)) is not None:
            clock.enter(self.name)

    def __exit__(self, *_: object) -> None:
        if (clock := getattr(_here, "clock", None)) is not None:
            clock.leave()


def process_age() -> float:
    """Seconds since this process began, as Linux counts them; 0 elsewhere."""
    with suppress(OSError, ValueError, AttributeError, IndexError):
        with open("/proc/self/stat", "rb") as stream:
            began = int(stream.read().rpartition(b")")[2].split()[19])
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - began / os.sysconf("SC_CLK_TCK"))
    return 0.0
