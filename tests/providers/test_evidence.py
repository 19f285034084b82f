"""Values with their evidence: the form that is asked for, answers that break it, places that make no sense."""

from __future__ import annotations

import asyncio
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from oeb_ray.errors import DialectError, DocumentError
from oeb_ray.providers import evidence
from oeb_ray.providers.chat_replies import Completion
from oeb_ray.providers.contract import Document, VendorOptions
from oeb_ray.providers.evidence import EvidenceReader, form_of, taken, wanted
from oeb_ray.providers.registry import PAID, settings_for
from oeb_ray.providers.transport import VendorRules
from tests.providers.fakes import FakeCall, reply
from tests.providers.wires import GOLD, in_a_hurry, wire

DATA = Path(os.environ.get("OEB_TEST_VECTORS") or Path(__file__).parent.parent / "data")


def object_of(required: str, nullable: str, **others: Any) -> dict[str, Any]:
    fields = {name: {"type": "string"} for name in required.split()}
    fields |= {name: {"type": ["string", "null"]} for name in nullable.split()}
    return {"type": "object", "properties": fields | others, "required": [*fields, *others]}


def rows(required: str, nullable: str) -> dict[str, Any]:
    return {"type": "array", "items": object_of(required, nullable)}


FORMS = {
    "receipt": object_of(
        "total", "subtotal discount serviceCharge tax", lineItems=rows("description", "quantity unitPrice amount")
    ),
    "invoice": object_of(
        "",
        "vendorName invoiceNumber issueDate dueDate currency subtotal tax total",
        lineItems=rows("", "description quantity unitPrice amount"),
    ),
}
VECTORS = [
    json.loads(line)
    for line in (DATA / "extractkit_vectors.jsonl" if DATA.is_dir() else DATA).read_bytes().split(b"\n")
    if line
]
PNG = b"\x89PNG\r\n\x1a\nx"


def lines(kind: str, without: tuple[str, ...] = ()) -> Any:
    chosen = [line for line in VECTORS if line["kind"] == kind and line["id"] not in without]
    assert chosen
    return pytest.mark.parametrize("line", chosen, ids=[f"vector-extractkit-{line['id']}" for line in chosen])


def leaves(node: Any, path: str = "") -> dict[str, Any]:
    """The leaves of a reference's answer by their paths, as citations have them."""
    if isinstance(node, list):
        return {key: leaf for n, item in enumerate(node) for key, leaf in leaves(item, f"{path}[{n}]").items()}
    if "confidence" in node:
        box = node["bbox"] and [node["bbox"][side] for side in ("x0", "y0", "x1", "y1")]
        page = None if node["page"] is None else node["page"] + 1
        return {path: {"path": path, "confidence": node["confidence"], "page": page, "box": box}}
    below = {f"{path}.{name}" if path else name: item for name, item in node.items()}
    return {key: leaf for name, item in below.items() for key, leaf in leaves(item, name).items()}


@lines("unwrap")
def test_an_answer_is_cleaned_up_as_the_reference_does(line: dict[str, Any]) -> None:
    given, expected = line["input"], line["expect"]
    form = form_of(FORMS[given["schema"]])
    found = taken(form, given["fields"], given["pages"])
    assert found.data == expected["data"] and found.missing == expected["missingPaths"]
    assert [path for path, _ in found.issues] == expected["issuePaths"]
    assert {entry["path"]: entry for entry in found.citations} == leaves(expected["fields"])


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delenv("OEB_OPENAI_ADDRESS", raising=False)


def response(text: str) -> dict[str, Any]:
    said = {"type": "message", "content": [{"type": "output_text", "text": text}]}
    return {"status": "completed", "output": [said], "usage": {"input_tokens": 1200, "output_tokens": 340}}


# The two left out have no reply to read: a connection lost, and a file of a type that is not taken.
@lines("run_doc", without=("ek-run_doc-006", "ek-run_doc-007"))
@pytest.mark.usefixtures("_quick")
def test_a_document_is_asked_for_as_often_as_by_the_reference(line: dict[str, Any]) -> None:
    given, expected = line["input"], line["expect"]
    call = FakeCall([reply(200, response(step["text"])) for step in given["replies"]])
    provider: Any = PAID["openai"]
    settings = provider.Settings(**settings_for("openai", {"evidence": True}))
    document = Document("a", "a.png", "image/png", PNG)
    schema = FORMS[given["doc"]["schema"]]
    extraction, error = None, None
    try:
        extraction = asyncio.run(provider.extract(document, schema, settings, VendorOptions(), call))
    except DocumentError as problem:
        error = problem
    usage = expected["usage"]
    assert len(call.claims) == usage["modelCalls"] == len(call.bills)
    assert sum(bill["tokens_in"] for bill in call.bills) == usage["inputTokens"]
    kind = (expected["error"] or "").partition(":")[0]
    if kind in ("", "MissingRequiredFieldsError"):
        assert extraction is not None
        assert bool(extraction.raw["missing"]) == bool(kind)
        predicted = {entry["path"]: entry["predicted"] for entry in expected["fields"]}
        values = json.loads(extraction.prediction)
        for path, value in predicted.items():
            assert value_at(values, path) == value
    else:
        assert error is not None
        assert ("cannot be read" in str(error)) == (kind == "DocumentUnreadableError")


def value_at(node: Any, path: str) -> Any:
    for step in path.split("."):
        node = node[int(step)] if isinstance(node, list) else node.get(step)
        if node is None:
            break
    return node


