"""A complete run is looked at once; after that a resume reads its parts only if something is another than it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from oeb_ray import layout, storage
from oeb_ray.settled import NAME
from tests.helpers import SmallCorpus, called, contents, make_corpus, overrides, run_inline

USAGE = "usage.json"


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is read and written, one line each."""
    seen: list[str] = []

    def noted(name: str, usual: Callable[..., object], address: str, *more: object, **named: object) -> object:
        seen.append(f"{name} {address}")
        return usual(address, *more, **named)

    for name in ("read", "read_tail", "put", "listed"):
        usual = getattr(storage, name)

        monkeypatch.setattr(storage, name, partial(noted, name, usual))
    return seen


def test_a_resume_with_nothing_to_do_reads_no_part_and_writes_no_summary(
    small: SmallCorpus, tmp_path: Path, looks: list[str]
) -> None:
    words = overrides(small, tmp_path / "out")
    first = run_inline(words)
    before = contents(str(tmp_path / "out"))
    looks.clear()
    assert run_inline(words) == first
    parts = [look for look in looks if not look.startswith("listed") and ".parquet/" in look and "receipts" not in look]
    written = [look.rsplit("/", 1)[-1] for look in looks if look.startswith("put")]
    assert parts == [] and set(written) <= {"config.json"}
    assert contents(str(tmp_path / "out")) == before


@pytest.mark.parametrize("name", ["scores.jsonl", "summary.json", USAGE, NAME])
@pytest.mark.parametrize("done", ["edited", "gone", "damaged"])
def test_what_is_derived_is_made_again(small: SmallCorpus, tmp_path: Path, name: str, done: str) -> None:
    words = overrides(small, tmp_path / "out", systems=("good",))
    (run,) = run_inline(words)
    usage = (tmp_path / "out" / run / USAGE).read_bytes()
    before, path = contents(str(tmp_path / "out")), tmp_path / "out" / run / name
    if done == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes().replace(b"1", b"2") if done == "edited" else b"{")
    run_inline(words)
    assert contents(str(tmp_path / "out")) == before and (tmp_path / "out" / run / USAGE).read_bytes() == usage
    assert json.loads((tmp_path / "out" / run / NAME).read_bytes())["made_from"].keys() == {layout.FIRST_SCORER}


def test_errors_are_told_of_a_run_that_is_settled(tmp_path: Path) -> None:
    made = make_corpus(tmp_path / "corpus", 12)
    next((made.predictions / "good").iterdir()).unlink()
    words = overrides(made, tmp_path / "out", systems=("good",))
    code, out, _ = called("benchmark", *words)
    again, told, _ = called("benchmark", *words)
    assert (code, _told(out)) == (again, _told(told)) and "1 failed:" in told


def _told(text: str) -> list[str]:
    return [line for line in text.splitlines() if "elapsed" not in line]


def test_parts_that_are_not_as_they_were_are_looked_at(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", systems=("good",))
    (run,) = run_inline(words)
    before = contents(str(tmp_path / "out"))
    for table in (layout.SCORES, layout.VERDICTS):
        part = next((tmp_path / "out" / run / table).rglob("*.parquet"))
        part.unlink()
        run_inline(words)
        assert contents(str(tmp_path / "out")) == before


def test_a_changed_gold_is_scored_again(small: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(small, tmp_path / "out", systems=("good",))
    (before,) = run_inline(words).values()
    gold = next((small.folder / "gold").iterdir())
    text = gold.read_text()
    gold.write_text('{"unlike": "all"}')
    (changed,) = run_inline(words).values()
    gold.write_text(text)
    (after,) = run_inline(words).values()
    assert changed["accuracy"] != before["accuracy"] and after == before
