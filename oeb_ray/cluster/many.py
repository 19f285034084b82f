"""Pure functions over many items on Ray, in any order.

In: a function that can be pickled, and items. Out: its results as they come. The functions write to storage what is
large, and may be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ray

from .rays import RayCluster


@contextmanager
def many(address: str | None = None) -> Iterator[Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]]:
    """A function that works through items on a Ray of our own, or on the cluster at ``address``."""
    cluster = RayCluster(address)
    try:
        yield _mapped
    finally:
        cluster.close()


def _mapped(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    task = ray.remote(work).options(num_cpus=1, max_retries=2)
    pending = [task.remote(item) for item in items]
    while pending:
        done, pending = ray.wait(pending)
        for one in done:
            yield ray.get(one)
