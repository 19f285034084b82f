"""`oeb` as people and pipes use it."""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oeb_ray.cli import main
from tests.helpers import SmallCorpus, called, oeb, overrides

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
    rows = [{"sku": f"S{n % 7}", "qty": n % 5, "note": f"n{n % 3}"} for n in range(40)]
    for flag, lines in (("--pred", [row | {"qty": (row["qty"] * 3 + 1) % 5} for row in rows[::-1]]), ("--gt", rows)):
        Path(files[files.index(flag) + 1]).write_text(json.dumps({"lines": lines}))
    solver = [sys.executable, "-c", program, "score", *files]
    assert subprocess.run(solver, capture_output=True, text=True).stderr.strip() == "['numpy']", "no whole scipy"
    assert any(processor_seconds(solver) - bare < 1.5 for _ in range(3))


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
    assert "example:" in out
    assert "exit codes" in out or command


def test_the_first_page_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main.main(["--help"])
    listed = re.findall(r"^    (\w+)(?: |$)", capsys.readouterr().out, re.MULTILINE)
    promised = (
        "score predict benchmark show audit diff verify explain export compact import ledger providers corpus simulate"
    )
    assert set(promised.split()) <= set(listed) == {command[0] for command in HELP if command}


def test_what_flags_do_not_take_is_said_in_one_message() -> None:
    for words, said in (
        (
            "benchmark --limit x",
            "oeb benchmark: argument --limit: wants a whole number, not 'x'; see oeb benchmark --help",
        ),
        ("benchmark --timeout soon", "oeb benchmark: argument --timeout: wants a number, not 'soon'"),
        ("benchmark --out", "oeb benchmark: argument --out: expected one argument"),
        ("bench", "oeb: argument COMMAND: 'bench' is none; did you mean benchmark?"),
        ("predict --doc x", "oeb predict: the following arguments are required: --provider"),
    ):
        code, out, err = called(*words.split())
        assert (code, out) == (2, "") and err.startswith(f"oeb: {said}") and err.count("\n") == 1
    code, out, err = called()
    assert (code, out) == (2, "") and "usage: oeb" in err and "benchmark" in err


def test_providers_are_plain_lines_in_a_pipe() -> None:
    names = called("providers")[1].splitlines()
    listed = names[: names.index("")]
    assert listed == sorted(listed) and {"azure-cu", "datalab", "pdftext", "replay"} < set(listed)
    shown = called("providers", "datalab")[1]
    for said in ("mode = 'balanced'", "poll_interval = 5.0 s", "one of fast, balanced, accurate"):
        assert said in shown
    assert "latency" in called("providers", "replay")[1]
    assert names[-5:-2] == ["openai/gpt-5.6-sol", "anthropic/claude-opus-5", "google/gemini-3.7-flash"]
    shown = called("providers", "openai/gpt-5.6-sol")[1]
    for said in (
        "max_output_tokens = 128000 tokens",
        "OPENROUTER_API_KEY",
        "OPENAI_API_KEY",
        "in_flight = 5",
        "image/png",
    ):
        assert said in shown
    code, _, err = called("providers", "datlab")
    assert code == 2 and "did you mean datalab?" in err


def test_the_last_lines_of_a_benchmark_say_what_was_done_and_where(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", "limit=10")
    code, out, _ = called("benchmark", *words)
    assert code == 0
    lines = out.splitlines()
    assert lines[-3].startswith("20/20 documents  0 failed  ")
    assert all(line.startswith(f"{tmp_path}/out/replay-") for line in lines[-2:])
    assert "1.0000" in out
    again = called("benchmark", *words)
    assert again[0] == 0 and "20/20 documents  0 failed" in again[1]


def test_a_dry_run_writes_nothing(small: SmallCorpus, tmp_path: Path) -> None:
    code, out, _ = called("benchmark", *overrides(small, tmp_path / "out"), "--dry-run")
    assert code == 0
    assert "90 documents selected of 90" in out
    assert "predict: no record: 90: 'doc 00000 [x]'" in out
    assert not (tmp_path / "out").exists()


def test_all_documents_failing_is_code_1(small: SmallCorpus, tmp_path: Path) -> None:
    """BR-78"""
    words = overrides(small, tmp_path / "out", "providers.replay.failures=1.0", "limit=5")
    code, out, _ = called("benchmark", *words)
    assert code == 1
    assert "10/10 documents  10 failed" in out
    assert "--retry-failed asks " in out


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


def test_repeats_are_runs_of_their_own(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", "limit=6", systems=("good",))
    code, out, err = called("benchmark", *words, "--repeats", "3")
    assert code == 0, err
    first, *others = sorted(path.name for path in (tmp_path / "out").glob("replay-*"))
    assert others == [f"{first}~2", f"{first}~3"] and "18/18 documents" in out
    assert '"run": "' + others[0] + '"' in (tmp_path / "out" / others[0] / "summary.json").read_text()
    assert called("benchmark", *words, "repeats=0")[0] == 2


def test_explain_says_step_by_step_why_values_differ() -> None:
    """BR-14, BR-02"""
    code, out, err = called("explain", "25,000", '"25.000"')
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == (
        'not equal: "25000" against "25"; they part at \'decimal\', which takes only text "25.000"'
    )
    assert called("explain", "2029", '"2029"')[1].splitlines()[-1] == "equal: they meet at 'written out'"
    assert 'is compared as "-1250"' in called("explain", "-1,250")[1]
    assert "number 90071992547409931234567\n" in called("explain", "90071992547409931234567")[1]
    code, out, _ = oeb("explain", "é\x1b[31m", env={"PYTHONIOENCODING": "ascii"})
    assert code == 0 and '  is compared as "e\\u001b[31m"\n' in out
