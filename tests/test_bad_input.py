"""Bad input of every kind: one clear message that names all faults, nothing lost, never a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oeb_ray import layout, storage
from oeb_ray.cli.main import main
from oeb_ray.corpus import check, manifest
from oeb_ray.errors import RequestError
from tests.helpers import SCHEMA, SmallCorpus, called, make_corpus, manifest_rows, overrides, run_inline, write_manifest


@pytest.fixture
def corpus(tmp_path: Path) -> SmallCorpus:
    return make_corpus(tmp_path / "corpus", documents=12)


def refused(*words: str) -> str:
    """The message of a command that must be refused with code 2, without a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    assert code == 2, (code, out.getvalue(), err.getvalue())
    assert "Traceback" not in err.getvalue()
    assert out.getvalue() == ""
    return err.getvalue()


def test_ten_faults_of_a_manifest_come_in_one_message(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = manifest_rows(corpus)
    rows[0]["doc_id"] = None
    rows[1]["doc_id"] = "a/b"
    rows[2]["doc_id"] = ".."
    rows[3]["doc_id"] = rows[4]["doc_id"]
    rows[5]["suite"] = ""
    rows[6]["schema"] = b"schemas/invoice.json"
    rows[7]["schema"] = b"[]"
    rows[8]["schema"] = None
    rows[9]["doc_path"] = "../../etc/passwd"
    rows[10]["gt_path"] = ""
    rows[11]["doc_id"] = "x" * 300
    write_manifest(corpus.manifest, rows)
    for words in (["corpus", "check", str(corpus.manifest)], ["benchmark", *overrides(corpus, tmp_path / "out")]):
        message = refused(*words)
        assert "11 problems" in message
        for row in (0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11):
            assert f"row {row}, doc_id" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("column", ["doc_id", "suite", "doc_path", "gt_path", "schema"])
def test_a_manifest_without_a_column(corpus: SmallCorpus, column: str) -> None:
    pq.write_table(pq.read_table(corpus.manifest).drop_columns(column), corpus.manifest)
    with pytest.raises(RequestError, match=f"no column '{column}'; it has "):
        manifest.load(str(corpus.manifest))


def test_a_manifest_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "manifest.parquet"
    for content, said in ((b"", "no readable Parquet"), (b"doc_id,suite\n", "no readable Parquet")):
        path.write_bytes(content)
        with pytest.raises(RequestError, match=said):
            manifest.load(str(path))
    with pytest.raises(RequestError, match="no manifest file at"):
        manifest.load(str(tmp_path / "none.parquet"))
    with pytest.raises(RequestError, match="no manifest file at"):
        manifest.load(str(tmp_path))
    numbers = [{"doc_id": 7, "suite": "a", "doc_path": "a", "gt_path": "a", "schema": "{}"}]
    write_manifest(path, numbers)
    with pytest.raises(RequestError, match="column 'doc_id' holds int64, not text"):
        manifest.load(str(path))
    pq.write_table(pa.table({name: pa.array([], pa.string()) for name in manifest.COLUMNS}), path)
    with pytest.raises(RequestError, match="has no rows"):
        manifest.load(str(path))


def test_missing_files_are_named_before_anything_runs(corpus: SmallCorpus, tmp_path: Path) -> None:
    docs = sorted((corpus.folder / "docs").iterdir())
    golds = sorted((corpus.folder / "gold").iterdir())
    docs[2].unlink()
    golds[5].unlink()
    message = refused("benchmark", *overrides(corpus, tmp_path / "out"))
    assert "row 2" in message and "no document at" in message
    assert "row 5" in message and "no gold at" in message
    assert not (tmp_path / "out").exists()


def test_schemas_may_be_text_or_bytes_and_lie_in_dictionaries(corpus: SmallCorpus) -> None:
    for change in (lambda s: s.cast(pa.string()), lambda s: s.dictionary_encode(), lambda s: s.cast(pa.large_binary())):
        table = pq.read_table(corpus.manifest)
        where = table.column_names.index("schema")
        pq.write_table(table.set_column(where, "schema", change(table.column("schema"))), corpus.manifest)
        loaded = manifest.load(str(corpus.manifest))
        assert json.loads(loaded.doc(3).schema) == SCHEMA
        write_manifest(
            corpus.manifest, [row | {"schema": json.dumps(SCHEMA).encode()} for row in manifest_rows(corpus)]
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--suites", "none"], "no suite 'none'; there are suite 0, suite 1"),
        (["--only", "nobody"], "no doc_id 'nobody'"),
        (["--limit", "-1"], "limit=-1: must be 0"),
        (["--suites", "suite 1", "--only", "doc 00000 [x]"], "the selection is empty"),
        (["--providers", "datlab"], "did you mean datalab?"),
        (["--options", '{"replay": {"sytem": "a"}}'], "providers.replay.sytem: no such setting; did you mean system?"),
        (["--options", '{"replay": []}'], "the list is empty"),
        (["--options", '{"reducto": {}}'], "'reducto', which is not among the providers to run: replay"),
        (["--options", '{"replay": {"system": 7}}'], "wants a text, got a whole number"),
        (["--options", "{"], "--options is no JSON"),
        (["--options", "/none.json"], "cannot read /none.json"),
        (["providers.replay.failures=-1"], "must be at least 0"),
        (["providers.replay.latency=inf"], "wants a finite number"),
        (["suites=[1e3,no]"], "suites: 1000.0 is read as float, not text; quote it"),
        (["timeout=soon"], "timeout='soon': wants a number above 0"),
        (["nonsense=1"], "nonsense"),
        (["provider=pdftext,replay"], "several of a group are written provider=[pdftext,replay]"),
        (["cluster=bg"], "cluster=bg: "),
        (["storage.root=memory://x", "cluster=local"], "memory is seen by one process only"),
        (["extra"], "'extra' is no key=value"),
    ],
)
def test_a_request_that_cannot_run_says_why(corpus: SmallCorpus, tmp_path: Path, words: list[str], said: str) -> None:
    flags = [word for word in words if "=" not in word]
    more = [word for word in words if "=" in word]
    chosen = overrides(corpus, tmp_path / "out")
    if "--providers" in flags or any("provider=" in word for word in more):
        chosen = [word for word in chosen if not word.startswith(("provider", "providers"))]
    assert said in refused("benchmark", *chosen, *more, *flags)
    assert not (tmp_path / "out").exists()


