"""The command line `oeb`: thin wrappers of run.py and the scorers.

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 all documents of a Run
failed, or a fault of ours; 2 the request; 3 the account; 4 a gate not met; 5 storage; 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__, envfile
from ..errors import RequestError, suggestion
from . import (
    audit,
    benchmark,
    corpus,
    ctl,
    diff,
    explain,
    export,
    harbor,
    imports,
    leaderboard,
    ledger,
    plan,
    predict,
    providers,
    report,
    score,
    serve,
    show,
    simulate,
    verify,
)
from .base import ended

EPILOG = """\
exit codes: 0 done, 1 all documents of a run failed, or a fault of ours, 2 request, 3 account,
  4 a gate not met, 5 storage, 129/130/143 stopped"""
COMMANDS = (
    score, predict, benchmark, show, leaderboard, report, serve, audit, diff, verify, explain, export, imports, ledger,
    providers, corpus, harbor, ctl, plan, simulate,
)  # fmt: skip


EXAMPLE = "example:\n  oeb benchmark --providers pdftext --out runs/ --limit 4 corpus=sample"


class _Parser(argparse.ArgumentParser):
    """Refuses in one message, as everything else does, without the usage above it."""

    def error(self, message: str) -> NoReturn:
        for kind, wanted in (("int", "a whole number"), ("float", "a number")):
            message = message.replace(f"invalid {kind} value:", f"wants {wanted}, not")
        raise RequestError(f"{self.prog}: {message}; see {self.prog} --help")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"{value!r} is none; {suggestion(str(value), action.choices)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    envfile.load()
    parser = _parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return RequestError.exit_code
    given, rest = parser.parse_known_args(arguments)
    if hasattr(given, "take"):
        rest = given.take(given, rest, sys.argv if arguments is None else arguments)
    if rest:
        known = [word for word in given.flags if word.startswith("--")]
        raise RequestError(f"{given.called}: {rest[0]!r} is not understood; {suggestion(rest[0], known)}")
    code: int = given.command(given)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="oeb", description="Benchmark document extraction, value by value.", epilog=f"{EXAMPLE}\n\n{EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"oeb_ray {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return parser
