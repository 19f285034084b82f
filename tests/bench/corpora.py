"""Documents of known shapes with predictions, for measuring speed: flat tables, nested rows, near-twins, and a mix.

In: a shape and a number of rows, or a folder with a corpus. Out: cases, files of JSON lines (doc_id, pred, gold,
schema) that side.py reads. The same seed makes the same bytes.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]

GOODS = (
    "anchor bolt bracket bushing cable clamp collar coupling fitting flange gasket hinge nozzle rivet seal spring"
).split()
FIRMS = (
    "Alder Works", "Birch & Co", "Cedar Metals", "Dove Supply", "Elm N.V.", "Fir Tools", "Gr\u00fcn GmbH",
    "Holm P.L.C.",
)  # fmt: skip
LOOKALIKES = {"0": "O", "1": "l", "5": "S", "8": "B", "a": "o", "e": "c", "m": "rn", "n": "h"}
TABLE = {
    "line_no": "integer", "sku": "string", "description": "string", "vendor": "string", "ordered": "string",
    "shipped": "string", "quantity": "integer", "unit": "string", "unit_price": "number", "tax_rate": "number",
    "amount": "number", "taxable": "boolean",
}  # fmt: skip
GROUP = {"group": "integer", "title": "string", "opened": "string", "total": "number", "open": "boolean"}
ENTRY = {"code": "string", "note": "string", "quantity": "integer", "amount": "number"}
HEAD = {
    "number": "string", "issued": "string", "buyer": "string", "due": "number", "currency": "string", "paid": "boolean",
}  # fmt: skip


def _object(fields: dict[str, str], **more: Any) -> dict[str, Any]:
    optional: dict[str, Any] = {name: {"anyOf": [{"type": kind}, {"type": "null"}]} for name, kind in fields.items()}
    return {"type": "object", "properties": optional | more}


def schema_of(shape: str) -> dict[str, Any]:
    inner = {
        "entries": {"type": "array", "items": _object(ENTRY)},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    row = _object(GROUP, **inner) if shape == "nested" else _object(TABLE)
    return _object(HEAD, rows={"type": "array", "items": row})


def _day(dice: random.Random) -> str:
    return str(dt.date(2020, 1, 1) + dt.timedelta(dice.randrange(2000)))


def _flat(dice: random.Random, number: int) -> Row:
    quantity, price = dice.randrange(1, 500), round(dice.uniform(0.5, 900), 2)
    row = {
        "line_no": number + 1,
        "sku": f"{dice.choice('ABCDEFGH')}{dice.choice('XYZ')}-{dice.randrange(10_000):04}",
        "description": f"{dice.choice(GOODS)} {dice.choice(GOODS)} {dice.randrange(4, 64)} mm",
        "vendor": dice.choice(FIRMS),
        "ordered": _day(dice),
        "shipped": _day(dice),
        "quantity": quantity,
        "unit": dice.choice(["ea", "box", "kg"]),
        "unit_price": price,
        "tax_rate": dice.choice([0.0, 0.05, 0.0725, 0.2]),
        "amount": round(quantity * price, 2),
        "taxable": dice.random() < 0.8,
    }
    return row | {name: None for name in ("vendor", "shipped", "tax_rate") if dice.random() < 0.06}


def _twin(dice: random.Random, number: int) -> Row:
    return {
        "line_no": number % 7,
        "sku": f"A-{dice.randrange(3)}",
        "description": dice.choice(GOODS[:4]),
        "vendor": dice.choice(FIRMS[:3]),
        "ordered": f"2024-01-0{dice.randrange(1, 5)}",
        "shipped": None,
        "quantity": dice.randrange(4),
        "unit": "ea",
        "unit_price": dice.choice([1.5, 2.5]),
        "tax_rate": 0.05,
        "amount": dice.choice([0, 1.5, 3.0]),
        "taxable": True,
    }


def _nested(dice: random.Random, number: int) -> Row:
    def entry() -> Row:
        return {
            "code": f"C{dice.randrange(400):03}",
            "note": f"{dice.choice(GOODS)} {dice.choice(GOODS)}",
            "quantity": dice.randrange(1, 60),
            "amount": round(dice.uniform(1, 5000), 2),
        }

    return {
        "group": number + 1,
        "title": f"{dice.choice(FIRMS)} {dice.choice(GOODS)} lot {dice.randrange(900)}",
        "opened": _day(dice),
        "total": round(dice.uniform(10, 90_000), 2),
        "open": dice.random() < 0.5,
        "entries": [entry() for _ in range(dice.randrange(2, 7))],
        "tags": dice.sample(GOODS, dice.randrange(5)),
    }


SHAPES: dict[str, Callable[[random.Random, int], Row]] = {"flat": _flat, "nested": _nested, "twins": _twin}


def gold_of(shape: str, rows: int, dice: random.Random) -> Row:
    head = {
        "number": f"INV-{dice.randrange(10**6):06}",
        "issued": _day(dice),
        "buyer": dice.choice(FIRMS),
        "due": round(dice.uniform(100, 10**6), 2),
        "currency": "USD",
        "paid": dice.random() < 0.5,
    }
    return head | {"rows": [SHAPES[shape](dice, number) for number in range(rows)]}


class Reader:
    """Reads a gold as a middling system would: values respelled, misread or lost, rows lost, doubled and shuffled."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def read(self, value: Any) -> Any:
        dice = self.dice
        if isinstance(value, dict):
            found = {name: self.read(member) for name, member in value.items()}
            return found | ({"remark": "see page 3"} if dice.random() < 0.03 else {})
        if isinstance(value, list):
            rows = []
            for member in value:
                chance = dice.random()
                if chance >= 0.05:
                    rows.append(self.read(member))
                if chance >= 0.99:
                    rows.append(rows[-1])
                if 0.05 <= chance < 0.07:
                    rows.append(self.read(dice.choice(value)))
            dice.shuffle(rows)
            return rows
        if value is None:
            return "N/A" if dice.random() < 0.1 else None
        chance = dice.random()
        if chance < 0.03:
            return dice.choice([None, "", "  "])
        return self._misread(value) if chance < 0.09 else self._respelled(value) if chance < 0.49 else value

    def _misread(self, value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)):
            return self.dice.choice([value * 10, value + 1, -value, round(value * 1.1 + 3, 2)])
        places = [place for place, sign in enumerate(value) if sign in LOOKALIKES]
        if not places:
            return value + " II"
        place = self.dice.choice(places)
        return value[:place] + LOOKALIKES[value[place]] + value[place + 1 :]

    def _respelled(self, value: Any) -> Any:
        dice = self.dice
        if isinstance(value, bool):
            return dice.choice([str(value), str(value).lower()])
        if isinstance(value, (int, float)):
            return dice.choice([str(value), f"{value:,}", f"${value:,}", f" {value} ", float(value)])
        try:
            day = dt.date.fromisoformat(value)
        except ValueError:
            return dice.choice(
                [value.upper(), value.lower(), f" {value} ", f"{value}.", value.replace(" ", "  ", 1), f"{value} [1]"]
            )
        forms = ("%m/%d/%Y", "%B %d, %Y", "%b %d, %Y", "%d-%b-%Y", "%d %B %Y", "%Y/%m/%d", "%Y-%m-%dT00:00:00")
        return day.strftime(dice.choice(forms))


