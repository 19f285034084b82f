"""The verifier: what each kind of output earns, what a fault leaves behind, and what a hostile file can do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.harbor import verifier
from oeb_ray.harbor.tasks import Case, task_files
from oeb_ray.harbor.verifier import STALE, Fault, judged, verify

SCHEMA = {
    "type": "object",
    "properties": {
        "firm": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}, "qty": {}}}},
    },
}
GOLD = {"firm": "Quay & Sons", "lines": [{"sku": "A", "qty": 1}, {"sku": "B", "qty": 2}]}
CASE = {"schema": SCHEMA, "reference": GOLD, "field_rules": {}, "today": "2026-12-01"}


def test_a_scored_output_has_its_figures_and_one_entry_per_cell(tmp_path: Path) -> None:
    output = {"firm": "Quay and Sons", "lines": [{"sku": "B", "qty": 2}], "extra": 1}
    (tmp_path / "output.json").write_text(json.dumps(output))
    made = judged(CASE, str(tmp_path / "output.json"))
    assert made.reward == made.metrics["extract_unified_value_f1"] == pytest.approx(4 / 9)
    assert made.metrics["perfect_document"] == 0
    assert made.feedback["status"] == "ok" and made.feedback["error"] is None
    assert made.feedback["counts"] == {"expected": 5, "predicted": 4, "matched": 2}
    assert sum(cell["f1_credit"] for cell in made.feedback["cells"]) == pytest.approx(made.reward)
    outcomes = {cell["reference_path"] or cell["output_path"]: cell["outcome"] for cell in made.feedback["cells"]}
    assert outcomes == {
        "extra": "prediction_only", "firm": "value_differs", "lines[0].sku": "reference_only",
        "lines[0].qty": "reference_only", "lines[1].sku": "matched", "lines[1].qty": "matched",
    }  # fmt: skip
    assert "Quay" not in json.dumps(made.feedback), "no value of either side"


def test_a_reading_of_the_rules_counts(tmp_path: Path) -> None:
    (tmp_path / "output.json").write_text(json.dumps({**GOLD, "firm": "Quay and Sons"}))
    rules = {"firm": {"evidence": [{"value": "Quay and Sons", "page": 1}]}}
    assert judged({**CASE, "field_rules": rules}, str(tmp_path / "output.json")).reward == 1.0


MALFORMED = {
    "no JSON": b"total: 5",
    "empty": b"",
    "a fence": b"```json\n{}\n```",
    "two documents": b"{} {}",
    "a byte order mark": b"\xef\xbb\xbf{}",
    "no UTF-8": b'{"a": "\xff"}',
    "nested 201 deep": b'{"a":' + b"[" * 200 + b"]" * 200 + b"}",
    "nested a million deep": b"[" * 1_000_000,
    "a number of 5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
}
NOT_OBJECTS = {"a list": b'[{"firm": "Quay & Sons"}]', "null": b"null", "a text": b'"x"', "envelope": b'{"value": 3}'}


@pytest.mark.parametrize(
    ("kind", "data"),
    [pytest.param(kind, data, id=name) for kind, files in (("malformed", MALFORMED), ("not_object", NOT_OBJECTS))
     for name, data in files.items()],
)  # fmt: skip
def test_what_is_no_object_earns_nothing_and_says_why(tmp_path: Path, kind: str, data: bytes) -> None:
    """BR-04: the verifier is strict where the library reads a list."""
    (tmp_path / "output.json").write_bytes(data)
    made = judged(CASE, str(tmp_path / "output.json"))
    assert made.reward == 0.0 and set(made.metrics.values()) == {0}
    assert made.feedback["status"] == "error" and made.feedback["error"]["kind"] == kind
    assert made.feedback["cells"] == [] and set(made.feedback["counts"].values()) == {0}


def test_a_missing_output_earns_nothing(tmp_path: Path) -> None:
    made = judged(CASE, str(tmp_path / "output.json"))
    assert (made.reward, made.feedback["error"]["kind"]) == (0.0, "missing")


def test_no_link_pipe_folder_or_huge_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gold.json").write_text(json.dumps(GOLD))
    (tmp_path / "link").symlink_to(tmp_path / "gold.json")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with open(tmp_path / "huge", "wb") as stream:
        stream.truncate(2**30)
    for name in ("link", "pipe", "folder", "huge", "device"):
        place = "/dev/zero" if name == "device" else str(tmp_path / name)
        made = judged(CASE, place)
        assert (made.reward, made.feedback["error"]["kind"]) == (0.0, "malformed"), name
    monkeypatch.setattr(verifier, "LARGEST_OUTPUT", 10)
    assert judged(CASE, str(tmp_path / "gold.json")).reward == 0.0


def test_json_is_read_as_python_reads_it(tmp_path: Path) -> None:
    (tmp_path / "output.json").write_text('{"firm": NaN, "firm": "Quay & Sons", "lines": []}')
    assert judged(CASE, str(tmp_path / "output.json")).feedback["counts"]["matched"] == 1


BROKEN: dict[str, Any] = {
    "no object as reference": CASE | {"reference": [GOLD]},
    "no schema": {key: value for key, value in CASE.items() if key != "schema"},
    "only property value": {
        **CASE, "schema": {"properties": {"value": {"type": "string"}}}, "reference": {"value": "x"}
    },
    "not a single cell": {**CASE, "reference": {}},
    "an unknown normalizer": {**CASE, "field_rules": {"firm": {"normalizers": ["rot13"]}}},
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_fault_of_the_task_is_nobodys_zero(tmp_path: Path, name: str) -> None:
    """BR-80"""
    for data in ("{}", "no JSON"):
        (tmp_path / "output.json").write_text(data)
        with pytest.raises(Fault):
            judged(BROKEN[name], str(tmp_path / "output.json"))


def stale(logs: Path) -> None:
    logs.mkdir(exist_ok=True)
    for name in STALE:
        (logs / name).write_text("1")


def test_a_fault_leaves_no_file_not_even_an_old_one(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """BR-80"""
    (tmp_path / "reference.json").write_text('{"schema": ')
    (tmp_path / "output.json").write_text(json.dumps(GOLD))
    stale(tmp_path / "logs")
    with pytest.raises(Fault):
        verify(str(tmp_path / "reference.json"), str(tmp_path / "output.json"), str(tmp_path / "logs"))
    assert list((tmp_path / "logs").iterdir()) == []
    assert "no reward: JSONDecodeError" in capfd.readouterr().err
    (tmp_path / "reference.json").write_text(json.dumps(CASE))
    stale(tmp_path / "logs")
    with pytest.raises(Fault, match="more than"):
        verify(str(tmp_path / "reference.json"), str(tmp_path / "output.json"), str(tmp_path / "logs"), seconds=0.01)
    assert list((tmp_path / "logs").iterdir()) == []


def test_a_task_carries_all_that_its_verifier_needs(tmp_path: Path) -> None:
    """test.sh's own command, with the archive instead of this package; a stale reward.json does not survive."""
    case = Case("a", "", b"%PDF-", "document.pdf", json.dumps(SCHEMA), GOLD, "2026-12-01")
    for path, data in task_files(case, "org", None).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    text = (tmp_path / "tests" / "test.sh").read_text()
    for inside, outside in (("/logs/", f"{tmp_path}/logs/"), ("/app/", f"{tmp_path}/solution/"),
                            ("/tests/", f"{tmp_path}/tests/"), ("python3", sys.executable),
                            ("output.json", "expected.json")):  # fmt: skip
        text = text.replace(inside, outside)
    logs = tmp_path / "logs" / "verifier"
    logs.parent.mkdir()
    stale(logs)
    ended = subprocess.run(["sh", "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert sorted(path.name for path in logs.iterdir()) == ["feedback.json", "metrics.json", "reward.txt"]
    assert float((logs / "reward.txt").read_text()) == 1.0
