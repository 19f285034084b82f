"""`oeb benchmark` at a terminal, typed by somebody: the plan, the question, the live table, Ctrl-C, and going on."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from oeb_ray import progress, run
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from tests.helpers import Silent, SmallCorpus, overrides

BIN = Path(sys.executable).parent
SECONDS = 100.0  # until something must be seen


class Terminal:
    """A terminal of tmux, 120 by 40, with a shell in it."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "PS1": "$ ", "LANG": "C.UTF-8"}
        for name in ("TMUX", "COLUMNS", "LINES"):
            env.pop(name, None)
        self._tmux("-f/dev/null", "new-session", "-d", "-x120", "-y40", "bash --norc --noprofile", env=env)

    def _tmux(self, *words: str, env: dict[str, str] | None = None) -> str:
        command = ["tmux", "-u", "-S", self._socket, *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    def type(self, line: str) -> None:
        """A line, and the return key."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")

    def run(self, line: str) -> None:
        """A command on a clear screen, whose exit code is shown at the end."""
        self.type(f"clear; {line}; echo ended with $?")

    def press(self, key: str) -> None:
        self._tmux("send-keys", key)

    def see(self, text: str) -> str:
        """The screen, and what has left it, as soon as it holds the text."""
        until = time.monotonic() + SECONDS
        while text not in (shown := self._tmux("capture-pane", "-p", "-J", "-S-")):
            assert time.monotonic() < until, f"{text!r} is not to be seen:\n{shown}"
            time.sleep(0.05)
        return shown

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed: apt-get install tmux")
def test_a_job_at_a_terminal_from_its_plan_to_its_end(small: SmallCorpus, tmp_path: Path, terminal: Terminal) -> None:
    words = overrides(small, tmp_path / "out", "providers.replay.latency=0.1", "limit=60")
    command = shlex.join(["oeb", "benchmark", *words])

    terminal.run(command)
    asked = terminal.see("proceed? [y/N]")
    assert "60 documents selected of 90" in asked and "│ adapter │ at once │ run " in asked
    terminal.type("")
    assert "declined; nothing was sent or written" in terminal.see("ended with 1")
    assert not (tmp_path / "out").exists()

    terminal.run(command)
    terminal.see("proceed? [y/N]")
    terminal.type("y")
    live = terminal.see("in flight")
    assert "━" in live and "scored" in live and "proceed? [y/N] y" in live
    terminal.press("C-c")
    stopped = terminal.see("ended with 130")
    assert "stopping: nothing more is sent" in stopped and "the same command goes on where this ended" in stopped
    assert "Traceback" not in stopped and "in flight" not in stopped, "the table is gone"

    terminal.run(f"{command} -y")
    done = terminal.see("ended with 0")
    assert "120/120 documents  0 failed" in done and "proceed?" not in done
    recorded = list((tmp_path / "out").rglob("records/*.json"))
    assert len(recorded) == 120

    terminal.run(command)
    assert "proceed?" not in terminal.see("ended with 0"), "with nothing to do there is nothing to ask"


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_no_figure_is_cut_on_a_narrow_terminal(small: SmallCorpus, tmp_path: Path, columns: int) -> None:
    job = read_job(composed(overrides(small, tmp_path / "out", "limit=4")))
    outcome = run.execute(run.plan_job(job), InlineCluster(), Silent())
    stream = io.StringIO()
    Console(file=stream, width=columns).print(progress.summary_table(outcome.states, "field_matching", columns))
    shown = stream.getvalue()
    assert "1.0000" in shown and "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
