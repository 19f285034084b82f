"""Reads the text layer of a PDF with pypdfium2: words with page positions, grouped into visual lines.

In: the bytes of a PDF (hostile input). Out: a `TextLayer` with geometry.
Bounds: `MAX_PAGES`, `MAX_WORDS` and the character limits below; reading stops there.
PDFium is not thread-safe, so one lock guards every call of this module.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import pypdfium2
import pypdfium2.raw as pdfium

from .textlayer_tables import find_tables
from .textlayer_types import MAX_PAGES, MAX_WORDS, Box, Line, Table, TextLayer, Word

MAX_PAGE_CHARS = 1_000_000
"""Characters read of one PDF page."""
MAX_PDF_CHARS = 16_000_000
"""Characters read of one PDF (about one minute of work)."""
LINE_TOLERANCE = 0.4
"""Words share a line when their vertical centres differ by less than this share of the lower one's height."""

PDFIUM = threading.Lock()
"""PDFium is not thread-safe: whoever opens, reads or draws a PDF holds this one lock."""
_UNITS = 1_000_000
# PDFium reports a hyphen at a line break as one of these code points.
_HYPHENS = {0x02, 0xFFFE}
_RTL = ("\u0590", "\u08ff")


def read_pdf(data: bytes) -> TextLayer:
    """The text layer of a PDF; ValueError when it is encrypted or cannot be opened.

    A page that cannot be loaded is left without lines: the others are still worth reading.
    """
    lines: list[Line] = []
    tables: list[Table] = []
    words_left, chars_left = MAX_WORDS, MAX_PDF_CHARS
    with PDFIUM:
        document = _open(data)
        try:
            pages = min(len(document), MAX_PAGES)
            for number in range(1, pages + 1):
                words, chars = _page_words(document, number, min(chars_left, MAX_PAGE_CHARS))
                page_lines = group_lines(words[:words_left])
                lines.extend(page_lines)
                tables.extend(find_tables(page_lines))
                words_left -= len(words)
                chars_left -= chars
                if words_left <= 0 or chars_left <= 0:
                    break
        finally:
            document.close()
    return TextLayer(pages, tuple(lines), tuple(tables), geometry=True)


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise ValueError("encrypted PDF: a password is needed to read it") from error
        raise ValueError(f"not a readable PDF: {error}") from error
    if len(document) < 1:
        document.close()
        raise ValueError("not a readable PDF: it has no pages")
    return document


def _page_words(document: pypdfium2.PdfDocument, number: int, limit: int) -> tuple[list[Word], int]:
    """The words of page `number` in PDFium's order, and how many characters were read."""
    try:
        page = document[number - 1]
    except pypdfium2.PdfiumError:
        return [], 0
    try:
        text_page = page.get_textpage()
        try:
            count = min(text_page.count_chars(), limit)
            affine = _page_affine(page)
            words = []
            for text, first, last in _runs(text_page.raw, count):
                box = _run_box(text_page.raw, first, last, affine)
                if box is not None:
                    words.append(Word(text, number, box))
            return words, count
        finally:
            text_page.close()
    except pypdfium2.PdfiumError:
        return [], 0
    finally:
        page.close()


def _runs(raw: pdfium.FPDF_TEXTPAGE, count: int) -> Iterator[tuple[str, int, int]]:
    """(text, first, last character index) of each run without white space; PDFium itself inserts the missing spaces."""
    get_unicode = pdfium.FPDFText_GetUnicode
    parts: list[str] = []
    first = 0
    for index in range(count + 1):
        code = get_unicode(raw, index) if index < count else 0x20
        char = "-" if code in _HYPHENS else chr(code) if 0 < code < 0x110000 else ""
        if not char.isspace():
            if char:
                first = first if parts else index
                parts.append(char)
            continue
        if parts:
            # Characters outside the BMP can arrive as two surrogates; join them, drop lone ones.
            text = "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
            if text:
                yield text, first, index - 1
            parts = []


def _page_affine(page: pypdfium2.PdfPage) -> tuple[float, ...]:
    """(origin x, origin y, dx/dX, dy/dX, dx/dY, dy/dY): page units to fractions, with crop box and rotation applied."""
    x, y = ctypes.c_int(), ctypes.c_int()
    points = []
    for px, py in ((0.0, 0.0), (100.0, 0.0), (0.0, 100.0)):
        pdfium.FPDF_PageToDevice(page.raw, 0, 0, _UNITS, _UNITS, 0, px, py, ctypes.byref(x), ctypes.byref(y))
        points.append((x.value / _UNITS, y.value / _UNITS))
    (ox, oy), (ax, ay), (bx, by) = points
    return ox, oy, (ax - ox) / 100, (ay - oy) / 100, (bx - ox) / 100, (by - oy) / 100


_RECT = pdfium.FS_RECTF()


def _run_box(raw: pdfium.FPDF_TEXTPAGE, first: int, last: int, affine: tuple[float, ...]) -> Box | None:
    """The box around the first and last character (a run is straight, so they span it); None when it is off the page.

    The loose box (font height) is used, so that a line of full stops is as high as a line of capitals.
    """
    ox, oy, ax, ay, bx, by = affine
    xs: list[float] = []
    ys: list[float] = []
    for index in {first, last}:
        if not pdfium.FPDFText_GetLooseCharBox(raw, index, ctypes.byref(_RECT)):
            continue
        for px, py in ((_RECT.left, _RECT.top), (_RECT.right, _RECT.bottom)):
            xs.append(ox + ax * px + bx * py)
            ys.append(oy + ay * px + by * py)
    if not xs or max(xs) < 0 or min(xs) > 1 or max(ys) < 0 or min(ys) > 1:
        return None
    box = [round(min(1.0, max(0.0, value)), 5) for value in (min(xs), min(ys), max(xs), max(ys))]
    return box[0], box[1], box[2], box[3]


def group_lines(words: list[Word]) -> list[Line]:
    """Words of one page grouped into visual lines, top to bottom; within a line left to right, or the other way."""
    rows: list[list[Word]] = []
    centre = height = 0.0
    for word in sorted(words, key=lambda word: (word.box[1] + word.box[3], word.box[0], word.text)):
        middle = (word.box[1] + word.box[3]) / 2
        own = word.box[3] - word.box[1]
        if rows and middle - centre <= LINE_TOLERANCE * min(height, own):
            rows[-1].append(word)
        else:
            rows.append([word])
            centre, height = middle, own
    return [Line(row[0].page, tuple(_in_reading_order(row))) for row in rows]


def _in_reading_order(row: list[Word]) -> list[Word]:
    letters = [char for word in row for char in word.text if char.isalpha()]
    right_to_left = sum(_RTL[0] <= char <= _RTL[1] for char in letters) * 2 > len(letters)
    return sorted(row, key=lambda word: (-word.box[2] if right_to_left else word.box[0], word.box[1], word.text))
