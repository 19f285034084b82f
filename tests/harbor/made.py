"""Small Harbor tasks for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oeb_ray.harbor.tasks import TODAY, Case, task_files

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "firm": {"type": "string"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}, "qty": {}}}},
    },
}


def gold_of(number: int) -> dict[str, Any]:
    return {"firm": f"Quay & Sons {number}", "lines": [{"sku": "A", "qty": number}, {"sku": "B", "qty": 2}]}


def make_tasks(folder: Path, count: int) -> Path:
    """Writes tasks ``task-00`` and so on below ``folder``/tasks; the document holds its reference's firm."""
    for number in range(count):
        gold = gold_of(number)
        document = f"%PDF-1.4\n{gold['firm']}\n".encode()
        case = Case(f"task {number:02}", "short", document, "document.pdf", json.dumps(SCHEMA), gold, TODAY)
        for path, data in task_files(case, "org", None).items():
            place = folder / "tasks" / f"task-{number:02}" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    return folder
