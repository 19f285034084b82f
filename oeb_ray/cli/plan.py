"""`oeb plan`: what a job that does not fit here would come to: objects, bytes, requests, dollars, hours."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from ..errors import RequestError, refused
from .base import declare, print_columns, print_json

MOST = 10**12


def add(commands: Any) -> None:
    """Declares `oeb plan`."""
    parser = declare(
        commands, "plan", "What a large job would leave, ask for, cost and take; nothing is begun.",
        "oeb plan runs/ --documents 1e7 --runs 3 --nodes 50",
    )  # fmt: skip
    parser.add_argument("out", nargs="?", metavar="OUT", help="an output whose documents are taken for examples")
    parser.add_argument("--documents", required=True, metavar="N", help="of the corpus, such as 1e7")
    parser.add_argument("--runs", metavar="N", help="option sets over all providers; default as in OUT, or 1")
    parser.add_argument("--suites", default="1", metavar="N", help="of the corpus; default 1")
    parser.add_argument("--nodes", default="1", metavar="N", help="machines; default 1")
    parser.add_argument("--cpus", default="8", metavar="N", help="processors of each; default 8")
    parser.add_argument("--in-flight", default="10", metavar="N", help="calls at once at the account; default 10")
    parser.add_argument("--free", action="store_true", help="the providers cost nothing, as replay and pdftext")
    parser.add_argument("--vendor-seconds", metavar="S", help="that one document takes; default as in OUT, or 20")
    parser.add_argument("--usd-per-doc", metavar="USD", help="that a vendor takes; default as in OUT, or 0")
    parser.add_argument("--score-seconds", metavar="S", help="that scoring one document takes; default 0.02")
    parser.add_argument("--request-ms", default="15", metavar="MS", help="of one request to the bucket; default 15")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.set_defaults(command=_plan)


def _plan(given: argparse.Namespace) -> int:
    from dataclasses import replace

    from .. import forecast, storage

    numbers = _numbers(given)
    document, runs, paid = forecast.Document(), 1, not given.free
    if given.out is not None:
        document, runs, paid = forecast.document_of(storage.absolute(given.out))
        paid = paid and not given.free
    told = {"vendor_seconds": "vendor_seconds", "usd": "usd_per_doc", "score_seconds": "score_seconds"}
    document = replace(document, **{name: numbers[flag] for name, flag in told.items() if flag in numbers})
    scale = forecast.Scale(
        documents=int(numbers["documents"]),
        runs=int(numbers.get("runs", runs)),
        suites=int(numbers["suites"]),
        nodes=int(numbers["nodes"]),
        cpus=int(numbers["cpus"]),
        in_flight=int(numbers["in_flight"]),
        paid=paid,
        request=numbers["request_ms"] / 1000,
    )
    made = forecast.forecast(scale, document)
    if given.json:
        print_json(asdict(made) | {"prices": forecast.S3._asdict()})
        return 0
    _show(scale, made, forecast.S3)
    return 0


WHOLE = ("documents", "runs", "suites", "nodes", "cpus", "in_flight")
PARTS = ("vendor_seconds", "usd_per_doc", "score_seconds", "request_ms")


def _numbers(given: argparse.Namespace) -> dict[str, float]:
    """The numbers that flags give, by name; whole ones may be written 1e7. Raises RequestError, all at once."""
    found, wrong = {}, []
    for name in (*WHOLE, *PARTS):
        text = getattr(given, name)
        if text is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if name in WHOLE and not (value == value // 1 and 1 <= value <= MOST):
            wrong.append(f"{flag} {text!r}: wants a whole number from 1 to 1e12")
        elif name in PARTS and not 0 <= value <= MOST:
            wrong.append(f"{flag} {text!r}: wants a number of 0 or more")
        found[name] = value
    if wrong:
        raise refused("oeb plan", wrong)
    if found["suites"] > found["documents"]:
        raise RequestError(f"--suites {given.suites}: there are {given.documents} documents only")
    return found


def _show(scale: Any, made: Any, prices: Any) -> None:
    work = scale.documents * scale.runs
    rows = [
        ("predictions", f"{work:,}", f"{scale.documents:,} documents x {scale.runs} runs"),
        ("objects", f"{made.objects:,}", f"of them {2 * made.parts:,} parts of tables"),
        ("bytes", f"{made.bytes / 1e9:,.2f} GB", f"${made.storage_usd_month:,.2f} a month"),
        ("writes", f"{made.writes:,}", f"${made.request_usd:,.2f} with the reads ({prices.place}, {prices.as_of})"),
        ("reads", f"{made.reads:,}", ""),
        (
            "predicting",
            _span(made.predict_seconds),
            f"{scale.in_flight} at once" if scale.paid else "on all processors",
        ),
        ("scoring", _span(made.score_seconds), f"on {scale.nodes} x {scale.cpus} processors, beside predicting"),
        ("in all", _span(made.seconds), f"${made.vendor_usd:,.2f} to vendors" if made.vendor_usd else ""),
    ]
    print_columns(("", "", ""), [(name, figure, why) for name, figure, why in rows])


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"
