"""What is to be done: configs to Runs, what is there already, what is missing or stale and why.

In: a Job (what was asked) and what the output holds. Out: a Plan, or every problem with the request in one error.
Making a plan writes nothing and calls nobody.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from . import layout, storage
from .arrow import release_memory
from .corpus.manifest import Corpus
from .errors import MissingCredential, RequestError, WorkerLost, refused
from .filedigests import FileDigests
from .folders import check_corpus, check_settings, other_work
from .prices import PriceList
from .providers.contract import LaneOptions, choice_warnings, typed
from .providers.models import named
from .providers.registry import find, lane_of, name_of, paid, resolved, run_name, settings_class
from .receipts import stored_receipts
from .records import ABSENT, Doc, FileStamp, Receipt, Run, ScoreItem
from .scorers import find as find_scorer
from .settled import Settled, of_parts, read_settled
from .tables import part_stamp, stamp_at

__all__ = ["Plan", "RunPlan", "expand", "make_plan", "run_name"]

LONGEST_NAME = 200


@dataclass(frozen=True)
class Selection:
    """What to do with what is there. ``retry``: "", "transient" or "all" of the failed; ``stale``: ask those again;
    ``scorers``: by which of them what is recorded is scored; none if it is not.
    """

    verdicts: bool = True
    rescore: bool = False
    score_only: bool = False
    retry: str = ""
    stale: bool = False
    scorers: tuple[str, ...] = (layout.FIRST_SCORER,)


class Part(NamedTuple):
    """A scorer's part of a Run's tables."""

    scorer: str
    home: layout.Home


@dataclass
class RunPlan:
    """One Run against its folder.

    ``resumed``: somebody has begun it before; ``receipts`` by doc_id, as they are kept; ``predict``: positions to ask
    for; ``again``: those of them that have a record already;
    ``why``: those asked for, by reason; ``stale``: doc_id and why its prediction is out of date;
    ``part_files``: the parts that are there, by table (see layout.below); ``current``: parts that need nothing;
    ``settled``: what was seen when all was last well; ``unchanged``: whether that holds for all parts.
    """

    run: Run
    resumed: bool = False
    receipts: dict[str, Receipt] = field(default_factory=dict)
    predict: list[int] = field(default_factory=list)
    again: set[int] = field(default_factory=set)
    why: dict[str, list[int]] = field(default_factory=dict)
    stale: list[tuple[str, str]] = field(default_factory=list)
    part_files: dict[str, set[layout.Home]] = field(default_factory=dict)
    current: set[Part] = field(default_factory=set)
    settled: Settled = field(default_factory=Settled)
    unchanged: bool = False


@dataclass
class Plan:
    """All Runs of a job over one corpus. ``homes``: each document's, by position in the manifest.

    ``config``: what was asked for, and the versions of packages, as each Run's config.json keeps it. ``prices``: what
    models list, for the estimate.
    """

    out: str
    corpus: Corpus
    selection: Selection
    runs: list[RunPlan]
    homes: list[layout.Home]
    members: dict[layout.Home, list[int]]
    files: FileDigests
    warnings: list[str] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    prices: PriceList | None = None

    def item(self, run: RunPlan, position: int) -> ScoreItem:
        """The document at a position as it is scored for a Run; it must have a receipt."""
        doc = self.corpus.doc(position)
        receipt = run.receipts[doc.doc_id]
        return ScoreItem(
            doc.doc_id, doc.gt_path, doc.schema, doc.schema_sha256, receipt.prediction_sha256, receipt.error,
            doc.annotations,
        )  # fmt: skip

    def recorded(self, run: RunPlan, home: layout.Home) -> list[int]:
        """Positions of the recorded documents of a part, sorted by doc_id."""
        ids = self.corpus.ids
        return sorted((row for row in self.members.get(home, ()) if ids[row] in run.receipts), key=ids.__getitem__)

    def is_done(self) -> bool:
        """Whether there is nothing to predict and nothing to score."""
        return not any(made.predict or self.to_score(made) for made in self.runs)

    def to_score(self, run: RunPlan) -> set[Part]:
        """The parts that hold recorded documents and are not current."""
        ids = self.corpus.ids
        recorded = {home for position, home in enumerate(self.homes) if ids[position] in run.receipts}
        return {Part(scorer, home) for scorer in self.selection.scorers for home in recorded} - run.current


# --- configs to Runs ----------------------------------------------------------------------------------------------


def expand(
    providers: Mapping[str, Mapping[str, Any]], timeout: float, *, calls: bool = True, repeats: int = 1
) -> tuple[list[Run], list[str]]:
    """Every provider with every option set as Runs, and warnings about unusual values.

    ``calls``: vendors will be called, so their keys must be there. ``repeats``: how often each is run; the second time
    its name ends in ``~2``, and so on.

    A provider's entry may hold ``options`` (a list of option sets, or one), ``grid`` (lists of values, all combined),
    settings of its own that go into each set, and run options. Sets that come to the same settings are one Run. The
    entry ``openrouter`` lists ``models``, each of which is a provider.

    Raises:
        RequestError: unknown providers or settings, values of another type, empty lists; all at once.
        MissingCredential: keys that are not there, and nothing else.
    """
    runs: dict[str, Run] = {}
    problems: list[str] = []
    without_key: set[str] = set()
    warnings: list[str] = []
    for name, entry, prefix in named(providers, problems):
        try:
            kind = settings_class(name)
            provider = find(name)
        except RequestError as error:
            problems.append(str(error))
            continue
        own = {key: value for key, value in entry.items() if key not in ("options", "grid")}
        options, more = typed(provider.Options, _taken(own, provider.Options), prefix)
        problems.extend(more)
        limits, more = typed(LaneOptions, _taken(own, LaneOptions) if paid(name) else {}, prefix)
        problems.extend(more)
        for given in _option_sets(entry.get("options"), entry.get("grid"), prefix, problems):
            settings, more = resolved(name, {**own, **given}, prefix)
            problems.extend(more)
            if more:
                continue
            provider, vendor = find(name, settings), paid(name, settings)
            wrong = provider.problems(settings, options)
            problems.extend(f"{prefix}: {what}" for what in wrong)
            warnings.extend(choice_warnings(kind, settings, prefix))
            if vendor and limits["max_usd"] is not None and not vendor.states_usd and limits["usd_per_doc"] is None:
                problems.append(
                    f"{prefix}.max_usd: {name} states no dollars; give usd_per_doc, or the limit sees nothing"
                )
            try:
                lane = lane_of(vendor, settings, options, limits) if vendor and calls and not wrong else None
            except MissingCredential as error:
                without_key.add(str(error))
                problems.append(str(error))
                continue
            run = Run(name_of(name, settings), name, settings, {"timeout_s": timeout, **options}, lane)
            if len(run.name) > LONGEST_NAME:
                problems.append(
                    f"{prefix}: the run's name has {len(run.name)} characters, at most {LONGEST_NAME} can be stored"
                )
            for number in range(1, repeats + 1):
                again = run if number == 1 else replace(run, name=f"{run.name}~{number}")
                runs.setdefault(again.name, again)
    if not providers:
        problems.append("no provider is chosen; give one with provider=[...] or --providers")
    if problems:
        only_keys = without_key.issuperset(problems)
        raise refused("this cannot run", dict.fromkeys(problems), MissingCredential if only_keys else RequestError)
    return list(runs.values()), list(dict.fromkeys(warnings))


def _taken(own: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Takes the fields of a class out of a provider's entry."""
    return {key: own.pop(key) for key in list(own) if key in kind.__dataclass_fields__}


