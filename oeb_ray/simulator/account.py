"""The books of one vendor: who came, what was accepted and billed, what is in flight, what the dice say.

In: arrivals, refusals and jobs, all from the server's event loop. Out: log entries and the counts of ``/stats``.
Times are monotonic seconds, money is dollars. Rejected requests do not fill the window of ``rpm``.
"""

from __future__ import annotations

import bisect
import hashlib
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .journal import Journal
from .profile import ARRIVAL_FAULTS, FAULTS, POLL_FAULTS, Dials

WINDOW_S = 60.0


class Window:
    """Requests within the last 60 s, and the most there ever were. A request leaves exactly 60 s after its time."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.peak = 0

    def count(self, now: float) -> int:
        del self.times[: bisect.bisect_right(self.times, now - WINDOW_S)]
        return len(self.times)

    def add(self, now: float) -> None:
        bisect.insort(self.times, now)
        self.peak = max(self.peak, self.count(self.times[-1]))


@dataclass(frozen=True, slots=True)
class Upload:
    """What a submission holds: the name of its document, and the document's bytes in number."""

    document: str
    size: int


@dataclass(slots=True)
class Visit:
    """One request: when it came, whose key it bears (fingerprint only) and how many were in flight with it."""

    account: Account
    kind: str
    key: str
    mono: float
    wall: float
    in_flight: int
    document: str = ""
    job: str = ""
    held: bool = False  # counts as in flight


@dataclass(slots=True)
class Job:
    """An accepted submission. ``ready``: monotonic second at which it is done; ``polls``: how many were answered."""

    account: Account
    id: str
    document: str
    nth: int
    size: int
    price: float
    fault: str
    latency: float
    ready: float
    found: bool
    polls: int = 0
    ended: bool = False
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Roll:
    """What the dice say of a submission: the fault ("" for none) and the seconds until it is done."""

    nth: int
    fault: str
    latency: float


