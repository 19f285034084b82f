"""A rehearsal: the whole job against simulated vendors on this machine, before a cent is spent.

In: a Job with dials by vendor. Out: the same job with every vendor's server replaced and an output that is thrown away,
and afterwards what it came to: seconds, dollars by the dials, and where the vendors refused. The golds are the answers,
so accuracy means nothing here. Vendors' keys are not needed, and set aside while it lasts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from . import storage
from .config import Job
from .corpus.manifest import Corpus
from .digests import digest
from .errors import refused
from .providers import models, openrouter
from .providers.registry import PAID, paid
from .run import loaded_corpus
from .simulator import Profile, Simulator
from .simulator.profile import VENDORS

READ_TOGETHER = 16
PLACEHOLDER = "rehearsal"
"""Stands in for every key."""
_REASONS = {
    "rate": ("rpm", "its limit of {} requests a minute"),
    "busy": ("concurrent", "its limit of {} at once"),
    "first_429": ("first_429", "its first refusals ({} for each document)"),
    "first_402": ("first_402", "what was in flight ({} refusals for each document)"),
    "credit": ("credit", "the end of its credit of ${}"),
}
_REMEDIES = {"rate": "rpm={}", "busy": "in_flight={}"}


class Tally(NamedTuple):
    """What a vendor saw. ``documents``: accepted; ``usd``: by the dials; ``seconds``: from first to last request.

    ``refused``: requests by any limit, and ``reasons`` which, in words; ``peak``: most calls in flight;
    ``peak_minute``: most requests in any 60 s.
    """

    vendor: str
    documents: int
    requests: int
    refused: int
    usd: float
    seconds: float
    peak: int
    peak_minute: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """``jobs``: what is to be run in the rehearsal."""

    jobs: tuple[Job, ...]
    _simulator: Simulator
    _dials: Mapping[str, Mapping[str, Any]]

    def tallies(self) -> list[Tally]:
        """What came of it so far, by vendor; those that were never called are left out."""
        log = self._simulator.log()
        found = []
        for vendor, stats in self._simulator.stats().items():
            times = [entry["mono"] for entry in log if entry["vendor"] == vendor]
            if not times:
                continue
            found.append(
                Tally(
                    vendor,
                    documents=len(stats["accepted"]),
                    requests=stats["requests"],
                    refused=sum(stats["outcomes"].get(reason, 0) for reason in _REASONS),
                    usd=stats["billed"],
                    seconds=max(times) - min(times),
                    peak=stats["peak_in_flight"],
                    peak_minute=stats["peak_requests_60s"],
                    reasons=tuple(_reasons(vendor, stats["outcomes"], self._dials.get(vendor, {}))),
                )
            )
        return found


def _reasons(vendor: str, outcomes: Mapping[str, int], dials: Mapping[str, Any]) -> Iterator[str]:
    for outcome, (dial, words) in _REASONS.items():
        if count := outcomes.get(outcome):
            limit = dials.get(dial)
            remedy = (
                f"; providers.{vendor}.{_REMEDIES[outcome].format(limit)} keeps to it" if outcome in _REMEDIES else ""
            )
            yield f"{vendor}: {count} requests refused by {words.format(limit)}{remedy}"


@contextmanager
def staged(job: Job, *others: Job) -> Iterator[Stage]:
    """Sets the rehearsal of a job, or of the jobs of a sweep, up, and takes it down again.

    Raises:
        RequestError: dials that do not exist, or a vendor that cannot be simulated; all at once.
    """
    dials = job.rehearsal or {}
    problems = [] if job.cluster.get("kind") != "existing" else ["it runs on this machine: cluster=local or inline"]
    names = {name: None for one in (job, *others) for name in one.providers}
    vendors = {name: vendor for name in names if (vendor := _simulated(name)) is not None}
    problems += [
        f"{vendor} cannot be simulated; known: {', '.join(VENDORS)}"
        for vendor in dict.fromkeys(vendors.values())
        if vendor not in VENDORS
    ]
    if problems:
        raise refused("this cannot be rehearsed", problems)
    with tempfile.TemporaryDirectory(prefix="oeb-rehearsal-") as folder:
        answers = storage.join(folder, "answers")
        profile = Profile.from_dict({"answers": answers, "vendors": dials})
        if vendors and not job.dry_run:
            _write_answers(loaded_corpus(job), answers)
        with Simulator(profile) as simulator, _placeholders():
            servers = {name: f"{simulator.url}/{vendor}" for name, vendor in vendors.items()}
            out = storage.join(folder, "out")
            yield Stage(tuple(_turned(one, servers, out) for one in (job, *others)), simulator, dials)


def _turned(job: Job, servers: Mapping[str, str], out: str) -> Job:
    """The job with other servers for its vendors and another output; nobody is asked whether to begin."""
    providers = {
        name: {**entry, "address": servers[name]} if name in servers else entry for name, entry in job.providers.items()
    }
    return replace(job, providers=providers, out=out, confirm=False)


def _simulated(name: str) -> str | None:
    """The vendor that stands behind a provider's name; None if nobody is called for it, or nobody knows it."""
    if name == models.GROUP or "/" in name:
        return models.GROUP
    return name if paid(name) is not None else None


def _write_answers(corpus: Corpus, folder: str) -> None:
    """Each selected document's gold, named as the simulator names what it is sent: by the document's digest."""

    def write(position: int) -> None:
        doc = corpus.doc(position)
        name = f"{digest(storage.read(doc.doc_path))}.json"
        storage.put(storage.join(folder, name), storage.read(doc.gt_path))

    with ThreadPoolExecutor(READ_TOGETHER) as threads:
        list(threads.map(write, corpus.selected))


@contextmanager
def _placeholders() -> Iterator[None]:
    """Every vendor's variable holds a placeholder, so that no key leaves the environment, and none is needed."""
    vendors = (*PAID.values(), openrouter.OPENROUTER, openrouter.COMPATIBLE)
    names = {name for vendor in vendors for name in vendor.credential}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, PLACEHOLDER))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
