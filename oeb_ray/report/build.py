"""A report as a folder: every page written, documents in parallel.

In: an output, where to write, and how to work through Batches. Out: the address of the first page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .. import storage
from ..errors import RequestError
from .batch import Counts, batches, do_batch, image_name, values_name
from .facts import Facts
from .site import Site

WRITERS = 8
Mapped = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]  # works through items, in any order


def in_this_process(work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """The plainest Mapped."""
    return map(work, items)


def build(facts: Facts, folder: str, mapped: Mapped = in_this_process) -> str:
    """Writes a report and returns the address of its first page.

    Files of an earlier report of the same folder that this one does not have are deleted.

    Raises:
        RequestError: the folder holds something else.
    """
    folder = storage.absolute(folder)
    before = set(storage.listed(folder))
    if before and "static/report.js" not in before:
        raise RequestError(f"{folder} holds {len(before)} files and no report; choose another folder")
    counts = Counts()
    for one in mapped(do_batch, batches(facts, folder)):
        counts.add(one)
    site = Site(facts, counts)
    names = list(site.names())
    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(lambda name: _write(site, folder, name), names))
    for name in before - written(facts, counts) - set(names):
        storage.delete(storage.join(folder, name))
    return storage.join(folder, "index.html")


def written(facts: Facts, counts: Counts) -> set[str]:
    """Names of the files that Batches have written."""
    values = {values_name(number, run) for number, (runs, _) in counts.patterns.items() for run in runs}
    images = {
        image_name(number, page) for number, (count, _, _) in counts.pictured.items() for page in range(1, count + 1)
    }
    return values | images


def _write(site: Site, folder: str, name: str) -> None:
    data = site.render(name)
    assert data is not None
    storage.put(storage.join(folder, name), data)
