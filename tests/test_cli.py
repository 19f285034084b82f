"""`oeb` as people and pipes use it."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import resource
import runpy
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oeb_ray.cli import main
from tests.helpers import SmallCorpus, oeb, overrides

PRED = {"invoice": {"id": "INV-7", "total": "1,240.00"}, "lines": [{"sku": "B", "qty": 2}, {"sku": "A", "qty": 1}]}
GOLD = {"invoice": {"id": "inv 7", "total": 1240.0}, "lines": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 3}]}
SCHEMA = {
    "type": "object",
    "properties": {
        "invoice": {"type": "object", "properties": {"id": {"type": "string"}, "total": {"type": "number"}}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}, "qty": {}}}},
    },
}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    words = []
    for flag, value in (("--pred", PRED), ("--gt", GOLD), ("--schema", SCHEMA)):
        path = tmp_path / f"{flag.strip('-')}.json"
        path.write_text(json.dumps(value))
        words += [flag, str(path)]
    return words


def test_score_prints_one_json_document_and_nothing_else(files: list[str]) -> None:
    """BR-76: whatever the terminal or its settings."""
    for env in ({"COLUMNS": "20"}, {"TERM": "dumb"}, {"FORCE_COLOR": "1"}, {"PYTHONIOENCODING": "ascii"}):
        code, out, err = oeb("score", *files, "--verdicts", env=env)
        assert (code, err) == (0, "")
        result = json.loads(out)
        assert (result["matched"], result["total"]) == (5, 6)
        assert [verdict["verdict"] for verdict in result["verdicts"]].count("misread") == 1


def test_order_matters_takes_names_until_the_next_flag(files: list[str]) -> None:
    free, ordered = (json.loads(oeb("score", *files, *more)[1]) for more in ([], ["--order-matters", "lines"]))
    assert (free["matched"], ordered["matched"]) == (5, 2)


def test_score_of_three_files_loads_no_heavy_library_and_is_quick(files: list[str]) -> None:
    program = (
        "import sys; from oeb_ray.cli.main import main; main(sys.argv[1:]);"
        "heavy = ('ray', 'pyarrow', 'fsspec', 'scipy', 'numpy', 'rich', 'hydra');"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", program, "score", *files], capture_output=True, text=True)
    assert ended.stderr.strip() == "[]"
    bare, scored = (
        min(processor_seconds([sys.executable, *words]) for _ in range(3))
        for words in (["-c", "pass"], ["-m", "oeb_ray", "score", *files])
    )
    assert scored - bare < 0.3


def processor_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_closed_pipe_ends_without_a_word(files: list[str]) -> None:
    """BR-76"""
    command = f"{sys.executable} -u -m oeb_ray score {' '.join(files)} --verdicts | head -1"
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert ended.stdout == "{\n"
    assert ended.stderr == ""
    assert ended.returncode in (0, 141)


def pages(parser: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, ...]]:
    """The words of every command, as the parser knows them."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from pages(inner, *words, name)


HELP = list(pages(main._parser()))


