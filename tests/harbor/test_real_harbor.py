"""The real Harbor on exported tasks, in its own virtual environment: `make test-harbor` (OEB_HARBOR names that)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.cli.main import main
from oeb_ray.corpus.manifest import load
from oeb_ray.corpus.tasks import MANIFEST
from oeb_ray.harbor.imports import import_job
from tests.helpers import Silent
from tests.providers.test_command import needs_rooms

HARBOR = os.environ.get("OEB_HARBOR", "")
TASKS = 10
pytestmark = [
    pytest.mark.skipif(not HARBOR, reason="OEB_HARBOR names no virtual environment with Harbor; see make test-harbor"),
    needs_rooms,
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    assert main(["harbor", "export", "--out", str(folder), "--limit", str(TASKS), "corpus=sample"]) == 0
    return folder


def harbor(*words: str) -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "OEB_ROOM_PYTHON": sys.prefix,
        "LITELLM_LOCAL_MODEL_COST_MAP": "true",
        "HARBOR_TELEMETRY": "0",
    }
    return subprocess.run([f"{HARBOR}/bin/harbor", *words], env=env, capture_output=True, text=True, timeout=500)


def test_lint_finds_nothing(tasks: Path) -> None:
    ended = harbor("lint", "--json", *map(str, sorted((tasks / "tasks").iterdir())))
    assert (ended.returncode, json.loads(ended.stdout)) == (0, []), ended.stderr


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_the_reference_earns_1_and_nothing_0_there_and_here(
    tasks: Path, tmp_path: Path, agent: str, reward: float
) -> None:
    ended = harbor("run", "-p", f"{tasks}/tasks", "-a", agent, "-e", "rooms:Rooms", "-o", str(tmp_path),
                   "--job-name", agent, "-n", "4", "-y")  # fmt: skip
    told: dict[str, Any] = json.loads((tmp_path / agent / "result.json").read_text())
    assert told["stats"]["n_errored_trials"] == 0, ended.stdout
    (result,) = told["stats"]["evals"].values()
    assert (result["n_trials"], result["metrics"][0]["mean"]) == (TASKS, reward)
    for place in (tmp_path / agent).glob("*__*"):
        files = {path.name for path in (place / "verifier").iterdir()}
        assert files >= {"reward.txt", "metrics.json", "feedback.json"} and "reward.json" not in files
    (taken,) = import_job(f"{tmp_path}/{agent}", f"{tmp_path}/out", load(f"{tasks}/{MANIFEST}"), Silent())
    assert [(row["reward_there"], row["reward_here"], row["odd"]) for row in taken.rows] == [
        (reward, reward, None)
    ] * TASKS
    assert taken.other == []
