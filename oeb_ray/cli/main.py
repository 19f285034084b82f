"""The command line `oeb`: thin wrappers of run.py and the scorers.

Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 all documents of a Run
failed, or a fault of ours; 2 the request; 3 the account; 4 a gate not met; 5 storage; 129, 130 and 143 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import RequestError, suggestion
from . import (
    audit,
    benchmark,
    corpus,
    diff,
    explain,
    export,
    imports,
    ledger,
    providers,
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
COMMANDS = (score, benchmark, show, audit, diff, verify, explain, export, imports, ledger, providers, corpus, simulate)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code."""
    return ended(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    # key=value may stand anywhere, also where argparse has stopped to look for it.
    flags = [word for word in rest if "=" not in word or word.startswith("-") or not hasattr(given, "overrides")]
    if flags:
        known = [word for word in given.flags if word.startswith("--")]
        raise RequestError(f"{given.called}: {flags[0]!r} is not understood; {suggestion(flags[0], known)}")
    if hasattr(given, "overrides"):
        given.overrides = [*given.overrides, *rest]
        names = given.providers or []
        given.overrides += [word for word in names if "=" in word]
        given.providers = [word for word in names if "=" not in word] or None
        if "=" in (given.retry_failed or ""):
            given.overrides.append(given.retry_failed)
            given.retry_failed = "transient"
        place = {word: at for at, word in enumerate(sys.argv if arguments is None else arguments)}
        given.overrides.sort(key=lambda word: place.get(word, 0))  # the last word counts, as it does for Hydra
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
