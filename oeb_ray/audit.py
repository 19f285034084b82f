"""Verdict rows of a run, to be looked at one by one.

In: a run and which rows. Out: the rows in the order of the parts, each document's in reading order, with both values as
they came and as they were compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from . import layout
from .errors import RequestError, suggestion
from .jsontext import from_raw_json
from .results import EVERYTHING, Wanted, parts, read_scores
from .scorers.field_matching import SCORES, VERDICTS
from .scoring.field_matching import canon_key
from .stored import StoredRun


def verdict_rows(run: StoredRun, wanted: Wanted = EVERYTHING) -> Iterator[dict[str, Any]]:
    """The rows wanted, as they are stored.

    Raises:
        RequestError: the run has no such document or field, or no verdicts.
    """
    _check_documents(run, wanted)
    none = True
    for table in parts(run, layout.VERDICTS, VERDICTS, wanted):
        none = False
        yield from table.to_pylist()
    if none:
        _check_fields(run, wanted)


def failures(run: StoredRun, wanted: Wanted = EVERYTHING) -> list[tuple[str, str]]:
    """Documents among those wanted that have no verdicts since they failed, and why."""
    chosen = replace(wanted, field=None, verdict=None)
    rows = [row for table in parts(run, layout.SCORES, SCORES, chosen) for row in table.to_pylist()]
    return sorted((row["doc_id"], row["error"]) for row in rows if row["status"] == "error")


def _check_documents(run: StoredRun, wanted: Wanted) -> None:
    if wanted.doc_id is None:
        return
    found = {row for table in parts(run, layout.SCORES, SCORES, Wanted(doc_id=wanted.doc_id)) for row in _ids(table)}
    for doc_id in sorted(wanted.doc_id - found):
        known = read_scores(run.address, columns=["doc_id"]).column("doc_id").to_pylist()
        raise RequestError(f"{run.name} has no document {doc_id!r}; {suggestion(doc_id, known)}")


def _ids(table: Any) -> list[str]:
    return list(table.column("doc_id").to_pylist())


def _check_fields(run: StoredRun, wanted: Wanted) -> None:
    """Says why there is no row, where that is not what the scores say."""
    everything = replace(wanted, field=None, verdict=None)
    fields: set[str] = set()
    for table in parts(run, layout.VERDICTS, VERDICTS, everything):
        fields.update(table.column("field").to_pylist())
    if not fields and any(len(_ids(table)) for table in parts(run, layout.SCORES, SCORES, everything)):
        if not failures(run, everything):
            raise RequestError(f"{run.address} has no verdicts; it was scored without them")
        return
    for name in sorted(wanted.field or ()):
        if not any(field == name or field.startswith((f"{name}.", f"{name}[")) for field in fields):
            raise RequestError(f"{run.name} has no field {name!r} there; {suggestion(name, sorted(fields))}")


def as_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its values as JSON has them, every digit kept; NaN and the like stay ``{"$float": "NaN"}``."""
    given = {
        "address": json.loads(row["address"]),
        "gold_raw": None if row["gold_raw"] is None else json.loads(row["gold_raw"]),
        "pred_raw": None if row["pred_raw"] is None else json.loads(row["pred_raw"]),
    }
    canons = {f"{side}_canon": canon_of(row[f"{side}_canon"], row[f"{side}_raw"]) for side in ("gold", "pred")}
    return row | given | canons


def canon_of(canon: str | None, raw: str | None) -> str | None:
    """A stored key as it was compared: half surrogate pairs, which the table escapes, are made again from the value."""
    return canon_key(from_raw_json(raw)) if canon is not None and raw is not None and "\\u" in canon else canon
