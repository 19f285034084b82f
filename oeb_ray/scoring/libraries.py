"""Loads what scorers load when they first need it, for a process whose memory is limited afterwards."""

from __future__ import annotations

import numpy as np

from .solver import linear_sum_assignment


def load_libraries() -> None:
    """Loads numpy, scipy and the buffers of BLAS, which would wait for ever for memory that it may not have."""
    table = np.ones((256, 256), dtype=np.float32)
    linear_sum_assignment(table @ table)
    linear_sum_assignment((table.astype(np.float64) @ table.astype(np.float64))[:8, :8])
