"""`oeb explain`: why two values are or are not equal, step by step."""

from __future__ import annotations

import argparse
import json
import re
from typing import TYPE_CHECKING, Any

from ..jsontext import read_json, visible
from .base import declare

if TYPE_CHECKING:
    from ..scoring.field_matching.explain import Comparison, Trace


def add(commands: Any) -> None:
    """Declares `oeb explain`."""
    parser = declare(
        commands, "explain", "Why two values are or are not equal: the steps by which each becomes what is compared.",
        "oeb explain '25,000' 25000\n  oeb explain 2029 '\"2029\"'",
    )  # fmt: skip
    parser._negative_number_matcher = re.compile(r"-[^a-zA-Z-]")  # such words are values, not flags
    parser.add_argument("value", metavar="VALUE", help="a JSON scalar, or any text as it is")
    parser.add_argument("other", metavar="VALUE2", nargs="?", help="what to compare it with")
    parser.set_defaults(command=_explain)


def _explain(given: argparse.Namespace) -> int:
    from ..scoring.field_matching.explain import compare, trace

    value, shown = _value(given.value)
    if given.other is None:
        _print_trace(trace(value), shown)
        return 0
    other, other_shown = _value(given.other)
    comparison = compare(value, other)
    _print_trace(comparison.left, shown)
    _print_trace(comparison.right, other_shown)
    print(_judgement(comparison, (shown, other_shown)))
    return 0


def _value(word: str) -> tuple[Any, str]:
    """What a word of the command line stands for, and as what it is shown: scalars of JSON and empty collections as
    they are written, anything else as the text that it is."""
    try:
        value = read_json(word.encode("utf-8", "surrogateescape"))
    except ValueError:
        value = word
    if isinstance(value, str) or (isinstance(value, (list, dict)) and value):
        text = value if isinstance(value, str) else word
        return text, f"text {_quoted(text)}"
    kind = {bool: "boolean ", int: "number ", float: "number "}.get(type(value), "")
    return value, f"{kind}{visible(word.strip())}"


def _print_trace(traced: Trace, shown: str) -> None:
    print(shown)
    width = max((len(step.name) for step in traced.steps), default=0)
    for step in traced.steps:
        print(f"  {step.name:<{width}}  {_quoted(step.text)}  {step.what}")
    print(f"  is compared as {_quoted(traced.key)}")


def _judgement(comparison: Comparison, shown: tuple[str, str]) -> str:
    at = comparison.at
    if comparison.equal:
        return f"equal: they meet at {at!r}" if at else "equal: they are the same"
    keys = f"not equal: {_quoted(comparison.left.key)} against {_quoted(comparison.right.key)}"
    if at is None:
        return f"{keys}; no step takes away what differs"
    if comparison.only is None:
        return f"{keys}; both get their key at {at!r}"
    return f"{keys}; they part at {at!r}, which takes only {shown[comparison.only]}"


def _quoted(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))
