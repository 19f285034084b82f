"""Documents graded one by one in a child process with a limit on its memory, so that none takes its worker along.

In: what is given of a document. Out: its row and its verdicts' table, or None where the child ran out of memory.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import sys
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, NamedTuple

from ..scorers import find
from ..scorers.contract import Given

ENDING_SECONDS = 5.0  # that a child without work may take to end


class Marked(NamedTuple):
    """A graded document: its row, and the Arrow table of its verdicts; None if there is none."""

    row: dict[str, Any]
    verdicts: Any


def mark(scorer: str, doc_id: str, suite: str, given: Given) -> Marked:
    """Grades a document."""
    used = find(scorer)
    graded = used.grade(given)
    if not given.verdicts or graded.scored is None:
        return Marked(graded.row, None)
    return Marked(graded.row, used.verdict_table(doc_id, suite, graded.scored))


class Apart:
    """Does what `mark` does for one scorer in a child process, whose data takes at most ``limit`` bytes."""

    def __init__(self, limit: int, scorer: str) -> None:
        self._limit, self._scorer = limit, scorer
        self._child: tuple[Any, Connection] | None = None

    def mark(self, doc_id: str, suite: str, given: Given) -> Marked | None:
        """None: the document takes more memory than the limit, or than the machine has left."""
        child, line = self._child = self._child or self._begun()
        try:
            line.send((doc_id, suite, given))
            marked: Marked = line.recv()
            return marked
        except (EOFError, OSError):  # it has died
            child.join()
            self._child = None
            return None

    def _begun(self) -> tuple[Any, Connection]:
        spawn = multiprocessing.get_context("spawn")  # not by fork: a worker has threads
        ours, theirs = spawn.Pipe()
        child = spawn.Process(target=_serve, args=(theirs, self._limit, self._scorer), daemon=True)
        child.start()
        theirs.close()
        return child, ours

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._child is not None:
            child, line = self._child
            line.close()
            child.join(ENDING_SECONDS)
            child.kill()


def _serve(line: Connection, limit: int, scorer: str) -> None:
    """The child: one thread alone, since a process without memory cannot even stop others."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    from ..scoring.libraries import load_libraries  # takes time that most workers need not spend

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_libraries()  # what they take is not the document's
    mark(scorer, "", "", Given(b'{"a": 1}', None, b'{"a": 1}', '{"type": "object", "properties": {"a": {}}}'))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a worker that is killed leaves nothing behind
        with open("/proc/self/statm", encoding="ascii") as file:
            used = int(file.read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + limit, used + limit))
    try:
        while True:
            line.send(mark(scorer, *line.recv()))
    except (EOFError, OSError, MemoryError):
        os._exit(0)