def fingerprint(key: str) -> str:
    """What stands for a key in logs: 8 hex digits of its SHA-256, "" for no key."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8] if key else ""


@dataclass
class Account:
    """One vendor's account since the start or the last reset."""

    vendor: str
    seed: int
    dials: Dials
    journal: Journal
    jobs: dict[str, Job] = field(default_factory=dict)
    files: dict[str, Upload] = field(default_factory=dict)  # uploaded, by the id that the client got
    looks: dict[str, int] = field(default_factory=dict)  # at what was made beside jobs, by its id
    requests: Counter[str] = field(default_factory=Counter)
    submissions: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    rolls: Counter[str] = field(default_factory=Counter)
    refused_first: Counter[str] = field(default_factory=Counter)
    counted: Window = field(default_factory=Window)
    arrived: Window = field(default_factory=Window)
    billed: float = 0.0
    unread: int = 0
    arrivals: int = 0
    running: int = 0
    in_flight: int = 0
    peak: int = 0
    slot_seconds: float = 0.0
    changed_at: float = 0.0

    def fresh(self) -> Account:
        """The account with empty books. Jobs of the old one end in the old one."""
        return Account(self.vendor, self.seed, self.dials, self.journal)

    # Coming and going

    def arrival_fault(self) -> str:
        """What happens to the next submission before its document is known; by the order of arrival."""
        self.arrivals += 1
        dice = random.Random(f"{self.seed}/{self.vendor}/arrival {self.arrivals}")
        return self._pick(ARRIVAL_FAULTS, dice.random())

    def arrive(self, kind: str, key: str, *, holds: bool = False) -> Visit:
        """Enters a request. ``holds``: it counts as in flight until `leave`, or until the end of its job."""
        now = time.monotonic()
        self.requests[kind] += 1
        self.arrived.add(now)
        if holds:
            self._flight(1)
        return Visit(self, kind, fingerprint(key), now, time.time(), self.in_flight, held=holds)

    def leave(self, visit: Visit) -> None:
        if visit.held:
            visit.held = False
            self._flight(-1)

    def _flight(self, change: int) -> None:
        now = time.monotonic()
        self.slot_seconds += self.in_flight * (now - (self.changed_at or now))
        self.changed_at = now
        self.in_flight += change
        self.peak = max(self.peak, self.in_flight)

    # What is refused

    def refusal(self, visit: Visit, key: str) -> str:
        """Why the account does not serve a request: ``key``, ``rate``, ``busy``, ``credit`` and so on, or ""."""
        dials, submit = self.dials, visit.kind == "submit"
        if dials.key and key != dials.key:
            return "key"
        counts = visit.kind != "poll" or dials.polls_count
        if counts and dials.rpm and self.counted.count(visit.mono) >= dials.rpm:
            return "rate"
        if submit and dials.concurrent and self.running >= dials.concurrent:
            return "busy"
        if submit and self.refused_first[visit.document] < dials.first_429 + dials.first_402:
            self.refused_first[visit.document] += 1
            return "first_429" if self.refused_first[visit.document] <= dials.first_429 else "first_402"
        if counts:
            self.counted.add(visit.mono)
        if submit and dials.credit is not None:
            spent = dials.credit <= 0 or self.billed + dials.price > dials.credit + 1e-9
            return "credit" if spent else ""
        return ""

    # Dice

    def roll(self, document: str) -> Roll:
        """The dice of the next submission of a document that nothing refused."""
        self.rolls[document] += 1
        nth = self.rolls[document]
        dice = random.Random(f"{self.seed}/{self.vendor}/{document}/{nth}")
        fault = self._pick(FAULTS, dice.random())
        exponential = -math.log(1.0 - dice.random())
        spread = self.dials.latency_spread
        return Roll(nth, fault, self.dials.latency * (1 - spread + spread * exponential))

    def poll_fault(self, job: Job) -> str:
        """What happens to the job's next poll."""
        job.polls += 1
        if job.polls <= self.dials.poll_404_first:
            return "poll_404_first"
        dice = random.Random(f"{self.seed}/{self.vendor}/{job.document}/{job.nth}/poll {job.polls}")
        return self._pick(POLL_FAULTS, dice.random())

    def free_fault(self, what: str) -> str:
        """What happens to the next request of this kind that costs nothing: the faults of polls."""
        self.rolls[what] += 1
        dice = random.Random(f"{self.seed}/{self.vendor}/{what}/{self.rolls[what]}")
        return self._pick(POLL_FAULTS, dice.random())

    def _pick(self, faults: tuple[str, ...], roll: float) -> str:
        """Of faults that exclude each other the one that a roll of 0..1 falls on."""
        for name in faults:
            roll -= getattr(self.dials, name)
            if roll < 0:
                return name
        return ""

    # Jobs

    def open(self, visit: Visit, roll: Roll, size: int, *, found: bool) -> Job:
        """Accepts and bills a submission, which holds its slot until `end`."""
        failed = not found and self.dials.missing == "error"
        price = 0.0 if failed and roll.fault != "empty" else self.dials.price
        name = hashlib.sha256(f"{self.seed}/{self.vendor}/{visit.document}/{roll.nth}".encode("utf-8", "replace"))
        visit.job = f"rq-{name.hexdigest()[:20]}"
        ready = math.inf if roll.fault == "never_ends" else time.monotonic() + roll.latency
        job = Job(self, visit.job, visit.document, roll.nth, size, price, roll.fault, roll.latency, ready, found)
        visit.held = False  # the job holds the slot now
        self.jobs[job.id] = job
        self.running += 1
        self.billed += price
        self.accepted[job.document] += 1
        return job

    def end(self, job: Job) -> None:
        """Frees the job's slot, once."""
        if not job.ended:
            job.ended = True
            self.running -= 1
            self._flight(-1)

    # Books

    def note(self, visit: Visit, status: int | None, fault: str = "", job: Job | None = None) -> None:
        """Logs a request by what is about to be sent; ``status`` None: no answer. ``job``: it was accepted as that."""
        if visit.kind == "submit":
            if visit.document:
                self.submissions[visit.document] += 1
            else:
                self.unread += 1
        self.outcomes[fault or str(status)] += 1
        self.journal.add(
            {
                "mono": visit.mono,
                "wall": visit.wall,
                "vendor": self.vendor,
                "kind": visit.kind,
                "document": visit.document,
                "key": visit.key,
                "job": visit.job,
                "accepted": job is not None,
                "billed": job.price if job else 0.0,
                "status": status,
                "fault": fault,
                "in_flight": visit.in_flight,
            }
        )

    def stats(self) -> dict[str, Any]:
        """The counts of ``GET /stats``."""
        now = time.monotonic()
        return {
            "requests": sum(self.requests.values()),
            "kinds": dict(self.requests),
            "outcomes": dict(self.outcomes),
            "submissions": dict(self.submissions),
            "unread": self.unread,
            "accepted": dict(self.accepted),
            "running": self.running,
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak,
            "slot_seconds": self.slot_seconds + self.in_flight * (now - (self.changed_at or now)),
            "peak_requests_60s": self.arrived.peak,
            "peak_counted_60s": self.counted.peak,
            "billed": round(self.billed, 9),
        }
