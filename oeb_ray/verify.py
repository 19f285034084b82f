"""Every digest and score of an output made again, from documents, golds, predictions and records.

In: a run and its corpus. Out: what is not as it was recorded, one Difference each. Nothing is written and nobody asked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import layout, storage
from .ask import receipt_of
from .cluster.work import MadePart, make_part
from .corpus.manifest import Corpus
from .digests import digest, made_from
from .errors import RequestError
from .jsontext import read_json
from .providers.registry import find
from .receipts import indexed
from .records import Doc, PartTask, Receipt, Run, ScoreItem
from .scorers import SCORERS
from .scorers import find as find_scorer
from .stored import StoredRun
from .summaries import derived
from .tables import DamagedPart, part_stamp, read_part, score_table, stamp_at, verdict_table
from .usage import usage_file

READERS = 16
SHOWN = 100  # characters of a line


@dataclass(frozen=True)
class Difference:
    """Something of a run that is not as it should be: which file or document, and how it differs."""

    run: str
    what: str
    why: str


@dataclass(frozen=True)
class Verified:
    """What was looked at in a run, what differs, and by scorer the digest of what its figures are made from."""

    documents: int
    parts: int
    differences: list[Difference]
    made_from: dict[str, str]


def verify(stored: StoredRun, corpus: Corpus) -> Verified:
    """Makes all of a run's digests and scores again and compares them with what is stored.

    Raises:
        RequestError: the run's settings cannot be read.
    """
    run = _run_of(stored)
    found: list[Difference] = []
    receipts = _records(stored, run, corpus, found)
    homes = layout.homes(corpus.ids, corpus.suites, [corpus.stamps[path].size for path in corpus.gt_paths])
    parts: dict[layout.Home, list[ScoreItem]] = {}
    for position in sorted(range(len(corpus)), key=corpus.ids.__getitem__):
        receipt = receipts.get(corpus.ids[position])
        if receipt is not None:
            doc = corpus.doc(position)
            asked, answered = (doc.gt_path, doc.schema, doc.schema_sha256), (receipt.prediction_sha256, receipt.error)
            parts.setdefault(homes[position], []).append(ScoreItem(doc.doc_id, *asked, *answered, doc.annotations))
    scorers = [name for name in SCORERS if _homes_of(stored, layout.below(name, layout.SCORES))] or [
        layout.FIRST_SCORER
    ]
    digests: dict[str, str] = {}
    for name in scorers:
        found.extend(_scorer_differences(stored, run, name, parts, digests))
    suites = dict(zip(corpus.ids, corpus.suites, strict=True))
    usage = {"usage.json": usage_file(receipts.values(), suites, first=layout.FIRST_SCORER in scorers)}
    found.extend(_derived_differences(stored, usage))
    return Verified(len(receipts), len(parts) * len(scorers), found, digests)


def _scorer_differences(
    stored: StoredRun,
    run: Run,
    scorer: str,
    parts: Mapping[layout.Home, list[ScoreItem]],
    digests: dict[str, str],
) -> Iterator[Difference]:
    tables = [layout.below(scorer, name) for name in (layout.SCORES, layout.VERDICTS)]
    there = {table: _homes_of(stored, table) for table in tables}
    for table, stored_homes in there.items():
        for home in sorted(stored_homes - parts.keys()):
            key = f"{table}/{layout.part_key(home)}"
            yield Difference(run.name, key, "no recorded document lies in it")
    rows: list[dict[str, Any]] = []
    verdicts = bool(there[tables[1]])
    for home, items in sorted(parts.items()):
        task = PartTask(stored.out, run, home.suite, home.part, tuple(items), verdicts, scorer)
        made = make_part(task)
        rows.extend(made.rows)
        yield from _part_differences(task, made)
    used = find_scorer(scorer)
    yield from _derived_differences(stored, derived(run, used, [score_table(used, rows)]).files)
    digests[scorer] = made_from(rows)


def _run_of(stored: StoredRun) -> Run:
    settings = stored.file("settings.json")
    if not isinstance(settings, dict) or not {"provider", "settings"} <= settings.keys():
        raise RequestError(f"{stored.address} has no settings.json of a run")
    known = ("run", "provider", "settings", "corpus", "corpus_commit")
    options = {key: value for key, value in settings.items() if key not in known}
    return Run(stored.name, settings["provider"], settings["settings"], options)


def _homes_of(stored: StoredRun, table: str) -> set[layout.Home]:
    keys = storage.listed(storage.join(stored.address, table))
    return {home for key in keys if (home := layout.home_of_key(key))}


# --- records ------------------------------------------------------------------------------------------------------


def _records(stored: StoredRun, run: Run, corpus: Corpus, found: list[Difference]) -> dict[str, Receipt]:
    """The receipts of the records that hold, made from them; what does not hold goes to ``found``."""
    names = storage.names(storage.join(stored.address, "records"))
    docs = [corpus.doc(position) for position in range(len(corpus))]
    recorded = [doc for doc in docs if f"{storage.encode_id(doc.doc_id)}.json" in names]
    foreign = names - {f"{storage.encode_id(doc.doc_id)}.json" for doc in recorded}
    found.extend(Difference(run.name, f"records/{name}", "no document of the corpus") for name in sorted(foreign))
    index = indexed(stored.out, run.name)
    receipts = {}
    with ThreadPoolExecutor(READERS) as threads:
        for doc, (receipt, faults) in zip(
            recorded, threads.map(lambda doc: _record(stored, run, doc), recorded), strict=True
        ):
            known = index.get(doc.doc_id)
            if receipt is not None:
                receipts[doc.doc_id] = receipt
                if known is not None and known != receipt:
                    faults.append("the index of receipts says something else")
            found.extend(Difference(run.name, doc.doc_id, fault) for fault in faults)
    return receipts


def _record(stored: StoredRun, run: Run, doc: Doc) -> tuple[Receipt | None, list[str]]:
    try:
        receipt = receipt_of(read_json(storage.read(layout.record(stored.out, run.name, doc.doc_id))))
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError) as error:
        return None, [f"its record cannot be read: {type(error).__name__}: {error}"]
    if receipt.doc_id != doc.doc_id:
        return None, [f"its record is that of {receipt.doc_id!r}"]
    faults = []
    if receipt.prediction_sha256 is not None:
        try:
            prediction = storage.read(layout.prediction(stored.out, run.name, doc.doc_id))
        except FileNotFoundError:
            return None, ["its prediction is gone"]
        if digest(prediction) != receipt.prediction_sha256:
            return None, ["its prediction is not the one that its record names"]
        if len(prediction) != receipt.prediction_bytes:
            faults.append("its record gives another size of the prediction")
    if receipt.schema_sha256 != doc.schema_sha256:
        faults.append("its schema is not the one that was asked with")
    if receipt.doc_sha256:
        source = find(run.provider).source(doc, run.settings, run.options)
        try:
            if digest(storage.read(source)) != receipt.doc_sha256:
                faults.append(
                    f"{'its document' if source == doc.doc_path else source} is not the one that was asked with"
                )
        except FileNotFoundError:
            faults.append(f"{source} is gone")
    return receipt, faults


# --- parts --------------------------------------------------------------------------------------------------------


def _part_differences(task: PartTask, made: MadePart) -> Iterator[Difference]:
    home = layout.Home(task.suite, task.part)
    scorer = find_scorer(task.scorer)
    stamp = part_stamp(scorer, task.items, made.digests)
    expected = {layout.below(task.scorer, layout.SCORES): (scorer.scores, score_table(scorer, made.rows))}
    if task.verdicts:
        verdicts = scorer.verdicts, verdict_table(scorer, made.verdicts)
        expected[layout.below(task.scorer, layout.VERDICTS)] = verdicts
    for table, (schema, rows) in expected.items():
        key = f"{table}/{layout.part_key(home)}"
        address = layout.part(task.out, task.run.name, table, home)
        try:
            there = read_part(address, schema)
        except DamagedPart as damaged:
            missing = isinstance(damaged.__cause__, FileNotFoundError)
            yield Difference(
                task.run.name, key, "is not there; the same benchmark makes it" if missing else "is damaged"
            )
            continue
        if stamp_at(address) != stamp:
            yield Difference(task.run.name, key, "was made from other golds, predictions, schemas or by another scorer")
        if not there.equals(rows):
            yield from _row_differences(task.run.name, key, there.to_pylist(), rows.to_pylist())


def _row_differences(run: str, key: str, there: list[Any], here: list[Any]) -> Iterator[Difference]:
    stored, made = _by_document(there), _by_document(here)
    for doc_id in sorted(stored.keys() | made.keys()):
        one, other = stored.get(doc_id), made.get(doc_id)
        if one == other:
            continue
        if one is None or other is None:
            yield Difference(run, doc_id, f"{key}: {'has no rows' if one is None else 'should have no rows'}")
        elif len(one) != len(other):
            yield Difference(run, doc_id, f"{key}: {len(one)} rows, should have {len(other)}")
        else:
            names = sorted({name for a, b in zip(one, other, strict=True) for name in b if a[name] != b[name]})
            first = next((a, b) for a, b in zip(one, other, strict=True) if a != b)
            name = names[0]
            yield Difference(
                run, doc_id, f"{key}: {', '.join(names)}: {first[0][name]!r}, should be {first[1][name]!r}"
            )


def _by_document(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row["doc_id"], []).append(row)
    return found


# --- what is derived ----------------------------------------------------------------------------------------------


def _derived_differences(stored: StoredRun, expected: Mapping[str, bytes]) -> Iterator[Difference]:
    for name, data in expected.items():
        try:
            there = storage.read(storage.join(stored.address, name))
        except FileNotFoundError:
            yield Difference(stored.name, name, "is not there; the same benchmark makes it")
            continue
        if there != data:
            lines, should = (text.decode("utf-8", "replace").splitlines() for text in (there, data))
            pairs = itertools.zip_longest(lines, should)
            at, (one, other) = next((at, pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
            yield Difference(stored.name, name, f"line {at} is {_short(one)}, should be {_short(other)}")


def _short(text: str | None) -> str:
    return "not there" if text is None else repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
