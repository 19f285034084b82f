"""`python -m oeb_ray` is `oeb`."""

import sys

from .cli.main import main

sys.exit(main())
