"""Where the time of scoring goes, by samples: ``python -m tests.bench.shares CASE`` prints shares as Markdown.

The processor's timer interrupts a thousand times a second of work; each time the innermost function of the scorer is
counted. Unlike a tracing profiler it slows small functions down no more than large ones.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from oeb_ray.scoring.field_matching import large, score

SCORER = str(Path(large.__file__).parent)
LEAST = 0.01  # smaller shares are summed up


def samples(documents: list[dict[str, Any]]) -> Counter[str]:
    """Samples per ``module.function`` of the scorer."""
    counted: Counter[str] = Counter()

    def count(_: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.startswith(SCORER):
            frame = frame.f_back
        if frame is not None:
            counted[f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}"] += 1

    signal.signal(signal.SIGPROF, count)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    for one in documents:
        score(one["pred"], one["gold"], one["schema"])
    signal.setitimer(signal.ITIMER_PROF, 0)
    return counted


def told(counted: Counter[str]) -> list[str]:
    """Modules with their largest functions, largest first."""
    whole = max(counted.total(), 1)
    modules: Counter[str] = Counter()
    for name, times in counted.items():
        modules[name.partition(".")[0]] += times
    lines = ["| module | share | of it |", "|---|--:|---|"]
    for module, times in modules.most_common():
        inner = [(name, n) for name, n in counted.most_common() if name.partition(".")[0] == module]
        listed = ", ".join(f"{name.partition('.')[2]} {n / whole:.0%}" for name, n in inner if n / whole >= LEAST)
        if times / whole >= LEAST:
            lines.append(f"| {module} | {times / whole:.0%} | {listed} |")
    return lines


def bare_walk(documents: list[dict[str, Any]]) -> tuple[int, float]:
    """How many values the documents hold, and the seconds of a walk that looks each of them up in a dictionary once."""
    began, seen = time.process_time(), 0
    for one in documents:
        keys: dict[Any, int] = {}
        waiting = [one["pred"], one["gold"]]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting.extend(value.values())
            elif isinstance(value, list):
                waiting.extend(value)
            else:
                keys.setdefault(value, len(keys))
                seen += 1
    return seen, time.process_time() - began


def limit(documents: list[dict[str, Any]]) -> str:
    """How far scoring is from a program that only looks at every value."""
    began = time.process_time()
    for one in documents:
        score(one["pred"], one["gold"], one["schema"])
    seconds = time.process_time() - began
    values, bare = bare_walk(documents)
    return (
        f"Scoring takes {seconds:.3g} s of processor time for {values:,} values, {seconds / values * 1e6:.2f} us each. "
        f"A bare walk that looks every value up in a dictionary once takes {bare:.3g} s, {bare / seconds:.0%} of it: "
        "without compiled code of our own nothing could be quicker than that, and it neither compares nor pairs."
    )


def main() -> None:
    with Path(sys.argv[1]).open(encoding="utf-8") as text:
        documents = [json.loads(line) for line in text]
    counted = samples(documents)
    print("\n".join([limit(documents), "", *told(counted)]))


if __name__ == "__main__":
    main()
