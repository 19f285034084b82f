"""The limits of one vendor account: calls in flight, requests per minute, pauses, money, stop. No Ray, no HTTP.

In: jobs that register, ask for slots and turns, and tell what came back. Out: permission, in order of asking. Time
comes from a clock that is handed in, so that a simulation can run hours in a moment.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import AccountFailure, LimitReached, OebError

SILENCE_SECONDS = 15.0  # of a job, after which nothing more is sent for it
RECOVERY_SECONDS = 30.0  # from no slots at all back to the cap, after the vendor has throttled
HALVING = 0.5
SETTLING_SECONDS = 0.5  # in which a pool of resumed work learns which calls are under way at the vendor


class Clock(Protocol):
    """Seconds that only go forward, and a way to wait."""

    def now(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class LoopClock:
    """The event loop's own time."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class JobGone(OebError):
    """The job left or fell silent before its call could begin; nothing was sent."""


@dataclass
class Member:
    """A job at this account. ``max_usd``: of each of its runs, None for no limit; ``spent``: dollars by run;
    ``paused``: nothing more is begun for it until it says so.
    """

    cap: int
    rpm: float | None
    max_usd: float | None
    digest: str
    paused: bool
    heard: float
    spent: defaultdict[str, float]
    reserved: defaultdict[str, float]
    dearest: dict[str, float]


