"""Answers that say of every value where it stands: the form that models are asked for, and what comes back.

In: a JSON Schema without references (see schema.inlined). Out: the schema of such answers, ``{readable, issues,
fields}`` with ``{value, page, bbox, confidence}`` in place of every leaf; what is wrong with the form of an answer; and
an answer cleaned up. Pages count from 0, boxes are left, top, right, bottom as shares of the page. Nothing is guessed:
a place that cannot be is dropped, and its value stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .schema import collapsed, kind_of

LEAF = ("value", "page", "bbox", "confidence")
CORNERS = ("x0", "y0", "x1", "y1")
MOST_FAULTS = 20
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "boolean": (bool,), "integer": (int,), "number": (int, float)}
RULES = """\
- Answer with {"readable", "issues", "fields"}. "fields" follows the schema of the data, and in place of every value it
  has {"value", "page", "bbox", "confidence"}, also where the value is null.
- "value" is what is printed, as it is printed and never worked out; null where the document does not have it.
- "page" is the number of the page with the value, the first one being 0; null where there is no value.
- "bbox" is the tightest box around it: left, top, right and bottom as shares of the page's width and height, from 0 to
  1, the origin at the top left; null where there is no value.
- "confidence" from 0 to 1 says how sure you are that the value is right. Be honest.
- "readable" is false where the document is blank or cannot be read; then "issues" says why.
"""


@dataclass
class Evidence:
    """A cleaned answer. ``data``: the bare values; ``fields``: the same with ``{value, confidence, page, bbox}`` for
    each; ``missing``: paths of required fields without a value; ``issues``: path and what was put right, in order."""

    data: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    issues: list[tuple[str, str]] = field(default_factory=list)


def evidence_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of answers with evidence for the data that a schema describes."""
    return _closed(
        {
            "readable": {"type": "boolean"},
            "issues": {"type": "array", "items": {"type": "string"}},
            "fields": _with_evidence(schema),
        }
    )


def faults_of(answer: Any, schema: dict[str, Any]) -> list[str]:
    """What is wrong with the form of an answer; empty if nothing. Keys that nobody asked for are passed over."""
    if not isinstance(answer, dict):
        return ["the answer is no object"]
    faults = []
    if not isinstance(answer.get("readable"), bool):
        faults.append("readable must be true or false")
    issues = answer.get("issues")
    if not isinstance(issues, list) or not all(isinstance(issue, str) for issue in issues):
        faults.append("issues must be a list of texts")
    for fault in _faults(answer.get("fields"), schema, "$"):
        if len(faults) == MOST_FAULTS:
            break
        faults.append(fault)
    return faults


def cleaned(fields: Any, schema: dict[str, Any], pages: int) -> Evidence:
    """The ``fields`` of an answer without faults, with places that cannot be taken off.

    Args:
        pages: how many pages the document has.
    """
    found = Evidence()
    found.data, found.fields = _clean(fields, schema, "$", pages, found)
    return found


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def _with_evidence(node: Any) -> dict[str, Any]:
    shape = collapsed(node)
    kind, about = kind_of(shape), {key: shape[key] for key in ("description",) if key in shape}
    if kind == "object" and shape.get("properties"):
        return _closed({name: _with_evidence(below) for name, below in shape["properties"].items()}) | about
    if kind == "array" and "items" in shape:
        return {"type": "array", "items": _with_evidence(shape["items"])} | about
    value = {key: said for key, said in shape.items() if key not in ("description", "type", "title")}
    if isinstance(value.get("enum"), list) and None not in value["enum"]:
        value["enum"] = [*value["enum"], None]
    kinds = [kind] if kind else ["string", "number", "boolean"]
    box = {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 4, "maxItems": 4}
    leaf = {
        "value": {**value, "type": [*kinds, "null"]}, "page": {"type": ["integer", "null"]}, "bbox": box,
        "confidence": {"type": "number"},
    }  # fmt: skip
    return _closed(leaf) | about


def _is_parent(shape: dict[str, Any]) -> bool:
    return kind_of(shape) == "object" and bool(shape.get("properties"))


