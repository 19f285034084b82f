"""What a plan will cost and how long it will take, from what earlier documents did.

In: a Plan. Out: an Estimate per Run. What nobody has seen yet is None, never zero. Where a vendor stated tokens and no
dollars, they are reckoned at list prices, and the estimate says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from . import prices
from .plan import Plan, RunPlan
from .records import Receipt


class Rate(NamedTuple):
    """Per document: dollars, the vendor's credits, seconds; each None if unknown. ``basis``: where that is from."""

    usd: float | None
    credits: float | None
    seconds: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the documents to predict of a Run come to. ``seconds``: with its calls in flight, alone at its account."""

    documents: int
    usd: float | None
    credits: float | None
    seconds: float | None
    basis: str


def estimates(plan: Plan) -> dict[str, Estimate]:
    """An Estimate for each paid Run that has something to predict, by its name."""
    return {
        made.run.name: _estimate(made, _rate(plan, made))
        for made in plan.runs
        if made.run.lane is not None and made.predict
    }


def _rate(plan: Plan, made: RunPlan) -> Rate:
    own = _answered(made)
    if own:
        return _listed(plan, made, own, _mean(own, f"as {len(own)} earlier ones of this run"))
    alike = [receipt for other in plan.runs if other.run.provider == made.run.provider for receipt in _answered(other)]
    if alike:
        return _listed(plan, made, alike, _mean(alike, f"as {len(alike)} of {made.run.provider} at other settings"))
    reckoned = made.run.lane.usd_per_doc if made.run.lane else None
    return Rate(reckoned, None, None, "as usd_per_doc says" if reckoned is not None else "no earlier documents")


def _listed(plan: Plan, made: RunPlan, receipts: Collection[Receipt], rate: Rate) -> Rate:
    """The rate with dollars at list prices, where nobody stated any."""
    if rate.usd is not None or rate.credits is not None or plan.prices is None:
        return rate
    price = plan.prices.of(made.run.provider, made.run.settings)
    costs = [prices.cost(price, receipt.tokens_in, receipt.tokens_out) for receipt in receipts]
    known = [cost for cost in costs if cost is not None]
    if not known:
        return rate
    return rate._replace(usd=math.fsum(known) / len(known), basis=f"{rate.basis}, at prices of {plan.prices.date}")


def _answered(made: RunPlan) -> list[Receipt]:
    return [receipt for receipt in made.receipts.values() if receipt.error is None]


def _mean(receipts: Collection[Receipt], basis: str) -> Rate:
    def mean(values: list[float]) -> float | None:
        return math.fsum(values) / len(values) if values else None

    return Rate(
        mean([receipt.usd for receipt in receipts if receipt.usd is not None]),
        mean([receipt.credits for receipt in receipts if receipt.credits is not None]),
        mean([receipt.wall_s for receipt in receipts]),
        basis,
    )


def _estimate(made: RunPlan, rate: Rate) -> Estimate:
    count = len(made.predict)
    at_once = min(made.run.lane.cap if made.run.lane else 1, count)

    def times(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    seconds = times(rate.seconds, count / at_once)
    rpm = made.run.lane.rpm if made.run.lane else None
    if seconds is not None and rpm:
        seconds = max(seconds, count * 60.0 / rpm)
    return Estimate(count, times(rate.usd, count), times(rate.credits, count), seconds, rate.basis)
