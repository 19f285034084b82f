"""Paid attempts, made durable: claims before anything is sent, job ids at once, what came of them, and whose they are.

In: a document that a vendor is to be asked for. Out: ``calls/<doc_id>.<n>.json``, one per paid attempt. A claim is
created exclusively, so two jobs cannot make the same attempt. What an attempt without an end means depends on its
owner: while the owner's heartbeat is fresh it is under way; after that a job id is polled, and without one the outcome
is unknown.
"""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from . import storage
from .errors import NotSent
from .jsontext import pretty, read_json
from .providers.contract import UNUSABLE

HEARTBEAT_SECONDS = 15.0
# Outcomes: a refusal with its status; an answer not yet recorded; a claim that was found to be needless; UNUSABLE.
REFUSED, ANSWERED, NOT_MADE = "status", "answered", "not made"
OWNERS = "owners"  # the folder of their heartbeats
DEAD_SECONDS = 60.0  # without a heartbeat, by the store's own clock


@dataclass(frozen=True, slots=True)
class Attempt:
    """One paid attempt. ``n`` counts from 1; ``outcome``: how it ended, None while that is not known.

    ``account``: who was to be paid; ``reason``: why it was made; ``claimed_at``: when, in UTC.

    ``usd``, ``credits``, ``tokens_in`` (``tokens_cached`` are among them) and ``tokens_out``: what the vendor stated.
    """

    doc_id: str
    n: int
    reason: str
    account: str
    owner: str
    claimed_at: str
    token: str
    job_id: str | None = None
    outcome: str | None = None
    usd: float | None = None
    source: str | None = None
    credits: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None

    @property
    def is_free(self) -> bool:
        """Whether the vendor provably did nothing for it."""
        return self.outcome is not None and self.outcome.startswith((REFUSED, NotSent.__name__, NOT_MADE))

    @property
    def is_open(self) -> bool:
        """Whether the vendor may have an answer to it that nobody has read: it is not repeated unasked."""
        return not self.is_free and self.outcome != UNUSABLE

    @property
    def is_unpriced(self) -> bool:
        """Whether it may have cost dollars that nobody has stated."""
        return self.usd is None and not self.is_free


def new_attempt(doc_id: str, n: int, reason: str, account: str, owner: str) -> Attempt:
    """An attempt that is about to be claimed."""
    return Attempt(
        doc_id, n, reason, account, owner, datetime.now(UTC).isoformat(timespec="milliseconds"), uuid.uuid4().hex
    )


def address_of(out: str, run: str, doc_id: str, n: int) -> str:
    return storage.join(out, run, "calls", f"{storage.encode_id(doc_id)}.{n}.json")


def claim(out: str, run: str, attempt: Attempt) -> bool:
    """Creates the attempt's file; False if that attempt is somebody else's."""
    return storage.create(address_of(out, run, attempt.doc_id, attempt.n), pretty(asdict(attempt)))


def note(out: str, run: str, attempt: Attempt, **changes: Any) -> Attempt:
    """Writes what has become known of an attempt of one's own, and returns it."""
    changed = replace(attempt, **changes)
    storage.put(address_of(out, run, attempt.doc_id, attempt.n), pretty(asdict(changed)))
    return changed


def attempts_of(out: str, run: str, doc_id: str) -> list[Attempt]:
    """All attempts of a document, in order; found by asking for 1, 2, ... until there is none."""
    found: list[Attempt] = []
    while True:
        try:
            data = storage.read(address_of(out, run, doc_id, len(found) + 1))
        except FileNotFoundError:
            return found
        found.append(attempt_of(data, doc_id, len(found) + 1))


def stored_calls(out: str, run: str) -> list[tuple[str, int]]:
    """Document and number of every attempt of a run; files of other names are left out."""
    found = []
    for name in storage.names(storage.join(out, run, "calls")):
        stem, _, number = name.removesuffix(".json").rpartition(".")
        if name.endswith(".json") and number.isdigit():
            found.append((storage.decode_id(stem), int(number)))
    return found


def attempt_of(data: bytes, doc_id: str, n: int) -> Attempt:
    """A stored attempt; one that cannot be read was claimed all the same, and its outcome is unknown."""
    try:
        return Attempt(**read_json(data))
    except (ValueError, TypeError):
        return Attempt(doc_id, n, "unreadable", "", "", "", "")


class Owner:
    """Who makes attempts: one per process that talks to vendors, with a heartbeat in each output that it works on."""

    def __init__(self) -> None:
        self.name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"

    def beat(self, out: str, **more: Any) -> None:
        """Says that the owner is alive, and what ``more`` there is to know of it."""
        here = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "born": _born(os.getpid()),
            "beat": uuid.uuid4().hex,
            **more,
        }
        storage.put(_heartbeat(out, self.name), pretty(here))

    def end(self, out: str) -> None:
        """Says that the owner is no more: what it left open is for others to bring to its end."""
        storage.delete(_heartbeat(out, self.name))


def is_alive(out: str, owner: str) -> bool:
    """Whether an owner's attempts may still be under way.

    On the owner's own machine its process tells; elsewhere the age of its heartbeat, by the clock of the storage.
    """
    try:
        seen = read_json(storage.read(_heartbeat(out, owner)))
        if isinstance(seen, dict) and seen.get("host") == socket.gethostname() and seen.get("born"):
            return bool(_born(seen.get("process")) == seen["born"])
        return storage.age(_heartbeat(out, owner)) < DEAD_SECONDS
    except (FileNotFoundError, ValueError):
        return False


def _heartbeat(out: str, owner: str) -> str:
    return storage.join(out, OWNERS, f"{storage.encode_id(owner or 'unknown')}.json")


def _born(process: Any) -> str | None:
    """When a process of this machine started, in ticks since boot; None if there is none."""
    try:
        with open(f"/proc/{int(process)}/stat") as stream:
            return stream.read().rsplit(")", 1)[1].split()[19]
    except (OSError, ValueError, TypeError, IndexError):
        return None
