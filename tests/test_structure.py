"""The shape of the package: imports point down, each heavy library has one home, the code is typed and clean."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "oeb_ray"

# A module may import from the layers above it in this list, and from its own part of the package.
LAYERS = [
    {"arrow", "errors", "digests", "jsontext", "records", "media", "loops", "clock", "untrusted", "__init__"},
    {"backends", "scoring", "cells"},
    {"storage"},
    {"providers", "layout", "scorers", "prices", "envfile"},
    {"calls", "cost", "pool", "stored", "lineup"},
    {"corpus", "tables", "ask", "config", "signals"},
    {"receipts", "filedigests", "settled", "summaries", "usage", "paid", "control", "ledger", "folders", "batch"},
    {"simulator", "results"},
    {"audit", "compare", "overview"},
    {"exports", "extractkit", "stability", "board", "forecast"},
    {"leaderboard"},
    {"report"},
    {"serve"},
    {"plan", "cluster", "request"},
    {"finish", "runstate", "ready", "estimate", "reasons", "harness", "handover"},
    {"steering"},
    {"watching"},
    {"driver"},
    {"run"},
    {"imports", "verify"},
    {"harbor"},
    {"progress", "rehearsal"},
    {"benchmark"},
    {"cli"},
    {"hydra_main", "__main__"},
]
HOMES = {
    "ray": {"cluster"},
    "hydra": {"config", "hydra_main"},
    "omegaconf": {"config", "hydra_main"},
    "fsspec": {"backends"},
    "s3fs": set(),
    "pyarrow": {"arrow", "scorers", "tables", "corpus", "results"},
    "httpx": {"providers", "paid", "corpus"},
    "numpy": {"scoring"},
    "scipy": {"scoring"},
    "dateutil": {"scoring"},
    "rich": {"progress", "cli"},
    "jsonschema_rs": {"corpus"},
    "huggingface_hub": {"corpus"},
    "pypdfium2": {"providers", "report"},
    "defusedxml": {"providers"},
    "msgspec": {"jsontext"},
    "dotenv": {"envfile"},
    "jinja2": {"report"},
    "PIL": {"report"},
    "starlette": {"simulator", "serve"},
    "uvicorn": {"simulator", "serve"},
    "h11": {"simulator"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[tuple[str, bool]]:
    """What a module imports: the part of this package (True), or the top-level name of another (False)."""
    depth = len(path.relative_to(PACKAGE).parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {(name.name.split(".")[0], False) for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                found.add(((node.module or "").split(".")[0], False))
            elif node.level == depth:  # `from .x` at the top, `from ..x` one folder down
                names = [node.module.split(".")[0]] if node.module else [name.name for name in node.names]
                found |= {(name, True) for name in names}
    return found


def layer_of(part: str) -> int:
    return next(number for number, layer in enumerate(LAYERS) if part in layer)


def test_imports_point_down() -> None:
    wrong = []
    for path in modules():
        part = part_of(path)
        if part == "__init__":
            continue
        for other, ours in imports_of(path):
            if ours and other not in (part, "__version__") and layer_of(other) >= layer_of(part):
                wrong.append(f"{path.relative_to(ROOT)} imports {other}")
    assert not wrong


def test_every_heavy_library_has_one_home() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules()
        for name, ours in imports_of(path)
        if not ours and name in HOMES and part_of(path) not in HOMES[name]
    ]
    assert not wrong


def test_only_the_command_line_reads_standard_input() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in modules()
        if part_of(path) != "cli"
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "stdin")
        or (isinstance(node, ast.Name) and node.id in ("input", "getpass"))
    ]
    assert not wrong


def test_scoring_stands_alone() -> None:
    allowed = {"numpy", "scipy", "dateutil"} | set(sys.stdlib_module_names)
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sorted((PACKAGE / "scoring").rglob("*.py"))
        for name, ours in imports_of(path)
        if ours or name not in allowed
    ]
    assert not wrong


@pytest.mark.parametrize(
    "code", ["import oeb_ray", "import oeb_ray; oeb_ray.score({'a': 1}, {'a': 1}, {'properties': {'a': {}}})"]
)
def test_importing_and_scoring_load_no_heavy_library(code: str) -> None:
    heavy = ["ray", "pyarrow", "fsspec", "httpx", "hydra", "omegaconf", "rich", "scipy", "numpy", "msgspec"]
    check = f"{code}; import sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", check], text=True).strip() == "[]"


def test_mypy_strict() -> None:
    ended = subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


@pytest.mark.parametrize("words", [["check"], ["format", "--check"]])
def test_ruff(words: list[str]) -> None:
    ended = subprocess.run([sys.executable, "-m", "ruff", *words, "."], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout


def test_no_module_is_longer_than_it_can_be_read() -> None:
    assert not {str(path): n for path in modules() if (n := len(path.read_text().splitlines())) > 400}
