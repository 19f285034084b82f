"""What people see while a job runs and when it has ended.

In: RunStates and summaries. Out: lines on a stream; a live table where the stream is a terminal. Nothing from a
document, a config or a vendor is taken for markup, and control characters are shown as escapes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .jsontext import visible
from .plan import Plan
from .runstate import RunState

LINE_SECONDS = 5.0


def plain(value: Any) -> Text:
    """Any text as it is: no markup, control characters as escapes."""
    return Text(visible(str(value)))


class Recorder:
    """Passes progress on to a Screen and keeps the states for the tables that follow."""

    def __init__(self, screen: Screen, states: list[RunState]) -> None:
        self.screen, self.states = screen, states

    def update(self, states: Sequence[RunState], force: bool = False) -> None:
        self.states[:] = states
        self.screen.update(states, force)

    def note(self, text: str) -> None:
        self.screen.note(text)


class Screen:
    """The plan and progress, for people."""

    def __init__(self, stream: TextIO) -> None:
        wide = None if stream.isatty() else 200  # a pipe has no width to fit
        self.console = Console(file=stream, highlight=False, markup=False, width=wide)
        self.started = time.monotonic()
        self._live: Live | None = None
        self._said = time.monotonic()

    def elapsed(self) -> float:
        """Seconds since the screen was made."""
        return time.monotonic() - self.started

    def __enter__(self) -> Screen:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def note(self, text: str) -> None:
        """A line for people that does not belong to the table."""
        self.console.print(plain(text))

    def update(self, states: Sequence[RunState], force: bool = False) -> None:
        now = time.monotonic()
        if self._live is not None:
            self._live.update(_live_table(states))
        elif now - self._said >= LINE_SECONDS and not force:
            self._said = now
            done, total = sum(state.done for state in states), sum(state.total for state in states)
            parts = sum(state.parts_done for state in states)
            failed = sum(state.failed for state in states)
            self.console.print(
                f"{done}/{total} documents recorded, {failed} failed, {parts} parts scored, {_span(now - self.started)}"
            )


def _live_table(states: Sequence[RunState]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "", "done", "ok", "err", "in flight", "scored"):
        table.add_column(heading, justify="left" if heading in ("run", "") else "right", no_wrap=True)
    for state in states:
        filled = round(16 * state.done / state.total) if state.total else 16
        table.add_row(
            plain(state.name),
            "━" * filled + "╌" * (16 - filled),
            f"{state.done}/{state.total}",
            str(state.done - state.failed),
            str(state.failed),
            str(state.in_flight or ""),
            f"{state.parts_done}/{state.parts}",
        )
    return table


def plan_text(plan: Plan) -> Table:
    """The plan as a table: per Run its settings, and how many documents are predicted and scored."""
    table = Table(pad_edge=True)
    for heading in ("provider", "run", "settings", "predict", "recorded", "score"):
        table.add_column(heading, justify="right" if heading in ("predict", "recorded", "score") else "left")
    for made in plan.runs:
        settings = Text("\n").join(plain(f"{key}={value!r}") for key, value in made.run.settings.items())
        parts = plan.to_score(made) | {plan.homes[position] for position in made.predict}
        recorded = sum(plan.corpus.ids[position] in made.receipts for position in plan.corpus.selected)
        table.add_row(
            plain(made.run.provider),
            plain(made.run.name),
            settings or "-",
            str(len(made.predict)),
            str(recorded),
            f"{len(parts)} part{'s' * (len(parts) != 1)}",
        )
    return table


_COUNTS = ("documents", "scored", "failed", "pending", "coverage")
_MEANS = ("accuracy", "precision", "recall")
WIDE = 110  # columns from which the counts have columns of their own


def summary_table(states: Sequence[RunState], width: int) -> Table:
    """The result: one line per Run, all its recorded documents beside every mean; no number is ever cut."""
    table = Table(pad_edge=True)
    table.add_column("run", overflow="fold", min_width=8)
    means = _MEANS if width >= 60 else _MEANS[:1]
    for heading in (*(_COUNTS if width >= WIDE else ("scored",)), *means):
        table.add_column(heading, justify="right", no_wrap=True, min_width=max(6, len(heading)))
    for state in states:
        summary = state.summary
        if summary is None:
            continue
        documents, scored = summary["documents"], summary["scored"]
        if width >= WIDE:
            counts = [*map(str, (documents, scored, documents - scored, _pending(state))), f"{summary['coverage']:.4f}"]
        else:
            counts = [f"{scored}/{documents + _pending(state)}"]
        figures = [f"{summary[key]:.4f}" if scored else "-" for key in means]
        table.add_row(plain(f"{state.name}{_told_apart(state)}"), *counts, *figures)
    return table


def _pending(state: RunState) -> int:
    return max(0, state.total - state.done)


def errors_line(state: RunState) -> str:
    """Why documents of a Run failed: the commonest reasons, each with how often."""
    common = [f"{count} x {text[:160]}" for text, count in state.errors.most_common(3)]
    more = f"; and {len(state.errors) - 3} other reasons" if len(state.errors) > 3 else ""
    return f"{state.name}: {sum(state.errors.values())} failed: {'; '.join(common)}{more}"


def _told_apart(state: RunState) -> str:
    settings = state.plan.run.settings
    return f"  {settings['system']}" if "system" in settings else ""


def last_line(states: Sequence[RunState], seconds: float) -> str:
    """``80/80 documents  1 failed  3.0s elapsed``, of the selected documents; what scoring refused counts as failed."""
    done, total = sum(state.done for state in states), sum(state.total for state in states)
    failed = sum(state.failed for state in states)
    return f"{done}/{total} documents  {failed} failed  {_span(seconds)} elapsed"


def _span(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{int(rest):02}s" if minutes else f"{rest:.1f}s"
