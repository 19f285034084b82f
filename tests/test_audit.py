"""`oeb audit`: every value as it came and as it was compared, in a terminal, a pipe and as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_verdicts, storage
from oeb_ray.cli.main import main
from oeb_ray.stored import runs_at
from tests.helpers import called, corpus_of, oeb, overrides, run_inline
from tests.test_storage import IDS

GOLDS = {
    "half": {"note": "caf bar", "ref": "R1"},
    "long": {"tag": -80241446968629135069, "iban": "90071992547409931"},
    "numbers": {"a": 1, "b": 2.5},
    "failed": {"a": 1},
    "[red] closing": {"[link=x]y[/link]": "[bold]x[/bold]"},
}
PREDICTIONS = {
    "half": r'{"note": "caf\ud83d bar", "ref": "R1", "k\ud83dey": "\u001b[31mred"}',
    "long": '{"tag": -80241446968629135070, "iban": 90071992547409930}',
    "numbers": '{"a": NaN, "b": "2.50"}',
    "failed": '{"__error__": "VendorTimeout: [/red] spent\\u0007"}',
    "[red] closing": '{"[link=x]y[/link]": "%s"}' % ("\\u202e" + "x" * 100_000),
}


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """An output and its one run, over values that tables, terminals and JSON readers stumble over."""
    folder = tmp_path_factory.mktemp("odd")
    corpus = corpus_of(folder, GOLDS, {"good": PREDICTIONS})
    run_inline(overrides(corpus, folder / "out", systems=("good",)))
    return str(folder / "out"), runs_at(str(folder / "out"))[0].name


def audited(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["audit", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_json_lines_hold_every_row_and_every_digit(odd: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """BR-09, BR-11, BR-08"""
    lines = audited(capsys, *odd, "--json")
    assert all(line.isascii() for line in lines)
    rows = {(row["doc_id"], row["path"]): row for row in map(json.loads, lines)}
    tag = rows["long", "tag"]
    assert (tag["gold_raw"], tag["pred_raw"]) == (-80241446968629135069, -80241446968629135070)
    assert tag["verdict"] == "matched"
    assert rows["long", "iban"]["pred_raw"] == 90071992547409930
    note = rows["half", "note"]
    assert (note["pred_raw"], note["pred_canon"], note["verdict"]) == ("caf\ud83d bar", "caf\ud83dbar", "misread")
    assert rows["half", "k\\ud83dey"]["address"] == [["k", "k\ud83dey"]]
    assert rows["numbers", "a"]["pred_raw"] == {"$float": "NaN"}
    assert {row["doc_id"] for row in rows.values()} == set(GOLDS) - {"failed"}


def test_a_line_a_row_with_nothing_that_steers_a_terminal(
    odd: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-77"""
    lines = audited(capsys, *odd)
    assert len(lines) == len(read_verdicts(*odd))
    assert 'numbers: b: matched: gold 2.5, pred "2.50" (2.5)' in lines
    assert (
        "long: tag: matched: gold -80241446968629135069 (-80241446968629133312), pred -80241446968629135070"
        in "".join(lines)
    )
    assert r'half: k\ud83dey: invented_field: gold nothing, pred "\u001b[31mred" (\x1b[31mred)' in lines
    (long,) = [line for line in lines if line.startswith("[red] closing: ['[link=x]y[/link]']: misread")]
    assert "\\u202e" + "x" * 100_000 in long and "\u202e" not in long


def test_failed_documents_are_named_beside_the_rows(odd: tuple[str, str]) -> None:
    """BR-21: failed is another word than wrong."""
    code, out, err = called("audit", *odd, "--doc", "failed")
    assert (code, out) == (0, "")
    assert err == "failed: failed, so it has no verdicts: VendorTimeout: [/red] spent\\x07\n"


def test_rows_are_chosen(out: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = next(
        stored.name for stored in runs_at(out) if "misread" in read_verdicts(out, stored.name)["verdict"].to_pylist()
    )
    expected = read_verdicts(out, run, verdict="misread", field="lines[*].qty").num_rows
    lines = audited(capsys, out, run, "--verdict", "misread", "--field", "lines[*].qty", "--json")
    assert len(lines) == expected > 20
    assert lines == audited(capsys, out, run, "--verdict", "misread", "--field", "lines", "--json")
    one: dict[str, Any] = json.loads(lines[7])
    chosen = ("--doc", one["doc_id"], "--field", one["path"], "--json")
    assert audited(capsys, out, storage.join(out, run), *chosen) == [lines[7]]
    assert audited(capsys, out, run, "--verdict", "misread", "--json", "--limit", "3") == lines[:3]


def test_what_is_not_there_is_refused_with_the_nearest_right_name(
    odd: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """BR-78: the audit of a missing run is no success."""
    out, run = odd
    for words, said in (
        ([f"{out}x", run], f"there are no runs at {out}x; did you mean {out}?"),
        ([out, run[:-1]], f"did you mean {run}?"),
        ([out, run, "--doc", "hal"], "has no document 'hal'; did you mean half?"),
        ([out, run, "--field", "tga"], "has no field 'tga' there; did you mean tag?"),
        ([out, run, "--verdict", "misred"], "did you mean misread?"),
    ):
        assert main(["audit", *words]) == 2
        shown = capsys.readouterr()
        assert said in shown.err and shown.out == ""


def test_a_run_without_verdicts_says_so(
    odd: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = corpus_of(tmp_path, {"a": {"x": 1}}, {"good": {"a": '{"x": 1}'}})
    run_inline(overrides(corpus, tmp_path / "out", "verdicts=false", systems=("good",)))
    assert main(["audit", str(tmp_path / "out"), runs_at(str(tmp_path / "out"))[0].name]) == 2
    assert "has no verdicts; it was scored without them" in capsys.readouterr().err


def test_pipes_end_quietly_and_encodings_do_not_matter(odd: tuple[str, str], finished: str) -> None:
    """BR-76"""
    command = f"{sys.executable} -u -m oeb_ray audit {finished} {runs_at(finished)[0].name} | head -1"
    ended = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert len(ended.stdout.splitlines()) == 1 and ended.stderr == "" and ended.returncode in (0, 141)
    plain = oeb("audit", *odd, env={"PYTHONIOENCODING": "ascii", "COLUMNS": "20", "FORCE_COLOR": "1"})
    assert plain[0] == 0 and plain[1].isascii() and plain[1].count("\n") == len(read_verdicts(*odd))
    closed = subprocess.run(
        f"{sys.executable} -m oeb_ray audit {odd[0]} {odd[1]} >&-",
        shell=True,
        capture_output=True,
        env=dict(os.environ),
    )
    assert b"Traceback" not in closed.stderr


def test_every_document_is_found_by_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BR-60: names are no patterns."""
    golds = {doc_id: {"x": number} for number, doc_id in enumerate(IDS)}
    texts = {doc_id: json.dumps({"x": number}) for doc_id, number in golds.items() for number in [number["x"]]}
    corpus = corpus_of(tmp_path, golds, {"good": texts})
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    run = runs_at(str(tmp_path / "out"))[0].name
    for number, doc_id in enumerate(IDS):
        (line,) = audited(capsys, str(tmp_path / "out"), run, "--json", "--doc", doc_id)
        row = json.loads(line)
        assert (row["doc_id"], row["gold_raw"]) == (doc_id, number)
