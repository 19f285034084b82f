"""`oeb export` and `oeb compact`: a run in other shapes."""

from __future__ import annotations

import argparse
from typing import Any

from .base import declare, note


def add(commands: Any) -> None:
    """Declares `oeb export` and `oeb compact`."""
    parser = declare(
        commands, "export", "Write a run's verdicts as JSON lines, verdicts/<doc_id>.jsonl.",
        "oeb export runs/pdftext-44136fa3 --out shared/",
    )  # fmt: skip
    parser.add_argument("run", metavar="RUN", help="the folder or URL of a run")
    parser.add_argument("--out", metavar="DIR|URL", help="where verdicts/ goes; default beside the run's other files")
    parser.set_defaults(command=_export)
    parser = declare(
        commands, "compact", "Write the scores of a run, or its verdicts, as one Parquet file.",
        "oeb compact runs/pdftext-44136fa3 verdicts.parquet --verdicts",
    )  # fmt: skip
    parser.add_argument("run", metavar="RUN", help="the folder or URL of a run, or of an output for all its runs")
    parser.add_argument("file", metavar="FILE", help="path or URL of the file")
    parser.add_argument("--verdicts", action="store_true", help="the verdicts instead of the scores")
    parser.set_defaults(command=_compact)


def _export(given: argparse.Namespace) -> int:
    from ..exports import export_verdicts
    from ..stored import run_at

    exported = export_verdicts(run_at(given.run), given.out)
    note(f"{exported.documents} documents, {exported.verdicts} verdicts")
    print(exported.folder)
    return 0


def _compact(given: argparse.Namespace) -> int:
    from .. import storage
    from ..exports import compact
    from ..stored import runs_at

    storage.put(storage.absolute(given.file), compact(runs_at(given.run), verdicts=given.verdicts))
    print(storage.absolute(given.file))
    return 0
