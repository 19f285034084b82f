"""Whether what a vendor saw and what was stored tell the same story: the proof that follows every disturbed run.

In: a simulator's log, the outputs of all jobs that called it, and the limits they kept to. Out: what does not fit.
Nothing here knows how the jobs work; it compares their claims and records with what arrived.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .. import layout, storage
from ..calls import Attempt
from ..jsontext import read_json
from ..ledger import Entry, entries

CENT = 0.005  # dollars by which bill and spend may differ


@dataclass(frozen=True, slots=True)
class Limits:
    """What a vendor's account was held to: calls in flight, requests in any 60 s (None: no limit).

    ``lingers``: seconds that the vendor may be at work on a call whose answer was lost; for us it has ended.
    """

    cap: int
    rpm: int | None = None
    lingers: float = 5.0


def faults(log: Sequence[Mapping[str, Any]], outs: Iterable[str], limits: Mapping[str, Limits]) -> list[str]:
    """Everything that does not fit, in words; empty if all is proven. The jobs must have ended.

    Proven is, per vendor: each submission that arrived was claimed before, by an attempt of its own; each attempt has
    an end; each record of a paid document names exactly its stored attempts; cap and rate were never passed; and what
    the attempts say they cost is what was billed, to the cent, those aside whose price nobody could learn.

    Args:
        log: as `Simulator.log` gives it. outs: the outputs written. limits: by vendor; others are not looked at.
    """
    found: list[str] = []
    made = [(out, entry) for out in outs for entry in entries(out)]
    for _, entry in made:
        if entry.attempt.outcome is None:
            found.append(f"{_named(entry)}: open, its end is not known")
    found += _unexplained_records(made)
    for vendor, limit in limits.items():
        ours = [entry for _, entry in made if entry.attempt.account.partition("@")[0] == vendor]
        seen = [line for line in log if line["vendor"] == vendor]
        more, lost = _claims(vendor, [line for line in seen if line["kind"] == "submit"], ours)
        found += more + _passed(vendor, seen, lost, limit)
    return found


def _named(entry: Entry) -> str:
    return f"{entry.run}: {entry.attempt.doc_id!r} attempt {entry.attempt.n}"


# --- submissions and claims ---------------------------------------------------------------------------------------


def _claims(
    vendor: str, submissions: Sequence[Mapping[str, Any]], ours: Sequence[Entry]
) -> tuple[list[str], list[float]]:
    """Gives each submission an attempt: by its job's id, else one of its document claimed before it and of no job.

    Returns what does not fit, and when those were accepted whose answers nobody got.
    """
    found: list[str] = []
    by_job = {entry.attempt.job_id: entry for entry in ours if entry.attempt.job_id}
    free: dict[str, list[Entry]] = defaultdict(list)
    for one in sorted(ours, key=lambda entry: entry.attempt.claimed_at):
        if not one.attempt.job_id:
            free[one.attempt.doc_id].append(one)
    given: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    unread = 0
    # Those of which most is known choose first.
    for line in sorted(submissions, key=lambda line: (not line["accepted"], line["wall"])):
        if not line["document"]:
            unread += 1
            continue
        job = line["job"]
        entry = by_job.pop(job) if job in by_job else _claimed_before(free[line["document"]], line)
        if entry is None:
            found.append(
                f"{vendor}: a submission of {line['document']!r} at {line['wall']:.3f} has no claim of its own"
            )
            continue
        given[entry.run, entry.attempt.doc_id, entry.attempt.n] = line
        found += _price(entry, line)
    unused = [entry for left in free.values() for entry in left]
    if unread > len(unused):
        found.append(
            f"{vendor}: {unread} submissions broke off before they could be read, {len(unused)} claims are left"
        )
    found += [f"{_named(entry)}: its job {job} was never accepted" for job, entry in by_job.items()]
    found += _bill(vendor, submissions, ours, given)
    unheard = {(e.run, e.attempt.doc_id, e.attempt.n) for e in ours if e.attempt.is_unpriced and not e.attempt.job_id}
    return found, sorted(line["mono"] for key, line in given.items() if key in unheard and line["accepted"])


def _claimed_before(waiting: list[Entry], line: Mapping[str, Any]) -> Entry | None:
    """Takes the claim that fits a submission: one that may have cost if it was accepted, the youngest of those.

    The attempts of a document follow one another, so what arrives belongs to the last that was claimed; but one whose
    price is known did arrive, and so comes before one of another run that perhaps did not.
    """
    fitting = [entry for entry in waiting if _seconds(entry.attempt) <= line["wall"] + 0.001]
    fitting.sort(
        key=lambda one: (one.attempt.is_free != line["accepted"], one.attempt.usd is not None, one.attempt.claimed_at)
    )
    if not fitting or (line["accepted"] and fitting[-1].attempt.is_free):
        return None
    waiting.remove(fitting[-1])
    return fitting[-1]


def _seconds(attempt: Attempt) -> float:
    try:
        return datetime.fromisoformat(attempt.claimed_at).timestamp()
    except ValueError:
        return -math.inf


def _price(entry: Entry, line: Mapping[str, Any]) -> list[str]:
    stated = entry.attempt.usd
    if stated is None or abs(stated - line["billed"]) < CENT:
        return []
    return [f"{_named(entry)}: says ${stated:.4f}, billed ${line['billed']:.4f}"]


def _bill(
    vendor: str,
    submissions: Sequence[Mapping[str, Any]],
    ours: Sequence[Entry],
    given: Mapping[tuple[str, str, int], Mapping[str, Any]],
) -> list[str]:
    billed = math.fsum(line["billed"] for line in submissions)
    stated = math.fsum(entry.attempt.usd or 0.0 for entry in ours)
    unknown = math.fsum(
        line["billed"]
        for entry in ours
        if entry.attempt.usd is None
        and (line := given.get((entry.run, entry.attempt.doc_id, entry.attempt.n))) is not None
    )
    if abs(billed - stated - unknown) < CENT:
        return []
    return [f"{vendor}: billed ${billed:.4f}, attempts state ${stated:.4f} and may not know ${unknown:.4f}"]


# --- records ------------------------------------------------------------------------------------------------------


def _unexplained_records(made: Sequence[tuple[str, Entry]]) -> list[str]:
    found: list[str] = []
    attempts: dict[tuple[str, str, str], list[Attempt]] = defaultdict(list)
    for out, entry in made:
        attempts[out, entry.run, entry.attempt.doc_id].append(entry.attempt)
    for (out, run, doc_id), stored in attempts.items():
        try:
            record = read_json(storage.read(layout.record(out, run, doc_id)))
        except FileNotFoundError:
            if not all(attempt.is_free for attempt in stored):
                found.append(f"{run}: {doc_id!r} has attempts and no record")
            continue
        told = [(attempt["n"], attempt["job_id"]) for attempt in record["attempts"]]
        if told != [(attempt.n, attempt.job_id) for attempt in stored]:
            found.append(f"{run}: the record of {doc_id!r} names attempts {told}, stored are others")
    return found


# --- limits -------------------------------------------------------------------------------------------------------


def _passed(vendor: str, seen: Sequence[Mapping[str, Any]], lost: Sequence[float], limit: Limits) -> list[str]:
    """``lost``: when calls began whose answers were lost."""
    found = []

    def ours(line: Mapping[str, Any]) -> int:
        lingering = bisect.bisect_right(lost, line["mono"]) - bisect.bisect_left(lost, line["mono"] - limit.lingers)
        return int(line["in_flight"]) - lingering

    peak = max(map(ours, seen), default=0)
    if peak > limit.cap:
        found.append(f"{vendor}: {peak} in flight, at most {limit.cap} are allowed")
    if limit.rpm is not None:
        times = sorted(line["mono"] for line in seen)
        most = max((bisect.bisect_left(times, at + 60.0) - place for place, at in enumerate(times)), default=0)
        if most > limit.rpm:
            found.append(f"{vendor}: {most} requests within 60 s, at most {limit.rpm} are allowed")
    return found
