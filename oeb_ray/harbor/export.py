"""A corpus as Harbor task folders: one per document, and a manifest of them all, the same bytes each time.

In: a Corpus, an organisation's name, an output. Out: the folders, or one error that names every document that no task
can be made of; then nothing is written.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .. import media, storage
from ..corpus.manifest import Corpus
from ..digests import digest
from ..errors import RequestError, refused
from ..jsontext import read_json
from ..providers.accepts import sent_name
from ..providers.contract import Document
from ..providers.instruction import PROMPT_SHA256
from ..records import Doc
from ..scoring.value_f1 import NAME, VERSION
from .cases import annotations_of, case_id_of
from .leaks import leaks
from .manifest import Origin, manifest_bytes
from .tasks import MANIFEST, Case, task_files, task_name
from .verifier import Fault, Refused, scored


@dataclass(frozen=True)
class Exported:
    """What was written: ``tasks`` by name; ``left_out``: documents without a task, and why."""

    address: str
    tasks: list[str]
    left_out: list[str]


def export_tasks(corpus: Corpus, out: str, *, org: str, today: str, leave_out: bool = False) -> Exported:
    """Writes a task for each selected document of a corpus.

    Args:
        org: the part of a task's name before the slash.
        today: day, YYYY-MM-DD, that the tasks' verifiers read two-digit years by.
        leave_out: documents that no task can be made of are passed over, not an error.

    Raises:
        RequestError: documents without a usable gold, two with one name, a leak, or an output that holds other tasks.
    """
    out = storage.absolute(out)
    if not org or task_name(org) != org:
        raise RequestError(f"--org {org!r}: wants lower-case letters, digits, dots, dashes and underscores")
    if not _is_day(today):
        raise RequestError(f"--today {today!r}: wants a day as YYYY-MM-DD")
    docs = [corpus.doc(position) for position in corpus.selected]
    with ThreadPoolExecutor(8) as threads:
        looked = list(threads.map(lambda doc: _looked_at(doc, today), docs))
    unfit = [fault for case in looked if isinstance(case, list) for fault in case]
    cases = [case for case in looked if isinstance(case, Case)]
    if unfit and not leave_out:
        raise refused(f"tasks of {corpus.identity}", [*unfit, "--leave-out makes tasks of the other documents"])
    problems = _twice(cases)
    if not cases:
        problems.append("there is no document to make a task of")
    made = {task_name(case.case_id, case.split): case for case in cases}
    others = sorted(set(storage.folders(storage.join(out, "tasks"))) - made.keys())
    if others:
        problems.append(f"{out} holds other tasks, such as {others[0]}; choose another --out")
    if problems:
        raise refused(f"tasks of {corpus.identity}", problems)
    return Exported(out, _written(out, corpus, made, org), unfit)


def _written(out: str, corpus: Corpus, made: dict[str, Case], org: str) -> list[str]:
    """Writes the tasks, then the manifest, and returns the tasks' names."""
    entries: list[dict[str, Any]] = []
    leaking: list[str] = []
    for name, case in sorted(made.items()):
        files = task_files(case, org, corpus.commit)
        found = leaks(files, case.reference, f"environment/{case.document_name}")
        leaking += [f"{case.case_id!r}: {text}" for text in found]
        entry = {"name": f"{org}/{name}", "path": f"tasks/{name}", "case_id": case.case_id, "split": case.split}
        entries.append(entry | {"tags": list(case.tags), "files": {path: digest(files[path]) for path in files}})
        if not leaking:
            addresses = [storage.join(out, "tasks", name, path) for path in files]
            with ThreadPoolExecutor(8) as threads:
                list(threads.map(storage.put, addresses, files.values()))
    if leaking:
        raise refused("an agent could see the reference", leaking)
    origin = Origin(corpus.identity, corpus.commit, NAME, VERSION, PROMPT_SHA256)
    storage.put(storage.join(out, MANIFEST), manifest_bytes(origin, entries))
    return [entry["name"] for entry in entries]


def _looked_at(doc: Doc, today: str) -> Case | list[str]:
    """The document's case, or why it cannot be one."""
    try:
        reference = read_json(storage.read(doc.gt_path))
        schema = read_json(doc.schema.encode("utf-8", "surrogatepass"))
        about = annotations_of(doc)
        case_id = case_id_of(doc, about)
        task_name(case_id, doc.suite)
    except (ValueError, FileNotFoundError) as error:
        return [f"{doc.doc_id!r}: {error}"]
    data = storage.read(doc.doc_path)
    name = doc.doc_path.rsplit("/", 1)[-1]
    neutral = sent_name(Document(doc.doc_id, name, media.media_type(data, name), data), "neutral")
    rules, tags = about.get("field_rules") or {}, about.get("tags") or []
    case = Case(case_id, doc.suite, data, neutral, doc.schema, reference, today, rules, tags)
    fault = oracle_fault(case, schema)
    return [f"{doc.doc_id!r}: {fault}"] if fault else case


def oracle_fault(case: Case, schema: Any) -> str:
    """Why the reference itself would not earn 1 as an output; empty if it does."""
    try:
        made = scored(
            {"schema": schema, "reference": case.reference, "field_rules": case.rules, "today": case.today},
            case.reference,
        )
    except (Fault, Refused) as error:
        return str(error)
    return "" if made.reward == 1.0 else f"its own reference would earn {made.reward:.4f}, not 1"


def _is_day(text: str) -> bool:
    try:
        return dt.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _twice(cases: Iterable[Case]) -> list[str]:
    first: dict[str, str] = {}
    said = []
    for case in cases:
        name = task_name(case.case_id, case.split)
        if first.setdefault(name, case.case_id) != case.case_id:
            said.append(f"{case.case_id!r} and {first[name]!r} would both be the task {name}; rename one of them")
    return said
