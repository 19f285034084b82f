"""The truth about one document: its fields in printed order, each with the places where it stands.

In: parsed JSON, ``{"fields": [{"path", "value", "altValues", "compare", "regions"}], "lineItemCount"}``. Out: a Gold of
frozen values, or one error that says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..geometry import Box
from .kinds import KINDS

ITEMS = "lineItems"
CORNERS = ("x0", "y0", "x1", "y1")
_FAR = 1e9  # pages are 1 wide


class Region(NamedTuple):
    """A box on a page: pages count from 0, corners are shares of the page."""

    page: int
    box: Box


@dataclass(frozen=True)
class GoldField:
    """One field. ``value``: as printed, None where the document has no such value; ``others``: also right."""

    path: str
    value: str | None
    compare: str
    regions: tuple[Region, ...] = ()
    others: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As golds are stored."""
        others = {"altValues": list(self.others)} if self.others else {}
        regions = [{"page": page, "bbox": dict(zip(CORNERS, box, strict=True))} for page, box in self.regions]
        return {"path": self.path, "value": self.value, **others, "compare": self.compare, "regions": regions}


@dataclass(frozen=True)
class Gold:
    """All fields of one document, and how many line items it has."""

    fields: tuple[GoldField, ...]
    line_items: int

    def as_json(self) -> dict[str, Any]:
        """As golds are stored."""
        return {"fields": [field.as_json() for field in self.fields], "lineItemCount": self.line_items}

    def values(self) -> dict[str, Any]:
        """The bare values, in the shape of the data."""
        items: list[dict[str, Any]] = [{} for _ in range(self.line_items)]
        values: dict[str, Any] = {ITEMS: items}
        for field in self.fields:
            head, _, rest = field.path.partition(".")
            number, _, name = rest.partition(".")
            if head == ITEMS:
                items[int(number)][name] = field.value
            else:
                values[head] = field.value
        return values


def read_gold(value: Any) -> Gold:
    """A stored gold as values.

    Raises:
        ValueError: it is none; names the first things that are wrong.
    """
    faults = list(_faults(value))
    if faults:
        raise ValueError("the gold is none of field_accuracy: " + "; ".join(faults[:5]))
    return Gold(tuple(map(_field, value["fields"])), value["lineItemCount"])


def box_of(value: Any) -> Box | None:
    """``{"x0", "y0", "x1", "y1"}`` as a box; None unless all four are numbers within reason."""
    if not isinstance(value, dict):
        return None
    corners = [float(value[name]) for name in CORNERS if _is_near(value.get(name))]
    return (corners[0], corners[1], corners[2], corners[3]) if len(corners) == len(CORNERS) else None


def _is_near(value: Any) -> bool:
    """Whether it is a number whose products are finite; NaN is not."""
    return type(value) in (int, float) and -_FAR < value < _FAR


def _field(field: dict[str, Any]) -> GoldField:
    regions = tuple(Region(region["page"], _known_box(region["bbox"])) for region in field["regions"])
    return GoldField(field["path"], field["value"], field["compare"], regions, tuple(field.get("altValues", ())))


def _known_box(value: Any) -> Box:
    box = box_of(value)
    assert box is not None
    return box


def _faults(value: Any) -> Iterator[str]:
    if not isinstance(value, dict) or not isinstance(value.get("fields"), list):
        yield "it must be an object with the list fields"
        return
    count = value.get("lineItemCount")
    if type(count) is not int or count < 0:
        yield f"lineItemCount is {count!r}, not a count"
    for number, field in enumerate(value["fields"]):
        if not isinstance(field, dict):
            yield f"fields[{number}] is no object"
            continue
        yield from (f"fields[{number}]: {fault}" for fault in _field_faults(field))


def _field_faults(field: dict[str, Any]) -> Iterator[str]:
    if not isinstance(field.get("path"), str):
        yield f"path is {field.get('path')!r}, not a text"
    if not isinstance(field.get("value", 0), (str, type(None))):
        yield f"value is {field.get('value', 'missing')!r}, neither text nor null"
    if field.get("compare") not in KINDS:
        yield f"compare is {field.get('compare')!r}; known: {', '.join(KINDS)}"
    others = field.get("altValues", [])
    if not isinstance(others, list) or not all(isinstance(other, str) for other in others):
        yield "altValues is no list of texts"
    regions = field.get("regions")
    if not isinstance(regions, list) or not all(map(_is_region, regions)):
        yield "regions is no list of {page, bbox: {x0, y0, x1, y1}}"


def _is_region(value: Any) -> bool:
    return isinstance(value, dict) and type(value.get("page")) is int and box_of(value.get("bbox")) is not None
