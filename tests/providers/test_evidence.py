"""Answers with a place for every value: their form is held to, and what cannot be a place is dropped, never guessed."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonschema
import pytest

from oeb_ray.corpus.forms import INVOICE, RECEIPT
from oeb_ray.providers.evidence import cleaned, evidence_schema, faults_of
from oeb_ray.scoring.field_accuracy import score
from tests.extractkit_data import json_of, lines_of

SCHEMAS = {form.name: json.loads(form.schema()) for form in (RECEIPT, INVOICE)}
BOXES = json_of("BR-83_boxes.json")
NOTHING = {"value": None, "page": None, "bbox": None, "confidence": 0}


def receipt(**leaves: Any) -> dict[str, Any]:
    fields = {name: dict(NOTHING) for name in ("subtotal", "discount", "serviceCharge", "tax", "total")}
    return {"readable": True, "issues": [], "fields": {"lineItems": [], **fields, **leaves}}


@pytest.mark.parametrize("answer", BOXES["answers"], ids=lambda answer: answer["name"])
def test_boxes_in_another_space_lose_their_place_and_keep_their_value(answer: dict[str, Any]) -> None:  # BR-83
    wanted, truth = answer["expect"], BOXES["truth"]
    leaf = {key: answer[key] for key in ("value", "page", "bbox", "confidence")}
    given = receipt(total=leaf)
    before = copy.deepcopy(given)
    assert not faults_of(given, SCHEMAS["receipt"])
    found = cleaned(given["fields"], SCHEMAS["receipt"], BOXES["pages"])
    gold = {"path": "total", "value": truth["value"], "compare": "money", "regions": [truth["region"]]}
    (field,) = score(found.fields, {"fields": [gold], "lineItemCount": 0})["fields"]
    assert field["iou"] == pytest.approx(wanted["iou"], rel=1e-9)
    assert (len(found.issues), field["valueCorrect"]) == (wanted["issues"], wanted["valueCorrect"])
    assert (found.fields["total"]["bbox"] is None) == (wanted["bbox"] == "dropped")
    assert given == before and found.data["total"] == truth["value"]


def test_every_scripted_answer_is_told_from_what_is_none() -> None:
    """The schema that is asked for and the rules that answers are held to agree."""
    for line in lines_of("replies.jsonl"):
        form = "receipt" if line["docId"].startswith("cord") else "invoice"
        validator = jsonschema.Draft202012Validator(evidence_schema(SCHEMAS[form]))
        for text in line["replies"]:
            try:
                answer = json.loads(text)
            except ValueError:
                continue
            assert (not faults_of(answer, SCHEMAS[form])) == validator.is_valid(answer), text[:200]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"page": 0.5}, "$.total.page must be a whole number"), ({"bbox": [0, 0, 1]}, "four numbers"),
        ({"bbox": {"x0": 0}}, "four numbers"), ({"confidence": None}, "confidence must be a number"),
        ({"confidence": True}, "confidence must be a number"), ({"value": 45}, "value must be string or null"),
        ({"bbox": [0, 0, 1, float("nan")]}, "four numbers"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_told_by_its_place(change: dict[str, Any], said: str) -> None:
    leaf = {"value": "1", "page": 0, "bbox": [0, 0, 1, 1], "confidence": 1}
    assert faults_of(receipt(total=leaf), SCHEMAS["receipt"]) == []
    (fault,) = faults_of(receipt(total=leaf | change), SCHEMAS["receipt"])
    assert said in fault and fault.startswith("$.total")


def test_faults_are_told_up_to_a_bound() -> None:
    assert faults_of([], {}) == ["the answer is no object"]
    assert len(faults_of(receipt(lineItems=[{}] * 500), SCHEMAS["receipt"])) == 20
    (fault,) = faults_of({**receipt(total=None)}, SCHEMAS["receipt"])
    assert "value, page, bbox and confidence; it is none" in fault
    (fault,) = faults_of({**receipt(total={"value": "1", "page": 0, "confidence": 1})}, SCHEMAS["receipt"])
    assert "it lacks bbox" in fault


def test_other_schemas_can_be_asked_with_evidence() -> None:
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "description": "the number"},
            "kind": {"anyOf": [{"enum": ["a", "b"], "type": "string"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sum": {"type": "object", "properties": {"net": {"type": ["number", "null"]}}},
        },
    }
    leaf: Any = lambda value: {"value": value, "page": 0, "bbox": None, "confidence": 1}  # noqa: E731
    fields = {"id": leaf(3), "kind": leaf(None), "tags": [leaf("x")], "sum": {"net": leaf(1.5)}}
    answer = {"readable": True, "issues": [], "fields": fields}
    jsonschema.validate(answer, evidence_schema(schema))
    assert faults_of(answer, schema) == []
    found = cleaned(fields, schema, 1)
    assert found.data == {"id": 3, "kind": None, "tags": ["x"], "sum": {"net": 1.5}} and not found.missing
    assert cleaned({**fields, "id": leaf(None)}, schema, 1).missing == ["$.id"]
