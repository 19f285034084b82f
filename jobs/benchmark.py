"""Predict and score: `python -m jobs.benchmark provider=[replay] providers.replay.options=[{system: a}] ...`."""

import sys

from oeb_ray.hydra_main import collected_jobs, run_jobs

if __name__ == "__main__":
    sys.exit(run_jobs(collected_jobs()))
