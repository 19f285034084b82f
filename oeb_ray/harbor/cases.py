"""What a corpus has on a document beside its gold, as far as tasks need it.

In: a Doc. Out: its annotations, and the id that its dataset knows it by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import storage
from ..jsontext import read_json
from ..records import Doc


def annotations_of(doc: Doc) -> dict[str, Any]:
    """The document's annotations; empty if it has none.

    Raises:
        ValueError: they are no JSON object. FileNotFoundError: they are gone.
    """
    found = read_json(storage.read(doc.annotations)) if doc.annotations else {}
    if not isinstance(found, dict):
        raise ValueError(f"its annotations {doc.annotations} are no object")
    return found


def case_id_of(doc: Doc, about: Mapping[str, Any]) -> str:
    """The id that the dataset gives the document, ``split/stem``; that of the corpus where there is no other."""
    found = about.get("case_id")
    return found if isinstance(found, str) and found else doc.doc_id