def document(name: str, shape: str, rows: int, seed: int) -> Row:
    gold = gold_of(shape, rows, random.Random(f"{seed}/{name}/gold"))
    pred = Reader(random.Random(f"{seed}/{name}/pred")).read(gold)
    return {"doc_id": name, "pred": pred, "gold": gold, "schema": schema_of(shape)}


def mixed(number: int, seed: int) -> tuple[str, int]:
    """Shape and rows of one document of the mix: of a hundred 2 are long, 6 nested, 21 middling and the rest small."""
    dice, place = random.Random(f"{seed}/size/{number}"), number % 100
    if place in (13, 63):
        return "flat", dice.randrange(800, 1501)
    if place % 16 == 5:
        return "nested", dice.randrange(20, 61)
    return "flat", dice.randrange(100, 401) if place % 9 in (2, 6) else dice.randrange(10, 41)


SMALL_ROWS = 40
VECTORS = Path(__file__).parent.parent / "data" / "extractbench_vectors.jsonl"
REPEATED = 20


def vectors() -> Iterator[Row]:
    """The vectors that both sides score without places, again and again: many tiny documents of every kind.

    Without those of ``eob/``: the peer's metric alone does not open their layouts, its verifier does.
    """
    for number in range(REPEATED):
        for line in VECTORS.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            scored = one["outcome"] == "scored" and not one["id"].startswith("eob/")
            if scored and not one.get("field_rules") and "output" in one:
                name = f"{one['id']} {number}"
                yield {"doc_id": name, "pred": one["output"], "gold": one["expected"], "schema": one["schema"]}


def generated(case: str, seed: int = 11) -> Iterator[Row]:
    """The documents of a case: ``mix``, ``small`` (those of the mix that are), ``vectors``, or a shape and rows."""
    if case == "vectors":
        yield from vectors()
        return
    if case not in ("mix", "small"):
        shape, _, rows = case.partition(" ")
        yield document(case, shape, int(rows), seed)
        return
    for number in range(100):
        shape, count = mixed(number, seed)
        if case == "mix" or (shape == "flat" and count <= SMALL_ROWS):
            yield document(f"mix {number:03}", shape, count, seed)


def read_corpus(folder: Path, predictions: Path | None, seed: int = 11) -> Iterator[Row]:
    """The documents of a corpus in folders (manifest.parquet), with predictions made of its golds if none are given."""
    import pyarrow.parquet as pq

    for row in pq.read_table(folder / "manifest.parquet").to_pylist():
        name, gold = row["doc_id"], json.loads((folder / row["gt_path"]).read_text(encoding="utf-8"))
        if predictions is None:
            pred = Reader(random.Random(f"{seed}/{name}/pred")).read(gold)
        else:
            pred = json.loads((predictions / f"{name}.json").read_text(encoding="utf-8"))
        yield {"doc_id": name, "pred": pred, "gold": gold, "schema": json.loads(row["schema"])}


def write_case(path: Path, documents: Iterator[Row]) -> None:
    with path.open("w", encoding="utf-8") as lines:
        for one in documents:
            lines.write(json.dumps(one, ensure_ascii=False) + "\n")
