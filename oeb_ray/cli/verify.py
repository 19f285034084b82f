"""`oeb verify`: every digest and score made again."""

from __future__ import annotations

import argparse
from typing import Any

from ..jsontext import visible
from .base import declare, note


def add(commands: Any) -> None:
    """Declares `oeb verify`."""
    parser = declare(
        commands, "verify", "Make every digest and score of an output again, and name what differs (exit code 4).",
        "oeb verify runs/",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="these runs only")
    parser.add_argument("--manifest", metavar="FILE|URL", help="the corpus; default where it was last")
    parser.add_argument("--data-root", metavar="DIR|URL", help="where the manifest's relative paths start")
    parser.set_defaults(command=_verify)


def _verify(given: argparse.Namespace) -> int:
    from ..folders import corpus_at
    from ..stored import runs_at
    from ..verify import verify

    runs = runs_at(given.out, given.runs)
    corpus = corpus_at(runs[0].out, given.manifest, given.data_root)
    documents = parts = differences = 0
    for run in runs:
        note(f"{run.name}: looking at {len(corpus)} documents")
        verified = verify(run, corpus)
        documents += verified.documents
        parts += verified.parts
        differences += len(verified.differences)
        for one in verified.differences:
            print(visible(f"{one.run}: {one.what}: {one.why}"))
        for scorer, made_from in verified.made_from.items():
            note(f"{run.name}: {scorer} made from {made_from}")
    print(f"{len(runs)} runs, {documents} documents, {parts} parts: {differences or 'no'} differences")
    return 4 if differences else 0
