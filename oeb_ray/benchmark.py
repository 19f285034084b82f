"""A benchmark from Python: what `oeb benchmark` does, for scripts and notebooks.

In: providers and the same choices as the command's flags. Out: summaries by run. Nothing here reads standard input;
progress goes to standard error, as plain lines where that is no terminal.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import progress, run
from .config import Job
from .corpus import hub
from .errors import MissingCredential
from .plan import expand
from .providers.models import GROUP
from .providers.registry import paid
from .records import Run
from .request import PerProvider, job_of
from .scorers import SCORERS, find
from .signals import noted_interrupts

__all__ = ["BenchmarkRun", "ProviderRun", "Run", "Summaries"]

COUNTS = ("documents", "scored", "coverage")


@dataclass(frozen=True)
class ProviderRun:
    """Every Run that goes through one pool. ``cap``: calls in flight there; None for a provider that needs no pool."""

    provider: str
    cap: int | None
    runs: list[Run]


class Summaries(dict[str, dict[str, Any]]):
    """The summary of each run by its name, as summary.json has it; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        known = dict.fromkeys(mean for name in SCORERS for mean in find(name).means)
        means = [mean for mean in known if any(mean in one for one in self.values())]
        shown = (*COUNTS, *means)
        head = "".join(f"<th>{name}</th>" for name in ("run", *shown))
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td>{''.join(f'<td>{_figure(one.get(key))}</td>' for key in shown)}</tr>"
            for name, one in self.items()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _figure(value: float | None) -> str:
    return f"{value:.4f}" if isinstance(value, float) else "" if value is None else str(value)


class BenchmarkRun:
    """A corpus through every provider and option set: predicted, then graded; resumes where an earlier one ended.

    Args:
        providers: names of `ALL_PROVIDERS` or of the dataset card, and model ids.
        out: folder or URL for the runs.
        data_root: where a dataset of the hub lands (default: the Hugging Face cache), or the manifest's paths start.
        manifest: a manifest of one's own. repo: another dataset of the hub, ``org/name`` or ``org/name@revision``.
        suites: these suites only. limit: then the first so many documents; 0 for all.
        timeout: seconds that one document may take.
        predict_workers: documents in flight, for every vendor or by provider name; 0 or None: the provider's own.
        score_workers: processors used; 0 for all.
        verdicts: write verdicts. rescore: score every document again. score_only: call no vendor.
        options: option sets by provider: ``{"datalab": [{"mode": "fast"}, {"mode": "accurate"}]}``.
        overrides: any further value of the config, as on the command line: ``["cluster=inline"]``.

    Raises:
        RequestError: what cannot be asked for; all problems at once.
    """

    def __init__(
        self,
        providers: Sequence[str],
        out: str = "runs",
        data_root: str | None = None,
        manifest: str | None = None,
        repo: str | None = None,
        suites: Sequence[str] | None = None,
        limit: int = 0,
        timeout: float = 1800.0,
        predict_workers: PerProvider = None,
        score_workers: int = 0,
        verdicts: bool = True,
        rescore: bool = False,
        score_only: bool = False,
        options: Mapping[str, Any] | None = None,
        *,
        overrides: Sequence[str] = (),
    ) -> None:
        values = {
            "storage.root": str(out),
            "suites": None if suites is None else list(suites),
            "limit": limit,
            "timeout": timeout,
            "cluster.cpus": score_workers or None,
            "verdicts": verdicts,
            "rescore": rescore,
            "score_only": score_only,
        }
        self.job: Job = job_of(
            list(providers), options, values, manifest=manifest, repo=repo, data_root=data_root,
            in_flight=predict_workers, overrides=overrides,
        )  # fmt: skip

    @property
    def provider_runs(self) -> list[ProviderRun]:
        """Every Run, grouped by the pool that it goes through. Needs no key and calls nobody."""
        job = self.job
        try:
            runs, _ = expand(job.providers, job.timeout, calls=not job.score_only)
        except MissingCredential:  # then nobody can say which of them share a key
            runs, _ = expand(job.providers, job.timeout, calls=False)
        pools: dict[str, list[Run]] = {}
        for one in runs:
            vendor = paid(one.provider, one.settings)
            account = f"{vendor.name} {vendor.host(one.settings, one.options)}" if vendor else one.provider
            pools.setdefault(one.lane.account if one.lane else account, []).append(one)
        return [self._provider_run(members) for members in pools.values()]

    def _provider_run(self, runs: list[Run]) -> ProviderRun:
        first = runs[0]
        vendor = paid(first.provider, first.settings)
        if vendor is None:
            return ProviderRun(first.provider, None, runs)
        given = self.job.providers.get(GROUP if "/" in first.provider else first.provider, {}).get("in_flight")
        return ProviderRun(vendor.name, min([one.lane.cap for one in runs if one.lane] or [given or vendor.cap]), runs)

    def describe(self) -> str:
        """The plan as text: runs with their settings, and what each still needs. Calls nobody, downloads nothing.

        Raises:
            RequestError: the corpus or the output cannot be used.
        """
        plan = run.plan_from_here(self.job)
        if plan is not None:
            return progress.plan_as_text(plan)
        listed = [
            f"{one.name}  {', '.join(f'{key}={value!r}' for key, value in one.settings.items())}"
            for pool in self.provider_runs
            for one in pool.runs
        ]
        corpus = hub.identity(self.job.repo or "")
        return "\n".join([f"out        {self.job.out}", f"corpus     {corpus}, not fetched yet", *listed])

    def execute(self, confirm: Callable[[str], bool] | None = None) -> Summaries:
        """Predicts and grades what is missing, and returns the summaries by run.

        Args:
            confirm: asked with the text of the plan before anything is sent; nothing is done unless it says yes.

        Raises:
            MissingCredential, RequestError: found before any call. AccountFailure: a vendor refuses the account, or a
                limit is reached; all else was done. StorageError, InternalError, Stopped: nothing more could be done.
        """
        plan = run.plan_job(self.job)
        if confirm is not None and not plan.is_done() and not confirm(progress.plan_as_text(plan)):
            return Summaries()
        screen = progress.Screen(sys.stderr)
        for warning in plan.warnings:
            screen.note(f"warning: {warning}")
        with noted_interrupts() as interrupts, screen:
            outcome = run.carry_out(self.job, plan, screen, interrupts)
        for error in outcome.stopped.values():
            raise error
        return Summaries(outcome.summaries)
