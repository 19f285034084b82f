"""What a document looks like: its pages as WebP images, or the start of its text.

In: the document's bytes. Out: images of at most 86 dots per inch. Documents are hostile: sizes and counts are bounded,
and whatever a library says of one it cannot read is the reason for having no picture.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass
from typing import Any

import pypdfium2
from PIL import Image

from ..jsontext import visible
from ..media import PDF, media_type
from ..providers.textlayer_pdf import PDFIUM

DPI = 80
WIDEST = 1100  # pixels of a side, for images and for pages of unusual size
MOST_PAGES = 300
MOST_PIXELS = 80_000_000  # of an image that is opened at all
SHOWN_TEXT = 20_000  # characters
QUALITY = 45
FASTEST = 0  # of the encoder; better ones take four times as long for a tenth of the bytes


@dataclass(frozen=True)
class Picture:
    """``pages``: how many there are, None if nobody knows; ``images``: WebP of the first MOST_PAGES of them; ``text``:
    the start of a document of plain text; ``why``: the reason for having neither."""

    pages: int | None
    images: list[bytes]
    text: str | None = None
    why: str | None = None


def picture(data: bytes, name: str, only: range | None = None) -> Picture:
    """Pictures of a document; ``name`` helps to tell what it is.

    ``only``: of a PDF these pages are drawn, from 0; None for all.
    """
    kind = media_type(data, name)
    try:
        if kind == PDF:
            return _pages(data, only)
        if kind.startswith("image/"):
            return Picture(1, [_image(data)])
    except Exception as error:  # whatever a document provokes in the library
        return Picture(None, [], why=f"it cannot be drawn: {type(error).__name__}: {visible(str(error))[:200]}")
    if kind.startswith("text/") or kind in ("application/xml", "application/json"):
        return Picture(1, [], text=data[: 4 * SHOWN_TEXT].decode("utf-8", "replace")[:SHOWN_TEXT])
    return Picture(None, [], why=f"pages of {kind} are not drawn")


def _pages(data: bytes, only: range | None) -> Picture:
    with PDFIUM:
        document = pypdfium2.PdfDocument(data)
        try:
            count = len(document)
            drawn = range(min(count, MOST_PAGES))
            wanted = drawn if only is None else [number for number in only if number in drawn]
            return Picture(count, [_page(document[number]) for number in wanted])
        finally:
            document.close()


def _page(page: Any) -> bytes:
    try:
        longest = max(page.get_size()) or 1.0
        bitmap = page.render(scale=min(DPI / 72, WIDEST / longest), rev_byteorder=True)
        return _webp(bitmap.to_pil())
    finally:
        page.close()


def _image(data: bytes) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels are too many")
            image.draft("RGB", (WIDEST, WIDEST))
            image.thumbnail((WIDEST, WIDEST))
            return _webp(image.convert("RGB"))


def _webp(image: Any) -> bytes:
    stream = io.BytesIO()
    image.convert("RGB").save(stream, "WEBP", quality=QUALITY, method=FASTEST)
    return stream.getvalue()
