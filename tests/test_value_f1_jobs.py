"""value_f1 in a job: beside the first scorer, with annotations, and with failed documents in its averages."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import read_scores, read_verdicts, storage
from oeb_ray.cli.main import main
from tests.helpers import (
    SmallCorpus,
    contents,
    corpus_of,
    make_corpus,
    manifest_rows,
    overrides,
    run_inline,
    write_manifest,
)

ONE, BOTH = "scorer=[value_f1]", "scorer=[field_matching,value_f1]"


def summary(out: str, run: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(storage.read(storage.join(out, run, "value_f1", "summary.json")))
    return found


def annotated(corpus: SmallCorpus, annotations: dict[int, Any]) -> None:
    rows = manifest_rows(corpus)
    for number, row in enumerate(rows):
        row["annotations_path"] = f"notes/{number}.json" if number in annotations else None
    (corpus.folder / "notes").mkdir()
    for number, value in annotations.items():
        (corpus.folder / "notes" / f"{number}.json").write_text(json.dumps(value))
    write_manifest(corpus.manifest, rows)


def test_both_scorers_grade_the_sample_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path)
    words = ["corpus=sample", "provider=[pdftext]", f"storage.root={out}", "cluster=inline", BOTH]
    (name,) = run_inline(words)
    rows, cells = read_scores(out, scorer="value_f1"), read_verdicts(out, scorer="value_f1")
    assert rows.num_rows == read_scores(out).num_rows == 16
    credits: dict[str, list[float]] = {}
    for cell in cells.to_pylist():
        credits.setdefault(cell["doc_id"], []).append(cell["f1_credit"])
        assert (cell["reference_path"] is None) == (cell["outcome"] == "prediction_only") == (cell["expected"] is None)
        assert (cell["output_path"] is None) == (cell["outcome"] == "reference_only") == (cell["predicted"] is None)
    scored = [row for row in rows.to_pylist() if row["status"] == "scored"]
    assert scored
    for row in scored:
        assert math.isclose(math.fsum(credits[row["doc_id"]]), row["f1"], abs_tol=1e-12)
        assert row["scorer"] == "value_f1 1" and row["today"] == "2026-12-01"
    told = summary(out, name)
    assert told["scorer"] == "value_f1 1" and 0 < told["f1"] < 1
    assert math.isclose(told["f1"], math.fsum(row["f1"] for row in scored) / 16)
    assert main(["verify", out]) == 0
    capsys.readouterr()


def test_the_bytes_of_a_job_depend_on_documents_alone(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", 6)
    together, later = str(tmp_path / "together"), str(tmp_path / "later")
    run_inline([*overrides(corpus, together), BOTH])
    run_inline(overrides(corpus, later))
    run_inline([*overrides(corpus, later), ONE])
    assert contents(together) == contents(later)


def test_failed_documents_count_0_in_every_slice(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", 4)
    tags = {0: ["length:short", "odd"], 1: ["length:long", "domain:D1"], 2: ["length:short"], 3: ["length:long"]}
    annotated(corpus, {number: {"tags": listed} for number, listed in tags.items()})
    (corpus.predictions / "good" / "doc 00003 [x].json").write_text('{"__error__": "VendorTimeout: budget spent"}')
    (corpus.predictions / "good" / "doc 00000 [x].json").unlink()
    out = str(tmp_path / "out")
    (name,) = run_inline([*overrides(corpus, out, systems=("good",)), BOTH])
    told = summary(out, name)
    assert (told["f1"], told["perfect"], told["coverage"]) == (0.5, 0.5, 0.5)
    assert {tag: block["f1"] for tag, block in told["per_tag"]["length"].items()} == {"short": 0.5, "long": 0.5}
    assert told["per_tag"]["domain"]["D1"]["f1"] == 1.0 and told["per_tag"][""]["odd"]["f1"] == 0.0
    assert told["per_suite"]["suite 1"] == told["per_suite"]["suite 1"] | {"documents": 2, "scored": 1, "f1": 0.5}
    assert (told["min"]["f1"], told["max"]["f1"]) == (0.0, 1.0)
    first = json.loads(storage.read(storage.join(out, name, "summary.json")))
    assert (first["accuracy"], first["coverage"]) == (1.0, 0.5), "the first scorer leaves them out"


def test_rules_of_the_annotations_are_graded_by(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path / "corpus", {"a": {"f": "yes"}, "b": {"f": "yes"}}, {"one": {"a": '{"f": "Y"}'}})
    (corpus.predictions / "one" / "b.json").write_text('{"f": "Y"}')
    annotated(corpus, {0: {"field_rules": {"f": {"evidence": [{"value": "Y", "page": 1}]}}}})
    out = str(tmp_path / "out")
    (name,) = run_inline([*overrides(corpus, out, systems=("one",)), ONE])
    rows = {row["doc_id"]: row for row in read_scores(out, scorer="value_f1").to_pylist()}
    assert (rows["a"]["f1"], rows["b"]["f1"]) == (1.0, 0.0)
    assert (rows["a"]["page_f1"], rows["b"]["page_f1"]) == (0.0, None)
    assert summary(out, name)["page_f1"] == 0.0, "b has no places, and is in no average of pages"


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        ({"tags": "short"}, "annotations: tags must be a list of texts"),
        ([], "annotations: they must be an object"),
        ({"field_rules": {"f": {"normalizers": ["lower"]}}}, "cannot be graded: field rules: 'f': unknown normalizer"),
    ],
)
def test_annotations_that_are_none_are_their_documents_error(tmp_path: Path, annotation: Any, said: str) -> None:
    corpus = corpus_of(tmp_path / "corpus", {"a": {"f": 1}, "b": {"f": 1}}, {"one": {"a": '{"f": 1}', "b": '{"f": 1}'}})
    annotated(corpus, {0: annotation})
    out = str(tmp_path / "out")
    run_inline([*overrides(corpus, out, systems=("one",)), ONE])
    rows = {row["doc_id"]: row for row in read_scores(out, scorer="value_f1").to_pylist()}
    assert rows["a"]["status"] == "error" and rows["a"]["error"].startswith(said)
    assert rows["b"]["f1"] == 1.0


def test_a_list_is_read_as_the_object_in_it_and_text_is_none(tmp_path: Path) -> None:
    golds = {name: {"f": 1} for name in "abcd"}
    texts = {"a": '[{"F": 1}]', "b": '"text"', "c": '{"f": NaN}', "d": '{"f": "\\ud83d"}'}
    corpus = corpus_of(tmp_path / "corpus", golds, {"one": texts})
    out = str(tmp_path / "out")
    run_inline([*overrides(corpus, out, systems=("one",)), BOTH])
    rows = {row["doc_id"]: row for row in read_scores(out, scorer="value_f1").to_pylist()}
    assert rows["a"]["f1"] == 1.0 and rows["b"]["error"] == "not an object" and rows["c"]["f1"] == 0.0
    cells = {cell["doc_id"]: cell["predicted"] for cell in read_verdicts(out, scorer="value_f1").to_pylist()}
    assert cells == {"a": "1", "c": '{"$float": "NaN"}', "d": '"\\ud83d"'}


def test_citations_of_a_record_are_held_against_the_places(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    words = ["corpus=sample", "provider=[pdftext]", f"storage.root={out}", "cluster=inline"]
    (name,) = run_inline([*words, "predict_only=true"])
    doc_id = "INV-2024-0093"
    record = json.loads(storage.read(storage.join(out, name, "records", f"{doc_id}.json")))
    from oeb_ray.scorers import find
    from oeb_ray.scorers.contract import Given

    cited = record["citations"][0]
    left, top, right, bottom = cited["box"]
    prediction = storage.read(storage.join(out, name, "predictions", f"{doc_id}.json"))
    rules = {cited["path"]: {"evidence": [{"page": cited["page"], "bbox": [left, top, right - left, bottom - top]}]}}
    given = Given(
        prediction, None, prediction, json.dumps({"properties": {key: {} for key in json.loads(prediction)}}),
        json.dumps({"field_rules": rules}).encode(), json.dumps(record).encode(),
    )  # fmt: skip
    row = find("value_f1").grade(given).row
    assert (row["page_f1"], row["word_f1"]) == (1.0, 1.0)
