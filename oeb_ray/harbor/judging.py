"""Many outputs judged in processes of their own, so that none can stop the others: bounded in time and memory.

In: per task the bytes of its reference and of its output. Out: what each earns, or why nobody can say. It imports no
more than the verifier, since every process does.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, TimeoutError
from concurrent.futures.process import BrokenProcessPool
from typing import NamedTuple

from .verifier import MEMORY, Fault, Judged, judged_text

PROCESSES = 4
WORTH = 8  # outputs for which another process is worth its start


class Submitted(NamedTuple):
    """An output to judge; None where there is none. ``reference``: JSON, as reference.json of a task has it."""

    reference: bytes
    output: bytes | None


def judge(submitted: Submitted) -> Judged | str:
    """What one output earns, or the verifier's fault."""
    try:
        reference = json.loads(submitted.reference.decode("utf-8"))
        if not isinstance(reference, dict):
            return "the reference is no object"
        return judged_text(reference, submitted.output)
    except Fault as fault:
        return str(fault)
    except MemoryError:
        return "scoring takes more memory than there is"
    except (ValueError, RecursionError) as error:
        return f"the reference cannot be read: {error}"


def judge_all(
    count: int,
    submit: Callable[[int], Submitted],
    seconds: float,
    work: Callable[[Submitted], Judged | str] = judge,
) -> Iterator[Judged | str]:
    """What each of ``count`` outputs earns, in their order.

    Args:
        submit: gives an output by its number. seconds: that one may take. work: what a process does with it.
    """
    waiting, processes = list(range(count)), min(PROCESSES, -(-count // WORTH), os.cpu_count() or 1)
    while waiting:
        pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"), _bound_memory)
        try:
            for batch in _batches(waiting, 4 * processes):
                for future in [pool.submit(work, submit(number)) for number in batch]:
                    yield future.result(seconds)
                    waiting.pop(0)
        except TimeoutError:
            waiting.pop(0)
            yield f"scoring took more than {seconds:g} s"
        except BrokenProcessPool:
            if processes == 1:  # so it was this output's
                waiting.pop(0)
                yield "the process that scored it was killed"
            processes = 1
        finally:
            for process in multiprocessing.active_children() if waiting else ():
                process.kill()
            pool.shutdown(cancel_futures=True)


def _batches(numbers: Sequence[int], size: int) -> list[list[int]]:
    return [list(numbers[start : start + size]) for start in range(0, len(numbers), size)]


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
