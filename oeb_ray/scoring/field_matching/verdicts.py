"""One verdict per address, in reading order (METRIC_SPEC.md, "Verdicts").

In: two aligned trees. Out: columns, one entry per address: where it is, both values, both keys, and what happened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .align import Alignment
from .schema import Spot
from .tree import Array, Element, Steps

KINDS = ("matched", "misread", "unfound", "fabricated", "invented_item", "invented_field", "skipped_open_map")
MATCHED, MISREAD, UNFOUND, FABRICATED, INVENTED_ITEM, INVENTED_FIELD, SKIPPED = range(len(KINDS))


class Verdict(NamedTuple):
    """What happened at one address.

    ``address``: steps ``("k", name)`` and ``("i", number)``, or ``("i", "p7")`` for a predicted element without a
    partner. The raws are the scalars as they came, the canons what they were compared as; None on the missing side.
    """

    address: Steps
    gold_raw: Any
    pred_raw: Any
    gold_canon: str | None
    pred_canon: str | None
    verdict: str


class Columns:
    """Verdicts as parallel lists.

    ``at``: address of the element; ``spot``: the Spot of the leaf within it; ``gold``, ``pred``: key numbers, 0 on
    the missing side; ``gold_raw``, ``pred_raw``: the values; ``kind``: a position in KINDS.
    """

    def __init__(self) -> None:
        self.at: list[Steps] = []
        self.spot: list[Spot] = []
        self.gold: list[int] = []
        self.pred: list[int] = []
        self.gold_raw: list[Any] = []
        self.pred_raw: list[Any] = []
        self.kind: list[int] = []

    def __len__(self) -> int:
        return len(self.kind)

    def add(self, at: Steps, spot: Spot, gold: int, gold_raw: Any, pred: int, pred_raw: Any, kind: int) -> None:
        self.at.append(at)
        self.spot.append(spot)
        self.gold.append(gold)
        self.gold_raw.append(gold_raw)
        self.pred.append(pred)
        self.pred_raw.append(pred_raw)
        self.kind.append(kind)

    def address(self, place: int) -> Steps:
        return self.at[place] + tuple(("k", name) for name in self.spot[place].names)


def reading_key(address: Steps) -> tuple[tuple[int, int, str], ...]:
    """Sort key of an address: a prefix first, indices before keys, numbers before labels."""
    return tuple(
        (1, 0, name) if kind == "k" else (0, name, "") if isinstance(name, int) else (0, 1 << 62, name)
        for kind, name in address
    )


class Reader:
    """Walks two aligned trees in reading order."""

    def __init__(self, alignment: Alignment) -> None:
        self.alignment = alignment
        self.spots = alignment.trie.spots
        self.columns = Columns()
        self._orders: dict[tuple[tuple[int, ...], ...], list[tuple[Spot, bool]]] = {}

    def pair(self, left: Element | None, right: Element | None, at: Steps, invented: bool = False) -> None:
        """Both elements at one address, or the only one; ``invented``: inside an element without a partner."""
        pred_named, pred_arrays = (left.named, left.arrays) if left else ({}, {})
        gold_named, gold_arrays = (right.named, right.arrays) if right else ({}, {})
        for spot, is_array in self._order(pred_named, pred_arrays, gold_named, gold_arrays):
            number = spot.id
            if is_array:
                self._arrays(pred_arrays.get(number), gold_arrays.get(number), spot, at, invented)
                continue
            gold, pred = gold_named.get(number, 0), pred_named.get(number, 0)
            if gold and pred:
                kind = MATCHED if gold == pred else MISREAD
            elif gold:
                kind = UNFOUND
            else:
                kind = INVENTED_ITEM if invented else FABRICATED if spot.slot else INVENTED_FIELD
            self.columns.add(
                at,
                spot,
                gold,
                right.raws[number] if gold and right else None,
                pred,
                left.raws[number] if pred and left else None,
                kind,
            )

    def _order(self, *parts: dict[int, Any]) -> list[tuple[Spot, bool]]:
        shape = tuple(tuple(part) for part in parts)
        found = self._orders.get(shape)
        if found is None:
            leaves = {(self.spots[number], False) for number in (*parts[0], *parts[2])}
            arrays = {(self.spots[number], True) for number in (*parts[1], *parts[3])}
            # An array's elements come after a scalar of the same address and before its keys.
            found = sorted(leaves | arrays, key=lambda entry: ((*((1, n) for n in entry[0].names),), entry[1]))
            found.sort(key=lambda entry: (*((1, name) for name in entry[0].names), *(((0, ""),) if entry[1] else ())))
            self._orders[shape] = found
        return found

    def _arrays(self, pred: Array | None, gold: Array | None, spot: Spot, at: Steps, invented: bool) -> None:
        here = at + tuple(("k", name) for name in spot.names)
        for index, left, right, unpaired in self._members(pred, gold, spot):
            self.pair(left, right, (*here, ("i", index)), invented or unpaired)

    def _members(
        self, pred: Array | None, gold: Array | None, spot: Spot
    ) -> Iterator[tuple[Any, Element | None, Element | None, bool]]:
        """Per index in reading order: predicted and gold element, and whether it is a predicted one left over."""
        if pred is None or gold is None or spot.ordered:
            lefts = dict(zip(pred.indices, pred.elements, strict=True)) if pred else {}
            rights = dict(zip(gold.indices, gold.elements, strict=True)) if gold else {}
            for index in sorted(lefts.keys() | rights.keys()):
                yield index, lefts.get(index), rights.get(index), False
            return
        partner = {j: i for i, j in self.alignment.pairs[id(pred)]}
        for j, (index, right) in enumerate(zip(gold.indices, gold.elements, strict=True)):
            yield index, pred.elements[partner[j]] if j in partner else None, right, False
        taken = set(partner.values())
        labels = sorted((f"p{pred.indices[i]}", i) for i in range(len(pred)) if i not in taken)
        for label, i in labels:
            yield label, pred.elements[i], None, True
