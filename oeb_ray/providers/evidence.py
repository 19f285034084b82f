"""Values with their evidence: every leaf of a schema asked for as value, page, box and confidence.

In: a schema. Out: the schema of the answer that a model is asked for, and a reader of such answers, which gives the
bare values and, as citations, where each of them stands. An answer that breaks the form is of no use; one whose places
make no sense keeps its values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..errors import VendorError
from ..jsontext import read_json
from .chat_replies import Completion, Read, refuse_final
from .replies import ERROR_LENGTH, is_sound, parse_object, recordable
from .schema import collapsed, inlined
from .transport import VendorRules

DEEPEST = 50
"""Levels of objects in a schema that are asked for so."""
NAMED_FAULTS = 10
"""What is wrong with an answer is told to the model up to here."""
KEYS = ("value", "page", "bbox", "confidence")
INSTRUCTIONS = """\
You read one document and say what stands in it and where. The user's message holds the document and a JSON Schema. You
answer with one JSON object that follows the schema: no text before or after it, no fence round it.

`fields` has the data. Each value in it is an object of its own:
- `value` is what you see, character by character as it is printed. Do not work anything out, convert or tidy up. What
  the document does not show is null.
- `page` is the page that it stands on; the first is 0. null where the value is null.
- `bbox` is the smallest rectangle round the printed value on that page: left, top, right, bottom, each as a share of
  the page's width or height from 0 to 1, counted from the upper left corner. null where the value is null.
- `confidence` is how likely the value is right, from 0 to 1. Say it honestly: 0.5 for a guess between two.

A list has every entry of the document, in the order of print. Every object has all of its keys.

`readable` is false where the page is blank, or cannot be made out; `issues` then says why in a few words. Otherwise it
is true and `issues` is empty.
"""
REQUEST = "Read the document above for what this JSON Schema describes."
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,)}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A field with one value. ``node``: its schema; ``nullable``: a document may lack it."""

    node: Mapping[str, Any]
    nullable: bool


@dataclass(frozen=True, slots=True)
class Group:
    """An object: its fields by name, and its description."""

    fields: Mapping[str, Form]
    about: Any


@dataclass(frozen=True, slots=True)
class Listing:
    """A list: what each entry is, and its description."""

    entry: Form
    about: Any


Form = Leaf | Group | Listing


class Taken(NamedTuple):
    """What an answer holds. ``missing``: paths of fields that a document must have and the answer says it lacks.

    ``issues``: the path and what was put right there, once for each correction.
    """

    data: dict[str, Any]
    citations: list[dict[str, Any]]
    missing: list[str]
    issues: list[tuple[str, str]]


def form_of(schema: dict[str, Any]) -> Group:
    """The fields that a schema asks for. A union counts as its first branch that is not null.

    Raises:
        DialectError: it refers to itself or out of itself, or nests too deeply.
    """
    form = _form(inlined(schema, DEEPEST), True)
    return form if isinstance(form, Group) else Group({}, None)


def _form(node: Any, required: bool) -> Form:
    plain = collapsed(node)
    about = plain.get("description")
    if isinstance(plain.get("properties"), dict):
        needed = plain.get("required")
        needed = needed if isinstance(needed, list) else []
        return Group({name: _form(below, name in needed) for name, below in plain["properties"].items()}, about)
    if isinstance(plain.get("items"), dict):
        return Listing(_form(plain["items"], True), about)
    return Leaf(plain, not required or _may_be_null(node))


def _may_be_null(node: Any) -> bool:
    if not isinstance(node, dict):
        return False
    kinds, choices = node.get("type"), node.get("enum")
    if (
        kinds == "null"
        or (isinstance(kinds, list) and "null" in kinds)
        or (isinstance(choices, list) and None in choices)
    ):
        return True
    branches = [branch for word in ("anyOf", "oneOf") for branch in node.get(word) or ()]
    return any(_may_be_null(branch) for branch in branches)


