"""CORD and DocILE: annotations become golds, or the document is named with the reason."""

from __future__ import annotations

import copy
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from oeb_ray import storage
from oeb_ray.corpus import labelled
from oeb_ray.corpus.cord import CordMappingError, map_cord, parquet_files, read_rows
from oeb_ray.corpus.docile import DocileMappingError, map_docile, read_doc, read_docs
from oeb_ray.corpus.manifest import load
from oeb_ray.errors import RequestError
from oeb_ray.scoring.field_accuracy.gold import read_gold

from .extractkit_data import CORD, DOCILE, lines_of

EXPECTED = {line["id"]: line for line in lines_of("expected_ground_truth.jsonl")}
RECEIPT = {
    "gt_parse": {"menu": {"nm": "TEA", "price": "3.000"}, "total": {"total_price": "3.000"}},
    "meta": {"image_size": {"width": 100, "height": 100}},
    "valid_line": [
        {"category": category, "group_id": 1, "words": [{"text": text, "quad": dict.fromkeys(
            ("x1", "y1", "x2", "y2", "x3", "y3", "x4", "y4"), 5)}]}
        for category, text in (("menu.nm", "TEA"), ("menu.price", "3.000"), ("total.total_price", "3.000"))
    ],
}  # fmt: skip
INVOICE_ENTRY = {"fieldtype": "vendor_name", "text": "X", "page": 0, "bbox": [0.1, 0.1, 0.2, 0.2]}


def all_docs() -> list[labelled.Labelled | labelled.Rejected]:
    return [*labelled.cord_docs(str(CORD), "test"), *labelled.docile_docs(str(DOCILE), "val")]


def without(value: Any, *path: Any, put: Any = None) -> Any:
    changed = copy.deepcopy(value)
    node = changed
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = put
    return changed


def test_every_fixture_document_maps_as_the_reference_maps_it() -> None:
    docs = all_docs()
    assert [labelled.harness_id(doc.doc_id) for doc in docs] == [
        *(name for name in EXPECTED if name.startswith("cord")), *sorted(name for name in EXPECTED if "docile" in name)
    ]  # fmt: skip
    for doc in docs:
        wanted = dict(EXPECTED[str(labelled.harness_id(doc.doc_id))])
        del wanted["id"]
        if isinstance(doc, labelled.Rejected):
            assert f"({wanted['reason']})" in doc.why
        else:
            assert doc.gold.as_json() == wanted
            assert read_gold(wanted) == doc.gold


def test_a_corpus_of_both_is_one_like_any_other(tmp_path: Path) -> None:
    manifest, documents, rejected = labelled.make_corpus(all_docs(), str(tmp_path))
    corpus = load(manifest)
    assert documents == len(corpus)
    assert (len(corpus), sorted(set(corpus.suites))) == (17, ["cord", "docile"])
    assert [doc.doc_id for doc in rejected] == ["cord-test-8", "cord-test-9", "docile-val-cfa8e1d705baba7eab9c62f7"]
    assert "total_price" in rejected[0].why and "line items" in rejected[2].why
    first = corpus.doc(0)
    assert first.doc_path.endswith("docs/cord-test-0.png") and storage.read(first.doc_path).startswith(b"\x89PNG")
    assert json.loads(first.schema)["required"][0] == "lineItems"
    again = load(labelled.make_corpus(all_docs(), str(tmp_path / "again")).manifest)
    assert again.schema_sha256 == corpus.schema_sha256


def test_data_in_memory_and_in_folders_read_alike(tmp_path: Path) -> None:
    place = f"memory://labelled-{tmp_path.name}"
    storage.put(f"{place}/cord/data/test-00000-of-00001.parquet", CORD.read_bytes())
    for path in DOCILE.rglob("*.*"):
        storage.put(f"{place}/docile/{path.relative_to(DOCILE)}", path.read_bytes())
    docs = [*labelled.cord_docs(f"{place}/cord", "test"), *labelled.docile_docs(f"{place}/docile", "val")]
    assert docs == all_docs()


def test_rows_are_counted_through_all_files_of_a_split(tmp_path: Path) -> None:
    table = pq.read_table(CORD)
    for part, rows in enumerate((table.slice(0, 4), table.slice(4))):
        pq.write_table(rows, tmp_path / f"test-{part:05}-of-00002.parquet")
    pq.write_table(table.slice(0, 1), tmp_path / "train-00000-of-00001.parquet")
    assert len(parquet_files(str(tmp_path), "test")) == 2
    assert list(read_rows(str(tmp_path), "test")) == list(read_rows(str(CORD), "test"))