# --- the form -----------------------------------------------------------------------------------------------------


def test_every_leaf_is_asked_for_with_its_evidence() -> None:
    schema = {
        "type": "object",
        "properties": {
            "total": {"type": "number", "description": "the sum"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
        },
        "required": ["total", "kind"],
        "$defs": {"row": {"type": "object", "properties": {"note": {}}, "required": ["note"]}},
    }
    told = wanted(form_of(schema))
    assert list(told["properties"]) == ["readable", "issues", "fields"] == told["required"]
    fields = told["properties"]["fields"]["properties"]
    assert fields["total"]["description"] == "the sum" and fields["total"]["required"] == list(evidence.KEYS)
    assert fields["total"]["properties"]["value"] == {"type": ["number", "null"]}
    assert fields["tags"]["items"]["properties"]["value"] == {"type": ["string", "null"]}
    assert fields["kind"]["properties"]["value"] == {"enum": ["a", "b", None]}
    assert fields["rows"]["items"]["properties"]["note"]["properties"]["value"] == {}


def test_a_schema_that_refers_to_itself_is_refused() -> None:
    with pytest.raises(DialectError, match="refers to itself"):
        form_of({"type": "object", "properties": {"a": {"$ref": "#"}}})


LEAF = {"value": "x", "page": 0, "bbox": [0, 0, 1, 1], "confidence": 1}


@pytest.mark.parametrize(
    ("leaf", "words"),
    [
        (LEAF | {"value": 3}, "value must be string or null"),
        (LEAF | {"page": True}, "page must be"),
        (LEAF | {"bbox": [0, 0, 1]}, "bbox must be"),
        (LEAF | {"bbox": "0 0 1 1"}, "bbox must be"),
        (LEAF | {"confidence": "high"}, "confidence must be"),
        ({"value": "x"}, "lacks page, bbox, confidence"),
        ([], "must be an object"),
    ],
)
def test_what_breaks_the_form_is_named(leaf: Any, words: str) -> None:
    form = form_of({"properties": {"a": {"type": "string"}}})
    answer = {"readable": True, "issues": [], "fields": {"a": leaf}}
    assert any("$.fields.a" in fault and words in fault for fault in evidence.faults(form, answer))
    assert not evidence.faults(form, answer | {"fields": {"a": LEAF, "b": 1}}), "more than was asked for is no fault"


def test_a_long_answer_full_of_faults_is_named_in_short() -> None:
    form = form_of({"properties": {"a": {"type": "array", "items": {"type": "string"}}}})
    answer = {"readable": 1, "issues": [], "fields": {"a": [None] * 10_000}}
    assert len(evidence.faults(form, answer)) == evidence.NAMED_FAULTS


@pytest.mark.parametrize("box", [[10, 20, 200, 40], [0.5, 0.9, 0.7, 0.1], [math.pi, 0, 4, 1]])
def test_a_value_stays_right_though_its_box_is_in_another_space(box: Any) -> None:
    form = form_of({"properties": {"a": {"type": "string"}}})
    found = taken(form, {"a": LEAF | {"bbox": box}}, 1)
    assert found.data == {"a": "x"} and found.citations[0]["box"] is None and len(found.issues) == 1


@pytest.mark.usefixtures("_quick")
def test_an_answer_that_lacks_something_is_kept_where_there_is_no_time_for_a_better_one() -> None:
    lacking = LEAF | {"value": None, "page": None, "bbox": None}
    text = json.dumps({"readable": True, "issues": [], "fields": {"a": LEAF, "b": lacking}})
    call = FakeCall([reply(200, response(text))], budget=1.0)
    provider: Any = PAID["openai"]
    settings = provider.Settings(**settings_for("openai", {"evidence": True}))
    schema = object_of("a b", "")
    document = Document("a", "a.png", "image/png", PNG)
    given = asyncio.run(provider.extract(document, schema, settings, VendorOptions(), call))
    assert json.loads(given.prediction) == {"a": "x"} and given.raw["missing"] == ["$.b"] and len(call.claims) == 1


def test_a_fence_is_passed_over_where_nothing_keeps_a_model_to_json() -> None:
    form = form_of({"properties": {"a": {"type": "string"}}})
    text = json.dumps({"readable": True, "issues": [], "fields": {"a": LEAF}})
    found = Completion({}, "end_turn", f"```json\n{text}\n```")
    assert EvidenceReader(form, 1, free=True)(found, VendorRules("x"), None).answer == {"a": "x"}
    assert EvidenceReader(form, 1)(found, VendorRules("x"), None).answer is None


@pytest.mark.parametrize("vendor", ["anthropic", "google", "openai"])
def test_values_are_predicted_bare_and_their_places_are_cited(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_a_hurry(monkeypatch)
    with wire(tmp_path, vendor, options={"settings": {"evidence": True}}) as work:
        (record,) = work.ask()
        assert record["error"] is None and work.prediction(work.docs[0].doc_id) == GOLD
        cited = {entry["path"]: entry for entry in record["citations"]}
        assert cited["rows[1].note"] == {"path": "rows[1].note", "confidence": 1, "page": 1, "box": [0, 0, 1, 1]}
        assert record["raw"]["missing"] == [] and record["pages"] is None, "nobody knows the pages of a broken PDF"
        assert record["cost"]["tokens_out"] > 0 and record["cost"]["usd"] is None
