"""A run folder of another tool becomes a Run here: its predictions and evidence are taken over and graded again.

In: a folder with settings.json, predictions/<doc_id>.json, records/<doc_id>.json and scores.jsonl, and the corpus. Out:
a Run, and every figure that differs from the folder's scores.jsonl. Nothing is asked again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from . import media, storage
from .ask import Outcome, adopted
from .cluster.inline import InlineCluster
from .cluster.work import store
from .compare import score_rows
from .corpus.manifest import Corpus
from .digests import digest
from .errors import InternalError, RequestError, refused
from .folders import claim_folders
from .jsontext import pretty, read_json
from .plan import Selection, make_plan
from .providers.contract import Document, typed
from .providers.registry import find, name_of, resolved
from .receipts import stored_receipts
from .records import Doc, Run
from .run import execute
from .runstate import Progress
from .scorers.field_matching import SCORE_KEYS
from .stored import StoredRun

TIED = frozenset({"fabricated", "invented_item", "invented_field", "matched_rows"})  # may differ between equal pairings


@dataclass(frozen=True)
class Difference:
    """A figure of a document that is another one here. ``tied``: equally good pairings of rows may differ in it."""

    doc_id: str
    figure: str
    there: Any
    here: Any

    @property
    def tied(self) -> bool:
        return self.figure in TIED


@dataclass(frozen=True)
class Imported:
    """What came of an import. ``compared``: documents that both have scores of; ``notes``: what was left out."""

    run: StoredRun
    documents: int
    compared: int
    differences: list[Difference]
    notes: list[str]


def import_run(source: str, out: str, corpus: Corpus, progress: Progress) -> Imported:
    """Takes over a run folder. The same import again changes nothing.

    Raises:
        RequestError: the folder is no such run, none of its documents is in the corpus, or the output holds other work
            or other predictions of that run; nothing was written.
    """
    source, out = storage.absolute(source), storage.absolute(out)
    notes: list[str] = []
    run = _run_of(source, notes)
    names = {
        table: set(storage.listed(storage.join(source, table), deep=False)) for table in ("predictions", "records")
    }
    docs = [corpus.doc(position) for position in range(len(corpus))]
    found = [doc for doc in docs if f"{doc.doc_id}.json" in (names["records"] or names["predictions"])]
    notes.extend(_left_out(names, {doc.doc_id for doc in docs}))
    if not found:
        raise RequestError(f"{source} holds no document of the corpus {corpus.identity}; give the corpus of that run")
    selection = Selection(score_only=True)
    make_plan(out, corpus, [run], selection)  # refuses a folder of other work
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda doc: _outcome(source, run, doc, corpus), found))
        refuse_others(out, run, corpus, outcomes)
        claim_folders(out, corpus, [run])
        list(threads.map(lambda outcome: store(out, run, outcome, replace=False), outcomes))
    ended = execute(make_plan(out, corpus, [run], selection), InlineCluster(), progress)
    if run.name not in ended.summaries:
        raise InternalError(f"{run.name} was taken over and has no summary")
    stored = StoredRun(out, run.name)
    compared, differences = _compared(_rows_of(source), score_rows(stored))
    return Imported(stored, len(found), compared, differences, notes)


def _run_of(source: str, notes: list[str]) -> Run:
    address = storage.join(source, "settings.json")
    try:
        found = read_json(storage.read(address))
    except FileNotFoundError:
        raise RequestError(f"{address} is not there; give the folder of one run") from None
    except ValueError as error:
        raise RequestError(f"{address} is no JSON: {error}") from error
    given = found if isinstance(found, dict) else {}
    wrong = [f"{key}={given.get(key)!r}" for key in ("run", "provider") if not isinstance(given.get(key), str)]
    wrong += [] if isinstance(given.get("settings"), dict) else [f"settings={given.get('settings')!r}"]
    wrong += [] if type(given.get("timeout_s")) in (int, float) else [f"timeout_s={given.get('timeout_s')!r}"]
    if wrong:
        raise refused(f"{address} is not as a run writes it", wrong)
    name, provider, settings = given["run"], given["provider"], given["settings"]
    options, _ = typed(find(provider).Options, {}, provider)
    own = {key: value for key, value in settings.items() if not ("/" in provider and key == "model")}
    known, problems = resolved(provider, own, provider)
    if problems:
        notes.append(f"this version would not run it so: {'; '.join(problems)}")
        if not re.fullmatch(r"[\w.~-]+", name):
            raise RequestError(f"{address}: run={name!r} cannot name a folder")
    else:
        settings = known
        if name_of(provider, settings) != name:
            notes.append(f"{name} is called {name_of(provider, settings)} here, by the values of its settings")
            name = name_of(provider, settings)
    return Run(name, provider, settings, {"timeout_s": float(given["timeout_s"]), **options})


def _left_out(names: Mapping[str, set[str]], known: set[str]) -> Iterable[str]:
    """Notes on files that are not taken over."""
    foreign = sorted(
        name for name in names["predictions"] | names["records"] if name.removesuffix(".json") not in known
    )
    if foreign:
        yield f"{len(foreign)} documents are not in the corpus, such as {foreign[0]!r}"
    begun = sorted(names["predictions"] - names["records"] - set(foreign)) if names["records"] else []
    if begun:
        yield f"{len(begun)} predictions have no record, such as {begun[0]!r}; they count as not done"


def _outcome(source: str, run: Run, doc: Doc, corpus: Corpus) -> Outcome:
    """The document's evidence in our shape."""
    found = _json_or_empty(storage.join(source, "records", f"{doc.doc_id}.json"))
    prediction: bytes | None = None
    try:
        prediction = storage.read(storage.join(source, "predictions", f"{doc.doc_id}.json"))
    except FileNotFoundError:
        if found.get("result") is not None:
            prediction = pretty(found["result"])
    data = storage.read(doc.doc_path)
    name = doc.doc_path.rsplit("/", 1)[-1]
    document = Document(doc.doc_id, name, media.media_type(data, name), data)
    return adopted(document, corpus.stamps[doc.doc_path], doc.schema_sha256, run, prediction, found, source)


