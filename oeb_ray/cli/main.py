"""The command line `oeb`: thin wrappers of run.py and the scorers.

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 all documents of a Run
failed, or a fault of ours; 2 the request; 3 the account; 4 a gate not met; 5 storage; 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__, envfile
from ..errors import RequestError, suggestion
from . import (
    audit,
    benchmark,
    corpus,
    diff,
    explain,
    export,
    harbor,
    imports,
    ledger,
    predict,
    providers,
    report,
    score,
    show,
    simulate,
    verify,
)
from .base import ended

EPILOG = (
    "exit codes: 0 done, 1 all documents of a run failed, or a fault of ours, 2 request, 3 account, 4 gate not met, "
    "5 storage, 129/130/143 stopped"
)
COMMANDS = (
    score, predict, benchmark, show, report, audit, diff, verify, explain, export, imports, ledger, providers, corpus,
    harbor, simulate,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    envfile.load()
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    if hasattr(given, "take"):
        rest = given.take(given, rest, sys.argv if arguments is None else arguments)
    if rest:
        known = [word for word in given.flags if word.startswith("--")]
        raise RequestError(f"{given.called}: {rest[0]!r} is not understood; {suggestion(rest[0], known)}")
    code: int = given.command(given)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="oeb", description="Benchmark document extraction, value by value.", epilog=EPILOG
    )
    parser.add_argument("--version", action="version", version=f"oeb_ray {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return parser