def wanted(form: Group) -> dict[str, Any]:
    """The schema of an answer."""
    return _object(
        {
            "readable": {"type": "boolean", "description": "whether the document can be read at all"},
            "issues": {"type": "array", "items": {"type": "string"}, "description": "why it cannot be read"},
            "fields": _told(form),
        }
    )


def _object(fields: Mapping[str, Any], about: Any = None) -> dict[str, Any]:
    described = {"description": about} if about else {}
    closed = {"properties": dict(fields), "required": list(fields), "additionalProperties": False}
    return {"type": "object", **described, **closed}


def _told(form: Form) -> dict[str, Any]:
    if isinstance(form, Group):
        return _object({name: _told(below) for name, below in form.fields.items()}, form.about)
    if isinstance(form, Listing):
        return {"type": "array", **({"description": form.about} if form.about else {}), "items": _told(form.entry)}
    value = {key: item for key, item in form.node.items() if key != "description"}
    kinds = value.get("type")
    if kinds is not None:
        value["type"] = [*dict.fromkeys([*(kinds if isinstance(kinds, list) else [kinds]), "null"])]
    if isinstance(value.get("enum"), list) and None not in value["enum"]:
        value["enum"] = [*value["enum"], None]
    parts = {
        "value": value,
        "page": {"type": ["integer", "null"]},
        "bbox": {"type": ["array", "null"], "items": {"type": "number"}, "minItems": 4, "maxItems": 4},
        "confidence": {"type": "number"},
    }
    return _object(parts, form.node.get("description"))


def faults(form: Group, answer: Any) -> list[str]:
    """What breaks the form of an answer, in words, at most `NAMED_FAULTS`."""
    if not isinstance(answer, dict):
        return ["it is no object"]
    found = []
    if not isinstance(answer.get("readable"), bool):
        found.append("$.readable must be true or false")
    issues = answer.get("issues")
    if not isinstance(issues, list) or not all(isinstance(issue, str) for issue in issues):
        found.append("$.issues must be a list of texts")
    for fault in _faults(form, answer.get("fields"), "$.fields"):
        if len(found) >= NAMED_FAULTS:
            break
        found.append(fault)
    return found


def _faults(form: Form, given: Any, path: str) -> Iterator[str]:
    if isinstance(form, Listing):
        if not isinstance(given, list):
            yield f"{path} must be a list"
            return
        for number, item in enumerate(given):
            yield from _faults(form.entry, item, f"{path}[{number}]")
    elif not isinstance(given, dict):
        yield f"{path} must be an object"
    elif isinstance(form, Group):
        for name, below in form.fields.items():
            if name not in given:
                yield f"{path}.{name} is missing"
            else:
                yield from _faults(below, given[name], f"{path}.{name}")
    else:
        yield from _leaf_faults(form, given, path)


def _leaf_faults(leaf: Leaf, given: dict[str, Any], path: str) -> Iterator[str]:
    if absent := [key for key in KEYS if key not in given]:
        yield f"{path} lacks {', '.join(absent)}"
        return
    if given["value"] is not None and not _is_of_kind(given["value"], leaf.node.get("type")):
        yield f"{path}.value must be {leaf.node['type']} or null"
    page, box = given["page"], given["bbox"]
    if page is not None and not _is_whole(page):
        yield f"{path}.page must be a whole number or null"
    if box is not None and not (isinstance(box, list) and len(box) == 4 and all(map(_is_number, box))):
        yield f"{path}.bbox must be four numbers or null"
    if not _is_number(given["confidence"]):
        yield f"{path}.confidence must be a number"


