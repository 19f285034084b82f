"""Predict and score: `python -m jobs.benchmark provider=[replay] 'providers.replay.options=[{system: a}]' ...`."""

import sys

from oeb_ray.hydra_main import main

if __name__ == "__main__":
    sys.exit(main())
