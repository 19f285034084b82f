"""`oeb harbor run`: agents at work on tasks, and the reward of each; no reward is not a zero, and yet counts."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import run, storage
from oeb_ray.cli.main import main
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.cluster.rays import RayCluster, elsewhere
from oeb_ray.config import Job
from oeb_ray.corpus.manifest import load
from oeb_ray.corpus.tasks import MANIFEST
from oeb_ray.errors import RequestError, Unreachable
from oeb_ray.harbor.agents import job_for
from oeb_ray.harbor.judging import Submitted, judge_all
from oeb_ray.harbor.rewards import judge_run, summary_of
from tests.harbor.dying import dies
from tests.harbor.made import gold_of, make_tasks
from tests.helpers import Silent
from tests.nodes import Nodes
from tests.providers.test_command import needs_rooms, processes_with

AT_ONCE = 50 if os.environ.get("OEB_HARBOR") else 12  # tasks; fifty in `make test-harbor`


def job(tasks: Path | str, out: Path | str, agent: str = "oracle", *words: str, at_once: int = 4, **values: Any) -> Job:
    return job_for(
        str(tasks), agent, model=None, hosts=(), at_once=at_once,
        values={"storage.root": str(out), **values}, overrides=words,
    )  # fmt: skip


def carried_out(wanted: Job, cluster: Any = None) -> list[dict[str, Any]]:
    """Runs a job and judges its one run."""
    plan = run.plan_job(wanted)
    own = cluster or InlineCluster()
    try:
        outcome = run.execute(plan, own, Silent())
    finally:
        if cluster is None:
            own.close()
    assert not outcome.stopped
    (made,) = plan.runs
    return judge_run(plan.out, made.run.name, plan.corpus)


def shell(command: str) -> str:
    """A command as a word of the configuration."""
    return f"providers.command.command={json.dumps(command)}"


@needs_rooms
def test_many_tasks_at_once_the_reference_earns_1_and_nothing_earns_0(tmp_path: Path) -> None:
    tasks = make_tasks(tmp_path, AT_ONCE)
    started = time.monotonic()
    rows = carried_out(job(tasks, tmp_path / "out", at_once=AT_ONCE))
    assert [row["reward"] for row in rows] == [1.0] * AT_ONCE
    assert summary_of(rows)["mean_reward"] == summary_of(rows)["perfect_fraction"] == 1.0
    assert time.monotonic() - started < 60
    idle = carried_out(job(tasks, tmp_path / "out", "nop", limit=3))
    assert [(row["reward"], row["status"]) for row in idle] == [(0.0, "zero")] * 3
    assert "it left no output.json" in idle[0]["why"]


HOSTILE = [
    ("echo '[{\"firm\": 1}]' > output.json", 0.0, "no JSON object"),
    ("cat instruction.md > output.json", 0.0, "no JSON"),
    ("truncate -s 1G output.json", 0.0, "larger than"),
    ("ln -s /solution/expected.json output.json", 0.0, "is a link"),
    ('echo \'{"firm": "Quay & Sons 4"}\' > output.json; sleep 3173.5', 2 / 6, None),
    ("cat /solution/* /tests/* ../*/tests/* $HOME/../* > output.json", 0.0, "no JSON"),
    ("bomb() { bomb | bomb & }; bomb; sleep 3173.5", 0.0, "left no output.json: not done within"),
    ("while :; do i=$((i+1)); head -c 4000000 /dev/zero > f$i; done", 0.0, "bytes on disk"),
    ('echo \'{"firm": "x", "lines": []}\' > output.json', 0.0, None),
]


@needs_rooms
def test_a_hostile_command_earns_what_it_left_and_harms_nothing(tmp_path: Path) -> None:
    tasks = make_tasks(tmp_path, len(HOSTILE))
    cases = " ".join(f"{number}) {command} ;;" for number, (command, _, _) in enumerate(HOSTILE))
    command = f"case $(grep -o '[0-9]*$' document.pdf | tail -1) in {cases} esac"
    words = [shell(command), "providers.command.disk_gb=0.02"]
    rows = carried_out(job(tasks, tmp_path / "out", "command", *words, at_once=len(HOSTILE), timeout=4.0))
    for row, (command, reward, why) in zip(rows, HOSTILE, strict=True):
        assert row["reward"] == pytest.approx(reward), command
        assert row["status"] == ("zero" if why else "scored"), command
        assert why is None or why in row["why"], command
    assert processes_with("3173.5") == []


@needs_rooms
def test_no_reward_is_no_zero_and_counts_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-80: a broken reference, a schema with the single property value, an old reward, a script without its bit."""
    tasks = make_tasks(tmp_path / "made", 10)
    broken, single, stale, plain = (tasks / "tasks" / f"task-{number:02}" for number in (2, 4, 6, 8))
    (broken / "tests" / "reference.json").write_text('{"schema": ')
    reference = json.loads((single / "tests" / "reference.json").read_text())
    reference |= {
        "schema": {"type": "object", "properties": {"value": {"type": "string"}}},
        "reference": {"value": "x"},
    }
    (single / "tests" / "reference.json").write_text(json.dumps(reference))
    for path in (stale / "tests" / "reward.txt", stale / "reward.txt"):
        path.write_text("1")
    os.chmod(plain / "tests" / "test.sh", 0o600)
    assert main(["harbor", "run", str(tasks), "--out", str(tmp_path / "out"), "-n", "10"]) == 1
    said = capsys.readouterr().out
    assert "task-02: fault: the reference cannot be read" in said
    assert "task-04: fault: " in said
    assert "mean reward 0.8000 over 10 tasks; 8 scored, 0 without a usable output, 2 verifier faults" in said
    (summary,) = (tmp_path / "out").glob("*/rewards.json")
    assert json.loads(summary.read_text()) == {
        "tasks": 10, "rewarded": 8, "scored": 8, "zero": 0, "fault": 2, "not run": 0, "mean_reward": 0.8,
        "perfect_fraction": 0.8,
    }  # fmt: skip


