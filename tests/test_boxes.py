"""Boxes that models give in another space: the value stays right, its place is lost, and nothing is guessed (BR-83)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from oeb_ray.corpus.forms import RECEIPT
from oeb_ray.providers import evidence
from oeb_ray.scorers.contract import Given
from oeb_ray.scorers.field_accuracy import SCORER
from oeb_ray.scoring.field_accuracy import score

from .extractkit_data import json_of
from .extractkit_runs import with_places

BOXES = json_of("BR-83_boxes.json")
FORM = evidence.form_of(json.loads(RECEIPT.schema()))
NOTHING = {"value": None, "page": None, "bbox": None, "confidence": 0}
GOLD = {
    "fields": [{"path": "total", "value": BOXES["truth"]["value"], "compare": "money",
                "regions": [BOXES["truth"]["region"]]}],
    "lineItemCount": 0,
}  # fmt: skip


@pytest.mark.parametrize("answer", BOXES["answers"], ids=lambda answer: answer["name"])
def test_a_box_in_another_space_costs_the_place_and_not_the_value(answer: dict[str, Any]) -> None:
    wanted = answer["expect"]
    fields = dict.fromkeys(("subtotal", "discount", "serviceCharge", "tax"), NOTHING) | {"lineItems": []}
    fields["total"] = {key: answer[key] for key in ("value", "page", "bbox", "confidence")}
    assert evidence.faults(FORM, {"readable": True, "issues": [], "fields": fields}) == []
    found = evidence.taken(FORM, fields, BOXES["pages"])
    leaf = with_places(found.data, found.citations)
    (field,) = score(leaf, GOLD)["fields"]
    assert len(found.issues) == wanted["issues"] and field["valueCorrect"] is wanted["valueCorrect"]
    assert field["iou"] == pytest.approx(wanted["iou"], rel=1e-9)
    assert (leaf["total"]["bbox"] is None) == (wanted["bbox"] == "dropped")

    record = json.dumps({"citations": found.citations}).encode()
    stored = Given(json.dumps(found.data).encode(), None, b"{}", "{}", json.dumps(GOLD).encode(), record)
    row = SCORER.grade(stored).row  # as the runner has it: bare values, and citations beside them
    assert (row["accuracy"], row["mean_iou"]) == (1.0, pytest.approx(wanted["iou"], rel=1e-9))
    assert row["hits"] == (wanted["iou"] >= 0.5)
