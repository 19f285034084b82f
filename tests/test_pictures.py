"""Pictures of documents are drawn by one thread at a time, since PDFium bears no more; `oeb serve` has several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pypdfium2
import pytest

from oeb_ray.config import sample_manifest
from oeb_ray.providers.textlayer_pdf import PDFIUM
from oeb_ray.report.pictures import picture


def test_pages_are_drawn_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    path = next(Path(sample_manifest()).parent.glob("docs/*.pdf"))
    held: list[bool] = []
    opened = pypdfium2.PdfDocument

    def watched(data: bytes) -> pypdfium2.PdfDocument:
        held.append(PDFIUM.locked())
        return opened(data)

    monkeypatch.setattr(pypdfium2, "PdfDocument", watched)
    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(lambda _: picture(path.read_bytes(), path.name), range(8)))
    assert held == [True] * 8 and not PDFIUM.locked()
    assert all(one.images and one.images == drawn[0].images for one in drawn)
