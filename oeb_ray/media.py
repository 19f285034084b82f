"""What kind of file a document is, from its first bytes and its name."""

from __future__ import annotations

import mimetypes

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"BM", "image/bmp"),
)
_OFFICE = {
    "docx": DOCX,
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
_TEXTS = {
    "csv": "text/csv",
    "htm": "text/html",
    "html": "text/html",
    "xml": "application/xml",
    "txt": "text/plain",
    "md": "text/plain",
    "json": "application/json",
}


def media_type(data: bytes, name: str) -> str:
    """The media type of a document; ``application/octet-stream`` if neither content nor name tells."""
    ending = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    head = data[:1024]
    if b"%PDF-" in head:
        return PDF
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return kind
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"PK\x03\x04"):
        return _OFFICE.get(ending, "application/zip")
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    if start.startswith(b"<?xml"):
        return "text/html" if b"<html" in head.lower() else "application/xml"
    return _TEXTS.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
