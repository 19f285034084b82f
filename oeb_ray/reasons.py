"""Why each document of a plan is predicted, graded again, or left as it is.

In: a Plan and one of its Runs. Out: reasons with the documents that they hold for. Parts that are to be made again are
read for it, so this is for people who ask, not for every job.
"""

from __future__ import annotations

from . import layout
from .errors import StorageError
from .grade import SCORER
from .plan import Plan, RunPlan
from .records import ScoreItem
from .tables import SCORES, DamagedPart, read_part


def predict_reasons(plan: Plan, made: RunPlan) -> dict[str, list[str]]:
    """doc_ids by why they are asked for; those that are not stand under ``recorded, reused``."""
    ids = plan.corpus.ids
    found = {why: [ids[position] for position in positions] for why, positions in made.why.items()}
    asked = set(made.predict)
    reused = [ids[row] for row in plan.corpus.selected if row not in asked and ids[row] in made.receipts]
    return found | ({"recorded, reused": reused} if reused else {})


def grade_reasons(plan: Plan, made: RunPlan) -> dict[str, list[str]]:
    """doc_ids of recorded documents by why their parts are made again: which digest differs from the graded one.

    Documents whose own row holds, and that only share a part with others, are left out.
    """
    found: dict[str, list[str]] = {}
    asked = set(made.predict)
    for home in sorted(plan.to_score(made)):
        rows = _graded(plan, made, home)
        for position in plan.recorded(made, home):
            if position in asked:
                continue
            item = plan.item(made, position)
            gold = plan.files.get(item.gt_path, plan.corpus.stamps[item.gt_path])
            why = "rescore" if plan.selection.rescore else _difference(item, gold, rows.get(item.doc_id))
            if why:
                found.setdefault(why, []).append(item.doc_id)
    return found


def _graded(plan: Plan, made: RunPlan, home: layout.Home) -> dict[str, dict[str, str | None]]:
    """The rows that are there: scorer and digests by doc_id."""
    if home not in made.part_files.get(layout.SCORES, ()):
        return {}
    try:
        table = read_part(layout.part(plan.out, made.run.name, layout.SCORES, home), SCORES)
    except (DamagedPart, FileNotFoundError, StorageError):
        return {}
    columns = ["doc_id", "scorer", "prediction_sha256", "gold_sha256", "schema_sha256"]
    return {row["doc_id"]: row for row in table.select(columns).to_pylist()}


def _difference(item: ScoreItem, gold: str, row: dict[str, str | None] | None) -> str:
    """What differs from the row that was graded; empty if it holds."""
    if row is None:
        return "not graded yet"
    if row["scorer"] != SCORER:
        return f"graded by {row['scorer']}, now {SCORER}"
    now = {"prediction": item.prediction_sha256, "gold": gold, "schema": item.schema_sha256}
    changed = [name for name, digest in now.items() if row[f"{name}_sha256"] != digest]
    return f"{' and '.join(changed)} changed since" if changed else ""
