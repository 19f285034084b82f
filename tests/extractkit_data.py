"""The data of the extractkit harness that stands in tests/data/extractkit."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "extractkit"
CORD = DATA / "cord" / "data" / "test-00000-of-00001.parquet"
DOCILE = DATA / "docile"
PINS = DATA / "manifest.json"
RECORDS = ("run-2026-07-12T12-17-58-095Z.json", "run-2026-07-12T17-40-57-702Z.json")


def text_of(name: str) -> str:
    """A file's text; the larger ones are packed."""
    packed = DATA / f"{name}.gz"
    return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else (DATA / name).read_text("utf-8")


def json_of(name: str) -> Any:
    return json.loads(text_of(name))


def lines_of(name: str) -> list[Any]:
    return [json.loads(line) for line in text_of(name).split("\n") if line]


def record_file(folder: Path, name: str) -> Path:
    """One of the published records, written into a folder under its own name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text_of(f"published/{name}"), encoding="utf-8")
    return path
