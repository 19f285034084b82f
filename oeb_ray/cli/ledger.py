"""`oeb ledger`: what was paid, to whom, when and why; and what was paid for more than once."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from ..jsontext import line, visible
from .base import declare, print_columns

if TYPE_CHECKING:
    from ..ledger import Entry, Total

HEAD = ("attempts", "free", "unpriced", "usd", "credits")


def add(commands: Any) -> None:
    """Declares `oeb ledger`."""
    parser = declare(
        commands, "ledger", "Every paid attempt: by account, run, day and reason, and what was paid for again.",
        "oeb ledger runs/ --by day",
    )  # fmt: skip
    parser.add_argument("out", metavar="OUT", help="folder or URL that a benchmark wrote to")
    parser.add_argument("--by", choices=("account", "run", "day", "reason"), help="one table only")
    parser.add_argument("--json", action="store_true", help="every attempt as a line of JSON")
    parser.set_defaults(command=_ledger)


def _ledger(given: argparse.Namespace) -> int:
    from .. import ledger, storage

    out = storage.absolute(given.out)
    if not storage.is_folder(out):
        raise RequestError(f"{given.out}: there is no such folder; name the one that --out named")
    entries = ledger.entries(out)
    if given.json:
        for entry in entries:
            print(line({"run": entry.run, **asdict(entry.attempt)}))
        return 0
    if not entries:
        print("no paid attempts")
        return 0
    for group in [given.by] if given.by else ledger.GROUPS:
        _print_totals(group, ledger.totals(entries, group))
    again = ledger.paid_again(entries)
    if again and not given.by:
        print(f"asked more than once where an earlier attempt may have been billed: {len(again)} documents")
        for attempts in again:
            _print_again(attempts)
    return 0


def _print_totals(group: str, totals: dict[str, Total]) -> None:
    print_columns((group, *HEAD), [(name, *map(_shown, total)) for name, total in totals.items()])
    print()


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:,.4f}"


def _print_again(attempts: list[Entry]) -> None:
    first = attempts[0]
    print(visible(f"  {first.run}  {first.attempt.doc_id}"))
    for _, attempt in attempts:
        price = "price unknown" if attempt.usd is None else f"${attempt.usd:.4f}"
        job = f", job {attempt.job_id}" if attempt.job_id else ""
        print(visible(f"    {attempt.n}  {attempt.reason}; {attempt.outcome or 'no end known'}; {price}{job}"))
