"""Where the time of scoring goes, by samples: ``python -m tests.bench.shares CASE`` prints shares as Markdown.

The processor's timer interrupts a thousand times a second of work; each time the innermost function of the scorer is
counted. Unlike a tracing profiler it slows small functions down no more than large ones.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

from oeb_ray.scoring.field_matching import large, score

SCORER = str(Path(large.__file__).parent)
LEAST = 0.01  # smaller shares are summed up


def samples(documents: list[dict[str, object]]) -> Counter[str]:
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


if __name__ == "__main__":
    with Path(sys.argv[1]).open(encoding="utf-8") as text:
        print("\n".join(told(samples([json.loads(line) for line in text]))))
