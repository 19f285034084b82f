"""Hydra's command line for jobs/: overrides, groups, --config-dir, --cfg, --help and -m.

The function that Hydra decorates only collects the composed configs; afterwards they are run as one job.
"""

from __future__ import annotations

import os
import sys
import tempfile

import hydra
from omegaconf import DictConfig

from .cli import run_and_print
from .config import conf_dir, read_job
from .errors import OebError, RequestError


def collected_jobs() -> list[DictConfig]:
    """The configs that the command line composes: one, several under ``-m``, none for ``--cfg`` and ``--help``."""
    found: list[DictConfig] = []

    @hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="config")
    def collect(config: DictConfig) -> None:
        found.append(config)

    with tempfile.TemporaryDirectory() as sweeps:
        os.environ["OEB_SWEEP_DIR"] = sweeps
        try:
            collect()
        except SystemExit as ended:
            sys.exit(2 if ended.code == 1 else ended.code)
    return found


def run_jobs(configs: list[DictConfig]) -> int:
    """Runs what was collected and returns the exit code."""
    if not configs:
        return 0
    try:
        if len(configs) > 1:
            raise RequestError(
                "-m with several jobs cannot run yet; give options=[...] or grid={...} of a provider instead"
            )
        return run_and_print(read_job(configs[0]))
    except OebError as error:
        print(f"oeb: {error}", file=sys.stderr)
        return error.exit_code
