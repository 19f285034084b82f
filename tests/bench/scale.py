"""How a job grows with its documents: time, memory of the driver, files; and what it takes to find nothing to do.

    python -m tests.bench.scale --documents 1000 10000 100000 --folder /dev/shm/scale

Documents are small and generated; three systems are replayed from a folder, and scored on a Ray of this machine.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from oeb_ray.backends import Folder

SYSTEMS = ("a", "b", "c")
FIELDS = ("number", "date", "name", "total")
SCHEMA = json.dumps({"type": "object", "properties": {name: {"type": "string"} for name in FIELDS}})


def values_of(number: int, system: str) -> dict[str, str]:
    """Gold (system "") or a system's reading: each reads one value in ten wrong."""
    dice = random.Random(f"{system}/{number}")
    gold = {
        "number": f"N{number:08}",
        "date": "2024-03-31",
        "name": f"Customer {number % 977}",
        "total": f"{number}.50",
    }
    return {name: value + "x" * (bool(system) and dice.random() < 0.1) for name, value in gold.items()}


def _write(folder: str, numbers: range) -> None:
    for number in numbers:
        name = f"d{number:08}"
        Path(folder, "docs", f"{name}.txt").write_text(f"{number}\n")
        Path(folder, "gold", f"{name}.json").write_text(json.dumps(values_of(number, "")))
        for system in SYSTEMS:
            Path(folder, "predictions", system, f"{name}.json").write_text(json.dumps(values_of(number, system)))


def make(folder: Path, documents: int) -> None:
    """A corpus with the predictions of three systems."""
    for part in ("docs", "gold", *(f"predictions/{system}" for system in SYSTEMS)):
        (folder / part).mkdir(parents=True)
    with ProcessPoolExecutor() as processes:
        starts = range(0, documents, 5000)
        list(
            processes.map(_write, [str(folder)] * len(starts), [range(at, min(at + 5000, documents)) for at in starts])
        )
    names = [f"d{number:08}" for number in range(documents)]
    table = pa.table(
        {
            "doc_id": names,
            "suite": [f"suite {number % 4}" for number in range(documents)],
            "doc_path": [f"docs/{name}.txt" for name in names],
            "gt_path": [f"gold/{name}.json" for name in names],
            "schema": [SCHEMA] * documents,
        }
    )
    pq.write_table(table, folder / "manifest.parquet")


def job(folder: Path, *more: str) -> list[str]:
    """The words of the benchmark over a corpus."""
    listed = ",".join(f"{{system: {system}}}" for system in SYSTEMS)
    return [
        "corpus=manifest", f"corpus.manifest={folder / 'manifest.parquet'}", "provider=[replay]",
        f"providers.replay.folder={folder / 'predictions'}", f"providers.replay.options=[{listed}]",
        f"storage.root={folder / 'out'}", *more,
    ]  # fmt: skip


PAGE = 1000  # names in one answer of an object store
VERBS = ("read", "put", "create", "delete", "stat", "list", "names", "read_tail", "is_folder", "folders")
CODE = """
import sys
from tests.bench.scale import counting_requests
from tests.bench.side import peak_kb
from oeb_ray.cli.main import main
requests = counting_requests()
ended = main(sys.argv[1:])
print("peak", peak_kb() // 1024, "requests", sum(requests.values()))
sys.exit(ended)
"""


def counting_requests() -> Counter[str]:
    """What this process asks of the local disk from now on, as an object store would count it."""
    counted: Counter[str] = Counter()

    def noted(verb: str, usual: Callable[..., Any], disk: Folder, *given: Any) -> Any:
        found = usual(disk, *given)
        counted[verb] += 1 + (len(found) // PAGE if verb in ("list", "names") else 0)
        return found

    for verb in VERBS:
        setattr(Folder, verb, partialmethod(partial(noted, verb, getattr(Folder, verb))))
    return counted


class Timed(NamedTuple):
    """Seconds, the process's own peak memory in MB, its requests to storage, and what it printed."""

    seconds: float
    memory: float
    requests: int
    text: str


def timed(*words: str) -> Timed:
    """Runs `oeb` in a fresh process."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    text, _, told = done.stdout.rpartition("peak ")
    memory, _, requests = told.split()
    return Timed(time.monotonic() - began, float(memory), int(requests), text)


def measure(folder: Path, documents: int, *more: str) -> dict[str, Any]:
    """One size: made, run, and run again."""
    shutil.rmtree(folder, ignore_errors=True)
    make(folder, documents)
    first = timed("benchmark", *job(folder, *more))
    again = timed("benchmark", *job(folder, *more))
    shown = timed("show", str(folder / "out"))
    parts = list((folder / "out").glob("*/scores.parquet/**/*.parquet"))
    return {
        "documents": documents, "seconds": round(first.seconds, 1),
        "ms per document and run": round(first.seconds / documents / len(SYSTEMS) * 1000, 2),
        "driver MB": first.memory, "again s": round(again.seconds, 1), "again MB": again.memory,
        "again requests": again.requests, "show s": round(shown.seconds, 2),
        "parts of a table": len(parts) // len(SYSTEMS), "at most": documents // 32,
    }  # fmt: skip


def main() -> None:
    """Prints a line for each size."""
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--documents", type=int, nargs="+", default=[1000, 10000])
    read.add_argument("--folder", type=Path, default=Path("/dev/shm/oeb-scale"))
    read.add_argument("--keep", action="store_true")
    read.add_argument("more", nargs="*", help="overrides of the job")
    given = read.parse_args()
    for documents in given.documents:
        print(json.dumps(measure(given.folder, documents, *given.more)), flush=True)
    if not given.keep:
        shutil.rmtree(given.folder)


if __name__ == "__main__":
    main()
