"""`oeb leaderboard`: the board as Markdown or CSV."""

from __future__ import annotations

import argparse
from typing import Any

from ..jsontext import printable
from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb leaderboard`."""
    parser = declare(
        commands, "leaderboard", "Runs in order, with intervals, ties and ranks, as a Markdown table or CSV.",
        "oeb leaderboard runs/ --into README.md\n  oeb leaderboard runs/ --csv -o board.csv",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="these runs only")
    parser.add_argument("--csv", action="store_true", help="CSV with every digit; cells cannot become formulas")
    parser.add_argument("--raw", action="store_true", help="CSV for machines: texts as they are")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="FILE|URL", help="where to write; default standard output")
    where.add_argument("--into", metavar="FILE|URL", help="between the lines <!-- [/]oeb leaderboard --> of this file")
    parser.add_argument("--scorer", default="field_matching", metavar="NAME", help="whose figures; default %(default)s")
    parser.add_argument("--cluster", metavar="COLUMN", help="the manifest's column that groups documents")
    parser.add_argument("--manifest", metavar="FILE|URL", help="the corpus; default where it was last")
    parser.set_defaults(command=_leaderboard)


def _leaderboard(given: argparse.Namespace) -> int:
    from .. import leaderboard, storage
    from ..board import board, groups
    from ..stored import runs_at

    runs = runs_at(given.out, given.runs)
    clusters = None
    if given.cluster:
        from ..folders import clusters_of

        clusters = clusters_of(runs[0].out, given.manifest, given.cluster)
    made = board(groups(runs, given.scorer), clusters=clusters)
    as_csv = given.csv or given.raw
    text = leaderboard.csv(made, raw=given.raw) if as_csv else leaderboard.markdown(made, given.out)
    if given.into:
        leaderboard.put_between_markers(storage.absolute(given.into), text)
    elif given.output:
        storage.put(storage.absolute(given.output), text.encode())
    else:
        print(printable(text), end="")
    if given.into or given.output:
        print(storage.absolute(given.into or given.output))
    return 0
