"""Run records of the extractkit harness: read, judged again, merged, and made into the tables that were published."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from oeb_ray.cli.main import main
from oeb_ray.corpus import labelled
from oeb_ray.corpus.pins import load_pins, read_pinned
from oeb_ray.errors import RequestError
from oeb_ray.extractkit.record import merged, misjudged, read_record, record_file
from oeb_ray.extractkit.report import blocks, extras_line, field_table, into_readme, main_table, page
from oeb_ray.scoring.field_accuracy import token_cost, values_match

from .extractkit_data import CORD, DOCILE, PINS, RECORDS, json_of, lines_of, text_of
from .extractkit_data import record_file as published
from .extractkit_runs import run_doc
from .test_extractkit_vectors import differs

PRICES = {  # per million tokens in and out, as published with the records
    "gpt-5.6-sol": (5, 30), "gpt-5.6-luna": (1, 6), "gpt-5.4-mini": (0.75, 4.5), "gemini-3.5-flash": (1.5, 9),
}  # fmt: skip
MARKS = ("<!-- benchmark:start -->", "<!-- benchmark:end -->")


def record_of(name: str) -> dict[str, Any]:
    return read_record(text_of(f"published/{name}").encode(), name)


def tables_of(record: dict[str, Any]) -> dict[str, Any]:
    found = blocks(record)
    return {
        "main_tables": [line for block in found for line in main_table(block)],
        "field_tables": [field_table(block) for block in found],
        "extras": [line for block in found if (line := extras_line(block))],
    }


@pytest.mark.parametrize("name", RECORDS)
def test_the_published_tables_are_rebuilt_from_their_records(name: str) -> None:
    assert tables_of(record_of(name)) == json_of("published/expected_report_tables.json")[name]


def test_the_tables_of_the_synthetic_run_are_rebuilt() -> None:
    record = json_of("expected_run_record.json")
    assert tables_of(record) == json_of("expected_report_tables.json")


def test_the_synthetic_run_is_made_anew_from_its_pins_and_scripted_answers(tmp_path: Path) -> None:
    """Manifest, answers, run record: every figure as the reference's runner has it."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / CORD.name).write_bytes(CORD.read_bytes())
    (tmp_path / "docile").symlink_to(DOCILE)
    pins = load_pins(str(PINS))
    docs = {labelled.harness_id(doc.doc_id): doc for doc in read_pinned(pins, str(tmp_path)).docs}
    wanted, prices = json_of("expected_run_record.json"), {"replay-alpha": (1, 5), "replay-beta": (0.1, 0.4)}
    made: dict[str, list[Any]] = {}
    for line in lines_of("replies.jsonl"):
        doc = docs[line["docId"]]
        assert isinstance(doc, labelled.Labelled)
        replies = [{"text": text} for text in line["replies"]] or [{"throw": line["throw"]}]
        made.setdefault(line["model"], []).append(
            run_doc(line["docId"], labelled.form_of(doc.dataset).name, doc.gold.as_json(), pages_of(doc),
                    replies, line["usage"], prices[line["model"]], doc.data)
        )  # fmt: skip
    record = {
        "startedAt": wanted["startedAt"], "manifestChecksum": pins.checksum,
        "runs": [{"model": model, "docs": results} for model, results in made.items()],
    }  # fmt: skip
    assert differs(read_record(record_file(record), "made"), wanted) is None
    assert tables_of(record) == json_of("expected_report_tables.json")


def pages_of(doc: labelled.Labelled) -> int:
    if doc.dataset == "cord":
        return 1
    return len(pypdfium2.PdfDocument(doc.data))


def test_every_published_pair_is_judged_as_it_was() -> None:
    pairs = [
        (values_match(field["expected"], field["predicted"], field["compare"]), field["valueCorrect"])
        for name in RECORDS for run in record_of(name)["runs"] for doc in run["docs"] if doc["error"] is None
        for field in doc["fields"]
    ]  # fmt: skip
    assert len(pairs) == 1819 and all(mine == theirs for mine, theirs in pairs)
    assert not [text for name in RECORDS for text in misjudged(record_of(name))]


def test_every_published_cost_follows_from_its_tokens() -> None:
    usages = [
        (run["model"], doc["usage"]) for name in RECORDS for run in record_of(name)["runs"] for doc in run["docs"]
    ]
    known = [(model, usage) for model, usage in usages if usage]
    assert len(known) > 95
    for model, usage in known:
        made = token_cost(usage["inputTokens"], usage["outputTokens"], PRICES[model])
        assert made == pytest.approx(usage["costUSD"], rel=1e-12)


def test_a_record_is_written_as_it_was_read() -> None:
    for name in RECORDS:
        assert record_file(record_of(name)) == text_of(f"published/{name}").encode()


