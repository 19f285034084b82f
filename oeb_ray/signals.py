"""Interrupts as something to ask for: the first SIGINT, SIGTERM or SIGHUP is noted, a second ends the process.

Raised in the middle of a write or of an event loop an interrupt would lose what is in flight; asked for between two
steps of the driver it loses nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Interrupts:
    """``exit_code`` is that of the signal that came, or 0 while none has."""

    def __init__(self) -> None:
        self.exit_code = 0

    def install(self) -> dict[int, Any]:
        """Takes the signals over; returns the handlers that were there. Ray puts its own in place when it starts."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        return {number: signal.signal(number, self._handle) for number in EXIT_CODES}

    def _handle(self, number: int, frame: FrameType | None) -> None:
        code = EXIT_CODES[signal.Signals(number)]
        if self.exit_code:
            os._exit(code)
        self.exit_code = code


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """While inside, signals are noted."""
    noted = Interrupts()
    before = noted.install()
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
