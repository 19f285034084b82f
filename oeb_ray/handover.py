"""A whole manifest asked for, and handed over to `oeb score` as a table of predictions.

In: a provider and a manifest. Out: a Job that predicts and scores nothing, and afterwards its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import layout, storage
from .config import Job
from .corpus.predictions import check_place, predictions_of
from .errors import RequestError
from .plan import Plan, expand
from .providers.registry import CARD_NAMES, find
from .request import job_of


def table_job(
    provider: str,
    options: dict[str, Any],
    out: str,
    *,
    manifest: str,
    root: str | None,
    timeout: float | None,
    overlay: bool,
    limit: int | None,
    retry_failed: str | None,
    overrides: Sequence[str] = (),
) -> Job:
    """The job of asking one provider for all documents of a manifest, and scoring none.

    Raises:
        RequestError: what cannot be asked for; ``out`` holds the table of another run, or something else.
    """
    name, _ = CARD_NAMES.get(provider, (provider, {}))
    run_options = find(name).Options.__dataclass_fields__
    given = {**options, **({"overlay": False} if "overlay" in run_options and not overlay else {})}
    settings = {key: value for key, value in given.items() if key not in run_options}
    values = {
        "storage.root": out,
        "timeout": timeout,
        "limit": limit,
        "retry_failed": retry_failed,
        "predict_only": True,
    }
    job = job_of(
        [provider], {provider: settings}, values, manifest=manifest, data_root=root, overrides=overrides,
        run_options={name: {key: value for key, value in given.items() if key in run_options}},
    )  # fmt: skip
    runs, _ = expand(job.providers, job.timeout)
    if len(runs) > 1:
        raise RequestError(f"one run makes one table; asked for are {', '.join(run.name for run in runs)}")
    check_place(_table_of(job.out), runs[0].name)
    return job


def write_table(job: Job, plan: Plan) -> str:
    """Writes the table of what is recorded, and returns its address."""
    (made,) = plan.runs
    address = _table_of(plan.out)
    told = {}
    for position in plan.corpus.selected:
        doc_id = plan.corpus.ids[position]
        receipt = made.receipts.get(doc_id)
        if receipt is not None:
            path = layout.prediction(plan.out, made.run.name, doc_id) if receipt.prediction_sha256 else None
            told[doc_id] = path, receipt.error
    storage.put(address, predictions_of(storage.absolute(job.manifest), told, made.run.provider, made.run.name))
    return address


def _table_of(out: str) -> str:
    return storage.join(storage.absolute(out), "manifest.parquet")
