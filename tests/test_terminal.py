"""`oeb benchmark` at a terminal, typed by somebody: the plan, the question, the live table, Ctrl-C, and going on."""

from __future__ import annotations

import io
import json
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
from oeb_ray.cli.main import main
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from tests.helpers import Silent, SmallCorpus, corpus_of, manifest_rows, overrides, write_manifest

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
        self._tmux("send-keys", "-R")
        self._tmux("clear-history")
        self.type(f"{line}; echo ended with $?")

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
    live = terminal.see("━━")  # the bar, once documents are done
    assert "in flight" in live and "scored" in live and "proceed? [y/N] y" in live
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


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


BRACKETS = [
    "[slug] invoice", "[/red] closing", "[bold]x[/bold]", "[link=http://127.0.0.9]y[&link]", "\\[kept]", "[[double]]",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07", "bell\x07back\bspace", "wide 漢字 and \u200bzero",
]  # fmt: skip


def test_texts_in_brackets_are_no_markup_in_plan_table_or_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-77: as doc ids, suites, systems and errors, on a terminal."""
    ids = [text.replace("/", "&") for text in BRACKETS]
    answers = {doc_id: json.dumps({"__error__": text}) for doc_id, text in zip(ids, BRACKETS, strict=True)}
    corpus = corpus_of(tmp_path, {doc_id: {"a": 1} for doc_id in ids}, {"[red]good": answers})
    write_manifest(corpus.manifest, [row | {"suite": row["doc_id"]} for row in manifest_rows(corpus)])
    words = overrides(corpus, tmp_path / "out", "providers.replay.options=[{system: '[red]good'}]")
    stream = Tty()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["benchmark", *words, "--dry-run"]) == 0
    assert main(["benchmark", *words]) == 1, "all have failed"
    told = capsys.readouterr().out + stream.getvalue()
    assert main(["show", str(tmp_path / "out"), "--suites"]) == 0
    told += capsys.readouterr().out
    assert "[red]good" in told and "wide 漢字 and \\u200bzero" in told and "[slug] invoice" in told
    assert "\x1b]0;" not in told and "\x07" not in told and "\b" not in told and "\x1b[31m" not in told


def test_a_job_goes_on_when_its_progress_cannot_be_shown(
    small: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BR-77"""

    def broken(*_: object) -> None:
        raise ValueError("no table")

    monkeypatch.setattr(progress, "_live_table", broken)
    stream = Tty()
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["benchmark", *overrides(small, tmp_path / "out", "limit=4"), "-y"]) == 0
    assert stream.getvalue().count("progress cannot be shown any more (ValueError: no table); the job goes on") == 1
    assert len(list((tmp_path / "out").rglob("records/*.json"))) == 8
