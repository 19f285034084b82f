"""The leaderboard: Runs side by side with what chance allows to say of them.

In: runs of an output. Out: a Board of Standings in order, each with means, intervals, rank, cost, seconds, and the
digest that `oeb verify` makes again. Repeats of a Run share one Standing. Runs that lack documents of the corpus, or
are of another corpus, stand below and have no rank.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import layout
from .digests import made_from
from .errors import RequestError
from .overview import Overview, overviews
from .receipts import indexed
from .records import Receipt
from .results import parts
from .scorers import find
from .scoring.field_matching.summarize import MEANS, RATES
from .scoring.summary import Estimate, Pair, averaged, estimate, pairs, quantile, ranks
from .stored import StoredRun

Rows = dict[str, dict[str, Any]]  # score rows by doc_id
FAILED_AS_ZERO = {layout.FIRST_SCORER: False, "value_f1": True}
"""Scorers whose means weigh each document the same, and whether a failed one counts 0 or is in no mean."""


@dataclass(frozen=True)
class Use:
    """What documents cost and took, as far as vendors stated it.

    ``usd``: dollars per document over the ``priced`` ones; ``usd_per_1000_pages`` over those of them whose pages are
    known; ``median_s``, ``p95_s``: seconds per document. None where nothing is known, which is not zero.
    """

    usd: float | None
    priced: int
    usd_per_1000_pages: float | None
    median_s: float | None
    p95_s: float | None


@dataclass(frozen=True)
class Standing:
    """One line of the board.

    ``runs``: the Run, and after it its repeats; ``documents``: of the selection, None if nobody knows; ``recorded``:
    those asked for; ``scored``: those with a score in any repeat; ``coverage``: scored rows / recorded rows;
    ``figures``: the scorer's means with intervals, its headline first; ``mix``: mean rate of each kind of error of
    field_matching; ``digests``: of what each Run's rows were made from (`made_from`); ``rank``: None for Runs that are
    partial, of another corpus, or too short to be compared; ``against``: this Run and the leader.
    """

    runs: tuple[StoredRun, ...]
    provider: str | None
    settings: dict[str, Any]
    documents: int | None
    recorded: int
    scored: int
    coverage: float
    figures: dict[str, Estimate]
    mix: dict[str, float | None]
    use: Use
    scorer: str
    digests: tuple[str, ...]
    other_corpus: str | None
    rank: int | None = None
    against: Pair | None = None

    @property
    def name(self) -> str:
        return self.runs[0].name

    @property
    def headline(self) -> Estimate:
        """The figure that orders the board."""
        return next(iter(self.figures.values()))

    @property
    def partial(self) -> bool:
        return self.documents is None or self.recorded < self.documents

    @property
    def failed(self) -> int:
        """Documents that were asked for and have no score."""
        return self.recorded - self.scored

    @property
    def described(self) -> str:
        """Provider and settings as text."""
        words = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(self.settings.items())]
        return " ".join([self.provider or "a table of predictions", *words])


@dataclass(frozen=True)
class Board:
    """Standings in order: by rank, then by price, then by accuracy; ``leader``: the most accurate one of rank 1;
    ``compared``: every two of the ranked Runs; ``tied``: the other Runs that each cannot be told from;
    ``over``: which documents the means are over."""

    standings: list[Standing]
    leader: str | None
    compared: list[Pair]
    tied: dict[str, list[str]] = field(default_factory=dict)
    over: str = "scored documents"


@dataclass(frozen=True)
class Group:
    """A Run with its repeats, read once and looked at in several selections; ``means``: figures, the headline first.

    ``failed_as_zero``: whether a failed document counts 0 in them, or not at all.
    """

    means: tuple[str, ...]
    failed_as_zero: bool
    base: Overview
    runs: tuple[StoredRun, ...]
    rows: tuple[Rows, ...]
    receipts: tuple[Mapping[str, Receipt], ...]


def groups(runs: Sequence[StoredRun], scorer: str = layout.FIRST_SCORER) -> list[Group]:
    """Runs with their repeats, and the rows of a scorer.

    Raises:
        RequestError: no such scorer, or one whose means are not over documents. InternalError: a file is damaged.
    """
    used = find(scorer)
    if scorer not in FAILED_AS_ZERO:
        known = " and ".join(FAILED_AS_ZERO)
        raise RequestError(f"{scorer} weighs fields and not documents; boards are made of {known}")

    def rows(run: StoredRun) -> Rows:
        table = layout.below(scorer, layout.SCORES)
        return {row["doc_id"]: row for part in parts(run, table, used.scores) for row in part.to_pylist()}

    found: dict[str, list[Overview]] = {}
    for one in overviews(runs):
        found.setdefault(f"{one.run.out}/{one.repeat_of}", []).append(one)
    return [
        Group(
            used.means,
            FAILED_AS_ZERO[scorer],
            members[0],
            tuple(one.run for one in members),
            tuple(rows(one.run) for one in members),
            tuple(indexed(one.run.out, one.run.name) for one in members),
        )
        for members in found.values()
    ]


def board(
    listed: Sequence[Group],
    *,
    documents: int | None = None,
    only: frozenset[str] | None = None,
    clusters: Mapping[str, str] | None = None,
    pages: Mapping[str, int] | None = None,
) -> Board:
    """The board of all documents, or of some.

    Args:
        documents: how many documents are selected; what the output says of its corpus if None.
        only: doc_ids that are selected; None for all.
        clusters: label of each document's cluster. pages: how many pages documents have.
    """
    made = [_standing(one, documents, only, clusters, pages or {}) for one in listed]
    figures = {one.name: _by_document(group, group.means[0], only) for one, group in zip(made, listed, strict=True)}
    ranked = [one.name for one in made if not one.partial and one.other_corpus is None]
    compared = pairs({name: figures[name] for name in ranked}, clusters)
    rank = ranks(ranked, compared)
    leaders = [one for one in made if rank.get(one.name) == 1]
    leader = max(leaders, key=lambda one: (_mean(one), one.name)).name if leaders else None
    met = {(one.a, one.b): one for one in compared}
    full = [_with(one, rank.get(one.name), leader, met, figures, clusters) for one in made]
    full.sort(key=_order)
    tied = {name: sorted(_other(one, name) for one in compared if name in (one.a, one.b) and one.outcome == "tied")
            for name in ranked}  # fmt: skip
    zero = any(group.failed_as_zero for group in listed)
    over = "all documents, failed ones as 0" if zero else "scored documents"
    return Board(full, leader, compared, tied, over)


def _with(
    one: Standing,
    rank: int | None,
    leader: str | None,
    met: Mapping[tuple[str, str], Pair],
    figures: Mapping[str, Mapping[str, float]],
    clusters: Mapping[str, str] | None,
) -> Standing:
    """A Standing with its rank, and itself against the leader: among the ranked as tested there, else by itself."""
    against = None
    if leader is not None and leader != one.name:
        if pair := met.get((one.name, leader)):
            against = pair
        elif pair := met.get((leader, one.name)):
            against = turned(pair)
        elif one.other_corpus is None:
            (against,) = pairs({one.name: figures[one.name], leader: figures[leader]}, clusters)
    return Standing(**{**vars(one), "rank": rank, "against": against})


def turned(pair: Pair) -> Pair:
    """The same pair, seen from the other Run."""
    difference = None if pair.difference is None else -pair.difference
    interval = pair.interval and type(pair.interval)(-pair.interval.high, -pair.interval.low)
    return pair._replace(a=pair.b, b=pair.a, difference=difference, interval=interval)


def _order(one: Standing) -> tuple[Any, ...]:
    price = one.use.usd
    return (
        one.rank is None, one.other_corpus is not None, one.partial, one.rank or 0, price is None, price or 0.0,
        -_mean(one), one.name,
    )  # fmt: skip


def _mean(one: Standing) -> float:
    mean = one.headline.mean
    return -1.0 if mean is None else mean


def _other(pair: Pair, name: str) -> str:
    return pair.b if pair.a == name else pair.a


def _chosen(rows: Rows, only: frozenset[str] | None) -> Rows:
    return rows if only is None else {doc_id: row for doc_id, row in rows.items() if doc_id in only}


def _by_document(group: Group, figure: str, only: frozenset[str] | None) -> dict[str, float]:
    def value(row: Mapping[str, Any]) -> float | None:
        if row["status"] != "scored":
            return 0.0 if group.failed_as_zero else None
        return None if row[figure] is None else float(row[figure])

    repeats = [{doc_id: value(row) for doc_id, row in _chosen(rows, only).items()} for rows in group.rows]
    return averaged([{key: found for key, found in one.items() if found is not None} for one in repeats])


def _standing(
    group: Group,
    documents: int | None,
    only: frozenset[str] | None,
    clusters: Mapping[str, str] | None,
    pages: Mapping[str, int],
) -> Standing:
    rows = [row for one in group.rows for row in _chosen(one, only).values()]
    scored = [row for row in rows if row["status"] == "scored"]
    recorded = set().union(*(_chosen(one, only) for one in group.rows)) | {
        doc_id for one in group.receipts for doc_id in one if only is None or doc_id in only
    }
    mix = {
        kind: math.fsum(row[kind] / row["total"] if row["total"] else 0.0 for row in scored) / len(scored)
        if scored
        else None
        for kind in (RATES if group.means == MEANS else ())
    }
    receipts = [
        receipt for one in group.receipts for doc_id, receipt in one.items() if only is None or doc_id in only
    ]  # fmt: skip
    base = group.base
    return Standing(
        runs=group.runs,
        provider=base.provider,
        settings=base.settings,
        documents=base.documents if documents is None or base.other_corpus else documents,
        recorded=len(recorded),
        scored=len({row["doc_id"] for row in scored}),
        coverage=len(scored) / len(rows) if rows else 0.0,
        figures={name: estimate(_by_document(group, name, only), clusters) for name in group.means},
        mix=mix,
        use=_use(receipts, pages),
        scorer=", ".join(sorted({str(row["scorer"]) for row in rows})),
        digests=tuple(made_from(_chosen(one, only).values()) for one in group.rows),
        other_corpus=base.other_corpus,
    )


def _use(receipts: Iterable[Receipt], pages: Mapping[str, int]) -> Use:
    listed = list(receipts)
    priced = [receipt for receipt in listed if receipt.usd is not None]
    paged = [receipt for receipt in priced if pages.get(receipt.doc_id)]
    seconds = [receipt.wall_s for receipt in listed if receipt.error is None]
    per_page = None
    if paged:
        per_page = 1000 * _dollars(paged) / sum(pages[receipt.doc_id] for receipt in paged)
    return Use(
        usd=_dollars(priced) / len(priced) if priced else None,
        priced=len(priced),
        usd_per_1000_pages=per_page,
        median_s=quantile(seconds, 0.5),
        p95_s=quantile(seconds, 0.95),
    )


def _dollars(receipts: Iterable[Receipt]) -> float:
    return math.fsum(receipt.usd or 0.0 for receipt in receipts)
