"""The data set's own package reads the invoices as we do.

It needs another environment: OEB_DOCILE_PYTHON names a Python with docile-benchmark 0.3.5 installed.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from oeb_ray.corpus.docile import map_docile, read_docs
from oeb_ray.corpus.forms import MappingError

from .extractkit_data import DOCILE

PYTHON = os.environ.get("OEB_DOCILE_PYTHON")
READS = """
import json, sys
from docile.dataset import Dataset

def entry(field):
    box = [field.bbox.left, field.bbox.top, field.bbox.right, field.bbox.bottom]
    found = {"bbox": box, "fieldtype": field.fieldtype, "page": field.page, "text": field.text}
    return found if field.line_item_id is None else {**found, "line_item_id": field.line_item_id}

dataset = Dataset("val", sys.argv[1], load_ocr=False)
print(json.dumps({
    document.docid: {
        "field_extractions": [entry(field) for field in document.annotation.fields],
        "line_item_extractions": [entry(field) for field in document.annotation.li_fields],
    }
    for document in dataset
}))
"""


@pytest.mark.skipif(not PYTHON, reason="OEB_DOCILE_PYTHON names no Python with docile-benchmark")
def test_the_package_of_the_data_set_gives_the_same_fields() -> None:
    assert PYTHON
    said = subprocess.run([PYTHON, "-c", READS, str(DOCILE)], capture_output=True, text=True, timeout=100)
    assert said.returncode == 0, said.stderr
    theirs = json.loads(said.stdout.splitlines()[-1])
    docs = list(read_docs(str(DOCILE), "val"))
    assert {doc.doc_id for doc in docs} == theirs.keys()
    for doc in docs:
        assert mapped(theirs[doc.doc_id]) == mapped(doc.truth), doc.doc_id


def mapped(annotation: Any) -> Any:
    try:
        return map_docile(annotation).as_json()
    except MappingError as error:
        return error.reason
