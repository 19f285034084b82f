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

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Interrupts:
    """``exit_code`` is that of the signal that came, or 0 while none has."""

    exit_code = 0


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """While inside, signals are noted.

    To be entered after Ray has started: it would end the process on SIGTERM before any clean-up.
    """
    noted = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return

    def handle(number: int, frame: FrameType | None) -> None:
        code = EXIT_CODES[signal.Signals(number)]
        if noted.exit_code:
            os._exit(code)
        noted.exit_code = code

    before = {number: signal.signal(number, handle) for number in EXIT_CODES}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
