"""A corpus in the form of ExtractBench, laid out as a manifest like any other.

In: a folder, bucket or ``hf://datasets/org/name[@revision]`` with a JSONL file per split (or ``<stem>.test.json``
beside each document, in a folder per split). Out: ``gold/``, ``notes/`` (rules and tags, for value_f1),
``manifest.parquet``, and last ``source.json``, which says from what they were made. Documents stay where they are. The
same source gives the same bytes.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .. import storage
from ..digests import digest
from ..errors import RequestError
from ..jsontext import line, pretty, read_json
from ..scoring.value_f1.errors import Ungradable
from ..scoring.value_f1.rules import read_rules
from .columns import faulty
from .hub import pinned
from .manifest import ANNOTATIONS, COLUMNS

FORMAT = 1
MANIFEST, SOURCE = "manifest.parquet", "source.json"
SIDECAR = ".test.json"
ENDINGS = ("pdf", "docx", "png", "jpg", "jpeg", "jfif")  # of several documents of one name the first counts
NEEDED = ("id", "category", "pdf", "data_schema", "expected_output", "tags")
NO_GROUPS = (".parse", ".images", ".v2.screenshots")
NO_SPLITS = ("docs", "tasks")  # folders of a dataset whose files are no splits
WRITERS = 16


@dataclass(frozen=True)
class Case:
    """One document: ``case_id`` is ``<split>/<stem>``, ``doc`` the document's path in the source."""

    case_id: str
    split: str
    doc: str
    schema: str
    expected: str
    rules: Any
    tags: list[str]

    @property
    def doc_id(self) -> str:
        return self.case_id.replace("/", "--")


class LaidOut(NamedTuple):
    """``manifest``: its address; ``commit``: of the source, if it lies on the hub; ``notes`` are for people."""

    manifest: str
    commit: str | None
    notes: list[str]


def lay_out(source: str, out: str) -> LaidOut:
    """Writes the corpus below ``out``, unless it has been made of the same files already.

    Raises:
        RequestError: nothing there, broken lines, cases without document, schema or reference, all at once.
            MissingCredential: the dataset is not public and there is no token.
    """
    source, out = storage.absolute(source), storage.absolute(out)
    place, commit = pinned(source)
    files = storage.listed(place)
    sheets = sorted(_sheets(files))
    if not sheets:
        raise RequestError(f"{source} holds neither JSONL splits nor *{SIDECAR} files; give the folder of a dataset")
    with ThreadPoolExecutor(WRITERS) as threads:
        texts = dict(
            zip(sheets, threads.map(lambda name: storage.read(storage.join(place, name)), sheets), strict=True)
        )
        made_of = {"format": FORMAT, "source": source, "commit": commit, "place": place}
        made_of["files"] = {name: digest(text) for name, text in texts.items()}
        known, manifest = _known(out), storage.join(out, MANIFEST)
        if known is not None and {key: known.get(key) for key in made_of} == made_of:
            return LaidOut(manifest, commit, [])
        faults: list[str] = []
        notes: list[str] = []
        cases = list(_cases(texts, files, faults, notes))
        faults += _twice(cases)
        if faults or not cases:
            raise faulty("ExtractBench corpus", source, faults or ["it has no cases"])
        storage.delete(storage.join(out, SOURCE))
        list(threads.map(lambda case: _write(out, case), cases))
    storage.put(manifest, _manifest(cases, place))
    splits = dict(sorted(Counter(case.split for case in cases).items()))
    storage.put(storage.join(out, SOURCE), pretty({**made_of, "documents": len(cases), "splits": splits}))
    return LaidOut(manifest, commit, notes)


def laid_out(out: str) -> LaidOut | None:
    """What an earlier `lay_out` has left; None if there is nothing, or not all of it. Asks no hub."""
    known = _known(storage.absolute(out))
    return None if known is None else LaidOut(storage.join(storage.absolute(out), MANIFEST), known.get("commit"), [])


def _known(out: str) -> dict[str, Any] | None:
    try:
        known = read_json(storage.read(storage.join(out, SOURCE)))
    except (FileNotFoundError, ValueError):
        return None
    return known if isinstance(known, dict) else None


def _sheets(files: Mapping[str, Any]) -> Iterator[str]:
    """JSONL splits, and sidecars of documents."""
    for name in files:
        folder = name.rpartition("/")[0]
        top = name.split("/")[0]
        is_split = name.endswith(".jsonl") and top not in NO_SPLITS
        if is_split or (name.endswith(SIDECAR) and not folder.endswith(NO_GROUPS) and top != "tasks"):
            yield name


def _cases(texts: Mapping[str, bytes], files: Mapping[str, Any], faults: list[str], notes: list[str]) -> Iterator[Case]:
    for name, text in texts.items():
        if name.endswith(SIDECAR):
            row = _sidecar(name, text, files, faults, notes)
            rows = [] if row is None else [(name, row)]
        else:
            rows = list(_lines(name, text, faults))
        for where, row in rows:
            case = _case(where, row, files, faults)
            if case is not None:
                yield case