def test_a_scorer_that_takes_too_long_or_dies_is_a_fault_of_one_document() -> None:
    def submit(number: int) -> Submitted:
        return Submitted(b"dies" if number == 1 else b"{}", None)

    assert list(judge_all(1, submit, 0.0)) == ["scoring took more than 0 s"]
    assert list(judge_all(3, submit, 60.0, dies)) == ["fine", "the process that scored it was killed", "fine"]


@needs_rooms
@pytest.mark.ray
def test_on_a_cluster_the_rewards_are_the_same(tmp_path: Path, nodes: Nodes) -> None:
    tasks = make_tasks(tmp_path, 4)
    cluster = RayCluster(nodes.address)
    try:
        rows = carried_out(job(tasks, tmp_path / "out"), cluster)
    finally:
        cluster.close()
    assert [row["reward"] for row in rows] == [1.0] * 4


async def node_of(number: int) -> str:
    """The node that this runs on, after a while, so that one alone cannot do all; the process of -1 dies."""
    import ray

    await asyncio.sleep(0.5)
    if number < 0:
        os._exit(1)
    return str(ray.get_runtime_context().get_node_id())


@pytest.mark.ray
def test_commands_are_spread_over_the_nodes_and_a_lost_one_is_said(nodes: Nodes) -> None:
    """They do not share the node of their account's pool."""

    async def many() -> list[str | BaseException]:
        return await asyncio.gather(*(elsewhere(node_of, number) for number in range(-1, 6)), return_exceptions=True)

    cluster = RayCluster(nodes.address)
    try:
        lost, *found = asyncio.run(many())
    finally:
        cluster.close()
    assert isinstance(lost, Unreachable) and len(set(map(str, found))) == 2, found


@needs_rooms
def test_tasks_in_a_bucket_are_run_too(tmp_path: Path, s3: str) -> None:
    for key in storage.listed(str(make_tasks(tmp_path, 2))):
        storage.put(f"{s3}/tasks-there/{key}", storage.read(f"{tmp_path}/{key}"))
    rows = carried_out(job(f"{s3}/tasks-there", tmp_path / "out"))
    assert [row["reward"] for row in rows] == [1.0, 1.0]


def test_a_folder_of_tasks_is_a_corpus(tmp_path: Path) -> None:
    tasks = make_tasks(tmp_path, 2)
    corpus = load(str(tasks / MANIFEST))
    assert corpus.ids == ["task-00", "task-01"] and corpus.suites == ["short", "short"]
    doc = corpus.doc(1)
    assert json.loads(storage.read(doc.gt_path)) == gold_of(1)
    assert doc.annotations is not None and json.loads(storage.read(doc.annotations))["field_rules"] == {}
    inner = load(str(tasks / "tasks" / MANIFEST))
    assert inner.ids == corpus.ids, "the folder of the tasks themselves"
    (tasks / "tasks" / "task-00" / "environment" / "schema.json").unlink()
    (tasks / "tasks" / "task-01" / "environment" / "second.pdf").write_bytes(b"")
    with pytest.raises(RequestError) as refused:
        load(str(tasks / MANIFEST))
    assert "task-00: no environment/schema.json" in str(refused.value)
    assert "task-01/environment holds 2 documents" in str(refused.value)
    with pytest.raises(RequestError, match="no task at"):
        job(tmp_path / "nowhere", tmp_path / "out")
