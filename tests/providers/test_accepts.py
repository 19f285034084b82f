"""What is refused before anything is sent, and the names that vendors see."""

from __future__ import annotations

import pytest

from oeb_ray.providers import accepts
from oeb_ray.providers.accepts import MB, count_pages, pages_matter, refusal, refused_document, sent_name
from oeb_ray.providers.contract import Document
from tests.providers.fakes import PDF_BYTES, pdf
from tests.providers.test_textlayer import make_pdf


@pytest.mark.parametrize(
    ("data", "media_type", "words"),
    [
        (b"", "application/pdf", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "application/pdf", "git lfs pull"),
        (b"<!doctype html><title>Sign in</title>", "application/pdf", "web page"),
        (b"hello", "application/pdf", "is none"),
        (b"\n<!DOCTYPE html>", "text/html", "web page"),
        (b"a,b", "text/csv", "datalab takes application/pdf; the document is text/csv"),
        (b"\x89PNG\r\n\x1a\n", "image/png", "image/png"),
    ],
)
def test_documents_that_are_none_are_named_as_what_they_are(data: bytes, media_type: str, words: str) -> None:
    assert words in (refusal("datalab", Document("a", "a.pdf", media_type, data), None) or "")


def test_limits_are_in_the_message() -> None:
    big = pdf(data=PDF_BYTES + bytes(50 * MB))
    assert refusal("mistral", big, 1) == "mistral takes at most 50 MB; the document has 50.0 MB"
    assert refusal("datalab", big, 7000) is None
    assert refusal("datalab", big, 7001) == "datalab takes at most 7,000 pages; the document has 7,001"
    assert refusal("mistral", pdf(), 1001) == "mistral takes at most 1,000 pages; the document has 1,001"
    assert refusal("mistral", pdf(), None) is None
    assert refusal("llamaextract", pdf(), 600) is None and refusal("llamaextract", big, 600) is not None
    assert refusal("org/model", pdf(), 10**6) is None


def test_vendors_take_pdf_unless_more_is_known() -> None:
    image = Document("a", "a.png", "image/png", b"\x89PNG\r\n\x1a\n")
    assert [refusal(vendor, image) is None for vendor in ("extend", "azure-cu", "org/model", "reducto")] == [
        True,
        True,
        False,
        False,
    ]


def test_pages_are_counted_only_where_they_could_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    three = make_pdf([[(50, 700, "one")], [(50, 700, "two")], [(50, 700, "three")]])
    assert count_pages(three) == 3
    assert not pages_matter("datalab", pdf(data=three)) and refused_document("datalab", pdf(data=three)) is None
    padded = pdf(data=three + b"\n%" + bytes(20_000))
    assert pages_matter("mistral", padded) and not pages_matter("reducto", padded)
    monkeypatch.setitem(accepts.LIMITS, "mistral", accepts.Limits(max_pages=2))
    assert refused_document("mistral", padded) == "mistral takes at most 2 pages; the document has 3"


def test_a_pdf_that_cannot_be_opened_is_for_the_vendor_to_judge() -> None:
    assert count_pages(PDF_BYTES) is None
    assert refused_document("mistral", pdf(data=PDF_BYTES + bytes(20_000))) is None


NAMES = ["Kauf № 5 – Zürich.pdf", "請求書.pdf", 'a"b.pdf', "a\r\nX-Evil: 1.pdf", "a\\b.pdf", "a;b=c.pdf", "50%25.pdf"]
NAMES += [
    " lead and trail .pdf",
    "x" * 400 + ".pdf",
    "no_extension",
    "Form [A], copy (2).pdf",
    "",
    "\ud83d.pdf",
    "../b",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_breaks_out_of_a_header(name: str) -> None:
    assert sent_name(pdf(name), "neutral") == "document.pdf"
    own = sent_name(pdf(name), "original")
    assert own.endswith(".pdf") and 4 < len(own) <= 150
    assert own.isprintable() and not set(own) & set('"\\/;%\r\n')
    own.encode()


def test_harmless_names_stay() -> None:
    assert sent_name(pdf("Form [A], copy (2).pdf"), "original") == "Form [A], copy (2).pdf"
    assert sent_name(Document("a", "x", "image/png", b""), "neutral") == "document.png"
    assert sent_name(Document("a", "x.bin", "application/x", b""), "neutral") == "document"