def test_predictions_of_every_broken_kind_are_rows(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = manifest_rows(corpus)
    broken: dict[int, bytes | None] = {
        0: b'{"invoice_id": "INV-', 1: b"[1]", 2: b"null", 3: b"", 4: b"{}", 5: b'\xef\xbb\xbf{"a": 1}',
        6: b"\xff\xfe{", 7: b'{"__error__": "Timeout: slow"}', 8: b'{"__error__": ""}', 9: None, 10: b"[" * 100_000,
    }  # fmt: skip
    for number, content in broken.items():
        path = corpus.predictions / "good" / f"{rows[number]['doc_id']}.json"
        path.unlink() if content is None else path.write_bytes(content)
    ((name, summary),) = run_inline(overrides(corpus, tmp_path / "out", systems=("good",))).items()
    assert summary["documents"] == 12
    assert summary["scored"] == 1
    lines = [json.loads(line) for line in (tmp_path / "out" / name / "scores.jsonl").read_text().splitlines()]
    errors = {row["doc_id"]: row.get("error") for row in lines}
    missing = "no prediction on disk"
    said = [missing, *["not an object"] * 2, missing, "empty prediction", missing, missing, "Timeout: slow",
            "empty prediction", missing, missing, None]  # fmt: skip
    assert [errors[row["doc_id"]] for row in rows] == said
    for number, content in broken.items():
        if content is not None:
            stored = layout.prediction(str(tmp_path / "out"), name, rows[number]["doc_id"])
            assert storage.read(stored) == content, "served byte for byte"


def test_golds_that_are_broken_are_rows_and_named(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = manifest_rows(corpus)
    contents: list[Any] = [b"not json", b"[]", b"7", json.dumps({"invoice_id": 7, "secret": 1}).encode()]
    for row, content in zip(rows, contents, strict=False):
        (corpus.folder / row["gt_path"]).write_bytes(content)
    ((name, summary),) = run_inline(overrides(corpus, tmp_path / "out", systems=("good",))).items()
    assert summary["scored"] == 12 - 3
    errors = [
        json.loads(line).get("error") for line in (tmp_path / "out" / name / "scores.jsonl").read_text().splitlines()
    ]
    assert sum("ValueError" in error or "JSONDecodeError" in error for error in errors if error) == 1
    assert sum("TypeError: the gold document must be an object" in error for error in errors if error) == 2
    notes, unusable = check.check_golds(manifest.load(str(corpus.manifest)))
    assert unusable == 3
    assert any("no JSON" in note and rows[0]["doc_id"] in note for note in notes)
    assert any("invoice_id: 7 is not of type" in note for note in notes)
    assert any("secret: the schema has no such property" in note for note in notes)


def test_a_self_referring_schema_is_one_row(corpus: SmallCorpus, tmp_path: Path) -> None:
    rows = manifest_rows(corpus)
    node = {"type": "object", "properties": {"x": {"$ref": "#/$defs/n"}, "y": {"$ref": "#/$defs/n"}}}
    rows[7]["schema"] = json.dumps(
        {"type": "object", "properties": {"r": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}
    ).encode()
    write_manifest(corpus.manifest, rows)
    (summary,) = run_inline(overrides(corpus, tmp_path / "out", systems=("good",))).values()
    assert (summary["documents"], summary["scored"]) == (12, 11)


def test_a_target_that_cannot_be_written_says_so(corpus: SmallCorpus, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file in the way")
    code, _, err = called("benchmark", *overrides(corpus, tmp_path / "out"))
    assert code == 5
    assert "cannot write" in err and "Traceback" not in err


def test_a_full_disk_ends_with_code_5_and_the_rest_goes_on_later(corpus: SmallCorpus, tmp_path: Path) -> None:
    words = overrides(corpus, tmp_path / "out")
    limit = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (4000, -1))"
    program = f"import resource, signal, sys; {limit}; from oeb_ray.cli.main import main; sys.exit(main(sys.argv[1:]))"
    ended = subprocess.run([sys.executable, "-c", program, "benchmark", *words], capture_output=True, text=True)
    assert ended.returncode == 5, ended.stderr
    assert "cannot write" in ended.stderr and "Traceback" not in ended.stderr
    assert called("benchmark", *words)[0] == 0


def test_another_corpus_in_the_same_folder_is_refused(corpus: SmallCorpus, tmp_path: Path) -> None:
    """BR-64: whatever is not in the name of the run is compared with its settings.json."""
    out = tmp_path / "out"
    run_inline(overrides(corpus, out))
    other = make_corpus(tmp_path / "other", documents=3)
    with pytest.raises(RequestError, match=r"settings\.json says corpus="):
        run_inline(overrides(other, out))
    with pytest.raises(RequestError, match=r"says folder=.*this job"):
        run_inline(overrides(corpus, out, f"providers.replay.folder='{other.predictions}'"))
    with pytest.raises(RequestError, match=r"timeout_s=1800.0, this job 5.0"):
        run_inline(overrides(corpus, out, "timeout=5"))
    run_inline(overrides(corpus, out))


def test_a_changed_schema_makes_predictions_stale_until_they_are_asked_again(
    corpus: SmallCorpus, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = overrides(corpus, out, systems=("good",))
    run_inline(words)
    rows = manifest_rows(corpus)
    rows[3]["schema"] = json.dumps(SCHEMA | {"title": "changed"}).encode()
    write_manifest(corpus.manifest, rows)
    _, out_text, _ = called("benchmark", *words, "--dry-run")
    assert f"{rows[3]['doc_id']}: its schema has changed" in out_text
    assert out_text.count("stale:") == 1
    run_inline([*words, "predict_stale=true"])
    assert "stale:" not in called("benchmark", *words, "--dry-run")[1]


def test_failed_documents_are_asked_again_only_on_request(corpus: SmallCorpus, tmp_path: Path) -> None:
    """BR-66: a recorded failure is a settled answer; `transient` asks what may succeed, `all` everything."""
    out = tmp_path / "out"
    doc_id = manifest_rows(corpus)[2]["doc_id"]
    path = corpus.predictions / "good" / f"{doc_id}.json"
    content = path.read_bytes()
    path.unlink()
    words = overrides(corpus, out, systems=("good",))
    assert next(iter(run_inline(words).values()))["scored"] == 11
    path.write_bytes(content)
    assert next(iter(run_inline(words).values()))["scored"] == 11
    assert next(iter(run_inline([*words, "retry_failed=transient"]).values()))["scored"] == 11
    assert next(iter(run_inline([*words, "retry_failed=all"]).values()))["scored"] == 12


def test_a_record_whose_prediction_is_another_one_is_not_done(corpus: SmallCorpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = overrides(corpus, out, systems=("good",))
    (name,) = run_inline(words)
    before = (out / name / "scores.jsonl").read_bytes()
    doc_id = manifest_rows(corpus)[4]["doc_id"]
    storage.put(layout.prediction(str(out), name, doc_id), b'{"invoice_id": "forged"}')
    run_inline([*words, "rescore=true"])
    assert (out / name / "scores.jsonl").read_bytes() == before


def test_damaged_records_and_receipts_are_made_again(corpus: SmallCorpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = overrides(corpus, out, systems=("good",))
    (name,) = run_inline(words)
    before = (out / name / "scores.jsonl").read_bytes()
    for path in (out / name / "receipts.parquet").iterdir():
        path.write_bytes(b"PAR1 no more")
    run_inline(words)
    assert (out / name / "scores.jsonl").read_bytes() == before
    for path in (out / name / "receipts.parquet").iterdir():
        path.unlink()
    next((out / name / "records").iterdir()).write_bytes(b'{"doc_id": ')
    run_inline([*words])
    assert (out / name / "scores.jsonl").read_bytes() == before


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"run": "another"}'])
def test_a_damaged_settings_file_is_refused(corpus: SmallCorpus, tmp_path: Path, content: bytes) -> None:
    out = tmp_path / "out"
    words = overrides(corpus, out, systems=("good",))
    (name,) = run_inline(words)
    (out / name / "settings.json").write_bytes(content)
    with pytest.raises(RequestError, match=r"settings\.json"):
        run_inline(words)


def test_score_names_the_file_that_is_wrong(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text('{"properties": {"a": {}}}')
    bad = tmp_path / "bad.json"
    bad.write_bytes(b"\xff")
    for words, said in (
        (["--pred", str(bad), "--gt", str(good), "--schema", str(good)], "bad.json is no JSON"),
        (["--pred", str(good), "--gt", str(tmp_path / "none"), "--schema", str(good)], "cannot read"),
        (["--pred", str(good), "--gt", str(good), "--schema", str(good), "--order-matters", "x"], "names no array"),
    ):
        assert said in refused("score", *words)


def test_hostile_ids_each_have_a_record_and_a_row_of_their_own(tmp_path: Path) -> None:
    """BR-60: names that are patterns, chains or climbs elsewhere."""
    from tests.test_storage import IDS

    corpus = make_corpus(tmp_path / "corpus", documents=len(IDS))
    rows = manifest_rows(corpus)
    for row, doc_id in zip(rows, IDS, strict=True):
        old = corpus.predictions / "good" / f"{row['doc_id']}.json"
        old.rename(corpus.predictions / "good" / f"{doc_id}.json")
        row["doc_id"] = doc_id
    write_manifest(corpus.manifest, rows)
    out = tmp_path / "out"
    ((name, summary),) = run_inline(overrides(corpus, out, systems=("good",))).items()
    assert summary["scored"] == len(IDS)
    lines = [json.loads(line) for line in (out / name / "scores.jsonl").read_text().splitlines()]
    assert sorted(row["doc_id"] for row in lines) == sorted(IDS)
    assert len(list((out / name / "records").iterdir())) == len(IDS)
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "out"}
    run_inline(overrides(corpus, out, "retry_failed=all", systems=("good",)))
