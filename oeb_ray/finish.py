"""The end of a Run: what is derived from its parts and receipts, made anew or known to be right already.

In: a Plan and one of its Runs with nothing left to do. Out: what is derived, in the order of the scorers. A worker
writes the summaries, since the rows of a large Run would fill the driver's memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from . import layout, storage
from .cost import SUMMARY_BYTES
from .digests import digest
from .plan import Plan, RunPlan, holding, list_parts, part_stamps
from .records import SummaryTask
from .settled import Settled, of_listing, of_parts, summary_of, write_settled
from .summaries import Written
from .usage import usage_file

USAGE, FILES = "usage.json", ("scores.jsonl", "summary.json")


def known(plan: Plan, made: RunPlan) -> list[Written]:
    """What is derived, as it was last written; nothing if anything of it may be another now."""
    out, run, scorers, settled = plan.out, made.run.name, plan.selection.scorers, made.settled
    plan.files.save()
    if not made.unchanged or not settled.untouched(out, run, _derived(scorers)):
        return []
    if settled.files[USAGE][2] != digest(_usage(plan, made)):
        return []
    summaries = [summary_of(out, run, layout.below(scorer, "summary.json")) for scorer in scorers]
    return [Written({}, summary, settled.errors if not at else {}) for at, summary in enumerate(summaries)]


def summary_task(plan: Plan, made: RunPlan, without: Collection[str]) -> SummaryTask:
    """What a worker has to do. ``without``: documents whose record does not hold."""
    homes = tuple(sorted((home.suite, home.part) for home in _expected(plan, made)))
    memory = SUMMARY_BYTES * len(made.receipts)
    return SummaryTask(plan.out, made.run, plan.selection.scorers, homes, memory, frozenset(without))


def finish(plan: Plan, made: RunPlan, written: Sequence[Written]) -> None:
    """Writes what is derived from receipts, takes away parts that hold nobody any more, and notes if all is well."""
    out, run = plan.out, made.run.name
    plan.files.save()
    usage = _usage(plan, made)
    files = {name: entry for one in written for name, entry in one.files.items()}
    if stamp := storage.put_seen(storage.join(out, run, USAGE), usage):
        files[USAGE] = (*stamp, digest(usage))
    expected = _expected(plan, made)
    for table, homes in made.part_files.items():
        for home in homes - expected:
            storage.delete(layout.part(out, run, table, home))
    if written:
        _settle(plan, made, expected, files, written[0].errors)


def _expected(plan: Plan, made: RunPlan) -> set[layout.Home]:
    """The parts that hold somebody."""
    return {home for home in plan.members if plan.recorded(made, home)}


def _usage(plan: Plan, made: RunPlan) -> bytes:
    scores = storage.join(plan.out, made.run.name, layout.SCORES)
    first = layout.FIRST_SCORER in plan.selection.scorers or storage.is_folder(scores)
    suites = dict(zip(plan.corpus.ids, plan.corpus.suites, strict=True))
    return usage_file(made.receipts.values(), suites, first=first)


def _settle(
    plan: Plan,
    made: RunPlan,
    expected: set[layout.Home],
    files: dict[str, tuple[int, str, str]],
    errors: dict[str, str],
) -> None:
    """Looks at all parts once more, since another driver may have written some, and notes it if they are right."""
    out, run, scorers = plan.out, made.run.name, plan.selection.scorers
    tables = list_parts(plan, run)
    made_from = {}
    for scorer in scorers:
        stamps = part_stamps(plan, made, scorer, expected)
        if holding(plan, made, scorer, stamps) != expected:
            return
        made_from[scorer] = of_parts(stamps)
    settled = Settled({table: of_listing(listed) for table, listed in tables.items()}, made_from, files, errors)
    if settled.untouched(out, run, _derived(scorers)):
        write_settled(out, run, settled)


def _derived(scorers: Sequence[str]) -> set[str]:
    """Names of all that is derived."""
    return {USAGE, *(layout.below(scorer, name) for scorer in scorers for name in FILES)}
