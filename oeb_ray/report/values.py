"""Verdicts of documents as columns for a page, with the steps by which values became what is compared.

In: verdict rows, records. Out: plain JSON values; and counts over documents for the pages of fields and comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..jsontext import from_raw_json, visible
from ..scoring.field_matching.explain import trace
from ..scoring.field_matching.verdicts import KINDS, MATCHED, MISREAD, SKIPPED, UNFOUND
from .packed import Texts

SHOWN = 2_000  # characters of a value; more are counted
TRACED = 10_000  # characters of a value whose steps are shown
MOST_ROWS = 60_000  # of one Run at one document
MOST_BOXES = 5_000
OF_GOLD = frozenset(KINDS[kind] for kind in (MATCHED, MISREAD, UNFOUND))


def columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One Run's verdicts at one document: numbers into ``texts`` by column, and of each value that changed on its way
    to what is compared the ``steps``, as [name, text after it] pairs."""
    texts = Texts()
    listed = list(rows)
    shown = listed[:MOST_ROWS]
    steps: dict[int, list[list[str]]] = {}
    made: dict[str, list[int]] = {name: [] for name in ("path", "field", "verdict")}
    for row in shown:
        for name, column in made.items():
            column.append(texts.number(visible(row[name])))
    for side in ("gold", "pred"):
        raws, canons = [], []
        for row in shown:
            raw, canon = row[f"{side}_raw"], row[f"{side}_canon"]
            number = texts.number(None if raw is None else shortened(raw))
            raws.append(number)
            canons.append(texts.number(None if canon is None else shortened(canon)))
            if raw is not None and number not in steps and canon not in (raw, raw[1:-1]) and len(raw) <= TRACED:
                steps[number] = [[step.name, shortened(step.text)] for step in trace(from_raw_json(raw)).steps]
        made[f"{side}_raw"], made[f"{side}_canon"] = raws, canons
    return {"texts": texts.all, **made, "steps": steps, "left_out": len(listed) - len(shown)}


def shortened(text: str) -> str:
    """A value as it is shown: what cannot be seen as escapes, and the start of a long one with its length."""
    if len(text) <= SHOWN:
        return visible(text)
    return f"{visible(text[:SHOWN])}... ({len(text):,} characters)"


def field_counts(rows: Iterable[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Verdicts of each field, by kind."""
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["field"], Counter())[row["verdict"]] += 1
    return found


def right_and_wrong(by_run: Mapping[int, Iterable[Mapping[str, Any]]]) -> Counter[tuple[str, str]]:
    """Values of one document's gold that the same Runs read right: how many there are, by field and pattern.

    A pattern has a sign per Run that has scored the document, in ascending order: 1 right, 0 wrong.
    """
    seen: dict[tuple[str, str], dict[int, bool]] = {}
    for run, rows in by_run.items():
        for row in rows:
            if row["verdict"] in OF_GOLD:
                seen.setdefault((row["field"], row["address"]), {})[run] = row["verdict"] == KINDS[MATCHED]
    runs = sorted(by_run)
    return Counter(
        (field, "".join("1" if right.get(run) else "0" for run in runs)) for (field, _), right in seen.items()
    )


def boxes(citations: Any) -> list[list[Any]]:
    """Places that a record cites: [page from 1, left, top, right, bottom as shares of the page, path, text].

    Understood are ``box`` of four shares, ``bbox`` with left, top, width and height, and ``polygon`` of points, each
    beside a ``page``, at any depth; everything else a vendor may have said is left out.
    """
    found: list[list[Any]] = []
    stack: list[tuple[Any, str, Any, int]] = [(citations, "", None, 0)]
    while stack and len(found) < MOST_BOXES:
        value, path, page, depth = stack.pop()
        if depth > 12:
            continue
        if isinstance(value, list):
            stack.extend((member, path, page, depth + 1) for member in reversed(value))
        elif isinstance(value, dict):
            path = value["path"] if isinstance(value.get("path"), str) else path
            page = next((value[key] for key in ("page", "pageNumber", "page_number") if key in value), page)
            box = _box(value)
            if box is not None and isinstance(page, int) and page >= 1:
                text = value.get("text") or value.get("content") or value.get("referenceText")
                found.append([page, *box, visible(path)[:200], visible(text)[:200] if isinstance(text, str) else ""])
            stack.extend((member, path, page, depth + 1) for member in reversed(list(value.values())))
    return found


def _box(value: Mapping[str, Any]) -> list[float] | None:
    """A box in shares of the page; None if there is none, or it is in another unit."""
    sides: Any = value.get("box")
    if isinstance(sides, list) and len(sides) == 4:
        pass
    elif all(isinstance(value.get(key), (int, float)) for key in ("left", "top", "width", "height")):
        left, top = value["left"], value["top"]
        sides = [left, top, left + value["width"], top + value["height"]]
    elif isinstance(value.get("polygon"), list) and value["polygon"]:
        points = [one for one in value["polygon"] if isinstance(one, dict)]
        across, down = [one.get("x") for one in points], [one.get("y") for one in points]
        if not points or not all(isinstance(one, (int, float)) for one in (*across, *down)):
            return None
        sides = [min(across), min(down), max(across), max(down)]  # type: ignore[type-var]
    else:
        return None
    if not all(isinstance(side, (int, float)) and 0 <= side <= 1 for side in sides):
        return None
    return [round(float(side), 4) for side in sides]


def without_skipped(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Rows of values that count."""
    return [row for row in rows if row["verdict"] != KINDS[SKIPPED]]