def _lines(name: str, text: bytes, faults: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, data in enumerate(text.split(b"\n"), 1):
        if not data.strip():
            continue
        where = f"{name} line {number}"
        try:
            row = read_json(data)
        except ValueError as error:
            faults.append(f"{where}: no JSON: {error}")
            continue
        if not isinstance(row, dict) or (missing := [key for key in NEEDED if key not in row]):
            said = f"lacks {', '.join(missing)}" if isinstance(row, dict) else "no object"
            faults.append(f"{where}: {said}; a row has {', '.join(NEEDED)}, and may have field_rules")
            continue
        yield where, row


def _sidecar(
    name: str, text: bytes, files: Mapping[str, Any], faults: list[str], notes: list[str]
) -> dict[str, Any] | None:
    """A sidecar as a row of a split: its folder is the split, the document of its name the document."""
    try:
        found = read_json(text)
    except ValueError as error:
        faults.append(f"{name}: no JSON: {error}")
        return None
    if not isinstance(found, dict):
        faults.append(f"{name}: no object")
        return None
    if "_field_rules" in found and "test_rules" in found:
        faults.append(f"{name}: both _field_rules and test_rules; give its rules once")
        return None
    if "_repeated_structure" in found:
        notes.append(f"{name}: _repeated_structure is an old key and means nothing")
    stem = name.removesuffix(SIDECAR)
    doc = next((f"{stem}.{ending}" for ending in ENDINGS if f"{stem}.{ending}" in files), f"{stem}.{ENDINGS[0]}")
    folder, _, base = stem.rpartition("/")
    split = folder.rpartition("/")[2] or "all"
    rules = found.get("_field_rules", found.get("test_rules"))
    row = {key: found[key] for key in ("data_schema", "expected_output") if key in found}
    return {"id": f"{split}/{base}", "category": split, "pdf": doc, "tags": found.get("tags", []), "beside": True,
            "field_rules": rules, "data_schema": None, "expected_output": None, **row}  # fmt: skip


def _case(where: str, row: dict[str, Any], files: Mapping[str, Any], faults: list[str]) -> Case | None:
    said: list[str] = []
    case_id, split, doc = row["id"], row["category"], row["pdf"]
    said += [f"{key} is {row[key]!r}, not a text" for key in ("id", "category", "pdf") if not _is_name(row[key])]
    if _is_name(case_id):
        try:
            storage.encode_id(case_id.replace("/", "--"))
        except ValueError as error:
            said.append(str(error))
    if _is_name(doc) and (fault := _doc_fault(doc, files, beside="beside" in row)):
        said.append(fault)
    schema, expected = (_object_text(key, row[key], said) for key in ("data_schema", "expected_output"))
    rules = _rules(row.get("field_rules"), said)
    tags = row["tags"] or []
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        said.append(f"tags are {tags!r}, not a list of texts")
    if said:
        faults.extend(f"{where}, id {case_id!r}: {fault}" for fault in said)
        return None
    return Case(case_id, split, doc, schema, expected, rules, tags)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _doc_fault(doc: str, files: Mapping[str, Any], *, beside: bool) -> str | None:
    if doc.startswith("/") or "://" in doc or ".." in doc.split("/") or not (beside or doc.startswith("docs/")):
        return f"pdf {doc!r} does not lie below docs/; documents are part of their dataset"
    return None if doc in files else f"no document {doc}; fetch the whole dataset"


def _object_text(key: str, given: Any, said: list[str]) -> str:
    """A column that holds JSON text of an object, or the object itself, as text with every digit."""
    value = given
    if isinstance(given, str):
        try:
            value = read_json(given.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            said.append(f"{key} is no JSON: {error}")
            return ""
    if not isinstance(value, dict):
        said.append(f"{key} is no JSON object")
        return ""
    return given if isinstance(given, str) else line(value)


def _rules(given: Any, said: list[str]) -> Any:
    try:
        value = read_json(given.encode("utf-8", "surrogatepass")) if isinstance(given, str) else given
        read_rules(value)
    except (ValueError, Ungradable) as error:
        said.append(f"field_rules: {error}")
        return None
    return value


def _twice(cases: Sequence[Case]) -> Iterator[str]:
    for doc_id, count in Counter(case.doc_id for case in cases).items():
        if count > 1:
            yield f"id {doc_id!r} stands {count} times; ids must be unique"


def _write(out: str, case: Case) -> None:
    name = storage.encode_id(case.doc_id)
    notes = {"case_id": case.case_id, "tags": case.tags, "field_rules": case.rules}
    storage.put(storage.join(out, f"gold/{name}.json"), case.expected.encode("utf-8", "surrogatepass"))
    storage.put(storage.join(out, f"notes/{name}.json"), line(notes).encode())


def _manifest(cases: Sequence[Case], place: str) -> bytes:
    columns: dict[str, list[Any]] = {name: [] for name in (*COLUMNS, ANNOTATIONS)}
    for case in cases:
        name = storage.encode_id(case.doc_id)
        doc = storage.join(place, case.doc)
        row = (case.doc_id, case.split, doc, f"gold/{name}.json", case.schema, f"notes/{name}.json")
        for column, value in zip(columns.values(), row, strict=True):
            column.append(value)
    sink = io.BytesIO()
    pq.write_table(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}), sink)
    return sink.getvalue()
