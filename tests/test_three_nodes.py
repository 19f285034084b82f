"""A Ray of three nodes: the real corpus in a bucket while nodes die, and a document that no node can hold.

These take minutes, so `make three-nodes` runs them and the usual tests do not.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, storage
from oeb_ray.cost import expected
from tests.bench.corpora import document
from tests.helpers import SmallCorpus, contents, corpus_of, gold_of, oeb, overrides, start_oeb
from tests.nodes import Nodes

pytestmark = [
    pytest.mark.ray,
    pytest.mark.s3,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not os.environ.get("OEB_THREE_NODES"), reason="takes minutes: OEB_THREE_NODES=1 runs it"),
]
GIANT, ROWS, MEMORY = "giant", 16_000, 150_000_000  # such a table takes twice that


@pytest.fixture
def three(s3: str) -> Iterator[Nodes]:
    opened = Nodes(others=2)
    yield opened
    opened.close()


def upload(folder: Path, address: str) -> None:
    keys = list(storage.listed(str(folder)))
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda key: storage.put(f"{address}/{key}", storage.read(f"{folder}/{key}")), keys))


def words_of(root: str, out: str, systems: list[str], *more: str) -> list[str]:
    options = ",".join(f"{{system: {system}}}" for system in systems)
    return [
        "benchmark", "corpus=manifest", f"corpus.manifest='{root}/corpus/manifest.parquet'", "provider=[replay]",
        f"providers.replay.options=[{options}]", f"providers.replay.folder='{root}/predictions'",
        f"storage.root='{out}'", *more,
    ]  # fmt: skip


def events_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_for(path: Path, event: str, count: int, driver: Any) -> None:
    while Counter(line["event"] for line in events_of(path))[event] < count:
        assert driver.poll() is None, "the job ended before there were so many"
        time.sleep(0.1)


def test_the_real_corpus_while_nodes_die(s3: str, three: Nodes, outside_data: Path, tmp_path: Path) -> None:
    systems = sorted(path.name for path in (outside_data / "predictions").iterdir())
    began = time.monotonic()
    code, _, err = oeb(*words_of(str(outside_data), str(tmp_path / "local"), systems, "cluster=inline"), timeout=900)
    assert code == 0, err
    local = time.monotonic() - began
    for part in ("corpus", "predictions"):
        upload(outside_data / part, f"{s3}/real/{part}")
    out, events = f"{s3}/out", tmp_path / "events.jsonl"
    place = ["cluster=existing", f"cluster.address='{three.address}'", f"events='{events}'"]
    began = time.monotonic()
    driver = start_oeb(*words_of(f"{s3}/real", out, systems, *place))
    for event, count, task in (("recorded", 200, "ray::do_predict"), ("scored", 5, "ray::do_score")):
        wait_for(events, event, count, driver)
        assert three.kill_node(task, alive=lambda: driver.poll() is None), f"no {task} on a node that may die"
    _, err = driver.communicate(timeout=900)
    assert driver.returncode == 0, err
    seconds = time.monotonic() - began
    told = events_of(events)
    lost = [line for line in told if line["event"] == "worker_lost"]
    again = sum(len(line.get("doc_ids", ())) or line["documents"] for line in lost)
    times = Counter((line["run"], line["doc_id"]) for line in told if line["event"] == "recorded")
    assert contents(out) == contents(str(tmp_path / "local")) and len(times) == 60 * len(systems)
    print(
        f"\n{len(systems)} systems x 60 documents: in one process on a disk {local:.0f} s; on three nodes of one "
        f"processor, in a bucket, one node killed while predicting and one while scoring {seconds:.0f} s; "
        f"{len(lost)} tasks lost, {again} documents of them done again"
    )
    assert len(lost) >= 2, "both nodes died while they worked"


@pytest.fixture
def with_giant(tmp_path: Path) -> SmallCorpus:
    giant = document(GIANT, "flat", ROWS, 1)
    golds = {f"doc {number:03}": gold_of(number) for number in range(200)} | {GIANT: giant["gold"]}
    texts = {doc_id: json.dumps(gold) for doc_id, gold in golds.items()} | {GIANT: json.dumps(giant["pred"])}
    return corpus_of(tmp_path / "corpus", golds, {"good": texts})


def test_a_document_that_no_node_can_hold_is_one_error_row(with_giant: SmallCorpus, tmp_path: Path, s3: str) -> None:
    out, events = str(tmp_path / "out"), tmp_path / "events.jsonl"
    small = Nodes(others=2, memory=MEMORY)
    try:
        place = ["cluster=existing", f"cluster.address='{small.address}'", f"events='{events}'"]
        code, _, err = oeb("benchmark", *overrides(with_giant, out, *place, systems=("good",)), timeout=600)
    finally:
        small.close()
    assert code == 0, err
    found = {row["doc_id"]: row for row in read_scores(out, columns=["doc_id", "error", "accuracy"]).to_pylist()}
    size = (with_giant.folder / "gold" / f"{GIANT}.json").stat().st_size
    assert expected(size, size).memory > MEMORY
    assert "GB of memory, more than there is" in found.pop(GIANT)["error"]
    assert len(found) == 200 and {row["accuracy"] for row in found.values()} == {1.0}
    kinds = Counter(line["event"] for line in events_of(events))
    parts = Counter((line["run"], line["part"]) for line in events_of(events) if line["event"] == "scored")
    assert kinds["worker_lost"] == 0 and set(parts.values()) == {1}, "no second try"
    print(f"\n{kinds['scored']} parts scored, none twice; {found and 200} rows right")
