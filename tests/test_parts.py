"""The promise of parts: bytes depend on corpus, predictions and scorer, not on how the work was done."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from oeb_ray import layout, storage, tables
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.cluster.work import do_score
from oeb_ray.records import PartTask, PredictBatch, Run
from oeb_ray.scorers import field_matching
from tests.helpers import (
    DERIVED,
    SmallCorpus,
    contents,
    make_corpus,
    manifest_rows,
    overrides,
    run_inline,
    write_manifest,
)


@pytest.fixture(scope="module")
def undisturbed(small: SmallCorpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("undisturbed")
    run_inline(overrides(small, out))
    return contents(str(out))


class Shuffled(InlineCluster):
    """Does waiting work in random order, several at a time, and dies after some of it."""

    slots = 5

    def __init__(self, seed: int, dies_after: int | None = None) -> None:
        super().__init__()
        self.dice, self.left = random.Random(seed), dies_after

    def wait(self, seconds: float):  # type: ignore[no-untyped-def]
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise MemoryError("killed")
        self.dice.shuffle(self._waiting)
        return super().wait(seconds)


def rows_of(out: Path) -> dict[str, list[str]]:
    """Document ids of the score parts by run; a document in two parts is there twice."""
    found: dict[str, list[str]] = {}
    for key in storage.listed(str(out)):
        run, _, rest = key.partition("/")
        if rest.startswith("scores.parquet/"):
            table = tables.read_parts([storage.join(str(out), key)], field_matching.SCORES)
            found.setdefault(run, []).extend(table.column("doc_id").to_pylist())
    return found


@pytest.mark.parametrize("seed", range(3))
def test_order_of_arrival_changes_no_byte(small, tmp_path, undisturbed, seed) -> None:
    run_inline(overrides(small, tmp_path), Shuffled(seed))
    assert contents(str(tmp_path)) == undisturbed


@pytest.mark.parametrize("seed", range(3))
def test_deaths_and_resumes_change_no_byte(small, tmp_path, undisturbed, seed) -> None:
    dice = random.Random(seed)
    for _ in range(12):
        try:
            run_inline(overrides(small, tmp_path), Shuffled(dice.random(), dies_after=dice.randrange(1, 4)))
            break
        except MemoryError:
            pass
    run_inline(overrides(small, tmp_path))
    assert contents(str(tmp_path)) == undisturbed


def test_limit_then_all_extends_and_leaves_every_document_in_one_part(small, tmp_path, undisturbed) -> None:
    run_inline(overrides(small, tmp_path, "limit=2"))
    assert {run: len(ids) for run, ids in rows_of(tmp_path).items()} == dict.fromkeys(rows_of(tmp_path), 2)
    run_inline(overrides(small, tmp_path, "suites=[suite 1]", "limit=7"))
    run_inline(overrides(small, tmp_path))
    assert contents(str(tmp_path)) == undisturbed
    for ids in rows_of(tmp_path).values():
        assert len(ids) == len(set(ids)) == small.documents


def test_a_smaller_selection_loses_no_row(small, tmp_path, undisturbed) -> None:
    run_inline(overrides(small, tmp_path))
    run_inline(overrides(small, tmp_path, "limit=2", "rescore=true"))
    assert contents(str(tmp_path)) == undisturbed


def test_documents_added_later_move_to_new_parts_and_leave_none_behind(tmp_path) -> None:
    corpus = make_corpus(tmp_path / "corpus", documents=300, suites=1)
    rows = manifest_rows(corpus)
    random.Random(4).shuffle(rows)
    write_manifest(corpus.manifest, rows[:60])
    run_inline(overrides(corpus, tmp_path / "grown"))
    before = set(contents(str(tmp_path / "grown")))
    write_manifest(corpus.manifest, rows)
    run_inline(overrides(corpus, tmp_path / "grown"))
    run_inline(overrides(corpus, tmp_path / "whole"))
    grown, whole = contents(str(tmp_path / "grown")), contents(str(tmp_path / "whole"))
    assert grown == whole
    parts = {key for key in before if not key.endswith(DERIVED)}
    assert parts.isdisjoint(whole), "with five times the documents every part has another name"


def test_a_complete_run_has_nothing_to_do(small, tmp_path) -> None:
    class Counting(InlineCluster):
        def __init__(self) -> None:
            super().__init__()
            self.work: list[PredictBatch | PartTask] = []

        def send(self, batch: PredictBatch) -> None:
            self.work.append(batch)
            super().send(batch)

        def score(self, task: PartTask) -> None:
            self.work.append(task)
            super().score(task)

    run_inline(overrides(small, tmp_path))
    again = Counting()
    run_inline(overrides(small, tmp_path), again)
    assert again.work == []


def test_a_changed_gold_is_scored_again_and_nothing_else(tmp_path) -> None:
    corpus = make_corpus(tmp_path / "corpus", documents=200, suites=1)
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    before = contents(str(tmp_path / "out"))
    gold = next((corpus.folder / "gold").glob("doc 00007*"))
    gold.write_text(gold.read_text().replace("INV-00007", "INV-70000"))
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    after = contents(str(tmp_path / "out"))
    changed = {key.rsplit("/", 1)[-1] for key in after if after[key] != before[key]}
    part = layout.homes([row["doc_id"] for row in manifest_rows(corpus)], ["suite 0"] * 200, [0] * 200)[7].part
    assert changed == {part, *DERIVED}


def test_a_document_with_a_large_gold_has_a_part_of_its_own() -> None:
    homes = layout.homes(["a", "b", "c"], ["s"] * 3, [10, layout.OWN_PART_BYTES + 1, 10])
    assert homes[0] == homes[2] != homes[1]
    assert layout.home_of_key(layout.part_key(homes[1])) == homes[1]


def test_parts_are_found_again_whatever_the_suite_is_called() -> None:
    for suite in ("007", "a b", "x/y=z", "100%", "ä", "suite=1"):
        home = layout.homes(["d"], [suite], [1])[0]
        assert layout.home_of_key(layout.part_key(home)) == home


def test_without_verdicts_stale_verdicts_do_not_stay(small, tmp_path) -> None:
    run_inline(overrides(small, tmp_path))
    run_inline(overrides(small, tmp_path, "verdicts=false", "rescore=true"))
    assert not [key for key in contents(str(tmp_path)) if "verdicts.parquet" in key]
    run_inline(overrides(small, tmp_path))
    assert [key for key in contents(str(tmp_path)) if "verdicts.parquet" in key]


def test_a_part_that_holds_nobody_any_more_is_not_written(tmp_path: Path) -> None:
    run = Run("replay-1", "replay", {})
    graded = do_score(PartTask(str(tmp_path), run, "easy", "part-0000", (), True, layout.FIRST_SCORER))
    assert graded.failed is None and not graded.receipt.broken
    assert not storage.listed(str(tmp_path))
