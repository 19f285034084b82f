"""A run of the extractkit harness over scripted answers: the package's rules, with a script in place of models."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from oeb_ray.corpus.forms import FORMS
from oeb_ray.corpus.labelled import ENDINGS
from oeb_ray.extractkit.results import MISSING, document_result, usage_of
from oeb_ray.media import media_type
from oeb_ray.providers import evidence
from oeb_ray.scoring.field_accuracy.gold import CORNERS

MOST_CALLS = 2


def sniffed(data: bytes) -> str | None:
    """The media type of a document that can be asked about."""
    found = media_type(data, "")
    return found if found in ENDINGS and (found != "application/pdf" or data.startswith(b"%PDF-")) else None


def run_doc(
    doc_id: str, form: str, gold: Any, pages: int, replies: Sequence[dict[str, str]],
    usages: Sequence[dict[str, int]], prices: Any, data: bytes = b"%PDF-",
) -> dict[str, Any]:  # fmt: skip
    """The result of a document whose model answers with ``replies`` in turn, the last one again and again."""
    spent, answer, error = [], None, None
    if sniffed(data) is None:
        return document_result(doc_id, form, gold, None, "DocumentError", None)
    for call in range(MOST_CALLS):
        reply = replies[min(call, len(replies) - 1)]
        if "throw" in reply:
            return document_result(doc_id, form, gold, None, "*", None)
        spent.append(usages[min(call, len(usages) - 1)])
        answer, error = read_reply(reply["text"], form, pages)
        if error in (None, "DocumentUnreadableError"):
            break
    tokens = [sum(usage[side] for usage in spent) for side in ("input", "output")]
    usage = usage_of(tokens[0], tokens[1], len(spent), prices)
    return document_result(doc_id, form, gold, answer, error, usage)


def read_reply(text: str, form: str, pages: int) -> tuple[Any, str | None]:
    """The answer in a model's text, and what is wrong with it; an answer that lacks something is given all the same."""
    asked = evidence.form_of(json.loads(FORMS[form].schema()))
    try:
        answer = json.loads(text)
    except ValueError:
        return None, "ExtractionFailedError"
    if evidence.faults(asked, answer):
        return None, "ExtractionFailedError"
    if not answer["readable"]:
        return None, "DocumentUnreadableError"
    found = evidence.taken(asked, answer["fields"], pages)
    return with_places(found.data, found.citations), MISSING if found.missing else None


def with_places(data: Any, citations: Sequence[dict[str, Any]]) -> Any:
    """Bare values and what is said of them beside, as the harness has both: a leaf in place of each value."""
    beside = {entry["path"]: entry for entry in citations}

    def leaf(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {name: leaf(below, f"{path}.{name}" if path else name) for name, below in value.items()}
        if isinstance(value, list):
            return [leaf(member, f"{path}[{number}]") for number, member in enumerate(value)]
        entry = beside[path]
        page, box = entry["page"], entry["box"]
        corners = box and dict(zip(CORNERS, box, strict=True))
        return {"value": value, "confidence": entry["confidence"], "page": page and page - 1, "bbox": corners}

    return leaf(data, "")
