"""The same bytes from every place of work and every storage; the tables as users read them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet as pq
import pytest

from oeb_ray import ready, storage, tables
from oeb_ray.cluster import rays
from oeb_ray.cluster.contract import Lost
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.cluster.rays import RayCluster
from oeb_ray.cost import Cost
from oeb_ray.errors import InternalError
from oeb_ray.records import PartTask, PredictBatch, SummaryTask
from oeb_ray.scorers import field_matching
from oeb_ray.scorers.field_matching import SCORER
from oeb_ray.scoring.field_matching import summarize
from tests.helpers import SmallCorpus, contents, overrides, run_inline


@pytest.fixture(scope="module")
def ray_cluster(s3: str) -> Iterator[RayCluster]:
    """Started after the S3 server, so that its workers have the server's variables."""
    cluster = RayCluster(cpus=2)
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def expected(small: SmallCorpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    out = tmp_path_factory.mktemp("expected")
    run_inline(overrides(small, out))
    return out, contents(str(out))


@pytest.mark.ray
def test_ray_gives_the_same_bytes(small, expected, ray_cluster, tmp_path) -> None:
    run_inline(overrides(small, tmp_path), ray_cluster)
    assert contents(str(tmp_path)) == expected[1]


@pytest.mark.ray
def test_parts_that_state_their_memory_give_the_same_bytes(small, expected, ray_cluster, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ready, "expected", lambda *sizes: Cost(1.0, 2 * rays.SMALL))
    run_inline(overrides(small, tmp_path / "out"), ray_cluster)
    assert contents(str(tmp_path / "out")) == expected[1]


@pytest.mark.ray
@pytest.mark.s3
def test_ray_on_s3_gives_the_same_bytes(small, expected, s3, ray_cluster, tmp_path) -> None:
    run_inline(overrides(small, f"{s3}/{tmp_path.name}/runs"), ray_cluster)
    assert contents(f"{s3}/{tmp_path.name}/runs") == expected[1]


@pytest.mark.s3
def test_everything_in_a_bucket_gives_the_same_bytes(small, expected, s3, tmp_path) -> None:
    """Manifest, documents, golds and predictions too."""
    bucket = f"{s3}/{tmp_path.name}"
    for key in storage.listed(str(small.folder)):
        storage.put(storage.join(bucket, "corpus", key), storage.read(storage.join(str(small.folder), key)))
    words = overrides(small, f"{bucket}/runs", f"corpus.manifest='{bucket}/corpus/manifest.parquet'",
                      f"providers.replay.folder='{bucket}/corpus/predictions'")  # fmt: skip
    run_inline(words)
    assert contents(f"{bucket}/runs") == expected[1]
    run_inline(words)


def test_memory_gives_the_same_bytes(small, expected, tmp_path) -> None:
    run_inline(overrides(small, f"memory://{tmp_path.name}/runs"))
    assert contents(f"memory://{tmp_path.name}/runs") == expected[1]


class Loses(InlineCluster):
    """A cluster whose workers die before they answer, batches twice, all else once; after the work or before it."""

    def __init__(self, after: bool) -> None:
        super().__init__()
        self.after, self.lost, self.kinds = after, {}, set()

    def wait(self, seconds: float):  # type: ignore[no-untyped-def]
        item = self._waiting[0]
        key = id(item.docs if isinstance(item, PredictBatch) else getattr(item, "items", item))
        self.lost[key] = self.lost.get(key, 0) + 1
        if self.lost[key] <= (2 if isinstance(item, PredictBatch) else 1):
            self.kinds.add(type(item))
            if self.after:
                super().wait(seconds)
            else:
                self._waiting.popleft()
            return [Lost(item, "WorkerCrashedError: test")]
        return super().wait(seconds)


@pytest.mark.parametrize("after", [False, True])
def test_lost_workers_change_no_byte(small, expected, tmp_path, after) -> None:
    cluster = Loses(after)
    run_inline(overrides(small, tmp_path), cluster)
    assert cluster.kinds == {PredictBatch, PartTask, SummaryTask}
    assert contents(str(tmp_path)) == expected[1]


class LosesOne(InlineCluster):
    """A cluster whose worker dies whenever it meets one document."""

    def __init__(self, doc_id: str) -> None:
        super().__init__()
        self.doc_id, self.sent = doc_id, []

    def wait(self, seconds: float):  # type: ignore[no-untyped-def]
        item = self._waiting[0]
        if isinstance(item, PredictBatch):
            self.sent.append(len(item.docs))
            if any(doc.doc_id == self.doc_id for doc in item.docs):
                return [Lost(self._waiting.popleft(), "WorkerCrashedError: test")]
        return super().wait(seconds)


def test_a_document_that_kills_its_worker_fails_alone(small, expected, tmp_path) -> None:
    killer = "doc 00004 [x]"
    cluster = LosesOne(killer)
    summaries = run_inline(overrides(small, tmp_path), cluster)
    assert [summary["scored"] for summary in summaries.values()] == [89, 89]
    for run in summaries:
        rows = map(json.loads, (tmp_path / run / "scores.jsonl").read_text().splitlines())
        (failed,) = (row for row in rows if row["status"] == "error")
        assert failed["doc_id"] == killer and "was lost 3 times" in failed["error"]
    run_inline(overrides(small, tmp_path, "retry_failed=transient"))
    assert contents(str(tmp_path)) == expected[1]


def test_a_part_that_always_loses_its_worker_is_named_and_nothing_is_lost(small, expected, tmp_path) -> None:
    class LosesParts(InlineCluster):
        def wait(self, seconds: float):  # type: ignore[no-untyped-def]
            if isinstance(self._waiting[0], PartTask):
                return [Lost(self._waiting.popleft(), "OutOfMemoryError: test")]
            return super().wait(seconds)

    with pytest.raises(InternalError, match=r"part-.* was lost 3 times; last: OutOfMemoryError"):
        run_inline(overrides(small, tmp_path), LosesParts())
    run_inline(overrides(small, tmp_path))
    assert contents(str(tmp_path)) == expected[1]


class Killing:
    """A Ray whose busy workers are killed once."""

    def __init__(self, cluster: RayCluster) -> None:
        self.cluster, self.slots, self.killed = cluster, cluster.slots, 0
        self.pool, self.send, self.score, self.tell = cluster.pool, cluster.send, cluster.score, cluster.tell
        self.summarise, self.hold = cluster.summarise, cluster.hold

    under_way = property(lambda self: self.cluster.under_way)
    memory = property(lambda self: self.cluster.memory)

    def wait(self, seconds: float):  # type: ignore[no-untyped-def]
        until = time.monotonic() + 20
        while not self.killed and time.monotonic() < until:
            for worker in busy_workers():
                os.kill(worker, signal.SIGKILL)
                self.killed += 1
            time.sleep(0.05)
        return self.cluster.wait(seconds)


def busy_workers() -> list[int]:
    """Processes below this one that are busy with a task of ours."""
    parents, busy = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if (entry / "cmdline").read_bytes().startswith(b"ray::do_"):
                    busy.append(int(entry.name))

    def is_ours(process: int) -> bool:
        return process == os.getpid() or (process in parents and is_ours(parents[process]))

    return [process for process in busy if is_ours(process)]


@pytest.mark.ray
def test_killed_ray_workers_change_no_byte(small, expected, ray_cluster, tmp_path) -> None:
    killing = Killing(ray_cluster)
    run_inline(overrides(small, tmp_path, "providers.replay.latency=0.2"), killing)
    assert killing.killed
    assert contents(str(tmp_path)) == expected[1]


# --- the tables as users read them --------------------------------------------------------------------------------


def test_pyarrow_polars_and_duckdb_read_the_parts_in_one_call(small, expected) -> None:
    (run, *_) = sorted(expected[0].glob("replay-*"))
    scores, verdicts = run / "scores.parquet", run / "verdicts.parquet"
    arrow = pq.read_table(scores, partitioning=None)
    frame = polars.read_parquet(scores)
    count, mean = duckdb.sql(f"select count(*), avg(accuracy) from '{scores}/**/*.parquet'").fetchall()[0]
    assert arrow.schema.remove_metadata() == field_matching.SCORES
    assert arrow.num_rows == frame.height == count == small.documents
    assert set(frame["suite"].unique()) == set(arrow.column("suite").unique().to_pylist()) == {"suite 0", "suite 1"}
    assert mean == pytest.approx(frame["accuracy"].mean())
    total = sum(row["total"] for row in arrow.to_pylist())
    assert pq.read_table(verdicts, partitioning=None).num_rows == polars.read_parquet(verdicts).height == total


def test_parts_of_failures_alone_and_of_successes_alone_have_one_schema(tmp_path) -> None:
    """BR-59"""
    failed = {
        "doc_id": "a",
        "suite": "s",
        "provider": "p",
        "status": "error",
        "error": "x",
        "run": "r",
        "scorer": "f 1",
    }
    scored = failed | {
        "doc_id": "b",
        "status": "scored",
        "error": None,
        "accuracy": 0.5,
        "total": 2,
        "approximated": [],
    }
    for name, rows in (("1", [failed]), ("2", [scored]), ("3", [])):
        (tmp_path / f"{name}.parquet").write_bytes(tables.score_part(SCORER, rows, "stamp"))
    assert pq.read_table(tmp_path, partitioning=None).num_rows == 2
    assert polars.read_parquet(tmp_path).height == 2
    assert duckdb.sql(f"select count(*) from '{tmp_path}/*.parquet'").fetchall() == [(2,)]


def test_summary_and_scores_have_the_known_keys_and_agree(small, expected) -> None:
    (run, *_) = sorted(expected[0].glob("replay-*"))
    summary = json.loads((run / "summary.json").read_text())
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    assert list(summary) == [
        "run", "provider", "settings", "documents", "scored", "coverage", "accuracy", "precision", "recall",
        "misread_rate", "unfound_rate", "fabricated_rate", "invented_item_rate", "invented_field_rate", "per_suite",
    ]  # fmt: skip
    assert list(rows[0]) == ["doc_id", "suite", "provider", "status", *field_matching.SCORE_KEYS]
    assert {key: summary[key] for key in summary if key not in ("run", "provider", "settings")} == summarize(rows)
    assert [(row["suite"], row["doc_id"]) for row in rows] == sorted((row["suite"], row["doc_id"]) for row in rows)


def test_a_mean_of_nothing_is_zero_and_strict_json() -> None:
    """BR-22"""
    failed = {"suite": "s", "status": "error"}
    for rows in ([], [failed], [failed, {**failed, "suite": "t"}]):
        summary = summarize(rows)
        assert (summary["coverage"], summary["accuracy"]) == (0.0, 0.0)
        json.dumps(summary, allow_nan=False)
