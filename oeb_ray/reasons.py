"""Why each document of a plan is predicted, graded again, or left as it is.

In: a Plan and one of its Runs. Out: reasons with the documents that they hold for. Parts that are to be made again are
read for it, so this is for people who ask, not for every job.
"""

from __future__ import annotations

from . import layout
from .errors import StorageError
from .plan import Part, Plan, RunPlan
from .records import ScoreItem
from .scorers import find
from .scorers.contract import Scorer
from .tables import DamagedPart, read_part


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
    for part in sorted(plan.to_score(made)):
        scorer = find(part.scorer)
        rows = _graded(plan, made, part, scorer)
        for position in plan.recorded(made, part.home):
            if position in asked:
                continue
            item = plan.item(made, position)
            row = rows.get(item.doc_id)
            why = "rescore" if plan.selection.rescore else _why_again(plan, item, row, scorer.label)
            if why and item.doc_id not in found.get(why, ()):
                found.setdefault(why, []).append(item.doc_id)
    return found


def _why_again(plan: Plan, item: ScoreItem, row: dict[str, str | None] | None, scorer: str) -> str:
    try:
        gold = plan.files.get(item.gt_path, plan.corpus.stamps[item.gt_path])
    except FileNotFoundError:
        return "its gold is not on this machine"
    return _difference(item, gold, row, scorer)


def _graded(plan: Plan, made: RunPlan, part: Part, scorer: Scorer) -> dict[str, dict[str, str | None]]:
    """The rows that are there: scorer and digests by doc_id."""
    scores = layout.below(part.scorer, layout.SCORES)
    if part.home not in made.part_files.get(scores, ()):
        return {}
    try:
        table = read_part(layout.part(plan.out, made.run.name, scores, part.home), scorer.scores)
    except (DamagedPart, FileNotFoundError, StorageError):
        return {}
    columns = ["doc_id", "scorer", "prediction_sha256", "gold_sha256", "schema_sha256"]
    return {row["doc_id"]: row for row in table.select(columns).to_pylist()}


def _difference(item: ScoreItem, gold: str, row: dict[str, str | None] | None, scorer: str) -> str:
    """What differs from the row that was graded; empty if it holds."""
    if row is None:
        return "not graded yet"
    if row["scorer"] != scorer:
        return f"graded by {row['scorer']}, now {scorer}"
    now = {"prediction": item.prediction_sha256, "gold": gold, "schema": item.schema_sha256}
    changed = [name for name, digest in now.items() if row[f"{name}_sha256"] != digest]
    return f"{' and '.join(changed)} changed since" if changed else ""