def _faults(value: Any, node: Any, path: str) -> Iterator[str]:
    shape = collapsed(node)
    if _is_parent(shape):
        if not isinstance(value, dict):
            yield f"{path} must be an object"
            return
        for name, below in shape["properties"].items():
            yield from _faults(value.get(name), below, f"{path}.{name}")
    elif kind_of(shape) == "array" and "items" in shape:
        if not isinstance(value, list):
            yield f"{path} must be a list"
            return
        for number, member in enumerate(value):
            yield from _faults(member, shape["items"], f"{path}[{number}]")
    else:
        yield from _leaf_faults(value, kind_of(shape), path)


def _leaf_faults(leaf: Any, kind: str | None, path: str) -> Iterator[str]:
    if not isinstance(leaf, dict) or (lacking := [key for key in LEAF if key not in leaf]):
        said = "it is none" if not isinstance(leaf, dict) else f"it lacks {', '.join(lacking)}"
        yield f"{path} must be an object with value, page, bbox and confidence; {said}"
        return
    value, page, box = leaf["value"], leaf["page"], leaf["bbox"]
    if value is not None and kind in _KINDS and (
        type(value) not in _KINDS[kind] and not (kind == "integer" and _is_whole(value))
    ):  # fmt: skip
        yield f"{path}.value must be {kind} or null"
    if page is not None and not _is_whole(page):
        yield f"{path}.page must be a whole number or null"
    if box is not None and not (isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))):
        yield f"{path}.bbox must be four numbers or null"
    if not _is_number(leaf["confidence"]):
        yield f"{path}.confidence must be a number"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -math.inf < value < math.inf


def _is_whole(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value) and value == int(value))


_LEFT_OUT: Any = object()


def _clean(value: Any, node: Any, path: str, pages: int, found: Evidence) -> tuple[Any, Any]:
    shape = collapsed(node)
    if _is_parent(shape):
        data, fields = {}, {}
        for name, below in shape["properties"].items():
            bare, leaf = _clean(value[name], below, f"{path}.{name}", pages, found)
            if leaf is not _LEFT_OUT:
                data[name], fields[name] = bare, leaf
        return data, fields
    if kind_of(shape) == "array" and "items" in shape:
        pairs = [
            _clean(member, shape["items"], f"{path}[{number}]", pages, found) for number, member in enumerate(value)
        ]
        kept = [(bare, leaf) for bare, leaf in pairs if leaf is not _LEFT_OUT]
        return [bare for bare, _ in kept], [leaf for _, leaf in kept]
    if value["value"] is None:
        if not may_be_null(node):
            found.missing.append(path)
            return None, _LEFT_OUT
        return None, {"value": None, "confidence": value["confidence"], "page": None, "bbox": None}
    return value["value"], _clean_leaf(value, path, pages, found.issues)


def _clean_leaf(leaf: dict[str, Any], path: str, pages: int, issues: list[tuple[str, str]]) -> dict[str, Any]:
    confidence, page, box = leaf["confidence"], leaf["page"], leaf["bbox"]
    if not 0 <= confidence <= 1:
        issues.append((path, f"confidence {confidence} lies outside 0 to 1"))
        confidence = min(1, max(0, confidence))
    if page is not None and not (_is_whole(page) and 0 <= page < pages):
        issues.append((path, f"page {page} is none of the {pages}, counted from 0"))
        page = None
    place = None
    if box is not None and page is None:
        issues.append((path, "the box is on no page"))
    elif box is not None:
        left, top, right, bottom = (min(1, max(0, side)) for side in box)
        if left < right and top < bottom:
            place = dict(zip(CORNERS, (left, top, right, bottom), strict=True))
        else:
            issues.append((path, f"the box {box} covers nothing of the page"))
    return {
        "value": leaf["value"], "confidence": confidence, "page": None if page is None else int(page), "bbox": place,
    }  # fmt: skip


def may_be_null(node: Any) -> bool:
    """Whether a leaf's schema allows null."""
    if not isinstance(node, dict):
        return True
    kinds = node.get("type")
    if isinstance(kinds, list):
        return "null" in kinds
    branches = [branch for word in ("anyOf", "oneOf") for branch in node.get(word) or ()]
    return kinds == "null" or any(may_be_null(branch) for branch in branches) or (kinds is None and not branches)
