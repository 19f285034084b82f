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
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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


def timed(*words: str) -> tuple[float, float, str]:
    """Seconds, the process's own peak memory in MB, and what it printed."""
    began = time.monotonic()
    code = "import sys; from oeb_ray.cli.main import main; from tests.bench.side import peak_kb; "
    code += "ended = main(sys.argv[1:]); print('peak', peak_kb() // 1024); sys.exit(ended)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    text, _, peak = done.stdout.rpartition("peak ")
    return time.monotonic() - began, float(peak), text


def measure(folder: Path, documents: int, *more: str) -> dict[str, Any]:
    """One size: made, run, and run again."""
    shutil.rmtree(folder, ignore_errors=True)
    make(folder, documents)
    first, memory, _ = timed("benchmark", *job(folder, *more))
    again, memory_again, _ = timed("benchmark", *job(folder, *more))
    shown, _, _ = timed("show", str(folder / "out"))
    parts = list((folder / "out").glob("*/scores.parquet/**/*.parquet"))
    return {
        "documents": documents, "seconds": round(first, 1), "ms per document and run": first / documents / 3 * 1000,
        "driver MB": memory, "again s": round(again, 1), "again MB": memory_again, "show s": round(shown, 2),
        "parts of a table": len(parts) // 3, "at most": documents // 32,
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
