"""Rules of a reference and citations of an output, read and checked (METRIC_SPEC.md, "Rules", "Citations")."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .boxes import Box
from .errors import Ungradable
from .normalizers import NAMES

LAYERS = (None, "word", "structural", "checkbox", "checkbox_label", "checkbox_with_label")
MOST_FAULTS = 20


class Place(NamedTuple):
    """Where a value stands in the document: a page from 1, perhaps a box, and whether the box is an envelope."""

    page: int
    box: Box | None
    coarse: bool = False


class Rule(NamedTuple):
    """What the reference says about one path beside its value: other readings, where it stands, looser comparisons."""

    readings: tuple[Any, ...]
    normalizers: tuple[str, ...]
    places: tuple[Place, ...]


def read_rules(given: Any) -> dict[str, Rule]:
    """The rules by path.

    Args:
        given: an object of rule bodies by path, a list of bodies with ``field_path``, or None.

    Raises:
        Ungradable: something in it is no rule; all faults are named.
    """
    faults: list[str] = []
    rules = {path: _rule(path, body, faults) for path, body in _bodies(given, faults)}
    if faults:
        more = f"; and {len(faults) - MOST_FAULTS} more" if len(faults) > MOST_FAULTS else ""
        raise Ungradable(f"field rules: {'; '.join(faults[:MOST_FAULTS])}{more}")
    return rules


def read_citations(given: Any) -> dict[str, tuple[Place, ...]]:
    """The citations by path of the output. What is no citation counts as none: it is the output's own claim.

    Raises:
        TypeError: they are no list.
    """
    if given is None:
        return {}
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"citations must be a list, not {type(given).__name__}")
    found: dict[str, list[Place]] = {}
    for entry in given:
        if isinstance(entry, dict) and isinstance(path := entry.get("field_path"), str):
            page = _page(entry.get("page"))
            if page is not None:
                found.setdefault(path, []).append(Place(page, read_box(entry.get("bbox"))))
    return {path: tuple(places) for path, places in found.items()}


def read_box(given: Any) -> Box | None:
    """A box of ``[x, y, width, height]``, more numbers left out; None if it has no area or is none."""
    sides = _numbers(given)
    if sides is None or len(sides) < 4:
        return None
    x, y, wide, high = sides[:4]
    if not all(map(math.isfinite, (x, y, wide, high))) or wide <= 0 or high <= 0:
        return None
    return Box(x, y, wide, high)


def _numbers(given: Any) -> list[float] | None:
    """A list of numbers, also of such that are written as text; None if it is none."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        return None
    try:
        return [float(side) for side in given]
    except (TypeError, ValueError, OverflowError):
        return None


def _bodies(given: Any, faults: list[str]) -> list[tuple[str, Any]]:
    if given is None:
        return []
    if isinstance(given, Mapping):
        return list(given.items())
    if not isinstance(given, Sequence) or isinstance(given, str):
        faults.append(f"they must be an object by path or a list, not {type(given).__name__}")
        return []
    listed = []
    for number, body in enumerate(given):
        path = body.get("field_path") if isinstance(body, dict) else None
        if isinstance(path, str):
            listed.append((path, body))
        else:
            faults.append(f"entry {number} has no field_path")
    return listed


def _rule(path: str, body: Any, faults: list[str]) -> Rule:
    if not isinstance(body, dict):
        faults.append(f"{path!r} is no object")
        return Rule((), (), ())
    if body.get("type", "extract_field") != "extract_field":
        faults.append(f"{path!r} has the type {body['type']!r}, not extract_field")
    normalizers = body.get("normalizers")
    normalizers = [] if normalizers is None else normalizers
    if not isinstance(normalizers, list):
        faults.append(f"{path!r}: normalizers must be a list")
        normalizers = []
    faults.extend(
        f"{path!r}: unknown normalizer {name!r}; known: {', '.join(sorted(NAMES))}"
        for name in normalizers
        if not isinstance(name, str) or name not in NAMES
    )
    readings, places = [], []
    for entry in _evidence(path, body, faults):
        if entry.get("value") is not None:
            readings.append(entry["value"])
        if (layer := entry.get("layer")) is not None and layer not in LAYERS:
            faults.append(f"{path!r}: unknown layer {layer!r}")
        if (box := entry.get("bbox")) is not None and _numbers(box) is None:
            faults.append(f"{path!r}: bbox {box!r} is no list of numbers")
        page = _page(entry.get("page"))
        if page is not None:
            places.append(Place(page, read_box(entry.get("bbox")), bool(entry.get("coarse"))))
        elif entry.get("page") is not None:
            faults.append(f"{path!r}: page {entry['page']!r} is no whole number from 1")
    return Rule(tuple(readings), tuple(normalizers), tuple(places))


def _evidence(path: str, body: dict[str, Any], faults: list[str]) -> list[dict[str, Any]]:
    """The evidence entries; the older pair ``bboxes`` and ``expected_value`` stands for one entry per box."""
    if (given := body.get("evidence")) is None:
        boxes = body.get("bboxes") or []
        given = boxes if isinstance(boxes, list) else None
        if given and all(isinstance(box, dict) for box in given):
            given = [box | {"value": body.get("expected_value")} for box in given]
    if not isinstance(given, list) or not all(isinstance(entry, dict) for entry in given):
        faults.append(f"{path!r}: evidence must be a list of objects")
        return []
    return given


def _page(given: Any) -> int | None:
    """A page from 1, also one that is written as text or as a float; None if it is none."""
    if not isinstance(given, (int, float, str)):
        return None
    try:
        page = int(given)
    except (ValueError, OverflowError):
        return None
    return page if page >= 1 and (isinstance(given, str) or page == given) else None