@pytest.mark.parametrize(
    ("truth", "reason"),
    [
        (None, "annotation"), ({}, "annotation"), ({"meta": {"image_size": {"width": 0, "height": 1}}}, "annotation"),
        (without(RECEIPT, "valid_line", put={}), "annotation"), (without(RECEIPT, "valid_line", put=[3]), "annotation"),
        (without(RECEIPT, "gt_parse", put=[]), "section_type"),
        (without(RECEIPT, "gt_parse", "total", put=""), "section_type"),
        (without(RECEIPT, "gt_parse", "menu", put="TEA"), "item_value_type"),
        (without(RECEIPT, "gt_parse", "menu", put=[[]]), "item_value_type"),
        (without(RECEIPT, "gt_parse", "menu", "price", put=3), "item_value_type"),
        (without(RECEIPT, "gt_parse", "menu", "sub", put={"nm": "ICE"}), "sub_group_count"),
        (without(RECEIPT, "gt_parse", "menu", put=[]), "item_group_count"),
        (without(RECEIPT, "gt_parse", "total", "total_price", put=["3", "4"]), "scalar_value_type"),
        (without(RECEIPT, "gt_parse", "total", "total_price", put="4.000"), "text_mismatch"),
        (without(RECEIPT, "valid_line", 0, "group_id", put="1"), "annotation"),
        (without(RECEIPT, "valid_line", 0, "words", 0, "text", put=None), "annotation"),
        (without(RECEIPT, "valid_line", 0, "words", 0, "quad", "x3", put=float("nan")), "annotation"),
        (without(RECEIPT, "valid_line", 0, "words", 0, "quad", put=None), "annotation"),
    ],
)  # fmt: skip
def test_a_receipt_that_leaves_a_doubt_is_rejected_with_its_reason(truth: Any, reason: str) -> None:
    map_cord(RECEIPT)
    with pytest.raises(CordMappingError) as raised:
        map_cord(truth)
    assert raised.value.reason == reason and f"({reason})" in str(raised.value)


@pytest.mark.parametrize(
    ("heads", "cells", "reason"),
    [
        (None, [], "annotation"), ([], "x", "annotation"), ([3], [], "annotation"),
        ([INVOICE_ENTRY | {"text": None}], [], "bad_entry"), ([INVOICE_ENTRY | {"bbox": [0, 0, 1]}], [], "bad_entry"),
        ([INVOICE_ENTRY | {"page": "0"}], [], "bad_entry"),
        ([], [INVOICE_ENTRY | {"fieldtype": "line_item_tax"}], "missing_line_item_id"),
    ],
)  # fmt: skip
def test_an_invoice_that_leaves_a_doubt_is_rejected_with_its_reason(heads: Any, cells: Any, reason: str) -> None:
    with pytest.raises(DocileMappingError) as raised:
        map_docile({"field_extractions": heads, "line_item_extractions": cells})
    assert raised.value.reason == reason


def test_an_entry_of_no_use_to_the_schema_may_be_broken() -> None:
    broken = {"fieldtype": "customer_id", "text": 3}
    gold = map_docile({"field_extractions": [broken, INVOICE_ENTRY], "line_item_extractions": []})
    assert gold.fields[0].value == "X"


def test_data_that_are_not_there_or_of_another_kind_are_refused_by_name(tmp_path: Path) -> None:
    for read, said in (
        (lambda: list(read_rows(str(tmp_path), "test")), r"no test-\*.parquet"),
        (lambda: list(read_rows(str(tmp_path / "none.parquet"), "test")), "no file at"),
        (lambda: list(read_docs(str(tmp_path), "val")), "no val.json"),
        (lambda: read_doc(str(DOCILE), "0" * 24), "lacks the PDF or annotation"),
    ):
        with pytest.raises(RequestError, match=said):
            read()
    (tmp_path / "val.json").write_text('["../../etc/passwd"]')
    with pytest.raises(RequestError, match="24 hexadecimal"):
        list(read_docs(str(tmp_path), "val"))
    sink = io.BytesIO()
    pq.write_table(pa.table({"image": [{"bytes": b"x", "path": None}], "ground_truth": ["{"]}), sink)
    for name, data, said in (
        ("text.parquet", b"no parquet", "no CORD-v2 Parquet"), ("broken.parquet", sink.getvalue(), "row 0 is no JSON")
    ):  # fmt: skip
        (tmp_path / name).write_bytes(data)
        with pytest.raises(RequestError, match=said):
            list(read_rows(str(tmp_path / name), "test"))


def test_a_corpus_without_a_document_is_refused_with_the_first_reason(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="1 were rejected; the first: cord-test-8: because"):
        labelled.make_corpus([labelled.Rejected("cord-test-8", "because")], str(tmp_path))
    assert not (tmp_path / "manifest.parquet").exists()


@pytest.mark.parametrize("name", ["cord/test/4", "docile/val/9873b314973c7f3133b67c62"])
def test_ids_of_the_harness_go_there_and_back(name: str) -> None:
    mine = labelled.own_id(name)
    assert mine is not None and labelled.harness_id(mine) == name
    assert labelled.own_id("other/1") is None and labelled.harness_id("sample-1") is None
