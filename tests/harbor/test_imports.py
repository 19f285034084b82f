"""`oeb harbor import`: other people's jobs become runs, with as many rows as trials and no odd reward in a mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import storage
from oeb_ray.cli.main import main
from oeb_ray.corpus.manifest import Corpus, load
from oeb_ray.corpus.tasks import MANIFEST
from oeb_ray.errors import RequestError
from oeb_ray.harbor.imports import Imported, import_job
from oeb_ray.harbor.trials import MISSING, read_job
from tests.harbor.made import gold_of, make_tasks
from tests.helpers import Silent

FOUND = json.loads((Path(__file__).parent.parent / "data" / "harbor_rewards.json").read_text())["trials"]
WHEN = "2026-11-30T10:00:{:02}.5Z"


def make_trial(
    job: Path, task: str, output: Any, reward: tuple[str, str] = ("reward.txt", "1.0"), *, attempt: str = "aB3",
    agent: str = "codex", **result: Any,
) -> None:  # fmt: skip
    """One trial's folder as Harbor 0.25 writes it, as far as it is read."""
    place = job / f"{task}__{attempt}"
    for folder in ("artifacts/app", "verifier", "agent"):
        (place / folder).mkdir(parents=True)
    told = {
        "task_name": f"org/{task}",
        "trial_name": place.name,
        "agent_info": {"name": agent, "version": "1.0", "model_info": {"name": "m-1", "provider": "openai"}},
        "agent_result": {"n_input_tokens": 900, "n_cache_tokens": 0, "n_output_tokens": 80, "cost_usd": 0.25},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": WHEN.format(0),
        "agent_execution": {"started_at": WHEN.format(1), "finished_at": WHEN.format(43)},
    }
    (place / "result.json").write_text(json.dumps(told | result))
    if output is not None:
        (place / "artifacts" / "app" / "output.json").write_text(
            output if isinstance(output, str) else json.dumps(output)
        )
    if reward[0] != "none":
        (place / "verifier" / reward[0]).write_text(reward[1])


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return load(str(make_tasks(tmp_path / "made", len(FOUND)) / MANIFEST))


def take(job: Path, out: Path, corpus: Corpus) -> list[Imported]:
    return import_job(str(job), str(out), corpus, Silent())


def test_rewards_as_found_in_the_wild_are_numbers_or_flagged(tmp_path: Path, corpus: Corpus) -> None:
    """BR-81"""
    for number, (name, text, _) in enumerate(FOUND):
        make_trial(tmp_path / "job", f"task-{number:02}", gold_of(number), (name, text))
    (taken,) = take(tmp_path / "job", tmp_path / "out", corpus)
    assert len(taken.rows) == len(FOUND)
    for row, (name, text, wanted) in zip(taken.rows, FOUND, strict=True):
        if wanted[0].isdigit() and "fault" not in wanted:
            assert (row["reward_there"], row["odd"]) == (float(wanted), None), text
        else:
            assert row["reward_there"] is None and row["odd"], (name, text)
        assert row["reward_here"] == 1.0 and row["status_here"] == "scored"
    odd = {row["task"]: row["odd"] for row in taken.rows}
    assert odd["task-12"] == MISSING
    assert "outside 0 to 1" in odd["task-08"] and "no JSON" in odd["task-11"] and "True" in odd["task-10"]
    assert taken.mean_there == pytest.approx((0.5 + 1.0 + 0.1) / len(FOUND)) and taken.mean_here == 1.0
    assert [row["task"] for row in taken.other] == ["task-00", "task-02"]


