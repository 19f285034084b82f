"""A PDF as an image of each page, for servers that take images and no PDFs.

In: the bytes of a PDF (hostile input). Out: PNG files in the order of the pages. Bounds: `MAX_PAGES`, `LONGEST_SIDE`
and `MOST_BYTES`; a document that exceeds them is refused as a whole, since half of it would be another document.
"""

from __future__ import annotations

import io

import pypdfium2

from ..errors import VendorError
from .textlayer_pdf import PDFIUM

MAX_PAGES = 50
LONGEST_SIDE = 2_000
"""Pixels; models scale larger images down."""
FINEST = 200 / 72
"""Pixels per point at most: small pages are not blown up beyond 200 dpi."""
MOST_BYTES = 48 << 20
"""Of all images together; base64 adds a third."""


def page_images(data: bytes) -> list[bytes]:
    """The pages as PNG files.

    Raises:
        VendorError: the document cannot be opened, or is too large to be sent so.
    """
    with PDFIUM:
        document = _opened(data)
    try:
        count = len(document)
        if count > MAX_PAGES:
            raise VendorError(f"page_images sends at most {MAX_PAGES} pages; the document has {count:,}")
        images: list[bytes] = []
        for number in range(count):
            with PDFIUM:  # for each page anew, so that others have their turn
                images.append(_page(document, number))
            if sum(map(len, images)) > MOST_BYTES:
                raise VendorError(f"page_images sends at most {MOST_BYTES >> 20} MB; the document's pages have more")
        return images
    finally:
        with PDFIUM:
            document.close()


def _opened(data: bytes) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise VendorError(f"the document cannot be drawn: {error}") from error
    if not len(document):
        document.close()
        raise VendorError("the document cannot be drawn: it has no page")
    return document


def _page(document: pypdfium2.PdfDocument, number: int) -> bytes:
    try:
        page = document[number]
    except pypdfium2.PdfiumError as error:
        raise VendorError(f"page {number + 1} cannot be drawn: {error}") from error
    try:
        longest = max(*page.get_size(), 1.0)
        bitmap = page.render(scale=min(LONGEST_SIDE / longest, FINEST))
        try:
            file = io.BytesIO()
            bitmap.to_pil().save(file, "PNG")
            return file.getvalue()
        finally:
            bitmap.close()
    finally:
        page.close()
