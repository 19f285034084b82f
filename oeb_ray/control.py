"""How a job is steered from elsewhere: it says what it is at in its heartbeat, and reads orders that lie beside it.

In: an output. Out: the jobs at work there, and the orders for each: what holds now, not what changed. The same two
objects serve folders and buckets, jobs in one process and on any cluster; nobody has to reach the job's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from . import storage
from .calls import OWNERS, is_alive
from .errors import RequestError, suggestion
from .jsontext import pretty, read_json

LIMITS = ("in_flight", "rpm", "max_usd")
MOST_BYTES = 100_000  # of orders or a heartbeat that is read


@dataclass(frozen=True, slots=True)
class Orders:
    """``n`` counts how often they were changed; ``limits``: by provider, those of `LIMITS` that were set."""

    n: int = 0
    paused: bool = False
    stop: bool = False
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class Working(NamedTuple):
    """A job at work: its name, and the standing that it wrote last (see steering.standing)."""

    name: str
    standing: dict[str, Any]


def working(out: str) -> list[Working]:
    """The jobs that are at work in an output, by name; those whose heartbeat has ended are left out."""
    found = []
    folder = storage.join(out, OWNERS)
    for key in sorted(storage.listed(folder, deep=False)):
        standing = _object(storage.join(folder, key)) if key.endswith(".json") else None
        if standing is not None and isinstance(standing.get("job"), dict):
            name = storage.decode_id(key.removesuffix(".json"))
            if is_alive(out, name):
                found.append(Working(name, standing["job"]))
    return found


def orders_for(out: str, job: str) -> Orders:
    """What holds for a job; no orders where there are none, or none that can be read."""
    found = _object(_address(out, job)) or {}
    n, limits = found.get("n"), found.get("limits")
    if type(n) is not int or not isinstance(limits, dict):
        return Orders()
    return Orders(
        n,
        found.get("paused") is True,
        found.get("stop") is True,
        {
            provider: {name: value for name, value in given.items() if wrong_limit(name, value) is None}
            for provider, given in limits.items()
            if isinstance(given, dict)
        },
    )


def give(out: str, job: str, orders: Orders) -> None:
    """Puts orders in place of those that there are."""
    storage.put(_address(out, job), pretty(asdict(orders)))


def end(out: str, job: str) -> None:
    """Removes the orders of a job that is over."""
    storage.delete(_address(out, job))


def wrong_limit(name: str, value: Any) -> str | None:
    """Why a limit cannot be set so; None if it can."""
    if name not in LIMITS:
        return f"no such limit; {suggestion(name, LIMITS)}"
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        return f"{value!r}: wants a number above 0"
    return f"{value!r}: wants a whole number" if name == "in_flight" and value != int(value) else None


def parsed_limit(word: str, providers: list[str]) -> tuple[str, str, float]:
    """Provider, limit and value of a word such as ``datalab.in_flight=4``. Raises RequestError."""
    key, _, text = word.partition("=")
    provider, _, name = key.rpartition(".")
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"{word!r}: write PROVIDER.LIMIT=NUMBER, such as datalab.in_flight=4") from None
    if wrong := wrong_limit(name, value):
        raise RequestError(f"{key}: {wrong}")
    if provider not in providers:
        raise RequestError(f"{key}: the job asks no {provider!r}; {suggestion(provider, providers)}")
    return provider, name, value


def _address(out: str, job: str) -> str:
    return storage.join(out, OWNERS, f"{storage.encode_id(job)}.orders")


def _object(address: str) -> dict[str, Any] | None:
    try:
        data = storage.read(address)
        found = read_json(data) if len(data) <= MOST_BYTES else None
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None
