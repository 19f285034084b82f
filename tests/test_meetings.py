"""Drivers that meet on one folder with different knowledge, and attempts that follow each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import layout, receipts, run, storage, tables
from oeb_ray.cluster.contract import Lost, Predicted
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from oeb_ray.errors import AccountFailure, RequestError
from oeb_ray.plan import Plan
from oeb_ray.records import PartTask, PredictBatch
from oeb_ray.scorers.field_matching import SCORER
from tests.helpers import Silent, SmallCorpus, contents, make_corpus, manifest_rows, overrides, run_inline


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_corpus(tmp_path / "corpus", documents=24)


def planned(words: list[str]) -> Plan:
    return run.plan_job(read_job(composed(words)))


def done(plan: Plan, cluster: Any = None) -> run.Outcome:
    return run.execute(plan, cluster or InlineCluster(), Silent())


def test_a_driver_that_knew_less_loses_nothing_of_what_another_has_done(corpus: SmallCorpus, tmp_path: Path) -> None:
    run_inline(overrides(corpus, tmp_path / "whole"))
    early = planned(overrides(corpus, tmp_path / "out", "limit=2"))
    run_inline(overrides(corpus, tmp_path / "out"))
    done(early)
    assert contents(str(tmp_path / "out")) == contents(str(tmp_path / "whole"))


def test_an_older_driver_does_not_bring_back_what_another_has_asked_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.unlink()
    run_inline(words)
    path.write_bytes(content)
    early = planned([*words, "rescore=true"])
    run_inline([*words, "retry_failed=all"])
    (summary,) = done(early).summaries.values()
    assert summary["scored"] == corpus.documents
    assert not planned([*words, "retry_failed=all"]).runs[0].predict


def test_a_kill_between_record_and_index_of_a_retry_asks_nothing_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.unlink()
    run_inline(words)
    path.write_bytes(content)

    class Dies(InlineCluster):
        def wait(self, seconds: float):  # type: ignore[no-untyped-def]
            super().wait(seconds)
            raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oeb_ray.driver.add_to_index", lambda *_: None)  # the kill comes before the index is written
        with pytest.raises(SystemExit):
            done(planned([*words, "retry_failed=all"]), Dies())
    again = planned([*words, "retry_failed=all"])
    assert not again.runs[0].predict
    (summary,) = done(again).summaries.values()
    assert summary["scored"] == corpus.documents


def test_a_pair_cut_in_the_middle_of_a_retry_is_not_done(corpus: SmallCorpus, tmp_path: Path) -> None:
    """The prediction of the new attempt is there, its record is not: record and prediction disagree."""
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    rows = manifest_rows(corpus)
    doc_id, out = rows[5]["doc_id"], str(tmp_path / "out")
    receipts.merge_index(out, name, (), without=frozenset({doc_id}))
    storage.put(layout.prediction(out, name, doc_id), b'{"half": "of a retry"}')
    plan = planned(words)
    assert [plan.corpus.ids[position] for position in plan.runs[0].predict] == [doc_id]
    done(plan)
    run_inline(overrides(corpus, tmp_path / "whole", systems=("good",)))
    assert contents(out) == contents(str(tmp_path / "whole"))


def test_deleting_a_record_asks_its_document_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    doc_id = manifest_rows(corpus)[5]["doc_id"]
    storage.delete(layout.record(str(tmp_path / "out"), name, doc_id))
    assert len(planned(words).runs[0].predict) == 1


def test_what_comes_after_a_deleted_record_counts_whatever_the_index_has_seen(
    corpus: SmallCorpus, tmp_path: Path
) -> None:
    """Failed twice, deleted, asked again with success; then asked nothing more, and nothing comes back."""
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.unlink()
    (name,) = run_inline(words)
    run_inline([*words, "retry_failed=all"])
    path.write_bytes(content)
    storage.delete(layout.record(str(tmp_path / "out"), name, path.stem))
    for _ in range(4):
        (summary,) = run_inline(words).values()
        assert summary["scored"] == corpus.documents


def test_a_pair_that_cannot_be_read_is_repaired_once_and_ends(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    path.write_bytes(path.read_bytes() + b" ")
    run_inline([*words, "predict_stale=true"])
    for address in (layout.record, layout.prediction):
        storage.put(address(str(tmp_path / "out"), name, path.stem), b'{"cut": ')
    path.write_bytes(path.read_bytes() + b" ")
    (summary,) = run_inline([*words, "rescore=true"]).values()
    assert summary["scored"] == corpus.documents


def test_nothing_is_asked_outside_the_selection(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    last = manifest_rows(corpus)[-1]["doc_id"]
    storage.put(layout.prediction(str(tmp_path / "out"), name, last), b"{}")

    class Counting(InlineCluster):
        asked = 0

        def send(self, batch: PredictBatch) -> None:
            self.asked += 1
            super().send(batch)

    cluster = Counting()
    (summary,) = done(planned([*words, "limit=2", "rescore=true"]), cluster).summaries.values()
    assert cluster.asked == 0
    assert summary["documents"] == corpus.documents - 1


def test_an_answer_that_is_replaced_stays_under_another_name(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    before = path.read_bytes()
    (name,) = run_inline(words)
    path.unlink()
    storage.delete(layout.part(str(tmp_path / "out"), name, layout.SCORES, layout.Home("suite 1", "none.parquet")))
    path.write_bytes(b'{"invoice_id": "another"}')
    run_inline([*words, "predict_stale=true"])
    assert storage.read(layout.earlier_prediction(str(tmp_path / "out"), name, path.stem, 2)) == before


@pytest.mark.parametrize("content", [{"run_manifest": None}, {"earlier": None}, {"cost": {"attempts": "x"}}, [], 7])
def test_records_of_another_shape_are_made_again(corpus: SmallCorpus, tmp_path: Path, content: Any) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    doc_id, out = manifest_rows(corpus)[5]["doc_id"], str(tmp_path / "out")
    receipts.merge_index(out, name, (), without=frozenset({doc_id}))
    storage.put(layout.record(out, name, doc_id), json.dumps(content).encode())
    (summary,) = run_inline(words).values()
    assert summary["scored"] == corpus.documents


def test_too_little_memory_is_no_answer_of_a_document(
    corpus: SmallCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    plan = planned(words)
    times = iter([MemoryError(), None, MemoryError()])

    def short(*given: Any) -> Any:
        if (error := next(times, None)) is not None:
            raise error
        return scored(*given)

    from oeb_ray.scorers import field_matching as grade

    scored = grade.score_columns
    monkeypatch.setattr(grade, "score_columns", short)
    (summary,) = done(plan).summaries.values()
    assert summary["scored"] == corpus.documents


def test_a_changed_stored_prediction_is_stale_and_served_again_on_request(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.write_bytes(b'{"invoice_id": ')
    (summary,) = run_inline(words).values()
    assert summary["scored"] == corpus.documents - 1
    path.write_bytes(content)
    ((doc_id, why),) = planned(words).runs[0].stale
    assert doc_id == path.stem and why == f"{path} has changed"
    (summary,) = run_inline([*words, "predict_stale=true"]).values()
    assert summary["scored"] == corpus.documents


def test_history_keeps_what_earlier_attempts_said(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.unlink()
    (name,) = run_inline(words)
    path.write_bytes(content)
    run_inline([*words, "retry_failed=all"])
    record = json.loads(storage.read(layout.record(str(tmp_path / "out"), name, path.stem)))
    assert record["error"] is None and record["cost"]["attempts"] == 2
    assert record["earlier"][0]["result"] == {"__error__": "no prediction on disk"}


def test_the_loser_of_a_race_for_the_settings_is_refused(corpus: SmallCorpus, tmp_path: Path) -> None:
    one, other = (planned(overrides(corpus, tmp_path / "out", f"timeout={seconds}")) for seconds in (5, 9))
    done(one)
    with pytest.raises(RequestError, match=r"timeout_s=5\.0, this job 9\.0"):
        done(other)


def test_one_output_is_of_one_corpus(corpus: SmallCorpus, tmp_path: Path) -> None:
    run_inline(overrides(corpus, tmp_path / "out", systems=("good",)))
    another = make_corpus(tmp_path / "another", documents=3)
    with pytest.raises(RequestError, match="choose another output"):
        planned(overrides(another, tmp_path / "out", systems=("bad",)))


def test_verdicts_of_another_gold_are_made_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    """Killed between verdicts and scores, and the gold put back: the scores are current, the verdicts are not."""
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    before = contents(str(tmp_path / "out"))
    (key, *_) = storage.listed(str(tmp_path / "out" / name / "verdicts.parquet"))
    address = str(tmp_path / "out" / name / "verdicts.parquet" / key)
    storage.put(address, tables.verdict_part(SCORER, [], "of another gold"))
    run_inline(words)
    assert contents(str(tmp_path / "out")) == before


def test_a_part_with_damaged_pages_is_made_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    (name,) = run_inline(words)
    before = contents(str(tmp_path / "out"))
    part = next((tmp_path / "out" / name / "scores.parquet").rglob("*.parquet"))
    data = bytearray(part.read_bytes())
    data[20:900] = bytes(880)
    part.write_bytes(bytes(data))
    run_inline(words)
    assert contents(str(tmp_path / "out")) == before


def test_a_gold_that_is_missing_for_a_moment_is_scored_when_it_is_back(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    plan = planned(words)
    gold = next((corpus.folder / "gold").iterdir())
    gold.rename(tmp_path / "away")
    (summary,) = done(plan).summaries.values()
    assert summary["scored"] == corpus.documents - 1
    (tmp_path / "away").rename(gold)
    (summary,) = run_inline(words).values()
    assert summary["scored"] == corpus.documents


class Stops(InlineCluster):
    """A provider whose account is refused after some batches; workers may be lost as well."""

    slots = 3

    def __init__(self, after: int, loses: bool) -> None:
        super().__init__()
        self.after, self.loses, self.asked_after_stop, self.stopped = after, loses, 0, False

    def send(self, batch: PredictBatch) -> None:
        self.asked_after_stop += self.stopped
        super().send(batch)

    def wait(self, seconds: float):  # type: ignore[no-untyped-def]
        item = self._waiting[0]
        if isinstance(item, PredictBatch):
            self.after -= 1
            if self.after < 0:
                self._waiting.popleft()
                if self.loses and self.stopped:
                    return [Lost(item, "WorkerCrashedError: test")]
                self.stopped = True
                return [Predicted(item, (), AccountFailure("402 no credit"))]
        return super().wait(seconds)


@pytest.mark.parametrize("loses", [False, True])
@pytest.mark.parametrize("after", range(6))
def test_a_stopped_account_is_sent_nothing_more_and_what_is_recorded_is_scored(
    corpus: SmallCorpus, tmp_path: Path, after: int, loses: bool
) -> None:
    cluster = Stops(after, loses)
    outcome = done(planned(overrides(corpus, tmp_path / "out")), cluster)
    assert cluster.asked_after_stop == 0
    assert {type(error) for error in outcome.stopped.values()} == {AccountFailure}
    for name, summary in outcome.summaries.items():
        assert summary["documents"] == len(list((tmp_path / "out" / name).glob("records/*.json"))) == summary["scored"]
    run_inline(overrides(corpus, tmp_path / "out"))
    run_inline(overrides(corpus, tmp_path / "whole"))
    assert contents(str(tmp_path / "out")) == contents(str(tmp_path / "whole"))


def test_a_document_that_is_gone_stops_its_provider_with_a_message(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = [word for word in overrides(corpus, tmp_path / "out") if not word.startswith("provider")]
    plan = planned([*words, "provider=[pdftext]"])
    next((corpus.folder / "docs").iterdir()).unlink()
    (error,) = done(plan).stopped.values()
    assert isinstance(error, RequestError) and "was there when this was planned" in str(error)


def test_storage_that_fails_inside_a_provider_is_no_answer_of_a_document(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out", systems=("good",))
    plan = planned(words)
    path = next((corpus.predictions / "good").glob("doc 00003*"))
    content = path.read_bytes()
    path.unlink()
    path.symlink_to(path)  # cannot be read, for a while
    (error,) = done(plan).stopped.values()
    assert "cannot read" in str(error)
    path.unlink()
    path.write_bytes(content)
    (summary,) = run_inline(words).values()
    assert summary["scored"] == corpus.documents


def test_work_items_and_outcomes_survive_pickling(corpus: SmallCorpus, tmp_path: Path) -> None:
    """BR-51: they cross processes."""
    import inspect
    import pickle

    from oeb_ray import errors

    plan = planned(overrides(corpus, tmp_path / "out"))
    batch = PredictBatch(plan.out, plan.runs[0].run, (plan.corpus.doc(0),))
    assert pickle.loads(pickle.dumps(batch)) == batch
    assert not [field for field in PartTask.__dataclass_fields__ if field in ("gold", "prediction")]
    for _, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, Exception):
            error = kind("text", 503, {"detail": "x"}) if issubclass(kind, errors.DocumentError) else kind("text")
            error.__cause__ = ValueError("why")
            copy = pickle.loads(pickle.dumps(error))
            assert (type(copy), str(copy), copy.args) == (kind, str(error), error.args)
