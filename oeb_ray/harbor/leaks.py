"""Whether an agent can reach the answer: a look through all that a task lets it see.

In: a task's files and the reference. Out: what gives something away. The document and the schema may hold what the
reference does, and so may the text that is the same in every task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..jsontext import read_json
from ..providers.instruction import TEMPLATE

SHORTEST = 3  # signs of a text that is looked for


def seen_by_agent(path: str) -> bool:
    """Whether a file of a task's folder is in the agent's image or its instruction."""
    return path == "instruction.md" or path.startswith("environment/")


def leaks(files: Mapping[str, bytes], reference: Any, document: str) -> list[str]:
    """Places where the agent would see the reference, or a text of it that neither document nor schema holds.

    Args:
        files: of the task, by path. document: the document's path among them.
    """
    schema = files.get("environment/schema.json", b"")
    allowed = b"\n".join((schema, files.get(document, b""), TEMPLATE.encode()))
    wanted = sorted({text.encode("utf-8", "surrogatepass") for text in _texts(reference) if len(text) >= SHORTEST})
    wanted = [text for text in wanted if text not in allowed]
    found = []
    for path in sorted(files):
        if not seen_by_agent(path) or path == document:
            continue
        if reference and _parsed(files[path]) == reference:
            found.append(f"{path} is the reference")
            continue
        data = files[path].replace(schema.strip(), b"") if schema.strip() else files[path]
        held = [text.decode("utf-8", "replace") for text in wanted if text in data]
        found += [f"{path} holds {text[:60]!r} of the reference" for text in held]
    return found


def _parsed(data: bytes) -> Any:
    try:
        return read_json(data)
    except ValueError:
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)
