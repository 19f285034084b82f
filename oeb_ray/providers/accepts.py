"""What documents each vendor takes: media types, size, pages. Looked at before anything is sent or paid.

In: a vendor's name and a Document. Out: why it would be refused, or None. Limits are from the vendors' documentation
as of late 2026; where none is known there is none here, and only PDF is taken to be accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pypdfium2

from ..media import DOCX, PDF
from .contract import Document

# PDFium is not thread-safe: whoever opens a PDF holds the one lock.
from .textlayer_pdf import PDFIUM

MB = 1 << 20
"""Bytes. The vendors do not say which megabyte they mean; the larger one refuses nothing that they might take."""
SMALLEST_PAGE = 10
"""Bytes that a page takes in a PDF at least, however well it is compressed: smaller files need no counting."""
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/tiff", "image/bmp", "image/webp")
_OFFICE = (
    DOCX,
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
)
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"
_EXTENSIONS = {
    PDF: ".pdf",
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/tiff": ".tiff",
    "image/bmp": ".bmp",
    "image/webp": ".webp",
    _OFFICE[0]: ".docx",
    _OFFICE[1]: ".xlsx",
    _OFFICE[2]: ".pptx",
    "text/csv": ".csv",
    "text/plain": ".txt",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """``max_bytes`` and ``max_pages`` are the most that is taken, None if not known.

    ``pages_from_bytes``: the page limit holds for files larger than this only.
    """

    media_types: tuple[str, ...] = (PDF,)
    max_bytes: int | None = None
    max_pages: int | None = None
    pages_from_bytes: int = 0


UNKNOWN = Limits()
_CHAT = Limits((PDF, "image/png", "image/jpeg", "image/gif", "image/webp"))  # size and pages depend on the model
LIMITS = {
    "anthropic": Limits(_CHAT.media_types, 24 * MB, 600),  # 32 MB of request, which base64 fills with three quarters
    "azure-cu": Limits((PDF, *_IMAGES), 200 * MB, 300),
    "datalab": Limits((PDF,), 200 * MB, 7_000),
    "extend": Limits((PDF, *_IMAGES, *_OFFICE, "text/csv", "text/plain", "message/rfc822")),
    "google": Limits((PDF, "image/png", "image/jpeg", "image/webp"), 50 * MB, 1_000),
    "llamaextract": Limits((PDF,), 100 * MB, 500, pages_from_bytes=5 * MB),
    "mistral": Limits((PDF,), 50 * MB, 1_000),
    "openai": Limits(_CHAT.media_types, 50 * MB),
    "openai-compatible": _CHAT,
    "openrouter": _CHAT,
    "reducto": Limits((PDF,), 100 * MB),
}
"""By adapter name; all others are `UNKNOWN`."""


def refusal(vendor: str, document: Document, pages: int | None = None) -> str | None:
    """Why the vendor would refuse the document, with the limit it exceeds; None if it might take it.

    ``pages``: how many it has, None if nobody knows. A file that is not what its name says is told by its content.
    """
    limits, data = LIMITS.get(vendor, UNKNOWN), document.data
    if not data:
        return "the document is empty (0 bytes)"
    if data.startswith(_LFS_POINTER):
        return "the document is a Git LFS pointer, not the file itself: run `git lfs pull` where the corpus lies"
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")) and "text/html" not in limits.media_types:
        return f"the document is a web page, perhaps one saved in a PDF's place; {vendor} takes none: fetch it again"
    if document.media_type == PDF and b"%PDF-" not in data[:1024]:
        return "the document is called a PDF and is none: fetch it again"
    if document.media_type not in limits.media_types:
        return f"{vendor} takes {', '.join(limits.media_types)}; the document is {document.media_type}"
    if limits.max_bytes is not None and len(data) > limits.max_bytes:
        return f"{vendor} takes at most {limits.max_bytes // MB} MB; the document has {len(data) / MB:.1f} MB"
    if pages is not None and limits.max_pages is not None and pages > limits.max_pages:
        if len(data) <= limits.pages_from_bytes:
            return None
        return f"{vendor} takes at most {limits.max_pages:,} pages; the document has {pages:,}"
    return None


def pages_matter(vendor: str, document: Document) -> bool:
    """Whether the document is a PDF that may have more pages than the vendor takes, so that counting is worth it."""
    limits = LIMITS.get(vendor, UNKNOWN)
    least = max(limits.pages_from_bytes, SMALLEST_PAGE * (limits.max_pages or 0))
    return document.media_type == PDF and limits.max_pages is not None and len(document.data) > least


def count_pages(data: bytes) -> int | None:
    """Pages of a PDF; None if it cannot be opened (locked or damaged), which is for the vendor to judge."""
    with PDFIUM:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError:
            return None
        try:
            return len(document)
        finally:
            document.close()


def refused_document(vendor: str, document: Document) -> str | None:
    """As `refusal`, with the pages counted if they could matter. Blocks while PDFium is at work elsewhere."""
    problem = refusal(vendor, document)
    if problem or not pages_matter(vendor, document):
        return problem
    return refusal(vendor, document, count_pages(document.data))


def sent_name(document: Document, send_name: str) -> str:
    """The file name that a vendor is told: ``document.pdf`` and the like, or the document's own with ``original``.

    The own name is made safe for a header: no control characters, quotes, backslashes, semicolons or percent signs, at
    most 150 characters.
    """
    extension = _EXTENSIONS.get(document.media_type, "")
    if send_name != "original":
        return f"document{extension}"
    name = "".join(c if c.isprintable() and c not in '"\\/;%' else "_" for c in document.name).strip(" .")
    if not name:
        return f"document{extension}"
    if not name.lower().endswith(extension):
        name += extension
    return name if len(name) <= 150 else name[: 150 - len(extension)].rstrip(" .") + extension