def test_records_of_one_manifest_are_merged_in_the_order_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(published(tmp_path, name)) for name in RECORDS]
    assert main(["report", "--format", "extractkit", *files]) == 0
    text = capsys.readouterr().out
    lines = [line for line in text.splitlines() if line.startswith("| g") and " 25" in line]
    assert [line.split()[1] for line in lines[:4]] == [
        "gpt-5.6-sol",
        "gpt-5.6-luna",
        "gpt-5.4-mini",
        "gemini-3.5-flash",
    ]
    assert "| gemini-3.5-flash | 25 (1 failed) | 96.3% | 82.6% | 66.4% | $27.19 |" in text
    assert "2026-07-12T12:17:58.095Z, manifest 3fcd95f11b94" in text and "CC BY 4.0" in text


def test_records_that_do_not_belong_together_are_refused() -> None:
    one, two = (record_of(name) for name in RECORDS)
    with pytest.raises(RequestError, match="b is of manifest 000000000000, a of 3fcd95f11b94"):
        merged([("a", one), ("b", two | {"manifestChecksum": "0" * 64})])
    with pytest.raises(RequestError, match=r"'gemini-3\.5-flash' is in a and in b"):
        merged([("a", two), ("b", two)])


def test_the_newest_record_is_taken_and_none_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", "--format", "extractkit"]) == 2
    assert "no run record there" in capsys.readouterr().err
    for name in RECORDS:
        published(tmp_path / "results", name)
    assert main(["report", "--format", "extractkit"]) == 0
    text = capsys.readouterr().out
    assert "gemini-3.5-flash" in text and "gpt-5.6-sol" not in text


def test_tables_go_between_the_marks_of_a_readme_and_nowhere_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, readme, out = published(tmp_path, RECORDS[1]), tmp_path / "README.md", tmp_path / "docs" / "benchmark.md"
    before, after = "# Mine\r\n\ntext \u00e9\n", "\nmore\n"
    readme.write_bytes(f"{before}{MARKS[0]}\nold\n{MARKS[1]}{after}".encode())
    words = ["report", "--format", "extractkit", str(record), "--readme", str(readme)]
    assert main([*words, "--out", str(out)]) == 0 and main(words) == 0
    text = readme.read_bytes().decode()
    assert text.startswith(before) and text.endswith(f"{MARKS[1]}{after}") and "old" not in text
    assert text.count("| gemini-3.5-flash | 25 (1 failed) | 96.3% |") == 1 and "By field" not in text
    assert "### By field" in out.read_text()
    assert capsys.readouterr().out == ""
    for broken in ("no marks", f"{MARKS[1]}\n{MARKS[0]}", f"{MARKS[0]}\n{MARKS[0]}\n{MARKS[1]}"):
        with pytest.raises(RequestError, match="once each, in this order"):
            into_readme(broken, "tables")


def test_what_is_billed_never_enters_the_list_price() -> None:
    record = json_of("expected_run_record.json")
    for run in record["runs"]:
        for doc in run["docs"]:
            if doc["usage"]:
                doc["usage"]["billedUSD"] = 7.0
    with_bills = page(record)
    assert tables_of(record) == json_of("expected_report_tables.json")
    costs = with_bills[with_bills.index("## Cost") :]
    assert "| List price / doc | List price / 1k docs | Billed / doc | Billed / 1k docs |" in costs
    rows = [line.split(" | ") for line in costs.splitlines() if "replay-" in line]
    assert [row[4] for row in rows] == ["$0.0109", "$0.0009"]
    assert "| \u2014 | \u2014 |" in page(json_of("expected_run_record.json"))


def test_a_hostile_model_name_ends_no_cell() -> None:
    record = copy.deepcopy(json_of("expected_run_record.json"))
    record["runs"][0]["model"] = "a|b<script>\n| x"
    lines = main_table(blocks(record)[0])
    assert lines[2].startswith("| a&#124;b&#60;script&#62;&#92;x0a&#124; x | 6 |") and len(lines) == 4


def test_a_faulty_record_is_refused_with_what_is_wrong() -> None:
    for data, said in ((b"{", "no JSON"), (b"[]", "must be an object"), (b"{}", "startedAt is missing")):
        with pytest.raises(RequestError, match=said):
            read_record(data, "run.json")
    record = record_of(RECORDS[1])
    doc = record["runs"][0]["docs"][0]
    doc["usage"]["costUSD"] = "free"
    doc["fields"][0]["iou"] = 7
    doc["extraLineItems"] = -1
    del record["runs"][0]["docs"][1]["error"]
    with pytest.raises(RequestError, match="4 problems") as raised:
        read_record(json.dumps(record).encode(), "run.json")
    for said in ("docs[0].usage", "docs[0].fields[0] is no result", "docs[0].extraLineItems is -1", "docs[1].error"):
        assert said in str(raised.value)


def test_fields_that_are_judged_otherwise_here_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = record_of(RECORDS[1])
    field = record["runs"][0]["docs"][0]["fields"][0]
    field["valueCorrect"] = False
    path = tmp_path / "run-x.json"
    path.write_bytes(record_file(record))
    assert main(["report", "--format", "extractkit", str(path)]) == 0
    assert f"judged otherwise here: gemini-3.5-flash, cord/test/0, {field['path']}" in capsys.readouterr().err


def test_a_format_that_is_none_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 2 and main(["report", "--format", "extractkid"]) == 2
    said = capsys.readouterr().err
    assert "give --format" in said and "did you mean extractkit" in said
