"""What was paid for: a view of the stored attempts, never a sum that is kept.

In: an output. Out: its attempts, totals by account, run, day or reason, and the documents that more than one attempt
may have been billed for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from . import layout, storage
from .calls import Attempt, address_of, attempt_of, stored_calls
from .jsontext import read_json

READ_TOGETHER = 16


class Entry(NamedTuple):
    """One paid attempt of a run."""

    run: str
    attempt: Attempt


class Total(NamedTuple):
    """``attempts`` of a group; ``free``: those that the vendor provably did nothing for; ``unpriced``: those that may
    have cost dollars that nobody stated. ``usd`` in dollars, ``credits`` in the vendor's own; None: none stated.
    """

    attempts: int
    free: int
    unpriced: int
    usd: float | None
    credits: float | None


GROUPS: Mapping[str, Callable[[Entry], str]] = {
    "account": lambda entry: entry.attempt.account,
    "run": lambda entry: entry.run,
    "day": lambda entry: entry.attempt.claimed_at[:10],
    "reason": lambda entry: entry.attempt.reason,
}
"""What totals can be made by. Days are those of UTC."""


def entries(out: str) -> list[Entry]:
    """Every paid attempt in an output, sorted by run, document and number.

    Raises:
        StorageError: the output cannot be read.
    """
    places = [(run, *place) for run in storage.folders(out) for place in stored_calls(out, run)]
    with ThreadPoolExecutor(READ_TOGETHER) as threads:
        found = list(threads.map(lambda place: _entry(out, *place), places))
    return sorted(found, key=lambda entry: (entry.run, entry.attempt.doc_id, entry.attempt.n))


def _entry(out: str, run: str, doc_id: str, number: int) -> Entry:
    attempt = attempt_of(storage.read(address_of(out, run, doc_id, number)), doc_id, number)
    return Entry(run, attempt if attempt.outcome is not None else _recorded(out, run, attempt))


def _recorded(out: str, run: str, attempt: Attempt) -> Attempt:
    """The attempt as its document's record has it: a kill can come after the record and before the attempt's end."""
    try:
        told = read_json(storage.read(layout.record(out, run, attempt.doc_id)))["attempts"][attempt.n - 1]
        recorded = Attempt(**told)
    except (FileNotFoundError, ValueError, TypeError, LookupError):
        return attempt
    return recorded if recorded.token == attempt.token else attempt


def totals(listed: Iterable[Entry], group: str) -> dict[str, Total]:
    """Totals by one of `GROUPS`, sorted by name."""
    members: dict[str, list[Attempt]] = {}
    for entry in listed:
        members.setdefault(GROUPS[group](entry), []).append(entry.attempt)
    return {name: total(members[name]) for name in sorted(members)}


def total(attempts: Iterable[Attempt]) -> Total:
    """What attempts come to together."""
    made = list(attempts)
    usd = [attempt.usd for attempt in made if attempt.usd is not None]
    credits = [attempt.credits for attempt in made if attempt.credits is not None]
    return Total(
        len(made),
        sum(attempt.is_free for attempt in made),
        sum(attempt.is_unpriced for attempt in made),
        math.fsum(usd) if usd else None,
        math.fsum(credits) if credits else None,
    )


def paid_again(listed: Iterable[Entry]) -> list[list[Entry]]:
    """The attempts of each document of a run that more than one attempt may have been billed for."""
    billable: dict[tuple[str, str], list[Entry]] = {}
    for entry in listed:
        if not entry.attempt.is_free:
            billable.setdefault((entry.run, entry.attempt.doc_id), []).append(entry)
    return [attempts for attempts in billable.values() if len(attempts) > 1]
