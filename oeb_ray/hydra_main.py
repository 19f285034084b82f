"""Hydra's command line for jobs/: overrides, groups, --config-dir, --cfg, --help and -m.

The function that Hydra decorates only collects the composed configs; afterwards they are run as one job. Words alone,
without a flag, are composed without it, so that a wrong one gets the same message as on the command line `oeb`.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import hydra

from . import envfile
from .cli.base import ended
from .cli.job import run_and_print
from .config import Job, composed, conf_dir, read_job


def main(values: Mapping[str | tuple[str, ...], Any] | None = None) -> int:
    """Runs the job that the command line describes, with ``values`` of the config set; returns the exit code."""
    return ended(lambda: _run(_collected(), values))


def report() -> int:
    """Writes the pages of what the config's output holds; returns the exit code."""
    return ended(lambda: max((_report(read_job(config)) for config in _collected()), default=0))


def _report(job: Job) -> int:
    from .cli.pages import worked_through
    from .report.build import build
    from .report.facts import gather

    manifest = None if job.repo else job.manifest or None
    facts = gather(job.out, manifest=manifest, data_root=None if job.repo else job.data_root)
    with worked_through(job.cluster["kind"] == "inline", job.cluster.get("address")) as mapped:
        print(build(facts, job.pages, mapped))
    return 0


def _collected() -> list[Any]:
    """The configs that the command line composes: one, several under ``-m``, none for ``--cfg`` and ``--help``."""
    envfile.load()
    words = sys.argv[1:]
    if not any(word.startswith("-") for word in words):
        return [composed(words)]
    found: list[Any] = []

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
    def collect(config: Any) -> None:
        found.append(config)

    with tempfile.TemporaryDirectory() as sweeps:
        os.environ["OEB_SWEEP_DIR"] = sweeps
        try:
            collect()
        except SystemExit as code:
            sys.exit(2 if code.code == 1 else code.code)
    return found


def _run(configs: list[Any], values: Mapping[str | tuple[str, ...], Any] | None) -> int:
    if not configs:
        return 0
    return run_and_print(*(read_job(config, values) for config in configs))