@pytest.mark.parametrize("command", HELP, ids=" ".join)
def test_every_help_page_shows_an_example_and_fits_a_terminal(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as ended:
        main.main([*command, "--help"])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert max(map(len, out.splitlines())) <= 120
    assert "example:" in out or not command
    assert "exit codes" in out or command


def test_the_first_page_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    listed = re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    promised = (
        "score predict benchmark show audit diff verify explain export compact import ledger providers corpus simulate"
    )
    assert set(promised.split()) <= set(listed) == {command[0] for command in HELP if command}


def test_providers_are_plain_lines_in_a_pipe() -> None:
    names = oeb("providers")[1].splitlines()
    assert names[:3] == ["azure-cu", "datalab", "extend"]
    shown = oeb("providers", "datalab")[1]
    for said in ("mode = 'balanced'", "poll_interval = 5.0 s", "one of fast, balanced, accurate"):
        assert said in shown
    assert "latency" in oeb("providers", "replay")[1]
    assert names[-5:-2] == ["openai/gpt-5.6-sol", "anthropic/claude-opus-5", "google/gemini-3.7-flash"]
    shown = oeb("providers", "openai/gpt-5.6-sol")[1]
    for said in (
        "max_output_tokens = 128000 tokens",
        "OPENROUTER_API_KEY",
        "OPENAI_API_KEY",
        "in_flight = 5",
        "image/png",
    ):
        assert said in shown
    code, _, err = oeb("providers", "datlab")
    assert code == 2 and "did you mean datalab?" in err


def test_the_last_lines_of_a_benchmark_say_what_was_done_and_where(small: SmallCorpus, tmp_path: Path) -> None:
    code, out, _ = oeb("benchmark", *overrides(small, tmp_path / "out"))
    assert code == 0
    lines = out.splitlines()
    assert lines[-3].startswith("180/180 documents  0 failed  ")
    assert all(line.startswith(f"{tmp_path}/out/replay-") for line in lines[-2:])
    assert "1.0000" in out
    again = oeb("benchmark", *overrides(small, tmp_path / "out"))
    assert again[0] == 0 and "180/180 documents  0 failed" in again[1]


def test_a_dry_run_writes_nothing(small: SmallCorpus, tmp_path: Path) -> None:
    code, out, _ = oeb("benchmark", *overrides(small, tmp_path / "out"), "--dry-run")
    assert code == 0
    assert "90 documents selected of 90" in out
    assert "predict: no record: 90: 'doc 00000 [x]'" in out
    assert not (tmp_path / "out").exists()


def test_all_documents_failing_is_code_1(small: SmallCorpus, tmp_path: Path) -> None:
    """BR-78"""
    words = overrides(small, tmp_path / "out", "providers.replay.failures=1.0")
    code, out, _ = oeb("benchmark", *words)
    assert code == 1
    assert "180/180 documents  180 failed" in out
    assert "--retry-failed asks " in out


def test_hydra_jobs_take_the_same_words(small: SmallCorpus, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobs.benchmark", *overrides(small, tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert ended.returncode == 0, ended.stderr
    assert "180/180 documents  0 failed" in ended.stdout
    wrong = subprocess.run([*command, "nonsense=1"], capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr
    shown = subprocess.run([*command, "--cfg", "job"], capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert shown.returncode == 0 and "replay" in shown.stdout


def test_jobs_of_one_half_predict_or_score_only(
    small: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = overrides(small, tmp_path / "out", "limit=6", systems=("good",))
    for job, said in (("predict", "6/6 documents  0 failed"), ("score", "1.0000")):
        monkeypatch.setattr(sys, "argv", [job, *words])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(f"jobs.{job}", run_name="__main__")
        assert ended.value.code == 0 and said in capsys.readouterr().out
        (folder,) = (tmp_path / "out").glob("replay-*")
        assert (folder / "scores.parquet").exists() == (job == "score")


def test_texts_in_brackets_and_control_characters_are_shown_as_they_are(tmp_path: Path) -> None:
    """BR-77: nothing from a corpus is markup, and no table raises."""
    import io

    from rich.console import Console

    from oeb_ray.progress import plain

    for text in ("[slug]", "[/bold]", "[red]x", "\x1b[31mred\x1b[0m", "a\u202eb", "x" * 100_000):
        stream = io.StringIO()
        Console(file=stream, width=300, force_terminal=True).print(plain(text), soft_wrap=True)
        shown = stream.getvalue()
        assert "\x1b[31m" not in shown and "\u202e" not in shown
        if text.isprintable():
            assert text in shown


def at_a_terminal(words: list[str], answer: str, columns: int, *, stop: bytes = b"") -> tuple[int, str]:
    """`oeb benchmark` at a real pseudo-terminal, where it asks and is answered: exit code, and all that it showed.

    Once ``stop`` is seen, somebody presses Ctrl-C.
    """
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "oeb_ray", "benchmark", *words], stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "COLUMNS": str(columns), "LINES": "40", "TERM": "xterm-256color"},
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(follower)
    seen, asked = b"", False
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
        if not asked and b"proceed? [y/N]" in seen:
            asked = True
            os.write(leader, f"{answer}\n".encode())
        if stop and stop in seen:
            stop = b""
            os.write(leader, b"\x03")
    code = process.wait(timeout=30)
    os.close(leader)
    return code, seen.decode()


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_a_terminal_sees_a_live_table_and_whole_numbers(small: SmallCorpus, tmp_path: Path, columns: int) -> None:
    """The table lives on it, and the result follows."""
    code, shown = at_a_terminal(overrides(small, tmp_path / "out", "providers.replay.latency=0.02"), "y", columns)
    assert code == 0
    assert "━" in shown and ("in flight" in shown or columns < 120)
    assert "180/180 documents" in shown
    table = shown[shown.rindex("┏") : shown.rindex("180/180 documents")]
    assert "1.0000" in table and "…" not in table


def test_a_terminal_is_asked_first_and_may_decline(small: SmallCorpus, tmp_path: Path) -> None:
    code, shown = at_a_terminal(overrides(small, tmp_path / "out"), "", 120)
    assert code == 1 and "declined; nothing was sent or written" in shown
    assert not (tmp_path / "out").exists()
    code, shown = at_a_terminal([*overrides(small, tmp_path / "out"), "-y"], "", 120)
    assert code == 0 and "proceed?" not in shown
    code, shown = at_a_terminal(overrides(small, tmp_path / "out"), "", 120)
    assert code == 0 and "proceed?" not in shown, "with nothing to do there is nothing to ask"


def test_ctrl_c_at_a_terminal_stops_and_the_same_command_goes_on(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", "providers.replay.latency=0.1")
    code, shown = at_a_terminal(words, "y", 120, stop=b"in flight")
    assert code == 130
    assert "stopping: nothing more is sent" in shown and "the same command goes on where this ended" in shown
    assert "Traceback" not in shown
    code, shown = at_a_terminal(words, "y", 120)
    assert code == 0 and "180/180 documents  0 failed" in shown


def test_a_sweep_is_one_plan(small: SmallCorpus, tmp_path: Path) -> None:
    """-m: jobs that differ in options share the folder and the table; other differences are refused with the key."""
    words = overrides(small, tmp_path / "out", systems=())
    words = [word for word in words if not word.startswith("providers.replay.options")]
    command = [sys.executable, "-m", "jobs.benchmark", "-m", *words]
    root = Path(__file__).parent.parent
    sweep = [*command, "+providers.replay.system=good,bad"]
    ended = subprocess.run(sweep, capture_output=True, text=True, cwd=root)
    assert ended.returncode == 0, ended.stderr
    assert "180/180 documents  0 failed" in ended.stdout and "runs        2 over 1 adapter" in ended.stderr
    assert len(list((tmp_path / "out").glob("replay-*"))) == 2
    wrong = subprocess.run([*sweep, "limit=1,2"], capture_output=True, text=True, cwd=root)
    assert wrong.returncode == 2 and "limit=2 in one job of the sweep, 1 in another" in wrong.stderr
    assert not list(root.glob("multirun*")) and not list(root.glob("outputs"))


def test_repeats_are_runs_of_their_own(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", "limit=6", systems=("good",))
    code, out, err = oeb("benchmark", *words, "--repeats", "3")
    assert code == 0, err
    first, *others = sorted(path.name for path in (tmp_path / "out").glob("replay-*"))
    assert others == [f"{first}~2", f"{first}~3"] and "18/18 documents" in out
    assert '"run": "' + others[0] + '"' in (tmp_path / "out" / others[0] / "summary.json").read_text()
    assert oeb("benchmark", *words, "repeats=0")[0] == 2


def test_explain_says_step_by_step_why_values_differ() -> None:
    """BR-14, BR-02"""
    code, out, err = oeb("explain", "25,000", '"25.000"')
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == (
        'not equal: "25000" against "25"; they part at \'decimal\', which takes only text "25.000"'
    )
    assert oeb("explain", "2029", '"2029"')[1].splitlines()[-1] == "equal: they meet at 'written out'"
    assert 'is compared as "-1250"' in oeb("explain", "-1,250")[1]
    assert "number 90071992547409931234567\n" in oeb("explain", "90071992547409931234567")[1]
    code, out, _ = oeb("explain", "é\x1b[31m", env={"PYTHONIOENCODING": "ascii"})
    assert code == 0 and '  is compared as "e\\u001b[31m"\n' in out
