"""`python -m oeb_ray` is `oeb`."""

import sys

from .cli import main

sys.exit(main())
