"""Where the time of a job goes beyond scoring: ``python -m tests.bench.runner [--corpus DIR --predictions DIR]``.

Start-up to the first call; stored predictions of all systems on a warm Ray of one and of two processors, beside the
same work in one process; and a vendor that takes as long as scoring does, to see both at once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from oeb_ray.simulator import Profile, Simulator
from tests.helpers import KEY, oeb

from .corpora import Row, document, generated

SYSTEMS, DOCUMENTS = 20, 60
TABLES, TABLE_ROWS, LATENCY, IN_FLIGHT = 120, 300, 1.5, 8


def write_corpus(folder: Path, documents: Iterator[Row], systems: int) -> None:
    """Documents with the predictions of as many systems, as files beside a manifest."""
    rows = []
    for one in documents:
        name = one["doc_id"]
        for part, suffix, text in (
            ("docs", "pdf", f"%PDF-1.4\n{name}\n"),
            ("gold", "json", json.dumps(one["gold"])),
            *((f"predictions/system-{system:02}", "json", json.dumps(one["pred"])) for system in range(systems)),
        ):
            (folder / part).mkdir(parents=True, exist_ok=True)
            (folder / part / f"{name}.{suffix}").write_text(text)
        paths = {"doc_path": f"docs/{name}.pdf", "gt_path": f"gold/{name}.json"}
        rows.append({"doc_id": name, "suite": "all", **paths, "schema": json.dumps(one["schema"])})
    pq.write_table(pa.Table.from_pylist(rows), folder / "manifest.parquet")


def replayed(corpus: Path, predictions: Path, out: Path, *more: str) -> list[str]:
    options = ",".join(f"{{system: {path.name}}}" for path in sorted(predictions.iterdir()))
    return [
        "benchmark", "corpus=manifest", f"corpus.manifest='{corpus / 'manifest.parquet'}'", "provider=[replay]",
        f"providers.replay.folder='{predictions}'", f"providers.replay.options=[{options}]",
        f"storage.root='{out}'", *more,
    ]  # fmt: skip


def run(words: list[str], events: Path) -> tuple[float, dict[str, float], str]:
    """Seconds from the job's begin to its end, seconds by phase, and the line of phases."""
    code, _, err = oeb(*words, f"events='{events}'", "--timings", timeout=3000)
    if code not in (0, 1):  # 1: of the first document alone some system has nothing that can be scored
        sys.exit(err)
    told = re.search(r"^timings .*$", err, re.MULTILINE)
    assert told is not None
    phases = {name: float(seconds) for name, seconds in re.findall(r"  ([a-z A-Z]+?) ([\d.]+) s", told[0])}
    at = {line["event"]: line["at"] for line in map(json.loads, events.read_text().splitlines())}
    began, ended = (datetime.fromisoformat(at[event]) for event in ("job_began", "job_ended"))
    return (ended - began).total_seconds(), phases, told[0]


@contextmanager
def warm(processors: int) -> Iterator[str]:
    """A Ray that is up already."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_AUTH_MODE"] = "disabled"  # loopback only
    node = {"num_cpus": processors, "include_dashboard": False, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args=node | {"node_ip_address": "127.0.0.2"})
    try:
        yield str(cluster.address)
    finally:
        cluster.shutdown()


def stored_predictions(corpus: Path, predictions: Path, folder: Path) -> None:
    """All systems in one process, and on a warm cluster of one and of two processors."""
    events = (folder / f"events-{number}.jsonl" for number in itertools.count())
    few = ["limit=1", "verdicts=false"]
    _, _, told = run(replayed(corpus, predictions, folder / "start", "cluster=local", *few), next(events))
    print(f"one document of every system on a Ray of its own: {told}", flush=True)
    alone, phases, told = run(replayed(corpus, predictions, folder / "inline", "cluster=inline"), next(events))
    print(f"in one process: {alone:.1f} s; {told}", flush=True)
    scoring = phases["scoring"]
    took = {}
    for processors in (1, 2):
        with warm(processors) as address:
            place = ["cluster=existing", f"cluster.address='{address}'"]
            run(replayed(corpus, predictions, folder / f"warm-up-{processors}", *place, *few), next(events))
            out = folder / f"on-{processors}"
            took[processors], _, told = run(replayed(corpus, predictions, out, *place), next(events))
        beyond = took[processors] - scoring / processors
        print(
            f"on a warm Ray with {processors} processors: {took[processors]:.1f} s, {scoring / processors:.1f} s of "
            f"them what scoring takes there, {beyond / took[processors]:.0%} beyond it; {told}",
            flush=True,
        )
    print(f"two processors are {took[1] / took[2]:.2f} times as fast as one", flush=True)


def overlap(folder: Path) -> None:
    """A vendor that takes about as long as scoring: both at once."""
    corpus = folder / "tables"
    tables = (document(f"table {number:03}", "flat", TABLE_ROWS, number) for number in range(TABLES))
    write_corpus(corpus, tables, 1)
    os.environ["MISTRAL_API_KEY"] = KEY
    profile: dict[str, Any] = {
        "answers": str(corpus / "predictions" / "system-00"),
        "documents": str(corpus / "docs"),
        "vendors": {"mistral": {"latency": LATENCY, "latency_spread": 0.0}},
    }
    with Simulator(Profile.from_dict(profile)) as simulator, warm(1) as address:

        def words(out: str, *more: str) -> list[str]:
            return [
                "benchmark", "corpus=manifest", f"corpus.manifest='{corpus / 'manifest.parquet'}'",
                "provider=[mistral]", f"providers.mistral.address='{simulator.url}/mistral'",
                f"providers.mistral.in_flight={IN_FLIGHT}", f"storage.root='{folder / out}'",
                "cluster=existing", f"cluster.address='{address}'", *more,
            ]  # fmt: skip

        run(words("first", "limit=2"), folder / "overlap-0.jsonl")
        vendor, _, _ = run(words("apart", "predict_only=true"), folder / "overlap-1.jsonl")
        scoring, _, _ = run(words("apart", "score_only=true"), folder / "overlap-2.jsonl")
        both, _, _ = run(words("together"), folder / "overlap-3.jsonl")
    print(
        f"{TABLES} tables of {TABLE_ROWS} rows: asking {vendor:.1f} s, scoring {scoring:.1f} s on one processor, both "
        f"in one job {both:.1f} s = {both / max(vendor, scoring):.2f} of the longer, "
        f"{both / (vendor + scoring):.2f} of the sum"
    )


def main() -> None:
    read = argparse.ArgumentParser(description=__doc__)
    read.add_argument("--corpus", type=Path, help="folder of a real corpus; one is generated unless given")
    read.add_argument("--predictions", type=Path, help="folder with a folder per system, for --corpus")
    given = read.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.corpus is None:
            write_corpus(folder / "mix", itertools.islice(generated("mix"), DOCUMENTS), SYSTEMS)
            given.corpus, given.predictions = folder / "mix", folder / "mix" / "predictions"
        stored_predictions(given.corpus, given.predictions, folder)
        overlap(folder)


if __name__ == "__main__":
    main()
