"""`oeb score --scorer value_f1` for one document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oeb_ray.cli.main import main

DATA = {
    "pred": {"issued": "3/4/30", "total": [1, float("nan")], "more": True},
    "gt": {"issued": "2030-03-04", "total": [1, 2], "fax": None},
    "schema": {"properties": {"issued": {}, "total": {}, "fax": {}}},
    "rules": {"total": {"evidence": [{"value": [1, 3], "page": 2}]}},
    "citations": [{"field_path": "total", "page": 2}],
}


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    for name, value in DATA.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    given = [word for name in ("pred", "gt", "schema") for word in (f"--{name}", str(tmp_path / f"{name}.json"))]
    return ["score", "--scorer", "value_f1", *given]


def test_figures_are_one_json_document(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    got = json.loads(capsys.readouterr().out)
    assert (got["matched_cells"], got["expected_cells"], got["predicted_cells"]) == (1, 3, 3)
    assert got["today"] == "2026-12-01" and "feedback" not in got
    assert main([*words, "--today", "1970-01-01"]) == 0
    assert json.loads(capsys.readouterr().out)["matched_cells"] == 0, "3/4/30 is of 1930 then"


def test_verdicts_are_the_feedback(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--field-rules", str(tmp_path / "rules.json"), "--citations", str(tmp_path / "citations.json")]
    assert main([*words, *more, "--verdicts"]) == 0
    got = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (got["page_claims"], got["page_correct"]) == (1, 0)
    assert got["feedback"][:2] == [
        {"reference_path": "fax", "output_path": None, "outcome": "reference_only", "f1_credit": 0.0, "expected": None},
        {
            "reference_path": "issued", "output_path": "issued", "outcome": "matched", "f1_credit": 1 / 3,
            "expected": "2030-03-04", "predicted": "3/4/30",
        },
    ]  # fmt: skip
    assert got["feedback"][3]["predicted"] == [1, {"$float": "NaN"}]


@pytest.mark.parametrize(
    ("change", "more", "said"),
    [
        ({"pred": [3]}, [], "pred.json: the output is a list, not an object, so it earns nothing"),
        ({"gt": {}, "pred": {}, "schema": {"properties": {}}}, [], "cannot be graded: neither reference nor output"),
        ({"gt": []}, [], "cannot be graded: the reference must be an object"),
        ({}, ["--today", "3/4/24"], "--today '3/4/24'"),
        ({}, ["--order-matters", "x"], "--order-matters means nothing to value_f1"),
        ({}, ["--manifest", "x", "--out", "y"], "one document (--pred --gt --schema) or a table, not both"),
        ({}, ["--scorer", "field_matching", "--today", "2026-12-01"], "--today means nothing to field_matching"),
    ],
)
def test_what_cannot_be_graded_is_one_message(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, object],
    more: list[str],
    said: str,
) -> None:
    for name, value in change.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    assert main([*words, *more]) == 2
    told = capsys.readouterr()
    assert said in told.err and not told.out
