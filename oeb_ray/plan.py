"""What is to be done: configs to Runs, what is there already, what is missing or stale and why.

In: a Job (what was asked) and what the output holds. Out: a Plan, or every problem with the request in one error.
Making a plan writes nothing and calls nobody.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import layout, storage
from .corpus.manifest import Corpus, digest
from .errors import RequestError, refused
from .grade import SCORER
from .jsontext import read_json
from .providers.contract import choice_warnings, typed
from .providers.registry import find, name_of, resolved, run_name, settings_class
from .receipts import stored_receipts
from .records import Doc, FileStamp, Receipt, Run, ScoreItem
from .tables import digests_table, part_stamp, read_digests, stamp_of

__all__ = ["Plan", "RunPlan", "expand", "make_plan", "run_name"]

LONGEST_NAME = 200


@dataclass(frozen=True)
class Selection:
    """What to do with what is there. ``retry``: "", "transient" or "all" of the failed; ``stale``: ask those again."""

    verdicts: bool = True
    rescore: bool = False
    score_only: bool = False
    retry: str = ""
    stale: bool = False


@dataclass
class RunPlan:
    """One Run against its folder.

    ``receipts`` by doc_id; ``predict``: positions to ask for; ``again``: those of them that have a record already;
    ``reasons``: how many documents are predicted or scored why; ``stale``: doc_id and why its prediction is out of
    date; ``current``: homes whose parts need nothing; ``foreign``: parts that no document of the corpus lies in.
    """

    run: Run
    receipts: dict[str, Receipt]
    predict: list[int]
    again: set[int]
    reasons: Counter[str]
    stale: list[tuple[str, str]]
    current: set[layout.Home]
    part_files: dict[str, set[layout.Home]]
    new: bool


@dataclass
class Plan:
    """All Runs of a job over one corpus. ``homes``: each document's, by position in the manifest."""

    out: str
    corpus: Corpus
    selection: Selection
    runs: list[RunPlan]
    homes: list[layout.Home]
    members: dict[layout.Home, list[int]]
    golds: GoldDigests
    warnings: list[str] = field(default_factory=list)

    def item(self, run: RunPlan, position: int) -> ScoreItem:
        """The document at a position as it is scored for a Run; it must have a receipt."""
        doc = self.corpus.doc(position)
        receipt = run.receipts[doc.doc_id]
        return ScoreItem(doc.doc_id, doc.gt_path, doc.schema, receipt.prediction_sha256, receipt.error)

    def recorded(self, run: RunPlan, home: layout.Home) -> list[int]:
        """Positions of the recorded documents of a part, sorted by doc_id."""
        ids = self.corpus.ids
        return sorted((row for row in self.members.get(home, ()) if ids[row] in run.receipts), key=ids.__getitem__)


# --- configs to Runs ----------------------------------------------------------------------------------------------


def expand(providers: Mapping[str, Mapping[str, Any]], timeout: float) -> tuple[list[Run], list[str]]:
    """Every provider with every option set as Runs, and warnings about unusual values.

    A provider's entry may hold ``options`` (a list of option sets, or one), ``grid`` (lists of values, all combined),
    settings of its own that go into each set, and run options. Sets that come to the same settings are one Run.

    Raises:
        RequestError: unknown providers or settings, values of another type, empty lists; all at once.
    """
    runs: dict[str, Run] = {}
    problems: list[str] = []
    warnings: list[str] = []
    for name, entry in providers.items():
        prefix = f"providers.{name}"
        try:
            kind = settings_class(name)
            provider = find(name)
        except RequestError as error:
            problems.append(str(error))
            continue
        own = {key: value for key, value in entry.items() if key not in ("options", "grid")}
        known = {key: own.pop(key) for key in list(own) if key in provider.Options.__dataclass_fields__}
        options, more = typed(provider.Options, known, prefix)
        problems.extend(more)
        for given in _option_sets(entry.get("options"), entry.get("grid"), prefix, problems):
            settings, more = resolved(name, {**own, **given}, prefix)
            problems.extend(more)
            if more:
                continue
            warnings.extend(choice_warnings(kind, settings, prefix))
            run = Run(name_of(name, settings), name, settings, {"timeout_s": timeout, **options})
            if len(run.name) > LONGEST_NAME:
                problems.append(
                    f"{prefix}: the run's name has {len(run.name)} characters, at most {LONGEST_NAME} can be stored"
                )
            runs.setdefault(run.name, run)
    if not providers:
        problems.append("no provider is chosen; give one with provider=[...] or --providers")
    if problems:
        raise refused("this cannot run", dict.fromkeys(problems))
    return list(runs.values()), list(dict.fromkeys(warnings))


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
    plan = Plan(out, corpus, selection, [], homes, members, GoldDigests(out))
    problems: list[str] = []
    for run in runs:
        new = _check_settings(out, run, corpus, problems)
        plan.runs.append(_run_plan(plan, run, new))
    if problems:
        raise refused(f"{out} holds other work", problems)
    return plan


