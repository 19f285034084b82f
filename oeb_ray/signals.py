"""Interrupts: SIGINT, SIGTERM and SIGHUP become one exception in the main thread, a second one ends at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Interrupt(KeyboardInterrupt):
    """Carries the signal's name and exit code."""

    def __init__(self, name: str, exit_code: int) -> None:
        super().__init__(name)
        self.exit_code = exit_code


@contextmanager
def interrupts_raise() -> Iterator[None]:
    """While inside, the first signal raises Interrupt and a second ends the process.

    To be entered after Ray has started: it would end the process on SIGTERM before any clean-up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen > 1:
            os._exit(EXIT_CODES[signal.Signals(number)])
        raise Interrupt(signal.Signals(number).name, EXIT_CODES[signal.Signals(number)])

    before = {number: signal.signal(number, handle) for number in EXIT_CODES}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
