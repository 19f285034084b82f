"""Predict and score nothing: `python -m jobs.predict provider=[datalab] corpus=sample limit=2`."""

import sys

from oeb_ray.hydra_main import main

if __name__ == "__main__":
    sys.exit(main({"predict_only": True}))