class Pool:
    """One account. The smallest cap and rate of its members rule.

    Until a first call has shown that the account works, one call is in flight alone.
    """

    def __init__(self, account: str, clock: Clock | None = None) -> None:
        self.account = account
        self.clock = clock or LoopClock()
        self.members: dict[str, Member] = {}
        self.in_flight = 0
        self.stopped: AccountFailure | None = None
        self._proven = False
        self._opens_at = 0.0
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._next_turn = 0.0
        self._paused_until = 0.0
        self._floor, self._cut_at = 0.0, float("-inf")
        self._recovery: asyncio.Future[None] | None = None

    # --- members --------------------------------------------------------------------------------------------------

    def register(self, job: str, member: dict[str, Any]) -> None:
        """Lets a job in, or updates its limits. All of ``member`` is required: cap, rpm, max_usd, digest, paused,
        ``spent`` (dollars by run) and ``resumed``: calls of earlier may still be under way.

        Raises:
            AccountFailure: jobs with other code are at work at this account.
        """
        self.forget_silent()
        others = {other.digest for name, other in self.members.items() if name != job}
        if others - {member["digest"]}:
            raise AccountFailure(
                f"{self.account} is in use by a job with code {', '.join(sorted(others))}, this one has "
                f"{member['digest']}; wait until it has ended, or run the same version"
            )
        if not self.members:  # a new set of jobs starts anew
            self.stopped = None
            if member["resumed"] and not self._proven:
                self._opens_at = self.clock.now() + SETTLING_SECONDS
        known = self.members.get(job)
        self.members[job] = Member(
            member["cap"],
            member["rpm"],
            member["max_usd"],
            member["digest"],
            member["paused"],
            self.clock.now(),
            known.spent if known else defaultdict(float, member["spent"]),
            known.reserved if known else defaultdict(float),
            known.dearest if known else {},
        )
        self._wake()

    def ping(self, job: str) -> None:
        """The job is alive."""
        if job in self.members:
            self.members[job].heard = self.clock.now()
        self.forget_silent()

    def leave(self, job: str) -> None:
        """The job wants nothing more; its calls in flight go on, those that wait are refused."""
        self.members.pop(job, None)
        self._wake()

    def forget_silent(self) -> None:
        """Treats jobs that have not been heard of as gone."""
        now = self.clock.now()
        for job in [job for job, member in self.members.items() if now - member.heard > SILENCE_SECONDS]:
            self.leave(job)

    # --- slots ----------------------------------------------------------------------------------------------------

    def limit(self) -> int:
        """How many calls may be in flight now."""
        if not self.members or self.clock.now() < self._opens_at:
            return 0
        cap = min(member.cap for member in self.members.values())
        if not self._proven:
            return 1
        grown = self._floor + (self.clock.now() - self._cut_at) * cap / RECOVERY_SECONDS
        return max(1, int(min(cap, grown)))

    @asynccontextmanager
    async def slot(self, job: str, *, running: bool = False) -> AsyncIterator[None]:
        """A place in flight, in order of asking. What is ``running`` at the vendor already has its place at once.

        Raises:
            JobGone: the job has left. AccountFailure: the account has been stopped.
        """
        await self._enter(job, running)
        try:
            yield
        finally:
            self.in_flight -= 1
            self._wake()

    async def _enter(self, job: str, running: bool) -> None:
        self._refuse(job)
        if not running and (self._waiting or self.in_flight >= self.limit() or self.members[job].paused):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((job, place))
            if self._recovery is None or self._recovery.done():
                self._recovery = asyncio.ensure_future(self._recover())
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled() and place.exception() is None:
                    self.in_flight -= 1
                raise
        else:
            self.in_flight += 1

    async def _recover(self) -> None:
        """Wakes those who wait as the limit grows back and silent jobs are forgotten, while anyone waits."""
        while self._waiting:
            await self.clock.sleep(0.25)
            self.forget_silent()
            self._wake()

    def _refuse(self, job: str) -> None:
        if self.stopped is not None:
            raise self.stopped
        if job not in self.members:
            raise JobGone(f"job {job} is not registered at {self.account}")

    def _wake(self) -> None:
        still: deque[tuple[str, asyncio.Future[None]]] = deque()
        while self._waiting:
            job, place = self._waiting.popleft()
            if place.done():
                continue
            try:
                self._refuse(job)
            except OebError as error:
                place.set_exception(error)
                continue
            if self.in_flight < self.limit() and not self.members[job].paused:
                self.in_flight += 1
                place.set_result(None)
            else:
                still.append((job, place))
        self._waiting = still

    # --- turns and pauses -----------------------------------------------------------------------------------------

    async def turn(self) -> None:
        """Waits until the next request may be sent: evenly spaced, and not during a pause."""
        while True:
            now = self.clock.now()
            rpms = [member.rpm for member in self.members.values() if member.rpm]
            at = max(now, self._paused_until, self._next_turn if rpms else 0.0)
            if rpms:
                self._next_turn = at + 60.0 / min(rpms)
            if at > now:
                await self.clock.sleep(at - now)
            if self._paused_until <= self.clock.now():
                return

    def pause(self, seconds: float) -> None:
        """Nothing is sent for so long: the vendor asked the account to wait."""
        self._paused_until = max(self._paused_until, self.clock.now() + seconds)

    def throttled(self) -> None:
        """The vendor said that it is too much: half as many in flight, growing back in `RECOVERY_SECONDS`."""
        now = self.clock.now()
        if now - self._cut_at >= 1.0:  # answers that were under way together are one complaint
            self._floor, self._cut_at = self.limit() * HALVING, now

    def proven(self) -> None:
        """A call was accepted: the account works."""
        if not self._proven:
            self._proven = True
            self._floor = float(min((member.cap for member in self.members.values()), default=1))
            self._wake()

    def stop(self, error: AccountFailure) -> None:
        """Nothing more is sent for this account; those who wait get the error."""
        self.stopped = error
        self._wake()

    # --- money ----------------------------------------------------------------------------------------------------

    async def reserve(self, job: str, run: str, estimate: float | None) -> float:
        """Sets aside the dollars that a call may cost: the estimate, or the dearest of its run so far if that is more.

        Waits while calls in flight could still leave room.

        Raises:
            LimitReached: it would pass the run's limit. JobGone, AccountFailure: as `slot`.
        """
        while True:
            self._refuse(job)
            member = self.members[job]
            amount = max(estimate or 0.0, member.dearest.get(run, 0.0))
            if member.max_usd is None or member.spent[run] + member.reserved[run] + amount <= member.max_usd + 1e-9:
                member.reserved[run] += amount
                return amount
            if member.reserved[run] <= 1e-9:
                raise LimitReached(
                    f"{run}: max_usd={member.max_usd:g} is reached: {member.spent[run]:.4f} dollars are spent and the "
                    f"next call may cost {amount:.4f}"
                )
            await self.clock.sleep(0.2)

    def owe(self, job: str, run: str, estimate: float | None) -> float:
        """Sets aside what a call may cost that was made before; it may be spent already, so no limit is asked."""
        member = self.members.get(job)
        if member is None:
            return 0.0
        amount = max(estimate or 0.0, member.dearest.get(run, 0.0))
        member.reserved[run] += amount
        return amount

    def learn(self, job: str, run: str, usd: float | None) -> None:
        """A document was bought for the run by somebody else: what it cost counts towards the run's limit."""
        self.settle(job, run, self.owe(job, run, usd), usd)

    def settle(self, job: str, run: str, reserved: float, actual: float | None) -> None:
        """A call has ended: its reservation goes, what it cost stays; unknown cost stays at what was reserved."""
        member = self.members.get(job)
        if member is None:
            return
        cost = reserved if actual is None else actual
        member.reserved[run] -= reserved
        member.spent[run] += cost
        member.dearest[run] = max(member.dearest.get(run, 0.0), cost)

    def state(self) -> dict[str, Any]:
        """What is going on, as plain values."""
        return {
            "account": self.account,
            "jobs": len(self.members),
            "in_flight": self.in_flight,
            "limit": self.limit(),
            "waiting": len(self._waiting),
            "paused": max(0.0, self._paused_until - self.clock.now()),
            "spent": {run: usd for member in self.members.values() for run, usd in member.spent.items()},
            "stopped": str(self.stopped) if self.stopped else None,
        }
