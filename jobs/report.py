"""The pages of what is recorded: `python -m jobs.report corpus=sample storage.root=runs pages=report`."""

import sys

from oeb_ray.hydra_main import report

if __name__ == "__main__":
    sys.exit(report())