def _option_sets(options: Any, grid: Any, prefix: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    listed = [options] if isinstance(options, Mapping) else [{}] if options is None else options
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        problems.append(f"{prefix}.options={options!r}: wants a list of option sets, such as [{{mode: accurate}}]")
        return
    if not listed:
        problems.append(f"{prefix}.options: the list is empty, so nothing would run; leave it out for the defaults")
    combined: list[dict[str, Any]] = [{}]
    if grid:
        if not isinstance(grid, Mapping) or not all(isinstance(values, list) and values for values in grid.values()):
            problems.append(
                f"{prefix}.grid={grid!r}: wants lists of values that are not empty, such as {{mode: [fast, accurate]}}"
            )
            return
        combined = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    for given in listed:
        if given is not None and not isinstance(given, Mapping):
            problems.append(f"{prefix}.options: {given!r} is no option set; write {{name: value}}")
            continue
        for more in combined:
            yield {**(given or {}), **more}


# --- what is there ------------------------------------------------------------------------------------------------


def make_plan(out: str, corpus: Corpus, runs: Sequence[Run], selection: Selection) -> Plan:
    """Looks at the output and says what each Run still needs.

    Raises:
        RequestError: a folder belongs to another corpus or was made with other run options; all at once.
    """
    homes = layout.homes(corpus.ids, corpus.suites, [corpus.stamps[path].size for path in corpus.gt_paths])
    members: dict[layout.Home, list[int]] = {}
    for position, home in enumerate(homes):
        members.setdefault(home, []).append(position)
    plan = Plan(out, corpus, selection, [], homes, members, FileDigests(out, corpus.stamps))
    problems: list[str] = []
    if warning := check_corpus(out, corpus, problems):
        plan.warnings.append(warning)
    for run in runs:
        new = check_settings(out, run, corpus, problems)
        plan.runs.append(_run_plan(plan, run, new))
    if problems:
        raise other_work(out, problems)
    release_memory()  # manifests and indexes were tables
    return plan


def _run_plan(plan: Plan, run: Run, new: bool) -> RunPlan:
    corpus, selection = plan.corpus, plan.selection
    made = RunPlan(run, resumed=not new)
    listings: dict[str, dict[str, FileStamp]] = {}
    if not new:
        # Parts first: one that another driver makes meanwhile must not be seen without its receipts.
        made.settled, listings = read_settled(plan.out, run.name), list_parts(plan, run.name)
        for table, keys in listings.items():
            made.part_files[table] = {home for key in keys if (home := layout.home_of_key(key))}
        made.receipts = stored_receipts(plan.out, run.name, set(corpus.ids))
    recorded, made.receipts = made.receipts, {}
    source_of = partial(find(run.provider).source, settings=run.settings, options=run.options)
    others = _other_sources(corpus, source_of) if recorded else {}
    for position in corpus.selected:
        doc = corpus.doc(position)
        receipt = recorded.pop(doc.doc_id, None)
        stale = ""
        if receipt is not None:
            source = source_of(doc)
            stale = _stale(plan, doc, receipt, source, corpus.stamps.get(source) or others.get(source))
            made.receipts[doc.doc_id] = receipt.kept(doc.doc_id)
        if stale:
            made.stale.append((doc.doc_id, stale))
        why = _why_asked(receipt, stale, selection)
        if why and not selection.score_only:
            made.predict.append(position)
            made.why.setdefault(why, []).append(position)
            if receipt is not None:
                made.again.add(position)
    made.receipts |= {doc_id: recorded[doc_id].kept(doc_id) for doc_id in corpus.ids if doc_id in recorded}
    del recorded, others
    if not selection.rescore:
        made.unchanged = bool(listings)
        for scorer in selection.scorers:
            _find_current(plan, made, scorer, listings)
    return made


def _other_sources(corpus: Corpus, source_of: Callable[[Doc], str]) -> dict[str, FileStamp]:
    """Stamps of the files that predictions are made from, those that are no files of the corpus."""
    sources = map(source_of, map(corpus.doc, corpus.selected))
    return storage.stat_many({source for source in sources if source not in corpus.stamps})


def _why_asked(receipt: Receipt | None, stale: str, selection: Selection) -> str:
    if receipt is None:
        return "no record"
    if receipt.error is not None and (selection.retry == "all" or (selection.retry and receipt.retryable)):
        return "failed before"
    return "stale" if selection.stale and stale else ""


def _stale(plan: Plan, doc: Doc, receipt: Receipt, source: str, stamp: FileStamp | None) -> str:
    """Why a prediction answers another question than is asked now; empty if it does not.

    ``stamp`` is that of the file it would be made from; None if there is none.
    """
    if receipt.schema_sha256 != doc.schema_sha256:
        return "its schema has changed"
    if receipt.error_type == WorkerLost.__name__:  # nobody has looked at the file
        return ""
    if stamp is None or stamp == (receipt.doc_size, receipt.doc_stamp) or stamp == (receipt.doc_size, ABSENT):
        return ""
    if stamp.stamp == ABSENT or plan.files.get(source, stamp) != receipt.doc_sha256:
        return f"{'its document' if source == doc.doc_path else source} has changed"
    return ""


def list_parts(plan: Plan, run: str) -> dict[str, dict[str, FileStamp]]:
    """The files of a Run's tables, those of the selected scorers."""
    tables = itertools.product(plan.selection.scorers, (layout.SCORES, layout.VERDICTS))
    names = [layout.below(scorer, name) for scorer, name in tables]
    return {name: storage.listed(storage.join(plan.out, run, name)) for name in names}


def _find_current(plan: Plan, made: RunPlan, scorer: str, listings: Mapping[str, dict[str, FileStamp]]) -> None:
    """Adds a scorer's parts that were made from just what would be scored now, as they were last seen or say."""
    candidates = set.intersection(*(made.part_files.get(table, set()) for table in _tables(plan, scorer)))
    stamps = part_stamps(plan, made, scorer, candidates)
    tables = {name: files for name, files in listings.items() if name in _all_tables(scorer)}
    made.unchanged = made.unchanged and made.settled.covers(tables, scorer, of_parts(stamps))
    there = set(stamps) if made.unchanged else holding(plan, made, scorer, stamps)
    made.current |= {Part(scorer, home) for home in there}


def _tables(plan: Plan, scorer: str) -> list[str]:
    """The tables that a part must be in."""
    return _all_tables(scorer) if plan.selection.verdicts else _all_tables(scorer)[:1]


def _all_tables(scorer: str) -> list[str]:
    return [layout.below(scorer, name) for name in (layout.SCORES, layout.VERDICTS)]


def part_stamps(plan: Plan, made: RunPlan, scorer: str, homes: Iterable[layout.Home]) -> dict[layout.Home, str]:
    """What a scorer's parts would be made from now; without parts whose documents are not there."""
    used = find_scorer(scorer)
    stamps = {}
    for home in homes:
        items = [plan.item(made, position) for position in plan.recorded(made, home)]
        if items:
            with suppress(FileNotFoundError):  # a gold that has gone since: the part is made again, and says so
                files = [item.gt_path for item in items]
                if used.reads_annotations:
                    files += [item.annotations for item in items if item.annotations]
                digests = {path: plan.files.get(path, plan.corpus.stamps[path]) for path in files}
                stamps[home] = part_stamp(used, items, digests)
    return stamps


def holding(plan: Plan, made: RunPlan, scorer: str, stamps: Mapping[layout.Home, str]) -> set[layout.Home]:
    """Those of the parts that hold these stamps, in all tables that are wanted."""
    places = [
        (home, layout.part(plan.out, made.run.name, table, home)) for home in stamps for table in _tables(plan, scorer)
    ]
    with ThreadPoolExecutor(16) as threads:
        there = list(threads.map(lambda place: stamp_at(place[1]), places))
    other = {home for (home, _), stamp in zip(places, there, strict=True) if stamp != stamps[home]}
    return stamps.keys() - other
