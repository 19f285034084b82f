"""`oeb serve`: the pages of a report over HTTP."""

from __future__ import annotations

import argparse
from typing import Any

from .base import declare
from .pages import add_corpus, facts_of


def add(commands: Any) -> None:
    """Declares `oeb serve`."""
    parser = declare(
        commands, "serve", "The pages of oeb report over HTTP, each made when it is asked for; it only reads.",
        "oeb serve s3://bucket/runs --port 8088",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    add_corpus(parser)
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="default this machine alone: no password"
    )
    parser.add_argument("--port", type=int, default=8088, metavar="N", help="0: any free one; default %(default)s")
    parser.set_defaults(command=_serve)


def _serve(given: argparse.Namespace) -> int:
    from ..serve import serve

    serve(facts_of(given, given.out), given.host, given.port, lambda address: print(address, flush=True))
    return 0
