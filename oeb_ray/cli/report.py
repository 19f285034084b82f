"""`oeb report`: tables for publication, made of what is recorded and nothing else."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError, suggestion
from .base import declare, note

FORMATS = ("extractkit",)
SHOWN = 5  # fields that are named


def add(commands: Any) -> None:
    """Declares `oeb report`."""
    parser = declare(
        commands, "report", "Tables for publication, made of what is recorded and nothing else.",
        "oeb report --format extractkit --readme README.md\n"
        "  oeb report --format extractkit results/run-2026-08-01T09-30-00-000Z.json --out docs/benchmark.md",
    )  # fmt: skip
    parser.add_argument("records", metavar="RECORD", nargs="*",
                        help="run records, several of one manifest; default the newest in --results")  # fmt: skip
    parser.add_argument(
        "--format", metavar="NAME", help="extractkit: accuracy, grounding and cost by schema, in Markdown"
    )
    parser.add_argument("--results", metavar="DIR|URL", default="results", help="where records lie; default results")
    parser.add_argument("--out", metavar="FILE|URL", help="write the page here; default standard output")
    parser.add_argument("--readme", metavar="FILE", help="put the main tables between the marks of a README")
    parser.set_defaults(command=_report)


def _report(given: argparse.Namespace) -> int:
    if given.format not in FORMATS:
        wrong = "give --format" if given.format is None else f"no format {given.format!r}"
        raise RequestError(f"oeb report: {wrong}; {suggestion(given.format or '', FORMATS)}")
    return _extractkit(given)


def _extractkit(given: argparse.Namespace) -> int:
    from .. import storage
    from ..extractkit.record import latest, merged, misjudged, read_record
    from ..extractkit.report import into_readme, main_tables, page
    from ..jsontext import printable

    names = given.records or [storage.join(given.results, latest(sorted(storage.listed(given.results, deep=False))))]
    record = merged([(name, read_record(_read(name), name)) for name in names])
    others = misjudged(record)
    for text in others[:SHOWN]:
        note(f"judged otherwise here: {text}")
    if len(others) > SHOWN:
        note(f"and {len(others) - SHOWN} more fields")
    text = printable(page(record))
    if given.readme:
        readme = _read(given.readme).decode("utf-8", "surrogateescape")
        put = into_readme(readme, printable(main_tables(record)))
        storage.put(given.readme, put.encode("utf-8", "surrogateescape"))
        note(f"{given.readme}: the tables of {', '.join(names)}")
    if given.out:
        storage.put(given.out, text.encode())
        note(f"{given.out}: the page of {', '.join(names)}")
    elif not given.readme:
        print(text)
    return 0


def _read(address: str) -> bytes:
    from .. import storage

    try:
        return storage.read(address)
    except FileNotFoundError:
        raise RequestError(f"no file at {address}") from None