def _is_of_kind(value: Any, kinds: Any) -> bool:
    listed = kinds if isinstance(kinds, list) else [kinds]
    wanted = [kind for kind in listed if kind in _KINDS]
    if not wanted:
        return True
    if isinstance(value, bool):
        return "boolean" in wanted
    return any(isinstance(value, _KINDS[kind]) for kind in wanted) or ("integer" in wanted and _is_whole(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def taken(form: Group, fields: Any, pages: int | None) -> Taken:
    """The values of an answer that keeps to the form, and where they stand. ``pages``: None if nobody knows."""
    walk = _Walk(pages)
    data = walk.value(form, fields, "", "$")
    return Taken(data, walk.citations, walk.missing, walk.issues)


_LACKING = object()


@dataclass(frozen=True, slots=True)
class _Walk:
    pages: int | None
    citations: list[dict[str, Any]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    issues: list[tuple[str, str]] = field(default_factory=list)

    def value(self, form: Form, given: Any, path: str, shown: str) -> Any:
        """The bare value at a path, as citations and as messages have it; `_LACKING` for a needed one that is null."""
        if isinstance(form, Listing):
            found = [
                self.value(form.entry, item, f"{path}[{number}]", f"{shown}[{number}]")
                for number, item in enumerate(given)
            ]
            return [None if item is _LACKING else item for item in found]
        if isinstance(form, Group):
            values = {
                name: self.value(below, given[name], f"{path}.{name}" if path else name, f"{shown}.{name}")
                for name, below in form.fields.items()
            }
            return {name: item for name, item in values.items() if item is not _LACKING}
        return self.leaf(form, given, path, shown)

    def leaf(self, leaf: Leaf, given: dict[str, Any], path: str, shown: str) -> Any:
        if given["value"] is None:
            if not leaf.nullable:
                self.missing.append(shown)
                return _LACKING
            self.citations.append({"path": path, "confidence": given["confidence"], "page": None, "box": None})
            return None
        confidence = min(max(given["confidence"], 0), 1)
        if confidence != given["confidence"]:
            self.issues.append((shown, "its confidence is not between 0 and 1"))
        page, box = given["page"], given["bbox"]
        if page is not None and not (_is_whole(page) and page >= 0 and (self.pages is None or page < self.pages)):
            self.issues.append((shown, "the document has no such page"))
            page = None
        if box is not None and page is None:
            self.issues.append((shown, "its box is on no page"))
            box = None
        if box is not None:
            left, top, right, bottom = box = [min(max(side, 0), 1) for side in box]
            if not (left < right and top < bottom):
                self.issues.append((shown, "its box has no area"))
                box = None
        number = None if page is None else int(page) + 1
        self.citations.append({"path": path, "confidence": confidence, "page": number, "box": box})
        return given["value"]


@dataclass(frozen=True, slots=True)
class EvidenceReader:
    """Reads completions; see chat.Reader. ``pages`` of the document, None if nobody knows.

    ``free``: the vendor does not keep models to JSON, so a fence round the object is no fault of the answer. An answer
    that says the document lacks what it must have is a poor one: it is asked for again, and taken in the end.
    """

    form: Group
    pages: int | None
    free: bool = False

    def __call__(self, found: Completion, vendor: VendorRules, limit: int | None) -> Read:
        refuse_final(found, vendor, limit)
        if found.content is None or found.end == "failed":
            return Read(None, "the reply holds no answer")
        try:
            answer = read_json(found.content.strip().encode("utf-8", "surrogatepass"))
        except ValueError:
            answer = parse_object(found.content) if self.free else None
            if answer is None:
                return Read(None, "it is not one JSON object alone")
        wrong = faults(self.form, answer) if is_sound(answer) else ["it is nested too deeply, or holds endless numbers"]
        if wrong:
            return Read(None, "; ".join(wrong))
        if not answer["readable"]:
            why = "; ".join(answer["issues"]) or "no reason given"
            text = f"{vendor.name}: the model says that the document cannot be read: {why}"
            raise VendorError(text[:ERROR_LENGTH], 200, recordable(found.body, vendor.secrets))
        data, citations, missing, issues = taken(self.form, answer["fields"], self.pages)
        if not data:
            return Read(None, "it has none of the fields that a document must have")
        notes = {"issues": [f"{path}: {what}" for path, what in issues], "missing": missing}
        lacking = (
            f"the document must have {', '.join(missing[:NAMED_FAULTS])}, so null is wrong there" if missing else ""
        )
        return Read(data, lacking, citations=citations, notes=notes, pages=self.pages)
