"""Score what is recorded and call nobody: `python -m jobs.score provider=[datalab] corpus=sample storage.root=runs`."""

import sys

from oeb_ray.hydra_main import main

if __name__ == "__main__":
    sys.exit(main({"score_only": True}))