def test_a_trial_becomes_a_record_with_cost_tokens_and_time(tmp_path: Path, corpus: Corpus) -> None:
    job = tmp_path / "job"
    make_trial(job, "task-00", gold_of(0))
    timed_out = {"exception_type": "AgentTimeoutError", "exception_message": "after 1800 s"}
    make_trial(job, "task-01", gold_of(1), exception_info=timed_out)
    make_trial(job, "task-02", None, ("reward.txt", "0"), exception_info=timed_out)
    make_trial(job, "task-03", "[1, 2]", ("reward.txt", "0"), exception_info=None)
    for _ in range(2):  # the same import again changes nothing
        (taken,) = take(job, tmp_path / "out", corpus)
        assert [row["reward_here"] for row in taken.rows] == [1.0, 1.0, 0.0, 0.0] and taken.other == []
    kept = [json.loads(storage.read(f"{taken.run}/records/task-0{number}.json")) for number in range(3)]
    stated = {"usd": 0.25, "source": "result.json", "tokens_in": 900, "tokens_out": 80, "wall_s": 42.0, "attempts": 1}
    assert kept[0]["cost"].items() >= stated.items()
    assert kept[1]["error"] is None and kept[1]["run_manifest"]["timed_out"], "what it left is graded all the same"
    assert kept[2]["error"]["type"] == "AgentTimeoutError"
    summary = json.loads(storage.read(f"{taken.run}/value_f1/summary.json"))
    assert summary["documents"] == 4
    assert kept[0]["run_manifest"]["settings"]["agent"] == "codex"
    assert kept[0]["run_manifest"]["settings"]["model"] == "openai/m-1"


def test_attempts_and_agents_are_runs_of_their_own(tmp_path: Path, corpus: Corpus) -> None:
    job = tmp_path / "job"
    for attempt in ("aa", "bb"):
        make_trial(job, "task-00", gold_of(0), attempt=attempt)
    make_trial(job, "task-00", {}, ("reward.txt", "0.0"), attempt="cc", agent="oracle")
    make_trial(job, "unknown-task", {}, ("reward.txt", "0.5"))
    taken = take(job, tmp_path / "out", corpus)
    assert [len(one.rows) for one in taken] == [2, 1, 1]
    assert taken[1].run == f"{taken[0].run}~2" and taken[2].run.rpartition("/")[2][:8] == "command-"
    strange = next(row for row in taken[0].rows if row["task"] == "unknown-task")
    assert strange["reward_there"] == 0.5 and strange["status_here"] == "no such task in the corpus"


def test_a_hostile_job_stops_nobody(tmp_path: Path, corpus: Corpus) -> None:
    job = tmp_path / "job"
    make_trial(job, "task-00", gold_of(0))
    make_trial(job, "task-01", gold_of(1))
    (job / "task-01__aB3" / "result.json").write_text("[" * 100_000)
    make_trial(
        job, "task-02", gold_of(2), agent_result={"cost_usd": "free", "n_input_tokens": True}, agent_execution=[]
    )
    output = job / "task-02__aB3" / "artifacts" / "app" / "output.json"
    output.unlink()
    output.symlink_to(tmp_path / "made" / "tasks" / "task-02" / "solution" / "expected.json")
    (job / "notes").mkdir()
    trials = read_job(str(job))
    assert [trial.task for trial in trials] == ["task-00", "task-01", "task-02"]
    assert "result.json cannot be read" in trials[1].odd
    assert trials[2].output is None and (trials[2].usd, trials[2].tokens_in, trials[2].seconds) == (None, None, 0.0)
    rows = [row for one in take(job, tmp_path / "out", corpus) for row in one.rows]
    assert [row["reward_here"] for row in sorted(rows, key=lambda row: row["task"])] == [1.0, 1.0, 0.0]


def test_what_is_no_job_or_another_corpus_is_refused(tmp_path: Path, corpus: Corpus) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RequestError, match="holds no trial"):
        take(tmp_path / "empty", tmp_path / "out", corpus)
    make_trial(tmp_path / "job", "elsewhere", {})
    with pytest.raises(RequestError, match="no task of the corpus"):
        take(tmp_path / "job", tmp_path / "out", corpus)
    assert not (tmp_path / "out").exists()


def test_the_command_tells_what_differs(tmp_path: Path, corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job"
    make_trial(job, "task-00", gold_of(0), ("reward.txt", "0.25"))
    make_trial(job, "task-01", gold_of(1), ("none", ""))
    words = ["harbor", "import", str(job), "--tasks", str(tmp_path / "made"), "--out", str(tmp_path / "out")]
    assert main(words) == 4
    said = capsys.readouterr().out
    assert "task-00__aB3: reward 0.25 there, 1.0 here" in said and f"task-01__aB3: {MISSING}" in said
    assert "2 trials: mean reward 0.1250 there, 1.0000 here; 1 odd, 1 without a reward, which count 0" in said
