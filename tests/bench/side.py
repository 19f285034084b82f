"""One side of a pair: scores the documents of one case in this process, and prints what it took as JSON.

``python side.py SCORER CASE [--verdicts FILE]``: SCORER is the package that is timed (``oeb_ray NAME`` is a scorer of
ours), CASE a file of JSON lines (doc_id, pred, gold, schema). It runs in any environment that has the package, so it
imports nothing of ours but the scorer. Timed is the scoring alone: packages and documents are loaded before.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OURS = "oeb_ray "
FIGURES = ("accuracy", "total", "matched", "misread", "unfound", "f1")  # what both sides must agree on


def peak_kb() -> int:
    """The most memory that this process has held since `forget_peak`."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # type: ignore[index]


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def their_scorer(package: str, verdicts: Path | None) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Scores with the peer; its verdicts go to Parquet as text, a row group per document."""
    if package == "extract_bench":
        unified = importlib.import_module("extract_bench.evaluation.metrics.extract").compute_unified_evidence_metrics

        def scored(one: dict[str, Any]) -> dict[str, Any]:
            metrics = unified(one["gold"], one["pred"], [], data_schema=one["schema"])
            return {"f1": next(m.value for m in metrics if m.metric_name == "extract_unified_value_f1")}

        return lambda documents: [scored(one) for one in documents]
    score = importlib.import_module(package).score
    if verdicts is None:
        return lambda documents: [score(one["pred"], one["gold"], one["schema"]) for one in documents]
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("address", "gold_raw", "pred_raw", "gold_canon", "pred_canon", "verdict")
    schema = pa.schema([(name, pa.string()) for name in ("doc_id", *names)])

    def text(value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=False)

    def run(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results = []
        with pq.ParquetWriter(verdicts, schema, compression="zstd") as writer:
            for one in documents:
                result = score(one["pred"], one["gold"], one["schema"], verdicts=True)
                listed = result["verdicts"]
                columns = {"doc_id": [one["doc_id"]] * len(listed), "address": [json.dumps(at[0]) for at in listed]}
                for place, name in enumerate(names[1:3], 1):
                    columns[name] = [text(verdict[place]) for verdict in listed]
                for place, name in enumerate(names[3:], 3):
                    columns[name] = [verdict[place] for verdict in listed]
                writer.write_table(pa.table(columns, schema=schema))
                results.append(result)
        return results

    return run


def our_scorer(name: str, verdicts: Path | None) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Scores with ours; what it loads when first needed counts as start-up, as it does for the peers."""
    import numpy as np

    from oeb_ray.scoring.solver import linear_sum_assignment

    linear_sum_assignment(np.zeros((1, 1)))
    module = importlib.import_module(f"oeb_ray.scoring.{name}.scorer")
    late = {"field_matching": f"{module.__package__}.large", "value_f1": "dateutil.parser"}
    importlib.import_module(late[name])
    if verdicts is None:
        score = module.score
        return lambda documents: [score(one["pred"], one["gold"], one["schema"]) for one in documents]
    from oeb_ray.scorers.field_matching import SCORER
    from oeb_ray.tables import parquet_of

    def run(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        results = []

        def tables() -> Any:
            for one in documents:
                scored = module.score_columns(one["pred"], one["gold"], one["schema"], verdicts=True)
                results.append(scored.figures)
                yield SCORER.verdict_table(one["doc_id"], None, scored)

        verdicts.write_bytes(parquet_of(tables(), SCORER.verdicts, SCORER.repeating))
        return results

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scorer")
    parser.add_argument("case", type=Path)
    parser.add_argument("--verdicts", type=Path)
    chosen = parser.parse_args()
    make = our_scorer if chosen.scorer.startswith(OURS) else their_scorer
    run = make(chosen.scorer.removeprefix(OURS), chosen.verdicts)
    with chosen.case.open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    forget_peak()
    before = peak_kb()
    start, start_cpu = time.perf_counter(), time.process_time()
    results = run(documents)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    told = repr([[result[name] for name in FIGURES if name in result] for result in results])
    figures = hashlib.sha256(told.encode()).hexdigest()[:16]
    peak_mb = (peak_kb() - before) / 1024
    json.dump({"seconds": seconds, "cpu": cpu, "peak_mb": peak_mb, "figures": figures}, sys.stdout)


if __name__ == "__main__":
    main()