def settings_file(run: Run, corpus: Corpus) -> dict[str, Any]:
    """What stands in settings.json, written before the first document."""
    return {
        "run": run.name,
        "provider": run.provider,
        "settings": run.settings,
        **run.options,
        "corpus": corpus.identity,
    }


def _check_settings(out: str, run: Run, corpus: Corpus, problems: list[str]) -> bool:
    address = storage.join(out, run.name, "settings.json")
    try:
        found = read_json(storage.read(address))
    except FileNotFoundError:
        return True
    except ValueError as error:
        problems.append(f"{address} is no JSON ({error}); restore it or choose another output")
        return False
    if not isinstance(found, dict):
        problems.append(f"{address} holds no settings; restore it or choose another output")
        return False
    for key, value in settings_file(run, corpus).items():
        if found.get(key) != value:
            problems.append(
                f"{run.name}: its settings.json says {key}={found.get(key)!r}, this job {value!r}; "
                "choose another output, or ask for the same"
            )
    return False


def _run_plan(plan: Plan, run: Run, new: bool) -> RunPlan:
    corpus, selection = plan.corpus, plan.selection
    receipts = {} if new else stored_receipts(plan.out, run.name, set(corpus.ids))
    made = RunPlan(run, receipts, [], set(), Counter(), [], set(), {}, new)
    for position in corpus.selected:
        doc = corpus.doc(position)
        receipt = receipts.get(doc.doc_id)
        why = _why_again(doc, receipt, corpus.stamps.get(doc.doc_path), selection)
        if receipt is not None and (stale := _stale(doc, receipt, corpus.stamps.get(doc.doc_path))):
            made.stale.append((doc.doc_id, stale))
        if why and not selection.score_only:
            made.predict.append(position)
            made.reasons[f"predict: {why}"] += 1
            if receipt is not None:
                made.again.add(position)
        elif receipt is not None:
            made.reasons["recorded"] += 1
    if not new:
        _look_at_parts(plan, made)
    return made


def _why_again(doc: Doc, receipt: Receipt | None, stamp: FileStamp | None, selection: Selection) -> str:
    if receipt is None:
        return "no record"
    if receipt.error is not None and (selection.retry == "all" or (selection.retry and receipt.retryable)):
        return "failed before"
    return "stale" if selection.stale and _stale(doc, receipt, stamp) else ""


def _stale(doc: Doc, receipt: Receipt, stamp: FileStamp | None) -> str:
    """Why a prediction answers another question than the corpus now asks; empty if it does not."""
    if receipt.schema_sha256 != digest(doc.schema.encode("utf-8", "surrogatepass")):
        return "its schema has changed"
    touched = receipt.doc_sha256 and stamp is not None and stamp != (receipt.doc_size, receipt.doc_stamp)
    if touched and digest(storage.read(doc.doc_path)) != receipt.doc_sha256:
        return "its document has changed"
    return ""


def _look_at_parts(plan: Plan, made: RunPlan) -> None:
    """Finds the parts that are there, and which of them were made from just what would be scored now."""
    run = made.run
    for table in (layout.SCORES, layout.VERDICTS):
        keys = storage.listed(storage.join(plan.out, run.name, table))
        made.part_files[table] = {home for key in keys if (home := layout.home_of_key(key))}
    if plan.selection.rescore:
        return
    for home in made.part_files[layout.SCORES]:
        if plan.selection.verdicts and home not in made.part_files[layout.VERDICTS]:
            continue
        items = [plan.item(made, position) for position in plan.recorded(made, home)]
        if not items:
            continue
        golds = {item.doc_id: plan.golds.get(item.gt_path, plan.corpus.stamps[item.gt_path]) for item in items}
        stamp = part_stamp(SCORER, items, golds)
        if stamp_of(storage.read(layout.part(plan.out, run.name, layout.SCORES, home))) == stamp:
            made.current.add(home)


class GoldDigests:
    """SHA-256 of golds, kept below the output with size and stamp, so that only changed files are read again."""

    def __init__(self, out: str) -> None:
        self.address = storage.join(out, "golds.parquet")
        try:
            self._known = read_digests(storage.read(self.address))
        except FileNotFoundError:
            self._known = {}

    def get(self, gt_path: str, stamp: FileStamp) -> str:
        known = self._known.get(gt_path)
        if known is None or known[0] != stamp:
            self.note(gt_path, stamp, digest(storage.read(gt_path)))
        return self._known[gt_path][1]

    def note(self, gt_path: str, stamp: FileStamp, sha256: str) -> None:
        self._known[gt_path] = stamp, sha256

    def save(self) -> None:
        storage.put(self.address, digests_table(self._known))
