"""What the outputs of a Run earn as a Harbor job would give it: a reward per task, and their mean.

In: a Run over a corpus. Out: a row per document: its reward, or why there is none. A task without a reward counts 0 in
the mean, as in Harbor's, and is named: a fault of the verifier is no miss of the agent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .. import layout, storage
from ..corpus.manifest import Corpus
from ..corpus.tasks import REFERENCE
from ..jsontext import line, pretty, read_json
from ..receipts import stored_receipts
from ..records import Doc, Receipt
from .cases import annotations_of
from .judging import Submitted, judge_all
from .tasks import TODAY
from .verifier import SECONDS, Judged

ROWS, SUMMARY = "rewards.jsonl", "rewards.json"


def judge_run(out: str, run: str, corpus: Corpus, *, seconds: float = SECONDS) -> list[dict[str, Any]]:
    """Judges each selected document of a Run as its task's verifier would, and writes rewards.jsonl and rewards.json.

    Args:
        seconds: for one document; then its verifier has failed.

    Returns:
        A row per document: ``task``, ``reward`` (None without one), ``status`` (``scored``, ``zero``, ``fault`` or
        ``not run``), ``why`` unless it is scored, the figures of metrics.json, ``counts``, ``value_incomplete``.
    """
    docs = [corpus.doc(position) for position in corpus.selected]
    receipts = stored_receipts(out, run, {doc.doc_id for doc in docs})
    asked = [doc for doc in docs if doc.doc_id in receipts]

    def submit(number: int) -> Submitted:
        doc = asked[number]
        output = None
        if receipts[doc.doc_id].prediction_sha256 is not None:
            output = storage.read(layout.prediction(out, run, doc.doc_id))
        return Submitted(reference_of(doc), output)

    made = dict(zip((doc.doc_id for doc in asked), judge_all(len(asked), submit, seconds), strict=True))
    rows = [_row(doc.doc_id, made.get(doc.doc_id), receipts.get(doc.doc_id)) for doc in docs]
    storage.put(storage.join(out, run, ROWS), "".join(f"{line(row)}\n" for row in rows).encode())
    storage.put(storage.join(out, run, SUMMARY), pretty(summary_of(rows)))
    return rows


def summary_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts and means over all tasks; one without a reward counts 0, and is also counted by its status."""
    count = len(rows)
    statuses = [row["status"] for row in rows]
    return {
        "tasks": count,
        "rewarded": sum(row["reward"] is not None for row in rows),
        **{name: statuses.count(name) for name in ("scored", "zero", "fault", "not run")},
        "mean_reward": math.fsum(row["reward"] or 0.0 for row in rows) / count if count else None,
        "perfect_fraction": sum(row.get("perfect_document") == 1 for row in rows) / count if count else None,
    }


def _row(task: str, made: Judged | str | None, receipt: Receipt | None) -> dict[str, Any]:
    if made is None or receipt is None:
        return {"task": task, "reward": None, "status": "not run", "why": "there is no record of it"}
    if isinstance(made, str):
        return {"task": task, "reward": None, "status": "fault", "why": made}
    row = {"task": task, "reward": made.reward, "status": "scored", "why": None}
    if (refusal := made.feedback["error"]) is not None:
        row |= {"status": "zero", "why": receipt.error or refusal["message"]}
    return {**row, **made.metrics, **{key: made.feedback[key] for key in ("counts", "value_incomplete")}}


def reference_of(doc: Doc) -> bytes:
    """What a document is judged by: the reference that its task carries, else gold, schema and annotations together.

    What cannot be read gives bytes that are no JSON, so that judging says so of this document.
    """
    try:
        if doc.annotations is not None and doc.annotations.endswith(f"/{REFERENCE}"):
            return storage.read(doc.annotations)
        about = {
            "schema": read_json(doc.schema.encode("utf-8", "surrogatepass")),
            "reference": read_json(storage.read(doc.gt_path)),
            "field_rules": annotations_of(doc).get("field_rules") or {},
            "today": TODAY,
        }
    except (ValueError, FileNotFoundError) as error:
        return str(error).encode()
    return pretty(about)
