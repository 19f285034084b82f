"""A job from config to summaries: what jobs and the command line call.

In: a Job. Out: a Plan, and once it is executed the summaries by run and what stopped any of them.
"""

from __future__ import annotations

import dataclasses
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

from . import storage
from .clock import REST, phase
from .cluster.contract import Cluster
from .config import Job
from .corpus import extractbench, hub
from .corpus.manifest import Corpus, load
from .driver import Driver
from .errors import OebError, Stopped, refused
from .folders import claim_folders
from .jsontext import pretty
from .plan import Plan, Selection, expand, make_plan
from .receipts import merge_index
from .records import ABSENT, Run
from .runstate import Progress, RunState
from .signals import Interrupts
from .watching import Events, Watching

VERSIONED = ("oeb_ray", "ray", "numpy", "scipy", "pyarrow", "httpx", "msgspec", "pypdfium2", "fsspec", "s3fs")


class Outcome(NamedTuple):
    """``summaries`` by run; ``stopped``: the errors that stopped providers, by run; ``states`` as they ended."""

    summaries: dict[str, dict[str, Any]]
    stopped: dict[str, OebError]
    states: list[RunState]


def plan_job(job: Job, *others: Job) -> Plan:
    """Everything that can be refused is refused here, before anything is started or written.

    Several jobs, as a sweep composes them, are one plan: their Runs share accounts, folder and cluster.

    Raises:
        RequestError: what cannot be done, all at once; or jobs of a sweep that differ in more than their providers.
    """
    jobs = [job, *others]
    expanded = _expanded(jobs)
    if job.source and job.dry_run and not extractbench.laid_out(storage.parent(job.manifest)):
        with tempfile.TemporaryDirectory(prefix="oeb-corpus-") as folder:
            return _plan(jobs, expanded, loaded_corpus(dataclasses.replace(job, manifest=f"{folder}/manifest.parquet")))
    if not (job.repo and job.dry_run):
        return _plan(jobs, expanded, loaded_corpus(job))
    with tempfile.TemporaryDirectory(prefix="oeb-hub-") as folder:
        surveyed = hub.survey(job.repo, job.data_root, folder)
        plan = _plan(jobs, expanded, corpus_of(job, surveyed))
    if absent := sum(stamp.stamp == ABSENT for stamp in plan.corpus.stamps.values()):
        plan.warnings.append(
            f"{absent} files of {job.repo} are not on this machine, and a dry run fetches none; whether "
            "they have changed since they were used is seen by their size alone"
        )
    return plan


def plan_from_here(job: Job) -> Plan | None:
    """As `plan_job`, without keys, calls and downloads; None where the corpus has not been fetched yet."""
    fetched = hub.cached(job.repo, job.data_root) if job.repo else None
    expanded = _expanded([dataclasses.replace(job, score_only=True)])
    if job.source:
        fetched = _laid_out(extractbench.laid_out(storage.parent(job.manifest)))
    if (job.repo or job.source) and fetched is None:
        return None
    return _plan([job], expanded, corpus_of(job, fetched))


def _plan(jobs: list[Job], expanded: tuple[list[Run], list[str]], corpus: Corpus) -> Plan:
    job, (runs, warnings) = jobs[0], expanded
    selection = Selection(
        job.verdicts, job.rescore, job.score_only, job.retry_failed, job.predict_stale,
        () if job.predict_only else job.scorers,
    )  # fmt: skip
    plan = make_plan(storage.absolute(job.out), corpus, runs, selection)
    plan.warnings.extend(warnings)
    plan.prices = job.prices
    plan.config = {"jobs": [each.config for each in jobs], "versions": _versions()}
    return plan


def loaded_corpus(job: Job) -> Corpus:
    """The corpus of a job; one of the hub is fetched first, one with a source laid out. Raises RequestError."""
    if job.source:
        return corpus_of(job, _laid_out(extractbench.lay_out(job.source, storage.parent(job.manifest))))
    return corpus_of(job, hub.fetch(job.repo, job.data_root) if job.repo else None)


def _laid_out(made: extractbench.LaidOut | None) -> hub.Fetched | None:
    return None if made is None else hub.Fetched(made.manifest, made.commit)


def corpus_of(job: Job, fetched: hub.Fetched | None) -> Corpus:
    """The corpus of a job: a dataset that was fetched, or its manifest. Raises RequestError."""
    name = job.corpus_name or (hub.identity(job.repo) if job.repo else job.source)
    return load(
        fetched.manifest if fetched else job.manifest,
        data_root=fetched.root if fetched else job.data_root,
        suites=job.suites,
        limit=job.limit,
        only=job.only,
        identity=name,
        commit=fetched.commit if fetched else None,
        absent=fetched.absent if fetched else {},
    )


