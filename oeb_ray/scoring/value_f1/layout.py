"""What is done to both documents before they are walked (METRIC_SPEC.md, "Preparing").

Lists at the root become objects where they can, claims move to where the other side has them, and an envelope is
opened. Nothing given is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_ARRAY_NAME = re.compile(r"([^.\[\]]+)\[\d+\]")
PAYMENTS, CLAIMS = "payment_details", "claims"


def projected(output: Any, root_names: Iterable[str], rule_paths: Iterable[str]) -> Any:
    """A list at the root as the object it stands for, if that can be said; everything else as it is.

    Args:
        root_names: the properties at the schema's root. rule_paths: the paths that rules are given for.
    """
    if not isinstance(output, list):
        return output
    spell, paths = _Spelling(root_names), list(rule_paths)
    found = {match[1] for path in paths if (match := _ARRAY_NAME.match(path))}
    arrays = [name for name in sorted(found) if spell(name) == name]
    if output:
        if len(output) == 1 and not arrays and (paths or spell.names) and _has_no_lists(output[0]):
            return {spell(key): value for key, value in output[0].items()}
        if all(isinstance(part, dict) for part in output) and not all(map(_has_no_lists, output)):
            return _merged(output, spell)
    return {arrays[0]: output} if len(arrays) == 1 else output


class _Spelling:
    """The schema's spelling of a root key, where only one root property is that name but for case."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._by_fold: dict[str, list[str]] = {}
        for name in self.names:
            self._by_fold.setdefault(name.casefold(), []).append(name)

    def __call__(self, key: str) -> str:
        spelled = self._by_fold.get(key.casefold(), ())
        return spelled[0] if len(spelled) == 1 else key


def _has_no_lists(part: Any) -> bool:
    return isinstance(part, dict) and not any(isinstance(value, list) for value in part.values())


def _merged(parts: list[dict[str, Any]], spell: _Spelling) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            name = spell(key)
            there = merged.get(name)
            if isinstance(value, list):
                rows = [row for row in value if row is not None]
                merged[name] = [*there, *rows] if isinstance(there, list) else rows
            elif there is None and value is not None and value != "":
                merged[name] = value
    return merged


def reconciled(reference: Any, output: Any) -> tuple[Any, Any]:
    """Both sides with payments in one shape, and claims at the root of both if they are at the root of one."""
    if not isinstance(reference, dict) or not isinstance(output, dict):
        return reference, output
    ours, theirs = reference.get(PAYMENTS), output.get(PAYMENTS)
    if isinstance(ours, dict) and isinstance(theirs, list):
        reference = reference | {PAYMENTS: [ours]}
    elif isinstance(theirs, dict) and isinstance(ours, list):
        output = output | {PAYMENTS: [theirs]}
    if _is_flat(output) and _is_nested(reference) and not _is_flat(reference):
        reference = _flattened(reference)
    elif _is_flat(reference) and _is_nested(output) and not _is_flat(output):
        output = _flattened(output)
    return reference, output


def _is_flat(side: dict[str, Any]) -> bool:
    claims = side.get(CLAIMS)
    return isinstance(claims, list) and bool(claims)


def _has_claims(payment: Any) -> bool:
    return isinstance(payment, dict) and isinstance(payment.get(CLAIMS), list)


def _is_nested(side: dict[str, Any]) -> bool:
    payments = side.get(PAYMENTS)
    return isinstance(payments, list) and any(map(_has_claims, payments))


def _flattened(side: dict[str, Any]) -> dict[str, Any]:
    own = side.get(CLAIMS)
    claims = list(own) if isinstance(own, list) else []
    payments = []
    for payment in side[PAYMENTS]:
        if _has_claims(payment):
            claims += payment[CLAIMS]
            payment = {key: value for key, value in payment.items() if key != CLAIMS}
        payments.append(payment)
    return side | {CLAIMS: claims, PAYMENTS: payments}


def opened(side: Any) -> Any:
    """What an object with the single key ``value`` holds, once; everything else as it is."""
    return side["value"] if isinstance(side, dict) and side.keys() == {"value"} else side
