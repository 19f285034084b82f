"""A job as people see it: the plan, the table while it works, what came of it, the exit code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..clock import REST, phase, ticking
from ..errors import Stopped
from ..jsontext import visible
from .base import note, print_columns

if TYPE_CHECKING:
    from ..config import Job
    from ..plan import Plan
    from ..progress import Screen
    from ..rehearsal import Tally
    from ..run import Outcome
    from ..runstate import RunState

NAMED = 5  # documents of a reason that are named


def run_and_print(job: Job, *others: Job, after: Callable[[Plan], None] = lambda plan: None) -> int:
    """Plans and runs a Job, or the jobs of a sweep as one; shows it to people, and returns the exit code.

    ``after`` it is done, before errors are told. A job with dials for a rehearsal is rehearsed. With ``timings`` it is
    said at the end where the time went.
    """
    if not job.timings:
        return _run_or_rehearse(job, *others, after=after)
    with ticking() as clock:
        code = _run_or_rehearse(job, *others, after=after)
        spent = clock.seconds()
    note("timings  " + "  ".join(f"{name} {seconds:.2f} s" for name, seconds in spent.items()))
    note(f"         together {sum(spent.values()):.2f} s; what ran beside something else counts once")
    return code


def _run_or_rehearse(job: Job, *others: Job, after: Callable[[Plan], None]) -> int:
    if job.rehearsal is None:
        return _run_and_print(job, *others, after=after)
    from ..rehearsal import staged

    with staged(job, *others) as stage:
        print("a rehearsal: the vendors are simulated, golds are the answers, nothing is paid or kept", file=sys.stderr)
        code = _run_and_print(*stage.jobs)
        if not job.dry_run:
            _print_tallies(stage.tallies())
    return code


def _run_and_print(job: Job, *others: Job, after: Callable[[Plan], None] = lambda plan: None) -> int:
    from .. import progress, run

    gc.disable()  # a plan of many documents has no rubbish, and looking for it takes longer than making it
    try:
        plan = run.plan_job(job, *others)
    finally:
        gc.freeze()
        gc.enable()
    with phase(REST):
        return _show_and_carry_out(job, plan, progress.Screen(sys.stdout if job.dry_run else sys.stderr), after)


def _show_and_carry_out(job: Job, plan: Plan, screen: Screen, after: Callable[[Plan], None]) -> int:
    from .. import progress, run
    from ..signals import noted_interrupts

    _show_plan(plan, screen)
    if job.dry_run:
        _show_reasons(plan, screen)
        return 0
    if job.confirm and not plan.is_done() and not _proceeds(screen):
        screen.note("declined; nothing was sent or written")
        return 1
    states: list[RunState] = []
    recorder = progress.Recorder(screen, states)
    with noted_interrupts() as interrupts:
        try:
            with screen:
                outcome = run.carry_out(job, plan, recorder, interrupts)
        except Stopped as stopped:
            screen.note(progress.last_line(states, screen.elapsed()))
            screen.note("stopped; the same command goes on where this ended")
            return stopped.exit_code
    _print_outcome(outcome, plan.out if job.rehearsal is None else None, screen.elapsed())
    after(plan)
    for name, error in outcome.stopped.items():
        screen.note(f"{name}: {error}")
    if outcome.stopped:
        screen.note("the same command goes on once that is mended")
        return next(iter(outcome.stopped.values())).exit_code
    good = "scored" if plan.selection.scorers else "predicted"
    return 1 if any(summary["documents"] and not summary[good] for summary in outcome.summaries.values()) else 0


def _show_plan(plan: Plan, screen: Screen) -> None:
    from .. import progress

    for warning in plan.warnings:
        screen.note(f"warning: {warning}")
    for made in plan.runs:
        for doc_id, why in made.stale if not plan.selection.stale else ():
            screen.note(f"stale: {made.run.name}: {doc_id}: {why}; predict_stale=true asks again")
    screen.note("benchmark")
    for name, value in progress.plan_lines(plan):
        screen.note(f"{name:<11} {value}")
    screen.console.print(progress.plan_table(plan))


def _show_reasons(plan: Plan, screen: Screen) -> None:
    """Per Run and phase why: a line for each reason, with the documents that it holds for."""
    from .. import reasons

    for made in plan.runs:
        for verb, found in (
            ("predict", reasons.predict_reasons(plan, made)),
            ("grade", reasons.grade_reasons(plan, made)),
        ):
            for why, doc_ids in found.items():
                more = f", and {len(doc_ids) - NAMED} more" if len(doc_ids) > NAMED else ""
                named = ", ".join(map(repr, doc_ids[:NAMED]))
                screen.note(f"{made.run.name}: {verb}: {why}: {len(doc_ids)}: {named}{more}")


def _proceeds(screen: Screen) -> bool:
    """Asks on a terminal whether to begin; elsewhere nobody is there to answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    screen.console.print("  proceed? [y/N] ", end="")
    with phase("your answer"):
        return sys.stdin.readline().strip().lower() in ("y", "yes")


def _print_outcome(outcome: Outcome, out: str | None, seconds: float) -> None:
    from rich.console import Console

    from .. import progress

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)  # a pipe has no width to fit
    scorers = {name: None for state in outcome.states for name in state.summaries or () if name}
    for name in scorers:
        if len(scorers) > 1:
            console.print(f"{name}:")
        console.print(progress.summary_table(outcome.states, name, console.width))
    for state in outcome.states:
        if state.errors:
            print(visible(progress.errors_line(state)))
    if again := progress.retry_line(outcome.states):
        print(again)
    print(progress.last_line(outcome.states, seconds))
    for name in outcome.summaries if out is not None else ():
        print(f"{out}/{name}")


def _print_tallies(tallies: list[Tally]) -> None:
    heads = ("vendor", "documents", "requests", "refused", "dollars", "seconds", "in flight", "in 60 s")
    rows = [
        (
            tally.vendor,
            str(tally.documents),
            str(tally.requests),
            str(tally.refused),
            f"{tally.usd:.2f}",
            f"{tally.seconds:.1f}",
            str(tally.peak),
            str(tally.peak_minute),
        )
        for tally in tallies
    ]
    print("\nwhat the simulated vendors saw: dollars by the dials; the most calls in flight, the most requests in 60 s")
    print_columns(heads, rows)
    reasons = [reason for tally in tallies for reason in tally.reasons]
    print("\n".join(reasons) if reasons else "nothing was throttled")