def _versions() -> dict[str, str]:
    """What is installed of all that can change a figure or a request."""
    found = {}
    for name in VERSIONED:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _expanded(jobs: list[Job]) -> tuple[list[Run], list[str]]:
    """The Runs of all jobs, and warnings."""
    first = jobs[0]
    problems = [
        f"{field.name}={getattr(job, field.name)!r} in one job of the sweep, {getattr(first, field.name)!r} in another"
        for job in jobs[1:]
        for field in dataclasses.fields(Job)
        if field.name not in ("providers", "config") and getattr(job, field.name) != getattr(first, field.name)
    ]
    if problems:
        raise refused("jobs of a sweep may differ in providers and their options only", dict.fromkeys(problems))
    runs: dict[str, Run] = {}
    warnings: list[str] = []
    for job in jobs:
        made, more = expand(job.providers, job.timeout, calls=not job.score_only, repeats=job.repeats)
        warnings += more
        for run in made:
            known = runs.setdefault(run.name, run)
            if known.options != run.options:
                problems.append(f"{run.name}: asked for with {run.options} and with {known.options}")
    if problems:
        raise refused("one run cannot be asked for in two ways; write to two outputs", problems)
    return list(runs.values()), list(dict.fromkeys(warnings))


def start_cluster(job: Job, *, idle: bool = False) -> Cluster:
    """The place that the job's config names; this process where nothing is to be done. Raises RequestError."""
    kind = job.cluster["kind"]
    if kind == "inline" or idle:
        from .cluster.inline import InlineCluster

        return InlineCluster()
    from .cluster.rays import RayCluster  # 1 s to import

    return RayCluster(job.cluster["address"] if kind == "existing" else None, job.cluster.get("cpus"))


def carry_out(job: Job, plan: Plan, progress: Progress, interrupts: Interrupts) -> Outcome:
    """As `execute`, on the cluster that the job names, which ends with it; calls alone need no Ray of our own."""
    events = Events(job.events)
    calls_only = not plan.selection.scorers and all(made.run.lane for made in plan.runs)
    idle = plan.is_done() or (calls_only and job.cluster["kind"] == "local")
    kind = phase(REST if idle or job.cluster["kind"] == "inline" else "Ray")
    with kind:
        cluster = start_cluster(job, idle=idle)
    interrupts.install()  # Ray has put its own handler in place
    try:
        return execute(plan, cluster, progress, interrupts, events)
    finally:
        with kind:
            cluster.close()


def execute(
    plan: Plan, cluster: Cluster, progress: Progress, interrupts: Interrupts | None = None, events: Events | None = None
) -> Outcome:
    """Does all that the plan says. A provider that is stopped ends alone; what is recorded of it is scored.

    Raises:
        StorageError, InternalError: what stopped everything.
        Stopped: interrupted; what was under way was recorded, and the same job goes on later.
    """
    watching = Watching(cluster, progress, events or Events())
    driver = Driver(plan, watching, watching, interrupts or Interrupts())
    _claim_folders(plan)
    error: BaseException | None = None
    try:
        watching.begin(plan.out, driver.states)
        driver.go()
    except (Stopped, KeyboardInterrupt) as stopped:
        code = stopped.exit_code if isinstance(stopped, Stopped) else Stopped.exit_code
        progress.note("stopping: nothing more is sent, what is under way may end; a second interrupt ends at once")
        driver.stop(code)
        watching.update(driver.states, force=True)
        error = Stopped("interrupted", code)
        raise error from None
    except BaseException as failure:
        error = failure
        driver.fail()
        raise
    finally:
        driver.steering.end()
        watching.end(driver.states, error)
    return Outcome(
        {state.name: state.summary for state in driver.states if state.summary is not None},
        {state.name: state.stopped for state in driver.states if state.stopped is not None},
        driver.states,
    )


def _claim_folders(plan: Plan) -> None:
    """settings.json first; what is to be asked leaves the index before, since new records count anew."""
    claim_folders(plan.out, plan.corpus, [made.run for made in plan.runs])
    for made in plan.runs:
        storage.put(storage.join(plan.out, made.run.name, "config.json"), pretty(plan.config))
        if made.receipts:
            asked = frozenset(plan.corpus.ids[position] for position in made.predict)
            merge_index(plan.out, made.run.name, (), without=asked)