def _json_or_empty(address: str) -> dict[str, Any]:
    try:
        found = read_json(storage.read(address))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def refuse_others(out: str, run: Run, corpus: Corpus, outcomes: Iterable[Outcome]) -> None:
    """Raises RequestError if the output holds other predictions of a Run than those that are to be taken over."""
    there = stored_receipts(out, run.name, set(corpus.ids))
    new = {outcome.record["doc_id"]: outcome.prediction for outcome in outcomes}
    other = sorted(
        doc_id
        for doc_id, receipt in there.items()
        if doc_id in new and receipt.prediction_sha256 != (None if (data := new[doc_id]) is None else digest(data))
    )
    if other:
        some = f"{len(other)} documents, such as {other[0]!r}"
        raise RequestError(f"{storage.join(out, run.name)} holds other predictions of {some}; choose another output")


# --- figures ------------------------------------------------------------------------------------------------------


def _rows_of(source: str) -> dict[str, dict[str, Any]]:
    """The rows of the folder's scores.jsonl by doc_id; none if there is none."""
    address = storage.join(source, "scores.jsonl")
    try:
        lines = storage.read(address).splitlines()
        rows = [read_json(line) for line in lines if line.strip()]
        return {row["doc_id"]: row for row in rows}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise RequestError(f"{address} is no file of score rows: {error}") from error


def _compared(there: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[int, list[Difference]]:
    differences = []
    for doc_id in sorted(there.keys() & here.keys()):
        one, other = there[doc_id], here[doc_id]
        figures = SCORE_KEYS if one.get("status") == other["status"] == "scored" else ("status",)
        differences += [
            Difference(doc_id, figure, one.get(figure), other[figure])
            for figure in figures
            if one.get(figure) != other[figure]
        ]
    return len(there.keys() & here.keys()), differences
