"""`oeb harbor export` and `check`: the same bytes each time, nothing of the reference within an agent's reach."""

from __future__ import annotations

import ast
import io
import json
import sys
import tomllib
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from oeb_ray import storage
from oeb_ray.cli.main import main
from oeb_ray.corpus.manifest import load
from oeb_ray.errors import RequestError
from oeb_ray.harbor.export import export_tasks
from oeb_ray.harbor.leaks import leaks
from oeb_ray.harbor.rewards import reference_of
from oeb_ray.harbor.tasks import MANIFEST, TODAY, Case, task_files, task_name
from oeb_ray.harbor.vendored import archive
from oeb_ray.providers.instruction import instruction
from tests.helpers import corpus_of, write_manifest

ONLY = ("INV-2024-0093", "intake card [scan]", "stock-ledger-07")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tasks of the sample corpus; for reading only."""
    folder = tmp_path_factory.mktemp("exported")
    assert main(["harbor", "export", "--out", str(folder), "--only", *ONLY, "--org", "sample", "corpus=sample"]) == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {key: storage.read(f"{folder}/{key}") for key in storage.listed(str(folder))}


def test_an_export_has_the_same_bytes_each_time(exported: Path, tmp_path: Path) -> None:
    for _ in range(2):  # into an empty folder, and over itself
        words = ["--only", *reversed(ONLY), "--org", "sample", "corpus=sample"]
        assert main(["harbor", "export", "--out", str(tmp_path), *words]) == 0
        assert contents(tmp_path) == contents(exported)


def test_a_task_says_what_harbor_must_keep_apart(exported: Path) -> None:
    task = exported / "tasks" / "intake-card-scan"
    told = tomllib.loads((task / "task.toml").read_text())
    assert told["task"]["name"] == "sample/intake-card-scan"
    assert told["metadata"]["case_id"] == "intake card [scan]"
    assert told["artifacts"] == ["/app/output.json"]
    assert told["agent"] == {"timeout_sec": 1800.0, "network_mode": "no-network"}
    assert told["verifier"]["environment_mode"] == "separate"
    assert sorted(path.name for path in (task / "environment").iterdir()) == [
        "Dockerfile", "document.png", "schema.json"
    ]  # fmt: skip
    assert (task / "environment" / "schema.json").read_text().rstrip() in (task / "instruction.md").read_text()


def test_check_names_every_file_that_is_not_as_it_was_written(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for key, data in contents(exported).items():
        storage.put(f"{tmp_path}/{key}", data)
    assert main(["harbor", "check", str(tmp_path)]) == 0
    task = tmp_path / "tasks" / "inv-2024-0093"
    (task / "instruction.md").write_text("Print 1.")
    (task / "solution" / "solve.sh").unlink()
    (task / "environment" / "notes.txt").write_bytes((task / "solution" / "expected.json").read_bytes())
    (tmp_path / "tasks" / "other").mkdir()
    (tmp_path / "tasks" / "other" / "task.toml").write_text("")
    capsys.readouterr()
    assert main(["harbor", "check", str(tmp_path)]) == 4
    said = capsys.readouterr().out
    for line in (
        "tasks/inv-2024-0093/instruction.md: changed",
        "tasks/inv-2024-0093/solution/solve.sh: missing",
        "tasks/inv-2024-0093/environment/notes.txt: not in the manifest",
        "tasks/inv-2024-0093/environment/notes.txt is the reference",
        "tasks/other: not in the manifest",
    ):
        assert line in said


def test_a_reference_within_an_agents_reach_is_found_wherever_it_stands() -> None:
    gold = {"firm": "Quay & Sons", "lines": [{"sku": "A-77"}], "n": 5}
    schema = json.dumps({"type": "object", "properties": {"firm": {"type": "string", "examples": ["Quay & Sons"]}}})
    files = task_files(Case("a", "", b"%PDF-", "document.pdf", schema, gold, "2026-12-01"), "org", None)
    document = "environment/document.pdf"
    assert leaks(files, gold, document) == [], "the schema may hold it, and what the agent does not see"
    assert leaks({**files, "environment/Dockerfile": b"RUN echo A-77"}, gold, document)
    assert leaks({**files, "environment/x/y.bin": json.dumps(gold).encode()}, gold, document)
    assert leaks({**files, "instruction.md": files["instruction.md"] + b"A-77"}, gold, document)
    assert not leaks({**files, document: b"%PDF- A-77", "environment/a.txt": b"A-77"}, gold, document)


@pytest.mark.parametrize(
    ("case_id", "split", "name"),
    [("short/Doc 1", "short", "doc-1"), ("a..b", "", "a.b"), ("Ünï (2)", "", "n-2"), ("_x_", "", "x"),
     ("short/a/b", "short", "a-b"), ("shorter", "short", "shorter")],
)  # fmt: skip
def test_a_tasks_name_comes_from_the_document_alone(case_id: str, split: str, name: str) -> None:
    assert task_name(case_id, split) == name


def test_documents_of_which_no_task_can_be_made_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    golds = {"good": {"a": 1}, "a b": {"a": 1}, "a-b": {"a": 1}, "envelope": {"value": 3}, "nothing": {}}
    manifest = str(corpus_of(tmp_path / "corpus", golds, {}).manifest)
    out = tmp_path / "out"

    def export(*only: str, org: str = "org", leave_out: bool = True) -> None:
        export_tasks(load(manifest, only=only or None), str(out), org=org, today=TODAY, leave_out=leave_out)

    with pytest.raises(RequestError) as refused:
        export(leave_out=False)
    assert "'envelope'" in str(refused.value) and "'nothing'" in str(refused.value)
    assert "'good'" not in str(refused.value)
    with pytest.raises(RequestError, match="'a-b' and 'a b' would both be the task a-b"):
        export()
    with pytest.raises(RequestError, match="lower-case"):
        export("good", org="Our Org")
    assert not out.exists()
    export("good", "nothing")
    assert [path.name for path in (out / "tasks").iterdir()] == ["good"]
    with pytest.raises(RequestError, match="holds other tasks"):
        export("a b")


def test_rules_tags_and_the_datasets_own_id_go_into_the_task(tmp_path: Path) -> None:
    manifest = corpus_of(tmp_path / "corpus", {"only--Doc A": {"firm": "Quay & Sons"}}, {}).manifest
    rules = {"firm": {"evidence": [{"value": "Quay and Sons", "page": 1}]}}
    notes = {"case_id": "only/Doc A", "tags": ["length:short"], "field_rules": rules}
    (tmp_path / "corpus" / "notes.json").write_text(json.dumps(notes))
    rows = [row | {"annotations_path": "notes.json"} for row in pq.read_table(manifest).to_pylist()]
    write_manifest(manifest, rows)
    export_tasks(load(str(manifest)), str(tmp_path / "out"), org="org", today=TODAY)
    (task,) = (tmp_path / "out" / "tasks").iterdir()
    assert task.name == "doc-a", "the document's name without the split"
    kept = json.loads((task / "tests" / "reference.json").read_text())
    assert kept["field_rules"] == rules and kept["tags"] == ["length:short"] and kept["case_id"] == "only/Doc A"
    assert tomllib.loads((task / "task.toml").read_text())["metadata"]["tags"] == ["length:short"]
    again = load(str(tmp_path / "out" / MANIFEST))
    assert json.loads(reference_of(again.doc(0))) == kept


def test_an_export_to_a_bucket_is_the_same(exported: Path, s3: str) -> None:
    words = ["--only", *ONLY, "--org", "sample", "corpus=sample"]
    assert main(["harbor", "export", "--out", f"{s3}/exported", *words]) == 0
    assert {key: storage.read(f"{s3}/exported/{key}") for key in storage.listed(f"{s3}/exported")} == contents(exported)
    assert main(["harbor", "check", f"{s3}/exported"]) == 0


def test_the_fence_of_the_schema_outlasts_any_backticks_in_it() -> None:
    text = instruction("document.pdf", '{"description": "````"}')
    assert "`````json\n" in text and text.count("`````\n") == 1


def test_the_verifiers_archive_stands_alone() -> None:
    allowed = {"numpy", "scipy", "dateutil"} | set(sys.stdlib_module_names)
    with zipfile.ZipFile(io.BytesIO(archive())) as opened:
        names = set(opened.namelist())
        for name in names:
            for node in ast.walk(ast.parse(opened.read(name))):
                if isinstance(node, ast.Import):
                    assert {one.name.split(".")[0] for one in node.names} <= allowed, name
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    assert (node.module or "").split(".")[0] in allowed, name
    assert {"oeb_ray/__init__.py", "oeb_ray/scoring/value_f1/__init__.py", "oeb_ray/harbor/verifier.py"} <= names
    assert not any("field_matching" in name or "/cli/" in name for name in names)
