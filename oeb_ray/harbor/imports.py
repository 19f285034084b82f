"""A Harbor job becomes Runs: one per agent and model, graded here, with the job's rewards beside ours.

In: a job's folder, and the corpus that its tasks were made of (the tasks themselves, or what they were exported from).
Out: Runs, and ``harbor.jsonl`` in each: a row per trial, also of those that have no reward. Nothing is asked again.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .. import media, storage
from ..ask import Outcome, adopted
from ..cluster.inline import InlineCluster
from ..cluster.work import store
from ..corpus.manifest import Corpus
from ..errors import RequestError
from ..folders import claim_folders
from ..imports import refuse_others
from ..jsontext import line
from ..plan import Selection, make_plan
from ..providers.contract import Document, typed
from ..providers.registry import find, name_of, settings_for
from ..records import Doc, Run
from ..run import execute
from ..runstate import Progress
from ..scoring.value_f1 import NAME
from .cases import annotations_of, case_id_of
from .rewards import judge_run
from .tasks import task_name
from .trials import Trial, read_job

ROWS = "harbor.jsonl"
EQUAL = 1e-9  # rewards that differ by less are the same


@dataclass(frozen=True)
class Imported:
    """One Run of a job. ``rows``: one per trial, see `import_job`; ``mean_there``, ``mean_here``: over all trials, one
    without a reward counting 0; ``odd``: trials whose reward is none or flagged; ``other``: those with another one."""

    run: str
    rows: list[dict[str, Any]]
    mean_there: float
    mean_here: float | None
    odd: list[dict[str, Any]]
    other: list[dict[str, Any]]


def import_job(source: str, out: str, corpus: Corpus, progress: Progress) -> list[Imported]:
    """Takes over a job. The same import again changes nothing.

    Each row has ``trial``, ``task``, ``reward_there`` (None if that is no number from 0 to 1), ``odd`` (what is wrong
    with it, or None), ``reward_here``, ``status_here`` and ``why_here`` (see `judge_run`) and ``error``.

    Raises:
        RequestError: no job, none of its tasks is in the corpus, or the output holds other work; nothing was written.
    """
    source, out = storage.absolute(source), storage.absolute(out)
    known = _by_task(corpus)
    groups = _groups(read_job(source))
    if not any(trial.task in known for trials in groups.values() for trial in trials):
        raise RequestError(f"{source} ran no task of the corpus {corpus.identity}; give the tasks it ran with --tasks")
    return [
        _import_run(source, out, corpus, known, run, trials, progress)
        for run, trials in ((_run_of(*key), trials) for key, trials in groups.items())
    ]


def _by_task(corpus: Corpus) -> dict[str, Doc]:
    """The documents by the names that their tasks have or could have."""
    docs = [corpus.doc(position) for position in range(len(corpus))]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(_task_of, docs))
    return {doc.doc_id: doc for doc in docs} | dict(zip(found, docs, strict=True))


def _task_of(doc: Doc) -> str:
    try:
        return task_name(case_id_of(doc, annotations_of(doc)), doc.suite)
    except (ValueError, FileNotFoundError):  # no name of a task; judging says what is wrong
        return doc.doc_id


def _groups(trials: Sequence[Trial]) -> dict[tuple[str, str, int], list[Trial]]:
    """Trials by agent, model and attempt at the task."""
    groups: dict[tuple[str, str, int], list[Trial]] = defaultdict(list)
    attempts: dict[tuple[str, str, str], int] = defaultdict(int)
    for trial in trials:
        attempts[trial.agent, trial.model, trial.task] += 1
        groups[trial.agent, trial.model, attempts[trial.agent, trial.model, trial.task]].append(trial)
    return dict(sorted(groups.items()))


def _run_of(agent: str, model: str, attempt: int) -> Run:
    """The Run of an agent; a further attempt has the name that repeats have."""
    settings = settings_for("command", {"command": f"harbor run -a {agent}", "agent": agent, "model": model})
    options, _ = typed(find("command").Options, {}, "command")
    name = name_of("command", settings) + (f"~{attempt}" if attempt > 1 else "")
    return Run(name, "command", settings, {"timeout_s": 1800.0, **options})


def _import_run(
    source: str,
    out: str,
    corpus: Corpus,
    known: dict[str, Doc],
    run: Run,
    trials: Sequence[Trial],
    progress: Progress,
) -> Imported:
    taken = [(trial, known[trial.task]) for trial in trials if trial.task in known]
    rewards: dict[str, dict[str, Any]] = {}
    if taken:
        selection = Selection(score_only=True, scorers=(NAME,))
        make_plan(out, corpus, [run], selection)  # refuses a folder of other work
        with ThreadPoolExecutor(8) as threads:
            outcomes = list(threads.map(lambda pair: _outcome(pair[0], pair[1], run, corpus, source), taken))
            refuse_others(out, run, corpus, outcomes)
            claim_folders(out, corpus, [run])
            list(threads.map(lambda outcome: store(out, run, outcome, replace=False), outcomes))
        execute(make_plan(out, corpus, [run], selection), InlineCluster(), progress)
        rewards = {row["task"]: row for row in judge_run(out, run.name, corpus)}
    rows = [_row(trial, known.get(trial.task), rewards) for trial in trials]
    storage.put(storage.join(out, run.name, ROWS), "".join(f"{line(row)}\n" for row in rows).encode())
    here = [row["reward_here"] for row in rows]
    return Imported(
        storage.join(out, run.name),
        rows,
        math.fsum(row["reward_there"] or 0.0 for row in rows) / len(rows),
        math.fsum(reward or 0.0 for reward in here) / len(rows) if taken else None,
        [row for row in rows if row["odd"]],
        [row for row in rows if _differs(row)],
    )


def _row(trial: Trial, doc: Doc | None, rewards: dict[str, dict[str, Any]]) -> dict[str, Any]:
    here = rewards.get(doc.doc_id, {}) if doc else {"status": "no such task in the corpus"}
    return {
        "trial": trial.name,
        "task": trial.task,
        "reward_there": trial.reward,
        "odd": trial.odd or None,
        "reward_here": here.get("reward"),
        "status_here": here.get("status"),
        "why_here": here.get("why"),
        "error": trial.error or None,
    }


def _differs(row: dict[str, Any]) -> bool:
    there, here = row["reward_there"], row["reward_here"]
    return there is not None and here is not None and abs(there - here) > EQUAL


def _outcome(trial: Trial, doc: Doc, run: Run, corpus: Corpus, source: str) -> Outcome:
    """A trial's evidence in our shape; what it left counts, whatever ended it."""
    data = storage.read(doc.doc_path)
    name = doc.doc_path.rsplit("/", 1)[-1]
    document = Document(doc.doc_id, name, media.media_type(data, name), data)
    kind, _, message = trial.error.partition(": ")
    found: dict[str, Any] = {
        "raw": {"trial": trial.name, "exception": trial.error or None},
        "cost": {
            "usd": trial.usd,
            "source": "result.json" if trial.usd is not None else None,
            "tokens_in": trial.tokens_in,
            "tokens_out": trial.tokens_out,
            "wall_s": trial.seconds,
            "attempts": 1,
        },
        "run_manifest": {"captured_at": trial.started, "timed_out": kind == "AgentTimeoutError"},
    }
    if trial.output is None:
        found["error"] = {"type": kind or "VendorError", "message": message or "it left no output.json"}
    place = storage.join(source, trial.name)
    return adopted(document, corpus.stamps[doc.doc_path], doc.schema_sha256, run, trial.output, found, place)
