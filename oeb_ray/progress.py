"""What people see while a job runs and when it has ended.

In: RunStates and summaries. Out: lines on a stream; a live table where the stream is a terminal. Nothing from a
document, a config or a vendor is taken for markup, and control characters are shown as escapes.
"""

from __future__ import annotations

import io
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, TextIO

from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from .estimate import estimates
from .jsontext import visible
from .plan import Plan
from .runstate import RunState
from .scorers import find

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
        terminal = stream.isatty()
        wide = None if terminal else 200  # a pipe has no width to fit
        self.console = Console(
            file=stream, highlight=False, markup=False, width=wide, force_terminal=terminal, force_jupyter=False
        )
        self.started = time.monotonic()
        self._live: Live | None = None
        self._said = time.monotonic()
        self._broken = False

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
        with suppress(OSError):  # nobody reads any more
            self.console.print(plain(text))

    def update(self, states: Sequence[RunState], force: bool = False) -> None:
        """Shows how far the runs are. Whatever goes wrong with that, the job that pays goes on."""
        if self._broken:
            return
        try:
            self._show(states, force)
        except Exception as error:
            self._broken = True
            with suppress(Exception):
                self.__exit__()
            self.note(f"progress cannot be shown any more ({type(error).__name__}: {error}); the job goes on")

    def _show(self, states: Sequence[RunState], force: bool) -> None:
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
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("run", "", "done", "ok", "err", "in flight", "cost", "avg", "dur", "scored"):
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
            money(state.usd, state.credits),
            _span(state.seconds / state.done) if state.done else "",
            _span(state.duration()),
            f"{state.parts_done}/{state.parts}",
        )
    return table


def plan_as_text(plan: Plan) -> str:
    """The plan without a terminal: what is asked for, and the table of its runs."""
    stream = io.StringIO()
    screen = Screen(stream)
    for name, value in plan_lines(plan):
        screen.note(f"{name:<11} {value}")
    screen.console.print(plan_table(plan))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def money(usd: float, credits: float) -> str:
    """``$12.40 + 5,820 cr``; what is 0 is left out."""
    dollars = f"${usd:,.2f}" if usd >= 0.005 or usd == 0 else f"${usd:.4f}"
    return " + ".join(([dollars] if usd else []) + ([f"{credits:,.0f} cr"] if credits else []))


def plan_lines(plan: Plan) -> Iterator[tuple[str, str]]:
    """What a job will do, as names and values."""
    selected = len(plan.corpus.selected)
    adapters = len({made.run.provider for made in plan.runs})
    yield "out", plan.out
    yield "runs", f"{len(plan.runs)} over {adapters} adapter{'s' * (adapters != 1)}"
    yield "corpus", plan.corpus.identity
    yield "documents", f"{selected} document{'s' * (selected != 1)} selected of {len(plan.corpus)}"
    yield "timeout", f"{plan.runs[0].run.options['timeout_s']:g}s per document"
    yield "score only", str(plan.selection.score_only).lower()
    yield "rescoring", str(plan.selection.rescore).lower()
    for name, told in estimates(plan).items():
        cost = money(told.usd or 0.0, told.credits or 0.0) or ("nothing" if told.usd == 0 else "cost unknown")
        time = "time unknown" if told.seconds is None else _span(told.seconds)
        yield "estimate", f"{name}: {cost}, {time}: {told.documents} documents, {told.basis}"


def plan_table(plan: Plan) -> Table:
    """Per Run its settings, and how many documents are predicted and graded."""
    table = Table(box=ROUNDED, show_lines=False)
    for heading in ("adapter", "at once", "run", "settings", "predict", "grade"):
        table.add_column(heading, justify="right" if heading in ("at once", "predict", "grade") else "left")
    last = None
    for made in plan.runs:
        settings = Text("\n").join(plain(f"{key}={_said(value)}") for key, value in sorted(made.run.settings.items()))
        asked = set(made.predict)
        graded = {row for part in plan.to_score(made) for row in plan.recorded(made, part.home)}
        graded |= asked if plan.selection.scorers else set()
        at_once = str(made.run.lane.cap) if made.run.lane else ""
        new = made.run.provider != last
        if last is not None and new:
            table.add_section()
        last = made.run.provider
        table.add_row(
            plain(made.run.provider if new else ""),
            at_once if new else "",
            plain(made.run.name),
            settings or "-",
            str(len(asked)),
            str(len(graded)),
        )
    return table


def _said(value: Any) -> str:
    return value if isinstance(value, str) and value and value.isprintable() else repr(value)


_COUNTS = ("documents", "scored", "failed", "pending", "coverage")
WIDE = 110  # columns from which the counts have columns of their own


def summary_table(states: Sequence[RunState], scorer: str, width: int) -> Table:
    """A scorer's result: one line per Run, all its recorded documents beside every mean; no number is ever cut."""
    table = Table(pad_edge=True)
    table.add_column("run", overflow="fold", min_width=8)
    means = find(scorer).means if width >= 60 else find(scorer).means[:1]
    for heading in (*(_COUNTS if width >= WIDE else ("scored",)), *means):
        table.add_column(heading, justify="right", no_wrap=True, min_width=max(6, len(heading)))
    for state in states:
        summary = (state.summaries or {}).get(scorer)
        if summary is None:
            continue
        documents, scored = summary["documents"], summary["scored"]
        if width >= WIDE:
            counts = [*map(str, (documents, scored, documents - scored, _pending(state))), f"{summary['coverage']:.4f}"]
        else:
            counts = [f"{scored}/{documents + _pending(state)}"]
        figures = ["-" if not scored or summary[key] is None else f"{summary[key]:.4f}" for key in means]
        table.add_row(plain(f"{state.name}{_told_apart(state)}"), *counts, *figures)
    return table


def _pending(state: RunState) -> int:
    return max(0, state.total - state.done)


def errors_line(state: RunState) -> str:
    """Why documents of a Run failed: the commonest reasons, each with how often."""
    common = [f"{count} x {text[:160]}" for text, count in state.errors.most_common(3)]
    more = f"; and {len(state.errors) - 3} other reasons" if len(state.errors) > 3 else ""
    return f"{state.name}: {sum(state.errors.values())} failed: {'; '.join(common)}{more}"


def retry_line(states: Sequence[RunState]) -> str:
    """How failed documents are asked again; empty if none is recorded as failed."""
    failed = [receipt for state in states for receipt in state.plan.receipts.values() if receipt.error is not None]
    later = sum(receipt.retryable for receipt in failed)
    if not failed:
        return ""
    return f"--retry-failed asks {later} of {len(failed)} again, which may succeed later; --retry-failed all asks each"


def _told_apart(state: RunState) -> str:
    settings = state.plan.run.settings
    return f"  {settings['system']}" if "system" in settings else ""


def last_line(states: Sequence[RunState], seconds: float) -> str:
    """``80/80 documents  1 failed  $12.40 + 5,820 cr  3.0s elapsed``, of the selected documents.

    What scoring refused counts as failed; the money is that of all selected documents, whenever they were asked for.
    """
    done, total = sum(state.done for state in states), sum(state.total for state in states)
    failed = sum(state.failed for state in states)
    paid = money(math.fsum(state.usd for state in states), math.fsum(state.credits for state in states))
    return "  ".join(filter(None, (f"{done}/{total} documents", f"{failed} failed", paid, f"{_span(seconds)} elapsed")))


def _span(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)}m{int(rest):02}s" if minutes else f"{rest:.1f}s"
