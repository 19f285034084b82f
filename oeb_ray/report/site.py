"""Every page of a report by its name.

In: Facts, Counts and a name such as ``index.html`` or ``documents/7.html``. Out: bytes. Text goes through jinja2 with
autoescape and is made visible first; scripts and styles are the package's own.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2

from .. import __version__
from ..board import Board
from ..cells import csv_text
from ..jsontext import visible
from ..leaderboard import SHORT, against_of, csv, figure, mean_of, rank_of
from ..scoring.field_matching.summarize import RATES
from ..scoring.field_matching.verdicts import KINDS, SKIPPED
from ..scoring.summary import FEWEST
from .batch import Counts
from .facts import Document, Facts, Selection
from .figures import Figure, figures
from .packed import packed

SCRIPTS = ("report.js",)
STATIC = (*SCRIPTS, "report.css")
VENDOR = ("d3.min.js", "plot.umd.min.js", "sortable.min.js", "sortable.a11y.min.js")
LICENCES = ("LICENSE.d3", "LICENSE.plot", "LICENSE.sortable")
MOST_FIELDS = 2_000  # rows of the page of fields
# Styles are set by the chart library; nothing else may come from anywhere but the report itself.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass
class Site:
    """A report. ``counts``: of all documents, or of those whose pages are asked for."""

    facts: Facts
    counts: Counts

    @functools.cached_property
    def boards(self) -> list[tuple[Selection, Board]]:
        """The board of each selection."""
        return [(one, self.facts.board(one, self.counts.pages)) for one in self.facts.selections]

    @functools.cached_property
    def figures(self) -> list[Figure]:
        """All plots."""
        suites = [(one.name, found) for one, found in self.boards if one.kind != "tag"]
        return figures(self.facts, suites, self.counts.pages)

    def names(self) -> Iterator[str]:
        """Every page and file but the documents' values and images."""
        yield from ("index.html", "plots.html", "fields.html", "documents.html", "compare.html")
        yield from (f"static/{name}" for name in (*STATIC, *VENDOR, *LICENCES))
        yield from ("data/plots.js", "data/fields.js", "data/compare.js", "data/index.js")
        yield "csv/leaderboard.csv"
        yield from (f"csv/{one.name}.csv" for one in self.figures)
        yield "csv/fields.csv"
        yield from (f"documents/{one.number}.html" for one in self.facts.documents)

    def render(self, name: str) -> bytes | None:
        """A page or file by its name; None if there is none of it."""
        folder, _, rest = name.rpartition("/")
        match folder:
            case "":
                return self._page(name)
            case "static":
                return static(rest)
            case "csv":
                return self._csv(rest.removesuffix(".csv"))
            case "data":
                return self._data(rest.removesuffix(".js"))
            case "documents":
                document = self.document(rest.removesuffix(".html"))
                return None if document is None else self._document(document)
        return None

    def document(self, number: str) -> Document | None:
        """The document of a number in a name; None if there is none."""
        known = number.isascii() and number.isdecimal() and len(number) < 10 and int(number) < len(self.facts.documents)
        return self.facts.documents[int(number)] if known else None

    def _page(self, name: str) -> bytes | None:
        common = {"facts": self.facts, "here": name, "root": ""}
        match name:
            case "index.html":
                return page(name, **common, boards=self.boards, whole=self.boards[0][1])
            case "plots.html":
                return page(name, **common, figures=self.figures)
            case "documents.html":
                return page(name, **common, documents=self.facts.documents, pages=self.counts.pages)
            case "fields.html" | "compare.html":
                return page(name, **common)
        return None

    def _csv(self, name: str) -> bytes | None:
        if name == "leaderboard":
            return csv(self.boards[0][1]).encode()
        if name == "fields":
            rows = [
                (one, self.facts.names[run], *(counts[kind] for kind in KINDS[:SKIPPED]))
                for run, fields in sorted(self.counts.fields.items())
                for one, counts in sorted(fields.items())
            ]
            return csv_text(("field", "run", *KINDS[:SKIPPED]), rows).encode()
        return next((one.csv.encode() for one in self.figures if one.name == name), None)

    def _data(self, name: str) -> bytes | None:
        names = self.facts.names
        match name:
            case "plots":
                shown = [{"name": one.name, "columns": one.columns, "rows": one.rows} for one in self.figures]
                return packed(name, {"figures": shown})
            case "fields":
                return packed(name, {"runs": names, "kinds": KINDS[:SKIPPED], "fields": self._fields()})
            case "compare":
                return packed(name, {"runs": names, "documents": self._patterns()})
            case "index":
                return packed(name, {"runs": names, "accuracies": [one.accuracies for one in self.facts.documents]})
        return None

    def _fields(self) -> list[Any]:
        """[field, [[run, count of each kind], ...]], those with most errors first."""
        found: dict[str, dict[int, Counter[str]]] = {}
        for run, fields in self.counts.fields.items():
            for name, counts in fields.items():
                found.setdefault(name, {})[run] = counts

        def errors(name: str) -> int:
            return sum(counts.total() - counts[KINDS[0]] for counts in found[name].values())

        worst = sorted(found, key=lambda name: (-errors(name), name))[:MOST_FIELDS]
        return [
            [visible(name), [[run, *(counts[kind] for kind in KINDS[:SKIPPED])] for run, counts in found[name].items()]]
            for name in worst
        ]

    def _patterns(self) -> list[Any]:
        """[number, doc_id, the Runs, [[field, which of them are right, how many values], ...]]"""
        found = []
        for number, (runs, listed) in sorted(self.counts.patterns.items()):
            patterns = [[visible(name), pattern, count] for name, pattern, count in listed]
            found.append([number, visible(self.facts.documents[number].doc_id), runs, patterns])
        return found

    def _document(self, document: Document) -> bytes:
        with_verdicts = self.counts.patterns.get(document.number, ([], []))[0]
        images, text, why = self.counts.pictured.get(document.number, (0, None, None))
        return page(
            "document.html",
            facts=self.facts,
            here="documents.html",
            root="../",
            document=document,
            runs=[
                {
                    "name": name,
                    "described": self.facts.described[position],
                    "row": document.rows[position],
                    "verdicts": position in with_verdicts,
                    "receipt": self.facts.receipts[position].get(document.doc_id),
                }
                for position, name in enumerate(self.facts.names)
            ],
            images=images,
            text=text,
            why=why,
            pages=self.counts.pages.get(document.doc_id),
            kinds=KINDS[:SKIPPED],
        )


def page(template: str, **values: Any) -> bytes:
    """A page of the report."""
    made: str = _templates().get_template(template).render(policy=POLICY, version=__version__, **values)
    return made.encode("utf-8", "backslashreplace")


def static(name: str) -> bytes | None:
    """A script, style or licence of the package."""
    if name in STATIC:
        return files(__package__).joinpath("static", name).read_bytes()
    if name in (*VENDOR, *LICENCES):
        return files(__package__).joinpath("vendor", name).read_bytes()
    return None


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("oeb_ray.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value,
    )  # fmt: skip
    made.globals.update(
        rank_of=rank_of, mean_of=mean_of, against_of=against_of, figure=figure, rates=RATES, fewest=FEWEST, short=SHORT
    )
    made.filters["json"] = lambda value: json.dumps(value, sort_keys=True, ensure_ascii=False)
    return made
