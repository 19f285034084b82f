"""Run records: every field of every document of every model, as one JSON file.

In: a file's bytes, or what is to be recorded. Out: a checked record as plain JSON, ``{startedAt, manifestChecksum,
runs: [{model, docs}]}``, with keys of our own kept. Documents are named as the harness does, ``cord/test/4``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import RequestError, refused
from ..jsontext import pretty, read_json
from ..scoring.field_accuracy import KINDS, values_match

SHOWN = 10
_NAME = re.compile(r"run-.*\.json", re.DOTALL)
_STARTED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_CHECKSUM = re.compile(r"[0-9a-f]{64}")
Json = dict[str, Any]


def file_name(started: str) -> str:
    """The name of a record's file: ``run-2026-08-01T09-30-00-000Z.json`` for the start in UTC with milliseconds."""
    return f"run-{started.replace(':', '-').replace('.', '-')}.json"


def latest(names: Sequence[str]) -> str:
    """The newest record among the files of a folder. Raises RequestError: there is none."""
    records = sorted(name for name in names if _NAME.fullmatch(name))
    if not records:
        raise RequestError("no run record there; records are named run-....json")
    return records[-1]


def read_record(data: bytes, name: str) -> Json:
    """A record, checked; ``name`` leads every message.

    Raises:
        RequestError: no JSON, or what is missing or of a wrong type.
    """
    try:
        value = read_json(data)
    except ValueError as error:
        raise RequestError(f"{name} is no JSON: {error}") from error
    faults: list[str] = []
    for fault in _faults(value):
        if len(faults) == SHOWN:
            faults.append("and more")
            break
        faults.append(fault)
    if faults:
        raise refused(f"{name} is no run record", faults)
    record: Json = value
    return record


def record_file(record: Json) -> bytes:
    """A record as it is stored."""
    return pretty(record)


def merged(records: Sequence[tuple[str, Json]]) -> Json:
    """Records of one manifest as one, models in the order given; each comes with the name for messages.

    Raises:
        RequestError: they are of different manifests, or two of them have one model.
    """
    first_name, first = records[0]
    others = [
        f"{name} is of manifest {record['manifestChecksum'][:12]}, {first_name} of {first['manifestChecksum'][:12]}"
        for name, record in records
        if record["manifestChecksum"] != first["manifestChecksum"]
    ]
    if others:
        raise refused("records of other documents cannot be compared", others)
    seen: dict[str, str] = {}
    twice = []
    for name, record in records:
        for run in record["runs"]:
            if run["model"] in seen:
                twice.append(f"{run['model']!r} is in {seen[run['model']]} and in {name}; give one of them")
            seen.setdefault(run["model"], name)
    if twice:
        raise refused("records cannot be merged", twice)
    conditions = dict.fromkeys(text for _, record in records for text in record.get("conditions", ()))
    return first | {
        "startedAt": min(record["startedAt"] for _, record in records),
        **({"conditions": list(conditions)} if conditions else {}),
        "runs": [run for _, record in records for run in record["runs"]],
    }


def misjudged(record: Json) -> list[str]:
    """Fields of answered documents that these rules judge otherwise than the record, as texts.

    Another rendering that is also right is not in a record, so what it calls right although it differs is none.
    """
    found = []
    for run in record["runs"]:
        for doc in run["docs"]:
            if doc["error"] is None:
                wrong = [field for field in doc["fields"] if _is_misjudged(field)]
                found += [f"{run['model']}, {doc['docId']}, {field['path']}: {_told(field)}" for field in wrong]
    return found


def _is_misjudged(field: Json) -> bool:
    expected, predicted = field["expected"], field["predicted"]
    if field["valueCorrect"]:
        return (expected is None) != (predicted is None)
    return values_match(expected, predicted, field["compare"])


def _told(field: Json) -> str:
    verdict = "right" if field["valueCorrect"] else "wrong"
    return f"{field['predicted']!r} for {field['expected']!r} is recorded as {verdict}"


def _faults(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield "it must be an object"
        return
    if not (isinstance(value.get("startedAt"), str) and _STARTED.fullmatch(value["startedAt"])):
        yield f"startedAt is {_shown(value.get('startedAt'))}, not a time such as 2026-08-01T09:30:00.000Z"
    if not (isinstance(value.get("manifestChecksum"), str) and _CHECKSUM.fullmatch(value["manifestChecksum"])):
        yield f"manifestChecksum is {_shown(value.get('manifestChecksum'))}, not a SHA-256"
    conditions = value.get("conditions", [])
    if not isinstance(conditions, list) or not all(isinstance(condition, str) for condition in conditions):
        yield "conditions is no list of texts"
    for at, run in _members(value.get("runs"), "runs"):
        if not isinstance(run, dict) or not isinstance(run.get("model"), str):
            yield f"{at} has no model"
            continue
        for place, doc in _members(run.get("docs"), f"{at}.docs"):
            yield from ([f"{place} is no object"] if not isinstance(doc, dict) else _doc_faults(doc, place))


def _members(value: Any, at: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, list):
        yield at, None
        return
    for number, member in enumerate(value):
        yield f"{at}[{number}]", member


def _doc_faults(doc: Json, at: str) -> Iterator[str]:
    for key in ("docId", "dataset", "schema"):
        if not isinstance(doc.get(key), str):
            yield f"{at}.{key} is {_shown(doc.get(key))}, not a text"
    if not isinstance(doc.get("error", 0), (str, type(None))):
        yield f"{at}.error is neither text nor null"
    if type(doc.get("extraLineItems")) is not int or doc["extraLineItems"] < 0:
        yield f"{at}.extraLineItems is {_shown(doc.get('extraLineItems'))}, not a count"
    usage = doc.get("usage", 0)
    if usage is not None and not _is_usage(usage):
        yield f"{at}.usage is neither null nor tokens, calls and costUSD"
    for place, field in _members(doc.get("fields"), f"{at}.fields"):
        if not _is_field(field):
            yield f"{place} is no result of a field"


def _is_usage(usage: Any) -> bool:
    counts = ("inputTokens", "outputTokens", "modelCalls")
    return (
        isinstance(usage, dict)
        and all(type(usage.get(key)) is int and usage[key] >= 0 for key in counts)
        and (usage.get("costUSD", 0) is None or _is_number(usage.get("costUSD")))
    )


def _is_field(field: Any) -> bool:
    if not isinstance(field, dict) or not isinstance(field.get("path"), str) or field.get("compare") not in KINDS:
        return False
    texts = all(isinstance(field.get(key, 0), (str, type(None))) for key in ("expected", "predicted"))
    place = field.get("iou", "")
    page = field.get("predictedPage", "")
    return (
        texts
        and isinstance(field.get("valueCorrect"), bool)
        and (place is None or (_is_number(place) and 0 <= place <= 1))
        and (page is None or _is_number(page))
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -math.inf < value < math.inf


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value)[:60]
