"""Cells run nothing: not in a spreadsheet, and not on a Markdown page."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from oeb_ray.cells import csv_text, markdown_cell, markdown_table

CASES = Path(__file__).parent / "data" / "report_cases"
FORMULAS = json.loads((CASES / "BR-25_formulas.json").read_text())["rows"]
MARKUP = json.loads((CASES / "BR-24_markup_values.json").read_text())["texts"]


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(("text", "kind"), FORMULAS)
def test_no_text_becomes_a_formula_or_another_number(text: str, kind: str) -> None:
    """BR-25"""
    _, [cell] = read(csv_text(["value"], [[text]]))
    assert cell.lstrip("'") == text, "what it says stays"
    if kind == "number":
        assert cell == text
    elif kind == "text" and text != 'a,"b"\nc':
        assert cell.startswith("'")


def test_numbers_stay_numbers_and_nothing_stays_empty() -> None:
    assert csv_text(["a", "b", "c", "d"], [[-12.5, 0, None, "-12.5"]]) == "a,b,c,d\n-12.5,0,,-12.5\n"
    assert read(csv_text(["a"], [["9007199254740993"]]))[1] == ["'9007199254740993"], "all digits kept"
    assert read(csv_text(["a"], [["1e5"], ["plain"], ["a=b"]]))[1:] == [["'1e5"], ["plain"], ["a=b"]]


def test_raw_csv_is_for_machines() -> None:
    for text, _ in FORMULAS:
        assert read(csv_text(["value"], [[text]], raw=True))[1] == [text]


@pytest.mark.parametrize("text", [*MARKUP, "a|b", "`x`", "**x**", "[x](http://127.0.0.9)", "@all", "www.x.y", "$a$"])
def test_markup_stays_text_in_markdown(text: str) -> None:
    """BR-24"""
    cell = markdown_cell(text)
    assert not set(cell) & set("<>|`*[]\\\n$@\u2028\u202e\0") and "://" not in cell and "www." not in cell
    assert markdown_table(["run"], [[text]]).count("\n") == 3
