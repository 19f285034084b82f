"""scorer=field_accuracy in whole jobs over CORD and DocILE: the figures of the harness, in tables like any other's."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, read_verdicts, storage
from oeb_ray.cli.main import main
from oeb_ray.corpus import labelled
from oeb_ray.corpus.pins import load_pins, read_pinned
from oeb_ray.errors import RequestError
from oeb_ray.extractkit.exchange import predictions_of, record_of_runs
from oeb_ray.extractkit.record import read_record
from oeb_ray.extractkit.results import MISSING
from oeb_ray.folders import corpus_at
from oeb_ray.receipts import stored_receipts
from oeb_ray.scorers.contract import Given
from oeb_ray.scorers.field_accuracy import SCORER, places_in
from oeb_ray.scoring.field_accuracy import summarize
from oeb_ray.stored import runs_at

from .extractkit_data import CORD, DOCILE, PINS, RECORDS, json_of, lines_of, record_file
from .extractkit_runs import MOST_CALLS, read_reply
from .helpers import contents, run_inline
from .test_extractkit_vectors import differs

MODELS = ("replay-alpha", "replay-beta")
LOST = "docile-val-dc7c5091b33e1bc286749ccd"  # the document whose request was lost, by one model
BOTH = "scorer=[field_matching,field_accuracy]"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``corpus/`` with the pinned documents, and ``predictions/`` with what the scripted models answered."""
    folder = tmp_path_factory.mktemp("extractkit")
    (folder / "data").mkdir()
    (folder / "data" / CORD.name).write_bytes(CORD.read_bytes())
    (folder / "docile").symlink_to(DOCILE)
    docs = read_pinned(load_pins(str(PINS)), str(folder)).docs
    labelled.make_corpus(docs, str(folder / "corpus"))
    for line in lines_of("replies.jsonl"):
        doc_id = labelled.own_id(line["docId"])
        assert doc_id
        form = "receipt" if doc_id.startswith("cord") else "invoice"
        answer, error = None, "OSError: the connection broke"
        for text in line["replies"][:MOST_CALLS]:
            answer, error = read_reply(text, form, pages=3)
        path = folder / "predictions" / line["model"] / f"{doc_id}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"__error__": error} if answer is None else answer))
    return folder


