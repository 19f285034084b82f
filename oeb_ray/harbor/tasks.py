"""One task folder, as bytes by path: what the agent gets, what the verifier gets, the solution, and task.toml.

In: a Case. Out: files. Only ``environment/`` and ``instruction.md`` are for the agent: reference and scorer lie in
``tests/``, which is the build context of another image, and the solution in ``solution/``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..corpus.tasks import GOLD, MANIFEST, REFERENCE, SCHEMA
from ..jsontext import pretty, printable
from ..providers.instruction import instruction
from ..scoring.value_f1 import TODAY as DAY
from .vendored import archive

__all__ = ["MANIFEST", "REFERENCE", "Case", "task_files", "task_name"]

AGENT_SECONDS = VERIFIER_SECONDS = 1800.0
IMAGE = "python:3.13.0-slim-bookworm"
AGENT_PACKAGES = ("pdfplumber==0.11.10", "pypdf==7.1.1", "pypdfium2==5.15.2")
SCORER_PACKAGES = ("numpy==2.5.5", "python-dateutil==2.9.0.post0", "scipy==1.18.1")
LONGEST_NAME = 100
TODAY = DAY.isoformat()
"""The day that two-digit years are read by, unless another is given: an export must not change with the calendar."""

_AGENT_DOCKERFILE = f"""\
FROM {IMAGE}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends poppler-utils qpdf tesseract-ocr \\
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir {" ".join(AGENT_PACKAGES)}
WORKDIR /app
COPY {{document}} schema.json /app/
"""
_VERIFIER_DOCKERFILE = f"""\
FROM {IMAGE}
RUN pip install --no-cache-dir {" ".join(SCORER_PACKAGES)}
COPY . /tests/
"""
_SOLVE = """\
#!/bin/sh
set -eu
cp /solution/expected.json /app/output.json
"""
_TEST = """\
#!/bin/sh
# Whatever is left from before goes first: a verifier that fails must leave no reward.
rm -f /logs/verifier/reward.txt /logs/verifier/reward.json /logs/verifier/metrics.json /logs/verifier/feedback.json
PYTHONPATH=/tests/scorer.zip exec python3 -m oeb_ray.harbor.verifier \\
    --reference /tests/reference.json --output /app/output.json --logs /logs/verifier
"""


@dataclass(frozen=True)
class Case:
    """A document as a task is made of it.

    ``document``: its bytes, and the name it gets in the working folder; ``schema``: JSON text; ``reference``: the
    expected output; ``rules``: by path, or a list of them; ``today``: the day, YYYY-MM-DD, that two-digit years are
    read by.
    """

    case_id: str
    split: str
    document: bytes
    document_name: str
    schema: str
    reference: Any
    today: str
    rules: Mapping[str, Any] | Sequence[Any] = field(default_factory=dict)
    tags: Sequence[str] = ()


def task_name(case_id: str, split: str = "") -> str:
    """The task's part of ``org/name``: the case's id without its split, in lower case, other signs as dashes.

    Raises:
        ValueError: nothing of the id can stand in a name.
    """
    stem = case_id.removeprefix(f"{split}/") if split else case_id
    name = re.sub(r"\.{2,}", ".", re.sub(r"[^a-z0-9._-]+", "-", stem.lower())).strip("._-")
    if not name:
        raise ValueError(f"the id {case_id!r} has no letter or digit that a task's name could have")
    return name[:LONGEST_NAME].rstrip("._-")


def task_files(case: Case, org: str, source_revision: str | None) -> dict[str, bytes]:
    """Everything in the task's folder, by path below it."""
    schema = pretty(json.loads(case.schema))
    reference = {"format": 1, "case_id": case.case_id, "today": case.today, "tags": list(case.tags)}
    document = case.document_name
    files = {
        "task.toml": _task_toml(case, org, source_revision).encode(),
        "instruction.md": instruction(document, schema.decode()).encode(),
        "environment/Dockerfile": _AGENT_DOCKERFILE.replace("{document}", document).encode(),
        f"environment/{document}": case.document,
        SCHEMA: schema,
        "solution/solve.sh": _SOLVE.encode(),
        GOLD: pretty(case.reference),
        "tests/Dockerfile": _VERIFIER_DOCKERFILE.encode(),
        "tests/test.sh": _TEST.encode(),
        "tests/scorer.zip": archive(),
        REFERENCE: pretty(
            {**reference, "schema": json.loads(case.schema), "reference": case.reference, "field_rules": case.rules}
        ),
    }
    return dict(sorted(files.items()))


def _task_toml(case: Case, org: str, source_revision: str | None) -> str:
    name = f"{org}/{task_name(case.case_id, case.split)}"
    revision = [f"source_revision = {_toml(source_revision)}"] if source_revision else []
    lines = [
        'schema_version = "1.4"',
        'artifacts = ["/app/output.json"]',
        "",
        "[task]",
        f"name = {_toml(name)}",
        'version = "1.0.0"',
        "",
        "[metadata]",
        f"case_id = {_toml(case.case_id)}",
        f"split = {_toml(case.split)}",
        f"tags = [{', '.join(map(_toml, case.tags))}]",
        *revision,
        "",
        "[agent]",
        f"timeout_sec = {AGENT_SECONDS}",
        'network_mode = "no-network"',
        "",
        "[verifier]",
        f"timeout_sec = {VERIFIER_SECONDS}",
        'environment_mode = "separate"',
        'network_mode = "no-network"',
        "",
        "[verifier.environment]",
        'network_mode = "no-network"',
        "",
        "[environment]",
        'network_mode = "public"',
        'workdir = "/app"',
    ]
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    """A basic string of TOML: as JSON writes it, but for DEL, which TOML wants escaped."""
    return json.dumps(printable(text), ensure_ascii=False).replace("\x7f", "\\u007f")
