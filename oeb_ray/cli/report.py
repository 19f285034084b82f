"""`oeb report`: pages to look at and tables for publication, made of what is recorded and nothing else."""

from __future__ import annotations

import argparse
from typing import Any

from ..errors import RequestError, suggestion
from .base import declare, note
from .pages import add_corpus, write_pages

FORMATS = ("pages", "extractkit")
SHOWN = 5  # fields that are named


def add(commands: Any) -> None:
    """Declares `oeb report`."""
    parser = declare(
        commands, "report",
        "A folder of pages (leaderboard, plots, fields, documents, two runs compared), or tables for publication.",
        "oeb report runs/ -o report/\n"
        "  oeb report --format extractkit --readme README.md\n"
        "  oeb report --format extractkit results/run-2026-08-01T09-30-00-000Z.json --out docs/benchmark.md",
    )  # fmt: skip
    parser.add_argument("records", metavar="OUT|RECORD", nargs="*",
                        help="pages: what a benchmark wrote to; extractkit: run records, several of one manifest, "
                             "default the newest in --results")  # fmt: skip
    parser.add_argument("--format", metavar="NAME", default="pages",
                        help="pages, the default; extractkit: accuracy, grounding and cost, in Markdown")  # fmt: skip
    parser.add_argument("--results", metavar="DIR|URL", default="results", help="where records lie; default results")
    parser.add_argument("-o", "--out", "--output", metavar="DIR|FILE|URL",
                        help="where it goes; default report/ for pages, standard output for extractkit")  # fmt: skip
    parser.add_argument("--readme", metavar="FILE", help="put the main tables between the marks of a README")
    add_corpus(parser)
    parser.add_argument("--inline", action="store_true", help="pages: in this process, not on Ray")
    parser.add_argument("--address", metavar="HOST:PORT", help="of a Ray cluster; default one of our own")
    parser.set_defaults(command=_report)


def _report(given: argparse.Namespace) -> int:
    if given.format not in FORMATS:
        raise RequestError(f"oeb report: no format {given.format!r}; {suggestion(given.format, FORMATS)}")
    return _extractkit(given) if given.format == "extractkit" else write_pages(given, given.records)


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
