"""An account's limits, by simulation: never passed, and used to the full."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from oeb_ray.errors import AccountFailure, LimitReached
from oeb_ray.pool import SILENCE_SECONDS, JobGone, Pool
from tests.virtual import run_virtually


def member(**more: Any) -> dict[str, Any]:
    known = {"cap": 5, "rpm": None, "max_usd": None, "digest": "code", "spent": {}, "resumed": False, "paused": False}
    return known | more


class Vendor:
    """Takes ``latency`` seconds, and counts what it sees."""

    def __init__(self, latency: float = 1.0) -> None:
        self.latency = latency
        self.now_in_flight = self.peak = 0
        self.arrivals: list[float] = []

    async def serve(self) -> None:
        self.arrivals.append(asyncio.get_running_loop().time())
        self.now_in_flight += 1
        self.peak = max(self.peak, self.now_in_flight)
        await asyncio.sleep(self.latency)
        self.now_in_flight -= 1


async def one_call(pool: Pool, job: str, vendor: Vendor) -> None:
    async with pool.slot(job):
        await pool.turn()
        await vendor.serve()
        pool.proven()


async def keep_alive(pool: Pool, *jobs: str) -> None:
    while True:
        for job in jobs:
            pool.ping(job)
        await asyncio.sleep(5)


@pytest.mark.parametrize(
    ("cap", "rpm", "latency"), [(5, None, 1.0), (5, 60, 1.0), (10, 600, 3.0), (1, 30, 0.5), (20, None, 0.2)]
)
def test_the_cap_and_the_rate_are_kept_and_used_to_95_percent(cap: int, rpm: int | None, latency: float) -> None:
    vendor, documents = Vendor(latency), 500

    async def work() -> float:
        pool = Pool("a")
        pool.register("job", member(cap=cap, rpm=rpm))
        alive = asyncio.ensure_future(keep_alive(pool, "job"))
        await asyncio.gather(*(one_call(pool, "job", vendor) for _ in range(documents)))
        alive.cancel()
        return asyncio.get_running_loop().time()

    seconds = run_virtually(work())
    assert vendor.peak <= cap
    if rpm:
        gaps = [later - earlier for earlier, later in zip(vendor.arrivals, vendor.arrivals[1:], strict=False)]
        assert min(gaps) >= 60 / rpm - 1e-6
    best = min(cap / latency, rpm / 60 if rpm else float("inf"))
    assert documents / seconds >= 0.95 * best


def test_two_jobs_share_the_smallest_cap_in_order_of_asking() -> None:
    vendor = Vendor()

    async def work() -> None:
        pool = Pool("a")
        pool.register("one", member(cap=4))
        pool.register("two", member(cap=3))
        alive = asyncio.ensure_future(keep_alive(pool, "one", "two"))
        await asyncio.gather(*(one_call(pool, job, vendor) for _ in range(50) for job in ("one", "two")))
        alive.cancel()

    run_virtually(work())
    assert vendor.peak == 3


def test_a_first_call_goes_alone_until_the_account_is_proven() -> None:
    async def work() -> list[float]:
        pool = Pool("a")
        pool.register("job", member())
        begun = []

        async def call() -> None:
            async with pool.slot("job"):
                begun.append(asyncio.get_running_loop().time())
                await asyncio.sleep(1)
                pool.proven()

        await asyncio.gather(*(call() for _ in range(4)))
        return begun

    assert run_virtually(work()) == [0.0, 1.0, 1.0, 1.0]


def test_a_stopped_account_sends_nothing_more() -> None:
    async def work() -> tuple[int, list[Any]]:
        pool, sent = Pool("a"), []
        pool.register("job", member())

        async def call() -> None:
            async with pool.slot("job"):
                sent.append(1)
                await asyncio.sleep(1)
                pool.stop(AccountFailure("401 bad key"))

        results = await asyncio.gather(*(call() for _ in range(20)), return_exceptions=True)
        return len(sent), results

    sent, results = run_virtually(work())
    assert sent == 1
    assert sum(isinstance(result, AccountFailure) for result in results) == 19


def test_a_silent_job_is_sent_nothing_after_15_seconds_and_its_calls_in_flight_end() -> None:
    async def work() -> tuple[list[float], list[Any]]:
        pool, begun = Pool("a"), []
        pool.register("job", member(cap=2))
        pool.proven()
        pool.register("job", member(cap=2))

        async def call() -> str:
            async with pool.slot("job"):
                begun.append(asyncio.get_running_loop().time())
                await asyncio.sleep(4)
                return "done"

        results = await asyncio.gather(*(call() for _ in range(20)), return_exceptions=True)
        return begun, results

    begun, results = run_virtually(work())
    assert max(begun) <= SILENCE_SECONDS + 1
    assert results.count("done") == len(begun) < 20
    assert all(isinstance(result, JobGone) for result in results if result != "done")


def test_a_paused_job_begins_nothing_and_keeps_nobody_waiting() -> None:
    async def work() -> None:
        pool, vendor, other = Pool("a"), Vendor(1.0), Vendor(1.0)
        pool.proven()
        pool.register("paused", member(paused=True))
        pool.register("job", member())
        alive = asyncio.ensure_future(keep_alive(pool, "paused", "job"))
        held = [asyncio.ensure_future(one_call(pool, "paused", vendor)) for _ in range(10)]
        await asyncio.gather(*(one_call(pool, "job", other) for _ in range(20)))
        assert asyncio.get_running_loop().time() < 6 and not vendor.arrivals
        pool.register("paused", member())
        await asyncio.gather(*held)
        assert len(vendor.arrivals) == 10 and vendor.peak == 5
        alive.cancel()

    run_virtually(work())


def test_a_pause_holds_for_the_whole_account() -> None:
    vendor = Vendor(0.1)

    async def work() -> None:
        pool = Pool("a")
        pool.register("job", member(rpm=600))
        pool.proven()
        alive = asyncio.ensure_future(keep_alive(pool, "job"))

        async def complain() -> None:
            await asyncio.sleep(2)
            pool.pause(20)

        await asyncio.gather(complain(), *(one_call(pool, "job", vendor) for _ in range(100)))
        alive.cancel()

    run_virtually(work())
    during = [at for at in vendor.arrivals if 2.0 < at < 22.0]
    assert not during
    assert len(vendor.arrivals) == 100


def test_after_throttling_it_is_slower_and_back_within_a_minute() -> None:
    async def work() -> list[int]:
        pool = Pool("a")
        pool.register("job", member(cap=10))
        pool.proven()
        limits = [pool.limit()]
        for _ in range(6):
            pool.throttled()
            limits.append(pool.limit())
            await asyncio.sleep(1)
        await asyncio.sleep(30)
        pool.ping("job")
        limits.append(pool.limit())
        return limits

    limits = run_virtually(work())
    assert limits[0] == 10 and min(limits) <= 2 and limits[-1] >= 9


@pytest.mark.parametrize("seed", range(5))
def test_money_never_passes_the_limit_by_more_than_what_reservations_missed(seed: int) -> None:
    dice = random.Random(seed)
    costs = [dice.choice([0.03, 0.03, 0.05]) for _ in range(400)]

    async def work() -> tuple[float, int, int]:
        pool = Pool("a")
        pool.register("job", member(cap=8, max_usd=5.0))
        pool.proven()
        alive = asyncio.ensure_future(keep_alive(pool, "job"))
        spent, missed, refused = 0.0, 0, 0

        async def call(cost: float) -> None:
            nonlocal spent, refused
            async with pool.slot("job"):
                try:
                    reserved = await pool.reserve("job", "run", 0.03)
                except LimitReached:
                    refused += 1
                    return
                await asyncio.sleep(1)
                spent += cost
                pool.settle("job", "run", reserved, cost)

        await asyncio.gather(*(call(cost) for cost in costs))
        alive.cancel()
        return spent, missed, refused

    spent, _, refused = run_virtually(work())
    assert 5.0 - 0.05 <= spent <= 5.0 + 8 * 0.02
    assert refused > 0


def test_money_that_was_spent_before_counts() -> None:
    async def work() -> None:
        pool = Pool("a")
        pool.register("job", member(max_usd=5.0, spent={"run": 4.99}))
        with pytest.raises(LimitReached, match="max_usd=5 is reached"):
            await pool.reserve("job", "run", 0.03)
        await pool.reserve("job", "another", 0.03)

    run_virtually(work())


def test_other_code_is_refused_while_the_account_is_in_use_and_welcome_after() -> None:
    async def work() -> None:
        pool = Pool("a")
        pool.register("old", member(digest="1"))
        with pytest.raises(AccountFailure, match="in use by a job with code 1, this one has 2"):
            pool.register("new", member(digest="2"))
        pool.leave("old")
        pool.register("new", member(digest="2"))
        assert pool.state()["jobs"] == 1

    run_virtually(work())
