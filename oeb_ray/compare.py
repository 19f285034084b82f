"""Two runs against each other, on the documents that both have.

In: two runs. Out: means of both over the same documents, and which documents and fields gained, lost or changed. Only
documents with the same gold and schema are compared; means are over those that both have scored.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from . import layout
from .errors import RequestError, refused, suggestion
from .results import Wanted, parts
from .scorers.field_matching import SCORES, VERDICTS
from .scoring.field_matching.summarize import MEANS, RATES, summarize
from .scoring.field_matching.verdicts import KINDS, MATCHED, MISREAD, SKIPPED, UNFOUND
from .stored import StoredRun

FIGURES = ("coverage", *MEANS, *(f"{name}_rate" for name in RATES))
GOLD_KINDS = frozenset(KINDS[kind] for kind in (MATCHED, MISREAD, UNFOUND))  # verdicts at addresses of the gold
COUNTS = ("gained", "lost", "changed", "extra_a", "extra_b")
COLUMNS = ("doc_id", "address", "field", "pred_canon", "verdict")  # the key of a value, and the fields of Value


@dataclass(frozen=True)
class Change:
    """A document that both have scored. ``gained``: values matched in B alone; ``lost``: in A alone; ``changed``: wrong
    in both, in another way; ``extra_a``, ``extra_b``: values that the gold does not have. None without verdicts."""

    doc_id: str
    suite: str | None
    accuracy_a: float
    accuracy_b: float
    counts: dict[str, int] | None = None

    @property
    def points(self) -> float:
        """Accuracy of B less that of A, in hundredths."""
        return 100 * (self.accuracy_b - self.accuracy_a)


@dataclass
class Comparison:
    """B against A.

    ``common``: documents that both have a row for, with the same gold and schema; ``both``: how many of them both have
    scored; ``other_gold``: doc_ids whose gold or schema is another; ``only_a``, ``only_b``: doc_ids of one run alone;
    ``gained``, ``lost``: doc_ids scored in B or A alone; ``means_a``, ``means_b``: see FIGURES, ratios of 0 to 1, the
    coverage of the common documents, the rest of those in ``both``; ``documents``: those whose verdicts or accuracy
    differ; ``fields``: counts as in Change by written field, None without verdicts; ``notes``: what else differs.
    """

    common: int
    both: int
    other_gold: list[str]
    only_a: list[str]
    only_b: list[str]
    gained: list[str]
    lost: list[str]
    means_a: dict[str, float]
    means_b: dict[str, float]
    documents: list[Change]
    fields: dict[str, dict[str, int]] | None
    notes: list[str] = field(default_factory=list)

    def points(self, figure: str) -> float:
        """A figure of B less that of A, in hundredths."""
        return 100 * (self.means_b[figure] - self.means_a[figure])


def compare(a: StoredRun, b: StoredRun) -> Comparison:
    """Compares two runs.

    Raises:
        RequestError: no document is in both.
    """
    left, right = score_rows(a), score_rows(b)
    shared = left.keys() & right.keys()
    if not shared:
        raise RequestError(f"{a.address} and {b.address} have no document in common")
    other_gold = sorted(doc_id for doc_id in shared if _asked(left[doc_id]) != _asked(right[doc_id]))
    common = sorted(shared - set(other_gold))
    both = [doc_id for doc_id in common if left[doc_id]["status"] == right[doc_id]["status"] == "scored"]
    fields, counts = _changes(a, b, left, right, both)
    changes = [
        Change(doc_id, left[doc_id]["suite"], left[doc_id]["accuracy"], right[doc_id]["accuracy"], counts.get(doc_id))
        for doc_id in both
    ]
    return Comparison(
        common=len(common),
        both=len(both),
        other_gold=other_gold,
        only_a=sorted(left.keys() - shared),
        only_b=sorted(right.keys() - shared),
        gained=[doc_id for doc_id in common if left[doc_id]["status"] != "scored" == right[doc_id]["status"]],
        lost=[doc_id for doc_id in common if left[doc_id]["status"] == "scored" != right[doc_id]["status"]],
        means_a=_means(left, common, both),
        means_b=_means(right, common, both),
        documents=sorted(
            (one for one in changes if one.points or any((one.counts or {}).values())),
            key=lambda one: (-abs(one.points), one.doc_id),
        ),
        fields=fields,
        notes=_notes(a, b, left, right),
    )


def score_rows(run: StoredRun) -> dict[str, dict[str, Any]]:
    """A run's score rows by doc_id."""
    return {row["doc_id"]: row for table in parts(run, layout.SCORES, SCORES) for row in table.to_pylist()}


def _asked(row: Mapping[str, Any]) -> tuple[Any, Any]:
    return row["gold_sha256"], row["schema_sha256"]


def _means(rows: Mapping[str, Any], common: Sequence[str], both: Sequence[str]) -> dict[str, float]:
    coverage = summarize(rows[doc_id] for doc_id in common)["coverage"]
    return {key: value for key, value in summarize(rows[doc_id] for doc_id in both).items() if key in FIGURES} | {
        "coverage": coverage
    }


