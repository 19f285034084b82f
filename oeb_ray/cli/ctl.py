"""`oeb ctl`: shows and steers jobs that are at work, from any terminal that reaches their output or their cluster."""

from __future__ import annotations

import argparse
import re
import time
from typing import TYPE_CHECKING, Any

from ..errors import RequestError, suggestion
from .base import declare, note, print_columns

if TYPE_CHECKING:
    from ..control import Orders, Working

VERBS = ("status", "pause", "resume", "stop", "set")
TAKEN_SECONDS = 30.0  # within which a job that is alive has taken its orders
HEAD = ("run", "done", "failed", "in flight", "queue", "parts", "dollars")


def add(commands: Any) -> None:
    """Declares `oeb ctl`."""
    parser = declare(
        commands, "ctl", "Show and steer jobs that are at work: pause, resume, stop, and set limits of vendors.",
        "oeb ctl runs/ set datalab.in_flight=4 datalab.max_usd=50",
    )  # fmt: skip
    parser.add_argument("target", metavar="OUT|ADDRESS", help="the output that jobs write to, or HOST:PORT of a Ray")
    parser.add_argument("verb", nargs="?", default="status", metavar="VERB", help="|".join(VERBS))
    parser.add_argument("limits", nargs="*", metavar="PROVIDER.LIMIT=N", help="after set: in_flight, rpm or max_usd")
    parser.add_argument("--job", metavar="NAME", help="of several jobs this one only")
    parser.set_defaults(command=_ctl)


def _ctl(given: argparse.Namespace) -> int:
    from .. import control

    if given.verb not in VERBS:
        raise RequestError(f"{given.verb!r} is nothing that a job can be told; {suggestion(given.verb, VERBS)}")
    if bool(given.limits) != (given.verb == "set"):
        raise RequestError("limits follow `set`, such as: oeb ctl runs/ set datalab.in_flight=4")
    jobs = [(out, job) for out in _outputs(given.target) for job in control.working(out)]
    if not jobs:
        raise RequestError(
            f"no job is at work in {given.target}; one says so within seconds of its start, until it ends"
        )
    chosen = [(out, job) for out, job in jobs if given.job in (None, job.name)]
    if not chosen:
        raise RequestError(f"no job {given.job!r} is at work; {suggestion(given.job, [job.name for _, job in jobs])}")
    if given.verb == "status":
        for _, job in chosen:
            _show(job)
        return 0
    told = [(out, job, _changed(out, job, given.verb, given.limits)) for out, job in chosen]  # all are right, or none
    for out, job, orders in told:
        control.give(out, job.name, orders)
    for out, job, orders in told:
        _await(out, job, orders)
    return 0


def _outputs(target: str) -> list[str]:
    """The outputs behind a target: itself, or those that the pools of a cluster write to."""
    from .. import storage

    if not re.fullmatch(r"(ray://)?[^/\s:]+:\d+|auto", target):
        return [storage.absolute(target)]
    from ..cluster.rays import outputs_at

    found = outputs_at(target)
    if not found:
        raise RequestError(f"no vendor is asked on the cluster at {target}; a job without vendors is found by its OUT")
    return found


def _changed(out: str, job: Working, verb: str, limits: list[str]) -> Orders:
    from dataclasses import replace

    from .. import control

    orders = control.orders_for(out, job.name)
    orders = replace(orders, n=orders.n + 1)
    if verb in ("pause", "resume"):
        return replace(orders, paused=verb == "pause")
    if verb == "stop":
        return replace(orders, stop=True)
    providers = list(job.standing.get("limits", {}))
    new: dict[str, dict[str, float]] = {name: dict(each) for name, each in orders.limits.items()}
    for provider, name, value in (control.parsed_limit(word, providers) for word in limits):
        new.setdefault(provider, {})[name] = value
    return replace(orders, limits=new)


def _await(out: str, job: Working, orders: Orders) -> None:
    """Waits until the job has taken the orders, or is over."""
    from .. import control

    until = time.monotonic() + TAKEN_SECONDS
    while time.monotonic() < until:
        time.sleep(0.5)
        now = {each.name: each for each in control.working(out)}.get(job.name)
        if now is None:
            print(f"{job.name}: has ended")
            return
        if now.standing.get("orders", 0) >= orders.n:
            print(f"{job.name}: done")
            return
    note(f"{job.name}: has not looked for {TAKEN_SECONDS:g} s; it is told as soon as it does")


def _show(job: Working) -> None:
    standing = job.standing
    print(f"{job.name}: since {standing.get('started')}{', paused' if standing.get('paused') else ''}")
    for provider, limits in standing.get("limits", {}).items():
        told = "  ".join(f"{name}={'-' if value is None else f'{value:g}'}" for name, value in limits.items())
        print(f"  {provider}: {told}")
    rows = [
        (
            str(run["run"]),
            f"{run['done']}/{run['total']}",
            str(run["failed"]),
            str(run["in_flight"]),
            str(run["queue"]),
            f"{run['parts_done']}/{run['parts']}",
            f"{run['usd']:.2f}",
        )
        for run in standing.get("runs", [])
    ]
    print_columns(HEAD, rows)
