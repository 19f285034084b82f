"""`oeb corpus`: looks at a corpus before anything is paid for."""

from __future__ import annotations

import argparse
from typing import Any

from ..jsontext import visible
from .base import declare


def add(commands: Any) -> None:
    """Declares `oeb corpus`."""
    parser = declare(
        commands, "corpus", "Look at a corpus before anything is paid for.", "oeb corpus check my/manifest.parquet"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    check = declare(actions, "check", "All faults of a manifest, and what its golds say that their schemas do not.",
                     "oeb corpus check my/manifest.parquet --data-root my/")  # fmt: skip
    check.add_argument("manifest", nargs="?", help="path or URL; default the sample corpus")
    check.add_argument("--data-root", metavar="DIR|URL")
    check.set_defaults(command=_corpus_check)


def _corpus_check(given: argparse.Namespace) -> int:
    from collections import Counter

    from ..config import sample_manifest
    from ..corpus.check import check_golds
    from ..corpus.manifest import load

    corpus = load(given.manifest or sample_manifest(), data_root=given.data_root)
    notes, unusable = check_golds(corpus)
    for note in notes:
        print(visible(note))
    suites = ", ".join(f"{suite} {count}" for suite, count in sorted(Counter(corpus.suites).items()))
    print(f"{len(corpus)} documents: {suites}")
    if unusable:
        print(f"{unusable} golds cannot be scored against")
    return 4 if unusable else 0
