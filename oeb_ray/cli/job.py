"""A job as people see it: the plan, the table while it works, what came of it, the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..errors import Stopped
from ..jsontext import printable

if TYPE_CHECKING:
    from ..run import Outcome
    from ..runstate import RunState


def run_and_print(job: Any, *, dry_run: bool = False) -> int:
    """Plans and runs a Job, shows it to people, and returns the exit code."""
    from .. import progress, run
    from ..signals import noted_interrupts

    plan = run.plan_job(job)
    screen = progress.Screen(sys.stdout if dry_run else sys.stderr)
    for warning in plan.warnings:
        screen.note(f"warning: {warning}")
    for made in plan.runs:
        for doc_id, why in made.stale if not job.predict_stale else ():
            screen.note(f"stale: {made.run.name}: {doc_id}: {why}; predict_stale=true asks again")
    screen.note(f"out        {plan.out}")
    screen.note(f"corpus     {plan.corpus.identity}")
    screen.note(f"documents  {len(plan.corpus.selected)} of {len(plan.corpus)} selected")
    screen.console.print(progress.plan_text(plan))
    if dry_run:
        return 0
    states: list[RunState] = []
    recorder = progress.Recorder(screen, states)
    with noted_interrupts() as interrupts:
        cluster = run.start_cluster(job, idle=plan.is_done())
        interrupts.install()  # Ray has put its own handler in place
        try:
            with screen:
                outcome = run.execute(plan, cluster, recorder, interrupts)
        except Stopped as stopped:
            screen.note(progress.last_line(states, screen.elapsed()))
            screen.note("stopped; the same command goes on where this ended")
            return stopped.exit_code
        finally:
            cluster.close()
    _print_outcome(outcome, plan.out, screen.elapsed())
    for name, error in outcome.stopped.items():
        screen.note(f"{name}: {error}")
    if outcome.stopped:
        screen.note("the same command goes on once that is mended")
        return next(iter(outcome.stopped.values())).exit_code
    return 1 if any(summary["documents"] and not summary["scored"] for summary in outcome.summaries.values()) else 0


def _print_outcome(outcome: Outcome, out: str, seconds: float) -> None:
    from rich.console import Console

    from .. import progress

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)  # a pipe has no width to fit
    console.print(progress.summary_table(outcome.states, console.width))
    for state in outcome.states:
        if state.errors:
            print(printable(progress.errors_line(state)))
    print(progress.last_line(outcome.states, seconds))
    for name in outcome.summaries:
        print(f"{out}/{name}")