def _notes(a: StoredRun, b: StoredRun, left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    notes = []
    scorers = [sorted({str(row["scorer"]) for row in rows.values()}) for rows in (left, right)]
    if scorers[0] != scorers[1]:
        notes.append(f"scored by {', '.join(scorers[0])} and by {', '.join(scorers[1])}")
    corpora = [(run.file("settings.json") or {}).get("corpus") for run in (a, b)]
    if corpora[0] != corpora[1]:
        notes.append(f"of corpus {corpora[0]} and of corpus {corpora[1]}; documents are compared by gold and schema")
    return notes


# --- values -------------------------------------------------------------------------------------------------------


class Value(NamedTuple):
    """A verdict row, as far as it is compared. ``canon``: what the prediction was compared as."""

    field: str
    canon: str | None
    verdict: str


def values_together(runs: Sequence[StoredRun], doc_ids: frozenset[str]) -> Iterator[list[dict[tuple[str, str], Value]]]:
    """Verdicts of the same documents, some documents at a time: a dict by (doc_id, address) for each of the runs."""
    first, *others = runs
    left = set(doc_ids)
    for table in _tables(first, doc_ids):
        ids = frozenset(table.column("doc_id").to_pylist())
        left -= ids
        yield [_values([table]), *(_values(_tables(run, ids)) for run in others)]
    if left and others:  # documents at which the first run and the gold state nothing
        for rest in values_together(others, frozenset(left)):
            yield [{}, *rest]


def _tables(run: StoredRun, doc_ids: frozenset[str]) -> Iterator[Any]:
    schema = VERDICTS.empty_table().select(list(COLUMNS)).schema
    return parts(run, layout.VERDICTS, schema, Wanted(doc_id=doc_ids))


def _values(tables: Iterable[Any]) -> dict[tuple[str, str], Value]:
    return {
        (doc_id, address): Value(*value)
        for table in tables
        for doc_id, address, *value in zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True)
        if value[-1] != KINDS[SKIPPED]
    }


def _changes(
    a: StoredRun, b: StoredRun, left: Mapping[str, Any], right: Mapping[str, Any], both: Sequence[str]
) -> tuple[dict[str, dict[str, int]] | None, dict[str, dict[str, int]]]:
    """Counts of changed values by field and by document; None for the fields if a run has no verdicts."""
    differing = [doc_id for doc_id in both if _made_from(left[doc_id]) != _made_from(right[doc_id])]
    fields: dict[str, Counter[str]] = {}
    documents: dict[str, Counter[str]] = {}
    seen = 0
    for values_a, values_b in values_together((a, b), frozenset(differing)):
        seen += len(values_a) + len(values_b)
        for key in values_a.keys() | values_b.keys():
            kind = _kind_of_change(values_a.get(key), values_b.get(key))
            for count in kind:
                name = (values_a.get(key) or values_b[key]).field
                fields.setdefault(name, Counter())[count] += 1
                documents.setdefault(key[0], Counter())[count] += 1
    without_values = any(left[doc_id]["total"] or right[doc_id]["total"] for doc_id in differing) and not seen
    return None if without_values else _plain(fields), _plain(documents)


def _plain(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: {count: found[count] for count in COUNTS} for name, found in counts.items()}


def _made_from(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["prediction_sha256"], row["scorer"]


def _kind_of_change(one: Value | None, other: Value | None) -> Iterator[str]:
    kinds = [value.verdict for value in (one, other) if value is not None]
    of_gold = kinds[0] in GOLD_KINDS
    was, is_now = (value is not None and value.verdict == KINDS[MATCHED] for value in (one, other))
    if of_gold and was != is_now:
        yield "lost" if was else "gained"
    elif of_gold and not was and one != other:
        yield "changed"
    elif not of_gold and one != other:
        if one is not None:
            yield "extra_a"
        if other is not None:
            yield "extra_b"


# --- gates --------------------------------------------------------------------------------------------------------

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_GATE = re.compile(r"\s*([a-z_]+)\s*(<=|>=|<|>)\s*([+-]?\d+(?:\.\d+)?)\s*")


@dataclass(frozen=True)
class Gate:
    """A condition on the change of a figure from A to B, in points; one that holds is a failure."""

    text: str
    figure: str
    sign: str
    points: float

    def is_met(self, comparison: Comparison) -> bool:
        """Whether the condition holds. Raises RequestError if there is nothing to judge by."""
        if not (comparison.common if self.figure == "coverage" else comparison.both):
            raise RequestError(f"{self.text!r} cannot be judged: both runs have scored no document in common")
        change = round(comparison.points(self.figure), 9)  # a difference of floats, in points
        return bool(SIGNS[self.sign](change, self.points))


def gates(texts: Sequence[str]) -> list[Gate]:
    """Conditions such as ``accuracy<-0.5``. Raises RequestError with all that are none."""
    found, problems = [], []
    for text in texts:
        match = _GATE.fullmatch(text)
        if not match:
            problems.append(f"{text!r} is no condition; write a figure, a sign and points, such as 'accuracy<-0.5'")
        elif match[1] not in FIGURES:
            problems.append(f"{text!r}: no figure {match[1]!r}; {suggestion(match[1], FIGURES)}")
        else:
            found.append(Gate(text.strip(), match[1], match[2], float(match[3])))
    if problems:
        raise refused("--fail-on", problems)
    return found
