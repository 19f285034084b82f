"""Reads what vendors and models send back, and never takes one thing for another.

In: bytes or text from outside. Out: an object or nothing, an answer without its side keys, and values that may be
recorded: no secrets, no numbers that JSON lacks, bounded depth and length. Pure functions; nothing here calls anybody.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..jsontext import printable, read_json

MAX_TEXT = 64_000_000
"""Characters of an answer that are parsed; a longer text is no answer."""
MAX_DEPTH = 200
"""Levels of lists and objects in an answer or in a recorded reply."""
MAX_INTEGER_BITS = 14_000
"""Larger whole numbers (over some 4,200 digits) are a model in a loop; Python would refuse to write them."""
LARGEST_FIGURE = 1e15
"""Of a bill; a larger one is nonsense."""
ERROR_LENGTH = 600
"""Characters kept of a vendor's reason."""
BODY_LENGTH = 100_000
"""Characters kept of a reply that is no JSON."""
SIDECAR_SUFFIXES = ("_citations", "_meta", "_score")
"""What vendors append to a field's name for the evidence beside its value."""
REDACTED = "[redacted]"

_FENCE = "```"
_TAG = re.compile(r"[ \t]*(?:json)?\s*", re.IGNORECASE)
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_REASON_KEYS = (
    *("detail", "error", "errors", "title", "message", "msg", "reason"),
    *("error_message", "failureReason", "failureMessage"),
)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_object(text: str) -> dict[str, Any] | None:
    """The one object that the text states as its answer, or None; an empty object states nothing.

    Taken are: a text that is an object; an object with prose after it; an object in the only fence, untagged or tagged
    json, with prose around it. A byte order mark and a thinking block at the start are passed over. Where a second
    candidate might be meant (braces outside the object, a second fence) there is no answer: a wrong object is worse
    than none. NaN, Infinity and numbers beyond a double are refused, as are texts beyond the bounds above.
    """
    if len(text) > MAX_TEXT:
        return None
    text = text.removeprefix("\ufeff").strip()
    try:
        value = read_json(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = _amid_talk(text)
    return value if isinstance(value, dict) and value and is_sound(value) else None


def _amid_talk(text: str) -> Any:
    """The object in a text that is not JSON as a whole; None if there is none or more than one could be meant."""
    thinking = _THINKING.match(text)
    if thinking:
        text = text[thinking.end() :].lstrip()
    if text.startswith("{"):
        value, end = _decoded(text, 0)
        rest = text[end:].lstrip()
        return None if "{" in rest or "}" in rest or rest.startswith((",", "]", ":", '"')) else value
    before, fence, _ = text.partition(_FENCE)
    if not fence or "{" in before or "<think" in before.lower():
        return None
    tag = _TAG.match(text, len(before) + len(_FENCE))
    start = tag.end() if tag else len(text)
    if not text.startswith("{", start):
        return None
    value, end = _decoded(text, start)
    rest = text[end:].lstrip()
    after = rest.removeprefix(_FENCE)
    return None if after is rest or _FENCE in after or "{" in after or after.startswith("`") else value


def _decoded(text: str, start: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start


def is_sound(value: Any) -> bool:
    """Whether every number can be written as JSON and nothing is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, float):
                if not math.isfinite(item):
                    return False
            elif isinstance(item, int) and item.bit_length() > MAX_INTEGER_BITS:
                return False
        if not below:
            return True
        level = below
    return False


def answer_of(given: Any) -> dict[str, Any] | None:
    """The non-empty object that a vendor gives as JSON text or as an object; None for anything else."""
    if isinstance(given, str):
        return parse_object(given)
    return given if isinstance(given, dict) and given and is_sound(given) else None


def prediction_bytes(value: dict[str, Any]) -> bytes:
    """The object as it is stored: JSON in UTF-8, whole numbers with all their digits, floats as Python writes them.

    Raises:
        ValueError: a number is not finite.
    """
    return printable(json.dumps(value, ensure_ascii=False, allow_nan=False)).encode()


def merge_objects(given: list[Any]) -> dict[str, Any] | None:
    """One object of a list of partial ones: for each key the first value that is not null, [] or {}; None if empty.

    A list with a single object gives that object as it is.
    """
    objects = [item for item in given if isinstance(item, dict)]
    if len(objects) == 1:
        return objects[0] or None
    merged: dict[str, Any] = {}
    for item in objects:
        for key, value in item.items():
            if key not in merged or (_is_void(merged[key]) and not _is_void(value)):
                merged[key] = value
    return merged or None


def _is_void(value: Any) -> bool:
    return value is None or value == [] or value == {}


def strip_sidecars(value: Any, schema: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """The answer without the evidence beside its fields, and what was removed as {"path", "key", "value"}.

    A key is evidence if it is a property of the schema at that place plus one of `SIDECAR_SUFFIXES`, and is not itself
    a property there: a schema that asks for ``lot_meta`` gets it. Where the schema has no place for it, an object with
    ``value`` is taken for that value, and what else it holds for evidence. ``path`` is that of the field, as
    ``rows[0].name``.
    """
    removed: list[dict[str, Any]] = []
    return _stripped(value, [schema], schema, "", removed), removed


def _stripped(value: Any, schemas: list[Any], root: Any, path: str, removed: list[dict[str, Any]]) -> Any:
    if not isinstance(value, dict | list):
        return value
    nodes = _nodes(schemas, root)
    if isinstance(value, dict) and _is_wrapper(value, nodes):
        removed.extend({"path": path, "key": key, "value": item} for key, item in value.items() if key != "value")
        return _stripped(value["value"], schemas, root, path, removed)
    if isinstance(value, list):
        items = [node["items"] for node in nodes if "items" in node]
        return [_stripped(item, items, root, f"{path}[{n}]", removed) for n, item in enumerate(value)]
    properties: dict[str, list[Any]] = {}
    for node in nodes:
        for name, below in _mapping(node.get("properties")).items():
            properties.setdefault(name, []).append(below)
    others = [node["additionalProperties"] for node in nodes if "additionalProperties" in node]
    by_pattern = any("patternProperties" in node for node in nodes)
    kept = {}
    for key, item in value.items():
        base = _base_of(key)
        if base in properties and key not in properties and not by_pattern:
            removed.append({"path": _joined(path, base), "key": key, "value": item})
        else:
            kept[key] = _stripped(item, properties.get(key, others), root, _joined(path, key), removed)
    return kept


def _is_wrapper(value: dict[str, Any], nodes: list[dict[str, Any]]) -> bool:
    """Whether an object stands round the value that the schema wants here, such as {"value": 88.5, "page": 1}."""
    if "value" not in value or any("additionalProperties" in n or "patternProperties" in n for n in nodes):
        return False
    properties = {name for node in nodes for name in _mapping(node.get("properties"))}
    if properties:
        return isinstance(value["value"], dict) and properties.isdisjoint(value)
    kinds = {kind for node in nodes for kind in _listed(node.get("type"))}
    return bool(kinds) and "object" not in kinds


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _base_of(key: str) -> str | None:
    return next((key.removesuffix(suffix) for suffix in SIDECAR_SUFFIXES if key.endswith(suffix)), None)


def _joined(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _nodes(schemas: list[Any], root: Any) -> list[dict[str, Any]]:
    """The schema nodes that speak about one place: the given ones, their unions' branches, their references' targets.

    Each node counts once, so that circles end.
    """
    found: dict[int, dict[str, Any]] = {}
    waiting = list(schemas)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict) or id(node) in found:
            continue
        found[id(node)] = node
        for word in ("anyOf", "oneOf", "allOf"):
            branches = node.get(word)
            waiting.extend(branches if isinstance(branches, list) else [])
        if "$ref" in node:
            waiting.append(pointed_at(root, node["$ref"]))
    return list(found.values())


def pointed_at(root: Any, pointer: Any) -> Any:
    """What a local JSON pointer such as ``#/$defs/row`` points at; None if it is not local or leads nowhere."""
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        return None
    node = root
    for part in pointer[2:].split("/") if len(pointer) > 1 else []:
        name = _percent_decoded(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isascii() and name.isdigit() and len(name) < 7 and int(name) < len(node):
            node = node[int(name)]
        else:
            return None
    return node


def value_at(body: Any, path: str) -> Any:
    """What stands in nested objects at a path such as ``file.id``; None if nothing does."""
    for key in path.split("."):
        body = body.get(key) if isinstance(body, dict) else None
    return body


def number_at(body: Any, path: str) -> float | None:
    """The number at a path such as ``usage.credits``, from 0 to `LARGEST_FIGURE`; None for anything else."""
    found = value_at(body, path)
    known = isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found <= LARGEST_FIGURE
    return found if known else None


def count_at(body: Any, path: str) -> int | None:
    """As `number_at`, for whole numbers."""
    found = number_at(body, path)
    return found if isinstance(found, int) else None


def _percent_decoded(text: str) -> str:
    return re.sub(
        r"(?:%[0-9A-Fa-f]{2})+", lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"), text
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret replaced, also where a vendor prints it back inside JSON."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, REDACTED).replace(json.dumps(secret)[1:-1], REDACTED)
            text = text.replace(secret.replace("/", "\\/"), REDACTED)
    return text


def recordable(value: Any, secrets: Iterable[str] = ()) -> Any:
    """A reply as a record may hold it: secrets replaced, NaN and Infinity as texts, cut below `MAX_DEPTH` levels."""
    return _recordable(value, tuple(secrets), MAX_DEPTH)


def _recordable(value: Any, secrets: tuple[str, ...], levels: int) -> Any:
    if isinstance(value, str):
        return redacted(value, secrets)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        return f"a number of {value.bit_length()} bits"
    if isinstance(value, dict | list) and not levels:
        return "nested too deeply to record"
    if isinstance(value, dict):
        return {redacted(key, secrets): _recordable(item, secrets, levels - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_recordable(item, secrets, levels - 1) for item in value]
    return value


def body_of(data: bytes) -> Any:
    """A reply's JSON value; its text, cut at `BODY_LENGTH`, if it is no JSON."""
    try:
        return read_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValueError:
        return data[: 4 * BODY_LENGTH].decode("utf-8", "replace")[:BODY_LENGTH]


def reason(body: Any) -> str:
    """The vendor's words in an error body, cut at `ERROR_LENGTH`; empty if it gives none.

    Known shapes: ``{"detail": text or list of validation items}``, ``{"error": text or object}``,
    ``{"message": text or object}``, with a ``code``, and the upstream's name and words in ``metadata`` below.
    """
    parts = list(dict.fromkeys(_words(body, 4)))
    return ": ".join(parts)[:ERROR_LENGTH]


def _words(body: Any, levels: int) -> Iterator[str]:
    if isinstance(body, str):
        if body.strip():
            yield " ".join(body[: 4 * ERROR_LENGTH].split())
    elif isinstance(body, list) and levels:
        for item in body[:10]:
            yield from _words(item, levels - 1)
    elif isinstance(body, dict) and levels:
        place = body.get("loc")
        if isinstance(place, list) and place:
            yield ".".join(str(part) for part in place[:20])
        for key in _REASON_KEYS:
            yield from _words(body.get(key), levels - 1)
        metadata = _mapping(body.get("metadata"))
        for key in ("provider_name", "raw"):
            yield from _words(metadata.get(key), levels - 1)
        code = body.get("code")
        if isinstance(code, int | str) and not isinstance(code, bool) and str(code).strip():
            yield f"code {str(code)[:60]}"
