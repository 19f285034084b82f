"""A job from config to summaries: what jobs and the command line call.

In: a Job. Out: a Plan, and once it is executed the summaries by run and what stopped any of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import storage
from .cluster.contract import Cluster
from .config import Job
from .corpus import hub
from .corpus.manifest import Corpus, load
from .driver import Driver
from .errors import OebError, Stopped
from .plan import Plan, Selection, expand, make_plan
from .runstate import Progress, RunState
from .signals import Interrupts


class Outcome(NamedTuple):
    """``summaries`` by run; ``stopped``: the errors that stopped providers, by run; ``states`` as they ended."""

    summaries: dict[str, dict[str, Any]]
    stopped: dict[str, OebError]
    states: list[RunState]


def plan_job(job: Job) -> Plan:
    """Everything that can be refused is refused here, before anything is started or written."""
    runs, warnings = expand(job.providers, job.timeout, calls=not job.score_only)
    corpus = corpus_of(job, hub.fetch(job.repo, job.data_root) if job.repo else None)
    selection = Selection(job.verdicts, job.rescore, job.score_only, job.retry_failed, job.predict_stale)
    plan = make_plan(storage.absolute(job.out), corpus, runs, selection)
    plan.warnings.extend(warnings)
    return plan


def corpus_of(job: Job, fetched: hub.Fetched | None) -> Corpus:
    """The corpus of a job: a dataset that was fetched, or its manifest. Raises RequestError."""
    name = job.corpus_name or (hub.identity(job.repo) if job.repo else None)
    return load(
        fetched.manifest if fetched else job.manifest,
        data_root=None if fetched else job.data_root,
        suites=job.suites,
        limit=job.limit,
        only=job.only,
        identity=name,
        commit=fetched.commit if fetched else None,
    )


def start_cluster(job: Job, *, idle: bool = False) -> Cluster:
    """The place that the job's config names; this process where nothing is to be done. Raises RequestError."""
    kind = job.cluster["kind"]
    if kind == "inline" or idle:
        from .cluster.inline import InlineCluster

        return InlineCluster()
    from .cluster.rays import RayCluster  # 1 s to import

    return RayCluster(job.cluster["address"] if kind == "existing" else None, job.cluster.get("cpus"))


def execute(plan: Plan, cluster: Cluster, progress: Progress, interrupts: Interrupts | None = None) -> Outcome:
    """Does all that the plan says. A provider that is stopped ends alone; what is recorded of it is scored.

    Raises:
        StorageError, InternalError: what stopped everything.
        Stopped: interrupted; what was under way was recorded, and the same job goes on later.
    """
    driver = Driver(plan, cluster, progress, interrupts or Interrupts())
    try:
        driver.go()
    except (Stopped, KeyboardInterrupt) as stopped:
        code = stopped.exit_code if isinstance(stopped, Stopped) else Stopped.exit_code
        progress.note("stopping: nothing more is sent, what is under way may end; a second interrupt ends at once")
        driver.stop(code)
        progress.update(driver.states, force=True)
        raise Stopped("interrupted", code) from None
    except BaseException:
        driver.fail()
        raise
    return Outcome(
        {state.name: state.summary for state in driver.states if state.summary is not None},
        {state.name: state.stopped for state in driver.states if state.stopped is not None},
        driver.states,
    )
