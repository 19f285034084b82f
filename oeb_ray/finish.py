"""The end of a Run: its summaries, made from its parts and receipts, or known to be right already.

In: a Plan and one of its Runs with nothing left to do. Out: what is derived, in the order of the scorers.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import layout, storage
from .digests import digest
from .plan import Plan, RunPlan, holding, list_parts, part_stamps
from .scorers import find
from .settled import of_parts, summary_of, write_settled
from .summaries import Written, write_summaries
from .usage import usage_file

USAGE, FILES = "usage.json", ("scores.jsonl", "summary.json")


def finish(plan: Plan, made: RunPlan, *, worked: bool) -> list[Written]:
    """Writes what is derived of a Run, takes away parts that hold nobody any more, and notes that all is well.

    ``worked``: something was recorded or scored. Where nothing was, and nothing has changed since all was well, only
    the summaries are read.

    Raises:
        DamagedPart: a part cannot be read.
    """
    out, run = plan.out, made.run.name
    plan.files.save()
    scorers = [find(name) for name in plan.selection.scorers]
    first = layout.FIRST_SCORER in plan.selection.scorers or storage.is_folder(storage.join(out, run, layout.SCORES))
    suites = dict(zip(plan.corpus.ids, plan.corpus.suites, strict=True))
    usage = usage_file(made.receipts.values(), suites, first=first)
    if not worked and (known := _unchanged(plan, made, usage)):
        return known
    expected = {home for home in plan.members if plan.recorded(made, home)}
    written = write_summaries(out, made.run, scorers, expected)
    storage.put(storage.join(out, run, USAGE), usage)
    for table, homes in made.part_files.items():
        for home in homes - expected:
            storage.delete(layout.part(out, run, table, home))
    if written:
        digests = {USAGE: digest(usage)} | {name: sha256 for one in written for name, sha256 in one.digests.items()}
        _settle(plan, made, expected, digests, written[0].errors)
    return written


def _unchanged(plan: Plan, made: RunPlan, usage: bytes) -> list[Written]:
    """What is derived, as it was last written; nothing if anything of it may be another now."""
    out, run, scorers, settled = plan.out, made.run.name, plan.selection.scorers, made.settled
    names = {USAGE, *(layout.below(scorer, name) for scorer in scorers for name in FILES)}
    if not made.unchanged or not settled.untouched(out, run, names) or settled.files[USAGE][2] != digest(usage):
        return []
    summaries = [summary_of(out, run, layout.below(scorer, "summary.json")) for scorer in scorers]
    return [Written({}, summary, settled.errors if not at else {}) for at, summary in enumerate(summaries)]


def _settle(
    plan: Plan, made: RunPlan, expected: set[layout.Home], digests: Mapping[str, str], errors: Mapping[str, str]
) -> None:
    """Looks at all parts once more, since another driver may have written some, and notes it if they are right."""
    tables = list_parts(plan, made.run.name)
    made_from = {}
    for scorer in plan.selection.scorers:
        stamps = part_stamps(plan, made, scorer, expected)
        if holding(plan, made, scorer, stamps) != expected:
            return
        made_from[scorer] = of_parts(stamps)
    write_settled(plan.out, made.run.name, tables, made_from, digests, errors)
