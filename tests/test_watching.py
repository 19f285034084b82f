"""What a job tells those who watch it: events as lines of JSON, and nothing of what is confidential."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import run
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from oeb_ray.errors import RequestError
from oeb_ray.signals import Interrupts
from oeb_ray.watching import STANDSTILL_SECONDS, Events, Watching
from tests.helpers import SYSTEMS, Silent, SmallCorpus, gold_of, overrides
from tests.test_clusters import LosesOne


def events_of(words: list[str], path: Path, cluster: Any = None) -> list[dict[str, Any]]:
    job = read_job(composed([*words, f"events='{path}'"]))
    plan = run.plan_job(job)
    if cluster is None:
        run.carry_out(job, plan, Silent(), Interrupts())
    else:
        run.execute(plan, cluster, Silent(), events=Events(job.events))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_event_is_a_line_and_no_value_of_a_document_is_told(small: SmallCorpus, tmp_path) -> None:
    path = tmp_path / "events.jsonl"
    events = events_of(overrides(small, tmp_path / "out"), path)
    kinds = Counter(event["event"] for event in events)
    documents = len(SYSTEMS) * small.documents
    assert kinds == {"job_began": 1, "recorded": documents, "scored": 4, "run_ended": 2, "job_ended": 1}
    assert sum(event["documents"] for event in events if event["event"] == "scored") == documents
    assert [event["event"] for event in events if event["event"].startswith("job")] == ["job_began", "job_ended"]
    assert len({event["job"] for event in events}) == 1 and all(event["at"].endswith("+00:00") for event in events)
    text = path.read_text()
    assert not [number for number in range(small.documents) if str(gold_of(number)["total"]) in text]
    assert "INV-" not in text
    again = events_of(overrides(small, tmp_path / "out"), path)[len(events) :]
    assert [event["event"] for event in again] == ["job_began", "run_ended", "run_ended", "job_ended"], "it is appended"


def test_lost_workers_are_told_with_what_they_worked_at(small: SmallCorpus, tmp_path) -> None:
    killer = "doc 00004 [x]"
    events = events_of(overrides(small, tmp_path / "out", "limit=9"), tmp_path / "events", LosesOne(killer))
    lost = [event for event in events if event["event"] == "worker_lost"]
    assert lost and all(killer in event["doc_ids"] and event["reason"] == "WorkerCrashedError" for event in lost)
    assert {event["failed"] for event in events if event["event"] == "run_ended"} == {1}


def test_events_on_standard_error_and_those_that_cannot_be_written(small: SmallCorpus, tmp_path, capsys) -> None:
    Events("stderr").tell("x", run="a")
    assert json.loads(capsys.readouterr().err)["run"] == "a"
    job = read_job(composed(overrides(small, tmp_path / "out", "events=s3://bucket/events")))
    with pytest.raises(RequestError, match=r"events=s3://bucket/events: .*give a file of this machine, or stderr"):
        run.carry_out(job, run.plan_job(job), Silent(), Interrupts())


def test_a_full_cluster_is_waited_for_and_that_is_said_each_minute(small: SmallCorpus, monkeypatch) -> None:
    """BR-54"""

    class Full(InlineCluster):
        def wait(self, seconds: float):  # type: ignore[no-untyped-def]
            now[0] += 20.0
            return []

    now, progress = [0.0], Silent()
    monkeypatch.setattr("oeb_ray.watching.time.monotonic", lambda: now[0])
    plan = run.plan_job(read_job(composed(overrides(small, "unused"))))
    watching = Watching(Full(), progress, Events())
    watching.wait(0.5)
    watching.send(_batch(plan))
    for _ in range(7):
        watching.wait(0.5)
    assert len(progress.notes) == 2
    assert f"nothing has ended for {STANDSTILL_SECONDS:g} s: 1 tasks" in progress.notes[0]


def _batch(plan: Any) -> Any:
    from oeb_ray.records import PredictBatch

    return PredictBatch(plan.out, plan.runs[0].run, (plan.corpus.doc(0),))
