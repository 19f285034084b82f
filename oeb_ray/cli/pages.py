"""The pages of `oeb report` and `oeb serve`: what is looked at, and how it is made."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from .base import note

if TYPE_CHECKING:
    from ..report.build import Mapped
    from ..report.facts import Facts


def add_corpus(parser: argparse.ArgumentParser) -> None:
    """The flags that say which Runs and corpus, and what groups its documents."""
    parser.add_argument("--runs", nargs="+", default=[], metavar="RUN", help="these runs only")
    parser.add_argument("--manifest", "--corpus", metavar="FILE|URL", help="the corpus; default where it was last")
    parser.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    parser.add_argument("--cluster", metavar="COLUMN", help="the manifest's column that groups documents")


def facts_of(given: argparse.Namespace, out: str) -> Facts:
    """What the pages are about. Raises RequestError."""
    from ..report.facts import gather

    facts = gather(out, given.runs, manifest=given.manifest, data_root=given.data_root, cluster=given.cluster)
    note(f"{len(facts.names)} runs, {len(facts.documents)} documents")
    if facts.missing:
        note(f"no page images: {facts.missing}")
    return facts


def write_pages(given: argparse.Namespace, outs: list[Any]) -> int:
    """Writes a report of the one output."""
    from ..report.build import build

    if len(outs) != 1:
        raise RequestError("oeb report: give one OUT for pages, or give --format extractkit")
    facts = facts_of(given, outs[0])
    with worked_through(given.inline, given.address) as mapped:
        print(build(facts, given.out or "report", mapped))
    return 0


def worked_through(inline: bool, address: str | None) -> AbstractContextManager[Mapped]:
    """How documents are worked through: here, or on the Ray cluster at ``address``, or on one of our own."""
    if inline:
        from ..report.build import in_this_process

        return nullcontext(in_this_process)
    from ..cluster.many import many

    return many(address)
