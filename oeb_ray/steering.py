"""The driver's side of control: it says now and then how far it is, and does what the orders for it say.

In: RunStates, and orders that somebody else wrote. Out: limits of runs changed in place, and whether to go on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from . import control
from .calls import Owner
from .control import Orders
from .errors import OebError, Stopped
from .runstate import Progress, RunState
from .signals import Interrupts

SETTLED_SECONDS = 1.0  # a job that is over by then is not worth steering
LOOK_SECONDS = 2.0  # between looks for orders
STANDING_SECONDS = 5.0  # between words on how far the job is
FIELDS = {"in_flight": "cap", "rpm": "rpm", "max_usd": "max_usd"}  # of a Lane, by limit


class Steering:
    """See the module's text. ``paused`` and ``stop`` are what holds now. One per job."""

    def __init__(self, out: str, progress: Progress) -> None:
        self.out, self.progress = out, progress
        self.owner = Owner()
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.orders = Orders()
        self._look_at = time.monotonic() + SETTLED_SECONDS
        self._say_at = self._look_at
        self._said = False

    @property
    def paused(self) -> bool:
        return self.orders.paused

    @property
    def stop(self) -> bool:
        return self.orders.stop

    def look(self, states: Sequence[RunState]) -> bool:
        """Reads the orders if it is time to; whether they have changed, and with them limits or ``paused``.

        A storage that does not answer for a while hinders steering alone.
        """
        now, changed = time.monotonic(), False
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        with suppress(OebError):
            orders = control.orders_for(self.out, self.owner.name) if self._said else self.orders
            if orders != self.orders and orders.n >= self.orders.n:
                self._take(orders, states)
                changed = True
            if changed or now >= self._say_at:
                self._say_at = now + STANDING_SECONDS
                self.owner.beat(self.out, job=standing(states, self.orders, self.started))
                self._said = True
        return changed

    def _take(self, orders: Orders, states: Sequence[RunState]) -> None:
        if orders.paused != self.paused:
            self.progress.note(
                "paused from elsewhere: nothing more is begun" if orders.paused else "resumed from elsewhere"
            )
        for state in states:
            lane = state.plan.run.lane
            given = orders.limits.get(vendor_of(state), {})
            if lane is None or not given:
                continue
            changed: dict[str, Any] = {
                FIELDS[name]: int(value) if name == "in_flight" else float(value) for name, value in given.items()
            }
            state.plan.run = replace(state.plan.run, lane=replace(lane, **changed))
        for vendor, given in orders.limits.items():
            if given != self.orders.limits.get(vendor):
                told = ", ".join(f"{name}={value:g}" for name, value in given.items())
                self.progress.note(f"set from elsewhere: {vendor}: {told}")
        if orders.stop:
            self.progress.note("stopped from elsewhere")
        self.orders = orders

    def begins(self, interrupts: Interrupts) -> bool:
        """Whether anything may be begun now. A job that is told to stop takes it for an interrupt."""
        if self.stop:
            interrupts.exit_code = interrupts.exit_code or Stopped.exit_code
        elif self.paused:
            time.sleep(0.2)  # with nothing under way the driver would not wait at all
        return not (self.stop or self.paused)

    def end(self) -> None:
        """Takes back what was said; there is nothing to steer any more."""
        if self._said:
            with suppress(OebError):  # what stays is outlived
                self.owner.end(self.out)
                control.end(self.out, self.owner.name)


def standing(states: Sequence[RunState], orders: Orders, started: str) -> dict[str, Any]:
    """How far a job is, as plain values: counts, dollars and limits per run, and the orders that it has taken."""
    return {
        "started": started,
        "orders": orders.n,
        "paused": orders.paused,
        "runs": [figures(state) | {"run": state.name, "provider": vendor_of(state)} for state in states],
        "limits": {
            vendor_of(state): {name: getattr(lane, attribute) for name, attribute in FIELDS.items()}
            for state in states
            if (lane := state.plan.run.lane) is not None
        },
    }


def figures(state: RunState) -> dict[str, float]:
    """The figures of a run at work: see RunState; ``queue`` documents are not sent yet."""
    return {
        "total": state.total,
        "done": state.done,
        "failed": state.failed,
        "in_flight": state.in_flight,
        "queue": len(state.queue),
        "parts": state.parts,
        "parts_done": state.parts_done,
        "usd": state.usd,
        "seconds": state.seconds,
    }


def vendor_of(state: RunState) -> str:
    """The adapter that a run goes through: that of its account, such as ``openrouter``, else its provider."""
    lane = state.plan.run.lane
    return state.plan.run.provider if lane is None else lane.account.split("@", 1)[0]
