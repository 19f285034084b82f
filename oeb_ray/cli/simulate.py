"""`oeb simulate`: the vendors on loopback."""

from __future__ import annotations

import argparse
from typing import Any

from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb simulate`."""
    parser = declare(
        commands, "simulate", "A server on loopback that speaks the vendors' protocols, with dials for faults.",
        "oeb simulate --profile profile.json --port 8099",
    )  # fmt: skip
    parser.add_argument("--profile", required=True, metavar="FILE", help="answers, documents and dials as JSON")
    parser.add_argument("--port", type=int, default=0, metavar="N", help="0: any free one; the address is printed")
    parser.set_defaults(command=_simulate)


def _simulate(given: argparse.Namespace) -> int:
    from ..simulator import Profile, serve

    serve(Profile.from_file(given.profile), given.port)
    return 0
