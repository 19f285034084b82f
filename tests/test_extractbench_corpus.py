"""Corpora in the form of ExtractBench: laid out once, graded with their rules and tags, refused with every fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from oeb_ray import read_scores, run, storage
from oeb_ray.cluster.inline import InlineCluster
from oeb_ray.config import composed, read_job
from oeb_ray.corpus.extractbench import laid_out, lay_out
from oeb_ray.errors import RequestError
from oeb_ray.simulator import Profile, Simulator
from tests.helpers import Silent

DATA = Path(__file__).parent / "data"
SOURCE = DATA / "extractbench"
ANSWERS = {
    "short--quay invoice": {"firm": "Quay and Sons", "issued": "3/4/2024", "lines": [{"item": "TAR", "net": 3}]},
    "short--holm": {"firm": "Holm", "issued": None, "lines": []},
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SOURCE, tmp_path / "source"))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    folder = tmp_path / "answers" / "one"
    folder.mkdir(parents=True)
    for name, value in ANSWERS.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder.parent


def job(source: Any, manifest: Path, answers: Path, out: Path, *more: str) -> Any:
    return read_job(
        composed(
            ["corpus=extractbench", f"corpus.source='{source}'", f"corpus.manifest='{manifest}'", "provider=[replay]",
             "providers.replay.system=one", f"providers.replay.folder='{answers}'", f"storage.root='{out}'",
             "cluster=inline", "scorer=[field_matching,value_f1]", *more]
        )
    )  # fmt: skip


def summary_of(made: Any) -> dict[str, Any]:
    (name,) = run.execute(run.plan_job(made), InlineCluster(), Silent()).summaries
    found: dict[str, Any] = json.loads(storage.read(storage.join(made.out, name, "value_f1", "summary.json")))
    return found


def test_splits_are_suites_and_tags_are_slices(source: Path, answers: Path, tmp_path: Path) -> None:
    made = job(source, tmp_path / "laid" / "manifest.parquet", answers, tmp_path / "out")
    told = summary_of(made)
    assert {suite: block["documents"] for suite, block in told["per_suite"].items()} == {"dense_forms": 1, "short": 2}
    rows = {row["doc_id"]: row for row in read_scores(made.out, scorer="value_f1").to_pylist()}
    first = rows["short--quay invoice"]
    assert (first["matched_cells"], first["expected_cells"], first["predicted_cells"]) == (4, 6, 4)
    assert first["tags"] == ["length:short", "domain:D5", "source:real"] and first["page_expected"] == 2
    assert rows["dense_forms--berg.2023"]["status"] == "error" and rows["short--holm"]["perfect"]
    assert told["per_tag"]["domain"]["D1"]["f1"] == 0.5 and told["per_tag"]["challenge"]["T3.a"]["f1"] == 0.0
    assert told["f1"] == pytest.approx((0.8 + 1.0 + 0.0) / 3)


def test_the_same_source_is_laid_out_once_and_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    lay_out(str(source), str(one))
    lay_out(str(source), str(other))
    files = [path.relative_to(one) for path in sorted(one.rglob("*")) if path.is_file()]
    assert len(files) == 2 * 3 + 2
    assert all((one / path).read_bytes() == (other / path).read_bytes() for path in files)
    before = {path: (one / path).stat().st_mtime_ns for path in files}
    lay_out(str(source), str(one))
    assert {path: (one / path).stat().st_mtime_ns for path in files} == before
    gold = json.loads((one / "gold" / "dense_forms--berg.2023.json").read_text())
    assert gold["lines"][0]["net"] == 80241446968629135069, "every digit of what came as JSON"
    record = json.loads((one / "source.json").read_text())
    assert record["splits"] == {"dense_forms": 1, "short": 2} and record["source"] == str(source)


def test_what_was_interrupted_or_has_changed_is_laid_out_anew(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "laid"
    lay_out(str(source), str(out))
    (out / "source.json").unlink()
    (out / "gold" / "short--holm.json").unlink()
    assert laid_out(str(out)) is None
    lay_out(str(source), str(out))
    assert (out / "gold" / "short--holm.json").exists() and laid_out(str(out)) is not None
    text = (source / "short.jsonl").read_text()
    (source / "short.jsonl").write_text(text.replace("length:short", "length:tiny"))
    lay_out(str(source), str(out))
    assert "length:tiny" in (out / "notes" / "short--holm.json").read_text()


def test_a_dry_run_lays_nothing_out(source: Path, answers: Path, tmp_path: Path) -> None:
    made = job(source, tmp_path / "laid" / "manifest.parquet", answers, tmp_path / "out", "dry_run=true")
    assert len(run.plan_job(made).corpus) == 3
    assert not (tmp_path / "laid").exists()


def test_sidecars_beside_documents_are_cases(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cases" / "short"
    folder.mkdir(parents=True)
    (folder / "page.parse").mkdir()
    (folder / "page.parse" / "page.test.json").write_text("no case")
    for ending in ("png", "pdf"):
        (folder / f"a b.{ending}").write_text("%PDF-1.4")
    rules = [{"field_path": "firm", "evidence": [{"value": "Q"}]}]
    side = {"data_schema": {"properties": {"firm": {}}}, "expected_output": {"firm": "Quay"}, "tags": ["source:real"]}
    (folder / "a b.test.json").write_text(json.dumps(side | {"test_rules": rules, "_repeated_structure": {}}))
    made = lay_out(str(tmp_path / "cases"), str(tmp_path / "laid"))
    (row,) = pq.read_table(made.manifest).to_pylist()
    assert (row["doc_id"], row["suite"], row["doc_path"]) == ("short--a b", "short", f"{folder}/a b.pdf")
    notes = json.loads((tmp_path / "laid" / row["annotations_path"]).read_text())
    assert notes == {"case_id": "short/a b", "tags": ["source:real"], "field_rules": rules}
    assert made.notes == ["short/a b.test.json: _repeated_structure is an old key and means nothing"]


def test_rules_are_read_in_every_spelling_or_refused(tmp_path: Path) -> None:
    found = json.loads((DATA / "BR-82_rules.json").read_text())
    folder, answers = tmp_path / "source", tmp_path / "answers" / "one"
    (folder / "docs" / "short").mkdir(parents=True)
    answers.mkdir(parents=True)
    (folder / "docs" / "short" / "x.pdf").write_text("%PDF-1.4")
    rows = found["records"][:4]
    (folder / "short.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for row in rows:
        (answers / f"{row['id'].replace('/', '--')}.json").write_text(json.dumps(found["output"]))
    made = job(folder, tmp_path / "laid" / "manifest.parquet", answers.parent, tmp_path / "out")
    summary_of(made)
    table = read_scores(made.out, scorer="value_f1").to_pylist()
    assert [f"{row['matched_cells']} of {row['expected_cells']}" for row in table] == found["expect"][:4]
    (folder / "x.test.json").write_text(json.dumps(found["records"][4]["sidecar"]))
    with pytest.raises(RequestError, match="both _field_rules and test_rules"):
        lay_out(str(folder), str(tmp_path / "again"))


def test_all_faults_are_named_with_file_and_line(source: Path, tmp_path: Path) -> None:
    rows = [json.loads(text) for text in (source / "short.jsonl").read_text().splitlines()]
    good = rows[0]
    faulty: list[Any] = [
        good | {"id": "short/a", "pdf": "docs/../../etc/passwd"},
        good | {"id": "short/b", "pdf": "/etc/passwd"},
        good | {"id": "short/c", "pdf": "docs/short/none.pdf"},
        good | {"id": "short/d", "expected_output": "[]"},
        good | {"id": "short/e", "data_schema": "{"},
        good | {"id": "short/f", "field_rules": {"firm": {"normalizers": ["lower"]}}},
        good | {"id": "short/g", "tags": "length:short"},
        good | {"id": 7},
        {"id": "short/h"},
        [1],
    ]
    lines = [json.dumps(row) for row in faulty]
    (source / "broken.jsonl").write_text("\n".join([*lines, "{", json.dumps(good)]))
    with pytest.raises(RequestError) as refused:
        lay_out(str(source), str(tmp_path / "laid"))
    said = str(refused.value)
    for part in (
        "broken.jsonl line 1, id 'short/a': pdf 'docs/../../etc/passwd' does not lie below docs/",
        "line 2, id 'short/b': pdf '/etc/passwd'",
        "line 3, id 'short/c': no document docs/short/none.pdf",
        "line 4, id 'short/d': expected_output is no JSON object",
        "line 5, id 'short/e': data_schema is no JSON",
        "line 6, id 'short/f': field_rules: field rules: 'firm': unknown normalizer 'lower'",
        "line 7, id 'short/g': tags are 'length:short', not a list",
        "line 8, id 7: id is 7, not a text",
        "line 9: lacks category",
        "line 10: no object",
        "line 11: no JSON",
        "id 'short--quay invoice' stands 2 times",
    ):
        assert part in said, said
    assert not (tmp_path / "laid").exists()


def test_what_holds_no_splits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="holds neither JSONL splits nor"):
        lay_out(str(tmp_path), str(tmp_path / "laid"))
    with pytest.raises(RequestError, match=r"corpus.source='x': give corpus.manifest=FOLDER/manifest.parquet"):
        read_job(composed(["corpus=extractbench", "corpus.source=x", "corpus.manifest=null"]))


@pytest.mark.s3
def test_a_bucket_is_read_and_written_as_a_folder_is(s3: str, answers: Path, tmp_path: Path) -> None:
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file():
            storage.put(f"{s3}/source/{path.relative_to(SOURCE)}", path.read_bytes())
    told = summary_of(
        job(f"{s3}/source", Path("x"), answers, tmp_path / "out", f"corpus.manifest={s3}/laid/manifest.parquet")
    )
    assert told["documents"] == 3 and told["scored"] == 2


@pytest.fixture
def hub(source: Path, answers: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    profile = {"answers": str(answers), "hub": {"llamaindex/ExtractBench": str(source)}}
    with Simulator(Profile.from_dict(profile)) as opened:
        monkeypatch.setenv("HF_ENDPOINT", f"{opened.url}/hub")
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield opened


def test_the_hub_is_read_at_one_commit(hub: Simulator, source: Path, answers: Path, tmp_path: Path) -> None:
    made = job("hf://datasets/llamaindex/ExtractBench", tmp_path / "laid" / "manifest.parquet", answers,
               tmp_path / "out")  # fmt: skip
    assert summary_of(made)["scored"] == 2
    record = json.loads((tmp_path / "laid" / "source.json").read_text())
    assert len(record["commit"]) == 40 and record["commit"] in record["place"]
    (row, *_) = pq.read_table(tmp_path / "laid" / "manifest.parquet").to_pylist()
    assert row["doc_path"].startswith(f"hf://datasets/llamaindex/ExtractBench@{record['commit']}/docs/")
    settings = json.loads(next((tmp_path / "out").glob("*/settings.json")).read_text())
    assert settings["corpus_commit"] == record["commit"]
