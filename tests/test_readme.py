"""README examples run as written, against the sample corpus."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oeb_ray.config import sample_manifest
from oeb_ray.providers.contract import VendorOptions
from tests.helpers import typed
from tests.providers.fakes import FakeCall, pdf, reply

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the README's: a corpus and predictions of one's own, and a run of the demo."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(Path(sample_manifest()).parent, folder / "my" / "corpus")
    for system in ("ours", "theirs"):
        shutil.copytree(folder / "my" / "corpus" / "gold", folder / "my-predictions" / system)
    gold = json.loads(next((folder / "my" / "corpus" / "gold").iterdir()).read_text())
    for name, value in (("pred", gold), ("gold", gold), ("schema", {"properties": {"a": {}}})):
        (folder / f"{name}.json").write_text(json.dumps(value))
    rows = pq.read_table(sample_manifest()).to_pylist()
    for row in rows:
        row["pred_path"] = str(folder / "my-predictions" / "ours" / f"{row['doc_id']}.json")
    pq.write_table(pa.Table.from_pylist(rows), folder / "jobs.parquet")
    out = typed(f"oeb benchmark --providers pdftext --out {folder}/runs corpus=sample cluster=inline")
    shutil.copytree(folder / "runs", folder / "new")
    (folder / "demo.txt").write_text(out)
    return folder


def test_the_demo_prints_what_the_readme_shows(place: Path) -> None:
    shown = [line.strip() for line in README.splitlines() if "pdftext-44136fa3 │" in line]
    figures = re.findall(r"[\d.]+", shown[0].split("│", 2)[2])
    assert figures == re.findall(r"[\d.]+", next(
        line for line in (place / "demo.txt").read_text().splitlines() if "pdftext-44136fa3" in line and "│" in line
    ).split("│", 2)[2])  # fmt: skip


@pytest.mark.parametrize("block", blocks("sh"))
def test_shell_examples_run(place: Path, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = block.replace("| jq .accuracy", f"| {sys.executable} -c 'import json, sys; json.load(sys.stdin)'")
    command = command.replace("--out runs", "--out own").replace(
        "folder=my-predictions", "folder=my-predictions cluster=inline"
    )
    monkeypatch.chdir(place)
    for line in command.replace("\\\n", " ").splitlines():
        if line.startswith("oeb ") and not re.search(r" [|>] ", line):
            typed(line)
            continue
        env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(["bash", "-euo", "pipefail", "-c", line], env=env, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("block", blocks("python"))
def test_python_examples_run(place: Path, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    # Definitions in it have a module of their own, and no features of this one.
    monkeypatch.setitem(sys.modules, "example", module := types.ModuleType("example"))
    exec(compile(block, "example", "exec", dont_inherit=True), vars(module))


def test_the_score_example_gives_what_its_comment_says() -> None:
    scope: dict[str, object] = {}
    block = next(block for block in blocks("python") if "from oeb_ray import score" in block)
    exec(block, scope)
    result = scope["result"]
    assert isinstance(result, dict)
    assert (result["accuracy"], result["misread"]) == (0.8, 1)


def test_the_example_of_a_vendor_works_and_is_short() -> None:
    scope: dict[str, Any] = {"__name__": "acme"}
    block = next(block for block in blocks("python") if "class Acme" in block)
    assert len(block.splitlines()) < 60
    exec(compile(block, "acme", "exec", dont_inherit=True), scope)
    call = FakeCall(
        [
            reply(200, {"id": "f1"}),
            reply(202, {"job": "j1"}),
            reply(200, {"status": "running"}),
            reply(200, {"status": "done", "data": {"a": 1}, "credits": 3}),
        ]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACME_API_KEY", "key")
        given = asyncio.run(scope["Acme"]().extract(pdf(), {}, scope["AcmeSettings"](), VendorOptions(), call))
    assert json.loads(given.prediction) == {"a": 1} and given.raw == {"status": "done", "credits": 3}
    assert call.jobs == ["j1"] and call.bills == [{"credits": 3, "source": "credits"}]


def test_explain_prints_what_the_readme_shows() -> None:
    out = typed("oeb explain 1.234,56 1234.56")
    assert "".join(f"    {line}\n" for line in out.splitlines()) in README


def test_the_sql_example_runs(place: Path) -> None:
    import duckdb

    (query,) = blocks("sql")
    assert duckdb.sql(query.replace("'runs/", f"'{place}/runs/")).fetchall()


def test_commands_that_the_readme_names_exist() -> None:
    targets = set(re.findall(r"(?:^    |`)make ([\w-]+)", README, flags=re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text()
    assert targets and all(f"\n{target}:" in makefile for target in targets)