def words(place: Path, out: Path, *more: str) -> list[str]:
    listed = ",".join(f"{{system: {model}}}" for model in MODELS)
    return [
        "corpus=cord", f"corpus.manifest='{place}/corpus/manifest.parquet'", "provider=[replay]",
        f"providers.replay.options=[{listed}]", f"providers.replay.folder='{place}/predictions'",
        f"storage.root='{out}'", "cluster=inline", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def done(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a job with both scorers; for reading only."""
    out = tmp_path_factory.mktemp("done")
    run_inline(words(place, out, BOTH))
    return out


def runs(out: Path) -> dict[str, str]:
    """The Run of each scripted model."""
    settings = {key: json.loads(storage.read(f"{out}/{key}")) for key in storage.listed(str(out)) if "settings" in key}
    return {made["settings"]["system"]: key.split("/")[0] for key, made in settings.items()}


def test_a_job_gives_the_figures_of_the_harness(done: Path) -> None:
    for run in json_of("expected_run_record.json")["runs"]:
        wanted = summarize(run["docs"])
        summary = json.loads((done / runs(done)[run["model"]] / "field_accuracy" / "summary.json").read_text())
        for suite, block in summary["per_suite"].items():
            theirs = wanted["receipt" if suite == "cord" else "invoice"]
            assert (block["documents"], block["fields"]) == (theirs["docs"], theirs["fieldsScored"])
            assert block["accuracy"] == pytest.approx(theirs["fieldAccuracy"], rel=1e-12)
            assert block["hit_at_50"] == pytest.approx(theirs["grounding"]["hitAt50"], rel=1e-12)
            assert block["mean_iou"] == pytest.approx(theirs["grounding"]["meanIoU"], rel=1e-9)
            assert block["extra_line_items"] == theirs["extraLineItems"]
        assert summary["documents"] == 12 and summary["scorer"] == "field_accuracy 1"


def test_verdicts_are_the_fields_of_the_record(done: Path) -> None:
    wanted = {
        (run["model"], doc["docId"], *(field[key] for key in ("path", "compare", "expected", "predicted")),
         field["valueCorrect"], field["predictedPage"])
        for run in json_of("expected_run_record.json")["runs"] for doc in run["docs"] for field in doc["fields"]
        if doc["error"] in (None, "MissingRequiredFieldsError")
    }  # fmt: skip
    names = {name: model for model, name in runs(done).items()}
    rows = read_verdicts(str(done), scorer="field_accuracy").to_pylist()
    keys = ("path", "compare", "expected", "predicted", "value_correct", "predicted_page")
    made = {(names[row["run"]], labelled.harness_id(row["doc_id"]), *(row[key] for key in keys)) for row in rows}
    assert made == wanted


def test_a_failed_document_counts_zero_here_and_lowers_coverage_there(done: Path) -> None:
    """One answer says nothing, one request was lost, one document could not be read: three of twelve."""
    name = runs(done)["replay-beta"]
    theirs = json.loads((done / name / "summary.json").read_text())
    mine = json.loads((done / name / "field_accuracy" / "summary.json").read_text())
    assert theirs["scored"] == mine["scored"] == 9 and mine["coverage"] == theirs["coverage"] == 0.75
    rows = [row for row in read_scores(str(done), scorer="field_accuracy").to_pylist() if row["run"] == name]
    failed = [row for row in rows if row["status"] == "error"]
    assert len(failed) == 3 and all(row["correct"] == 0 < row["fields"] and row["accuracy"] is None for row in failed)
    assert mine["accuracy"] == sum(row["correct"] for row in rows) / sum(row["fields"] for row in rows)


def test_scored_alone_later_or_verified_it_gives_the_same_bytes(place: Path, done: Path, tmp_path: Path) -> None:
    run_inline(words(place, tmp_path, "scorer=field_matching"))
    run_inline(words(place, tmp_path, "scorer=field_accuracy"))
    assert contents(str(tmp_path)) == contents(str(done))
    assert main(["verify", str(tmp_path)]) == 0


def test_the_table_on_the_screen_has_the_figures(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", *words(place, tmp_path, "scorer=field_accuracy", "limit=2")]) == 0
    shown = capsys.readouterr().out
    assert "hit_at_50" in shown and "mean_iou" in shown


def given(prediction: Any, annotations: Any, citations: Any = ()) -> Given:
    record = json.dumps({"citations": list(citations)}).encode()
    gold = None if annotations is None else json.dumps(annotations).encode()
    return Given(json.dumps(prediction).encode(), None, b"{}", "{}", gold, record)


GOLD = {
    "fields": [{"path": "lineItems.0.amount", "value": "35.000", "compare": "money",
                "regions": [{"page": 1, "bbox": {"x0": 0.5, "y0": 0.25, "x1": 0.75, "y1": 0.5}}]}],
    "lineItemCount": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("citation", "iou"),
    [
        ({"path": "lineItems[0].amount", "page": 2, "box": [0.5, 0.25, 0.75, 0.5]}, 1.0),
        ({"field_path": "lineItems.0.amount", "page": 2, "bbox": [0.5, 0.25, 0.25, 0.25]}, 1.0),
        ({"path": "lineItems[0].amount", "page": 1, "box": [0.5, 0.25, 0.75, 0.5]}, 0.0),
        ({"path": "lineItems[1].amount", "page": 2, "box": [0.5, 0.25, 0.75, 0.5]}, 0.0),
        ({"path": "lineItems[0].amount", "page": "2", "box": [0.5, 0.25, None, 0.5]}, 0.0),
        (["no object"], 0.0),
    ],
)  # fmt: skip
def test_bare_values_are_placed_by_the_citations_of_their_record(citation: Any, iou: float) -> None:
    row = SCORER.grade(given({"lineItems": [{"amount": "Rp 35,000"}]}, GOLD, [citation])).row
    assert (row["accuracy"], row["mean_iou"], row["scoreable"]) == (1.0, iou, 1)


def test_of_several_places_the_first_counts() -> None:
    citations = [{"path": "a[2].b", "page": 1}, {"path": "a.2.b", "page": 7, "box": [0, 0, 1, 1]}]
    assert places_in(json.dumps({"citations": citations}).encode()) == {"a.2.b": (0, None)}
    assert places_in(b'{"citations": 3}') == places_in(None) == {}


@pytest.mark.parametrize(
    ("prediction", "annotations", "said", "fields"),
    [([], GOLD, "not an object", 1), ({}, GOLD, "empty prediction", 1), ({"__error__": "lost"}, GOLD, "lost", 1),
     ({"a": 1}, None, "oeb corpus make", None), ({"a": 1}, {"fields": 3}, "the gold is none", None)],
)  # fmt: skip
def test_what_cannot_be_graded_is_a_row_with_its_reason(
    prediction: Any, annotations: Any, said: str, fields: int | None
) -> None:
    row = SCORER.grade(given(prediction, annotations)).row
    assert row["status"] == "error" and said in row["error"] and row.get("fields") == fields
    summary = SCORER.summarize([{"suite": "x", **row}])
    assert (summary["accuracy"], summary["mean_iou"]) == (0.0, 0.0 if fields else None)


def test_runs_become_the_record_that_the_harness_makes(
    done: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(done), "--format", "extractkit", "--pins", str(PINS), "--out", str(tmp_path)]
    assert main(words) == 0
    (path,) = tmp_path.iterdir()
    assert capsys.readouterr().out.strip() == str(path)
    record, wanted = read_record(path.read_bytes(), path.name), json_of("expected_run_record.json")
    assert record["manifestChecksum"] == wanted["manifestChecksum"]
    made = {run["model"]: run["docs"] for run in record["runs"]}
    for run in wanted["runs"]:
        assert [doc["docId"] for doc in made[run["model"]]] == [doc["docId"] for doc in run["docs"]]
        for mine, theirs in zip(made[run["model"]], run["docs"], strict=True):
            for key in ("dataset", "schema", "fields", "extraLineItems"):
                assert differs(mine[key], theirs[key]) is None, (mine["docId"], key)
            assert (mine["error"] is None) == (theirs["error"] in (None, MISSING)) and mine["usage"] is None
    assert "conditions" not in record
    assert main(["report", "--format", "extractkit", str(path)]) == 0
    assert "| replay-alpha | 6 | 95.3% | 92.9% | 85.3% | \u2014 |" in capsys.readouterr().out


def test_tokens_are_priced_by_the_list_and_bills_stand_beside(done: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def receipts(out: str, run: str, ids: Any) -> Any:
        found = stored_receipts(out, run, ids)
        return {key: one._replace(tokens_in=1000, tokens_out=100, usd=0.5) for key, one in found.items()}

    monkeypatch.setattr("oeb_ray.extractkit.exchange.stored_receipts", receipts)
    record = record_of_runs(runs_at(str(done)), corpus_at(str(done), None, None), {"replay-alpha": (3, 15)})
    usages = {run["model"]: run["docs"][0]["usage"] for run in record["runs"]}
    assert usages["replay-alpha"] == {
        "inputTokens": 1000, "outputTokens": 100, "modelCalls": 1, "costUSD": 0.0045, "billedUSD": 0.5
    }  # fmt: skip
    assert usages["replay-beta"]["costUSD"] is None, "without a price nothing is guessed"


def test_a_record_is_scored_again_as_it_was(place: Path, tmp_path: Path) -> None:
    record, out = tmp_path / "run-x.json", tmp_path / "out"
    record.write_text(json.dumps(json_of("expected_run_record.json")))
    assert main(["import", str(record), "--out", str(tmp_path / "predictions")]) == 0
    again = [word.replace(f"{place}/predictions", f"{tmp_path}/predictions") for word in words(place, out)]
    run_inline([*again, "scorer=field_accuracy"])
    for run in json_of("expected_run_record.json")["runs"]:
        summary = json.loads((out / runs(out)[run["model"]] / "field_accuracy" / "summary.json").read_text())
        for suite, block in summary["per_suite"].items():
            theirs = summarize(run["docs"])["receipt" if suite == "cord" else "invoice"]
            assert block["accuracy"] == pytest.approx(theirs["fieldAccuracy"], rel=1e-12)
            assert block["extra_line_items"] == theirs["extraLineItems"]


def test_the_published_records_become_predictions(tmp_path: Path) -> None:
    for name in RECORDS:
        assert main(["import", str(record_file(tmp_path, name)), "--out", str(tmp_path / "predictions")]) == 0
    assert len(list((tmp_path / "predictions").rglob("*.json"))) == 100
    lost = json.loads((tmp_path / "predictions" / "gemini-3.5-flash" / "cord-test-0.json").read_text())
    assert lost["lineItems"][0]["description"] == "-TICKET CP"


def test_what_cannot_be_exchanged_is_refused_by_name(small: Any, finished: str, tmp_path: Path) -> None:
    assert main(["export", finished, "--format", "extractkit", "--out", str(tmp_path)]) == 2
    record = json_of("expected_run_record.json")
    record["runs"][0]["model"] = "../evil"
    with pytest.raises(RequestError, match=r"'\.\./evil' cannot name a folder"):
        list(predictions_of(record))
    record["runs"] = record["runs"][1:]
    record["runs"][0]["docs"][0]["docId"] = "other/1"
    with pytest.raises(RequestError, match="'other/1' is no document"):
        list(predictions_of(record))
    doc = record["runs"][0]["docs"][0] | {"docId": "cord/test/0"}
    field = doc["fields"][0]
    for changed, said in (
        ({"fields": [field | {"path": "lineItems.99999999.amount"}]}, "no path such as total"),
        ({"fields": [field | {"path": "lineItems.x.amount"}]}, "no path such as total"),
        ({"extraLineItems": 10**9}, "items too many"),
    ):
        with pytest.raises(RequestError, match=said):
            list(predictions_of({"runs": [{"model": "m", "docs": [doc | changed]}]}))


def test_what_is_pinned_and_was_not_there_is_a_condition_of_the_run(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The receipts' half alone, as without a token for the invoices."""
    docs = labelled.cord_docs(str(CORD), "test")
    pinned = [doc for doc in docs if doc.doc_id not in ("cord-test-5", "cord-test-7")]
    manifest = labelled.make_corpus(pinned, str(tmp_path / "half")).manifest
    out = tmp_path / "out"
    run_inline([*words(place, out, "scorer=field_accuracy"), f"corpus.manifest='{manifest}'"])
    assert main(["export", str(out), "--format", "extractkit", "--pins", str(PINS), "--out", str(tmp_path)]) == 0
    path = capsys.readouterr().out.strip()
    assert json.loads(Path(path).read_text())["conditions"] == ["6 of 6 pinned invoices are left out."]
    assert main(["report", "--format", "extractkit", path]) == 0
    assert "6 of 6 pinned invoices are left out." in capsys.readouterr().out


def test_what_was_spent_on_lost_requests_and_what_an_answer_lacks_are_told(
    done: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def receipts(out: str, run: str, ids: Any) -> Any:
        found = stored_receipts(out, run, ids)
        return {
            key: one._replace(tokens_in=10, tokens_out=1, error_type="Unreachable" if key == LOST else None)
            for key, one in found.items()
        }

    def read(address: str) -> bytes:
        data = storage.read(address)
        if address.endswith("records/cord-test-3.json"):
            data = json.dumps(json.loads(data) | {"raw": {"missing": ["$.total"]}}).encode()
        return data

    monkeypatch.setattr("oeb_ray.extractkit.exchange.stored_receipts", receipts)
    monkeypatch.setattr("oeb_ray.extractkit.exchange.storage", types.SimpleNamespace(read=read))
    record = record_of_runs(runs_at(str(done)), corpus_at(str(done), None, None), {})
    docs = {doc["docId"]: doc for run in record["runs"] if run["model"] == "replay-beta" for doc in run["docs"]}
    lost = docs[str(labelled.harness_id(LOST))]
    assert lost["usage"] is None and lost["spent"]["inputTokens"] == 10
    assert docs["cord/test/1"]["usage"]["inputTokens"] == 10 and "spent" not in docs["cord/test/1"]
    assert docs["cord/test/3"]["error"] == "MissingRequiredFieldsError: $.total"
    assert any(field["valueCorrect"] for field in docs["cord/test/3"]["fields"])
