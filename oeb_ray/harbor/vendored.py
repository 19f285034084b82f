"""The verifier's own code: the sources that scoring takes, as a task's image carries them.

In: nothing but this package. Out: one archive that Python imports from, the same bytes each time. What the verifier
imports is found by following its relative imports, so a scorer that is split into more modules is carried whole.
"""

from __future__ import annotations

import ast
import io
import zipfile
from functools import cache
from pathlib import Path

from .. import __version__

PACKAGE = Path(__file__).parent.parent
ENTRY = "harbor/verifier.py"
EPOCH = (1980, 1, 1, 0, 0, 0)  # no date of its own
STUB = f'"""The part of oeb_ray {__version__} that scores."""\n\n__version__ = "{__version__}"\n'


@cache
def archive() -> bytes:
    """A zip file with the package ``oeb_ray`` as far as the verifier needs it; not compressed, so never different."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as made:
        for path, data in sources().items():
            made.writestr(zipfile.ZipInfo(f"oeb_ray/{path}", EPOCH), data)
    return sink.getvalue()


def sources() -> dict[str, bytes]:
    """What stands in ``oeb_ray/`` of the archive, by path below it."""
    found: dict[str, bytes] = {}
    waiting = [ENTRY]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = (PACKAGE / path).read_bytes()
        waiting += [f"{parent.as_posix()}/__init__.py" for parent in Path(path).parents if parent.name]
        waiting += _imported(path, found[path])
    found["__init__.py"] = STUB.encode()
    return dict(sorted(found.items()))


def _imported(path: str, source: bytes) -> list[str]:
    """The modules of this package that a module imports, by path."""
    here = Path(path).parent
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        folder = here
        for _ in range(node.level - 1):
            folder = folder.parent
        base = folder / (node.module or "").replace(".", "/")
        for one in (base, *(base / name.name for name in node.names)):
            found += [
                file.as_posix()
                for file in (one.with_suffix(".py"), one / "__init__.py")
                if one.name and (PACKAGE / file).is_file() and file.as_posix() != "__init__.py"
            ]
    return found
