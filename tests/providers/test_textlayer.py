"""Tests of the text-layer reader: each format's happy path, hostile inputs, determinism. Inputs are made here."""

from __future__ import annotations

import io
import time
import zipfile

import pytest

from oeb_ray.providers import textlayer_xml
from oeb_ray.providers.textlayer import TextLayer, read_text_layer, split_cells

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def make_pdf(pages: list[list[tuple[int, int, str]]], trailer: str = "", page_extra: str = "") -> bytes:
    """A PDF of 600 x 800 points; each page is a list of (x, y from the bottom, text)."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "", "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        content = "".join(f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in page)
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        box = f"/MediaBox [0 0 600 800] {page_extra}"
        objects.append(f"<< /Type /Page /Parent 2 0 R {box} /Contents {len(objects)} 0 R {resources} >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    out = "%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n"
    xref = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{xref}trailer << /Size {size} /Root 1 0 R {trailer}>>\n"
    start = out.index("xref\n0 ")
    return (out + f"startxref\n{start}\n%%EOF\n").encode("latin-1")


def make_docx(body: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:body>{body}</w:body></w:document>")
    return buffer.getvalue()


def texts(layer: TextLayer) -> list[str]:
    return [line.text for line in layer.lines]


INVOICE = [
    (50, 700, "Invoice Number:"), (200, 700, "INV-7"),
    (50, 600, "Item"), (200, 600, "Qty"), (300, 600, "Price"),
    (50, 580, "Blue widget"), (200, 580, "2"), (300, 580, "1.50"),
    (50, 560, "Bolt"), (200, 560, "10"), (300, 560, "0.25"),
]  # fmt: skip


def test_pdf_words_have_page_fractions_from_the_top_left() -> None:
    layer = read_text_layer(make_pdf([INVOICE, [(300, 400, "middle")]]), "application/pdf")
    assert layer.pages == 2 and layer.geometry
    assert texts(layer)[0] == "Invoice Number: INV-7"
    word = layer.lines[-1].words[0]
    assert (word.text, word.page) == ("middle", 2)
    assert word.box[0] == pytest.approx(0.5, abs=0.01)
    assert word.box[1] < 0.5 < word.box[3] and word.box[3] - word.box[1] < 0.05
    assert [len(split_cells(line)) for line in layer.lines[:3]] == [2, 3, 3]


def test_pdf_rotation_is_applied_to_the_boxes() -> None:
    layer = read_text_layer(make_pdf([[(50, 700, "corner")]], page_extra="/Rotate 90"), "application/pdf")
    box = layer.lines[0].words[0].box
    assert box[0] > 0.8 and box[1] < 0.2 and box[3] - box[1] > box[2] - box[0]  # top right, running down


def test_pdf_table_is_found_by_alignment() -> None:
    (table,) = read_text_layer(make_pdf([INVOICE]), "application/pdf").tables
    assert table.header == ("Item", "Qty", "Price")
    assert table.rows == (("Blue widget", "2", "1.50"), ("Bolt", "10", "0.25"))
    box = table.boxes[0][1]
    assert box is not None and box[0] == pytest.approx(200 / 600, abs=0.01)


def test_numbers_flush_right_under_a_flush_left_heading_stay_in_their_column() -> None:
    page = [(50, 600, "Unit"), (150, 600, "Miles"), (300, 600, "Gallons")]
    page += [(50, 580, "A1"), (230, 580, "5.0"), (380, 580, "7.5"), (50, 560, "A2"), (380, 560, "8.5")]
    (table,) = read_text_layer(make_pdf([page]), "application/pdf").tables
    assert table.rows == (("A1", "5.0", "7.5"), ("A2", "", "8.5"))


def test_header_wrapped_over_two_lines_is_joined() -> None:
    page = [(50, 610, "Date of"), (50, 600, "Loss"), (200, 600, "Paid"), (300, 610, "Total"), (300, 600, "due")]
    page += [(50, 580, "01/02/24"), (200, 580, "5.00"), (300, 580, "6.00")]
    (table,) = read_text_layer(make_pdf([page]), "application/pdf").tables
    assert table.header == ("Date of Loss", "Paid", "Total due")
    assert table.rows == (("01/02/24", "5.00", "6.00"),)


def test_html_blocks_tables_and_nested_tables() -> None:
    html = b"""<html><head><style>p { color: red }</style><title>T</title></head><body><p>Name: <b>Ann</b> &amp; Bo</p>
    <!-- <p>not this</p> --><script>if (1 < 2) document.write("<p>no</p>")</script>
    <table><tr><td>a <table><tr><th>X<th>Y<tr><td>1<td>2</table></td></tr></table>
    <table><tr><th>Item</th><th colspan="2">Qty</th></tr><tr><td>Nut</td><td>3</td><td>kg</td></tr></table></body>"""
    layer = read_text_layer(html, "text/html; charset=utf-8")
    assert "Name: Ann & Bo" in texts(layer)
    assert not any("not this" in text or "red" in text or "write" in text for text in texts(layer))
    assert [(table.header, table.rows) for table in layer.tables] == [
        (("X", "Y"), (("1", "2"),)),
        (("Item", "Qty", ""), (("Nut", "3", "kg"),)),
    ]
    assert not layer.geometry


def test_xml_leaves_attributes_and_repeated_elements() -> None:
    xml = b"""<?xml version="1.0"?><inv:Order xmlns:inv="urn:x" currency="EUR"><ID>7</ID>
    <lines><line><sku>A</sku><price><net>1.5</net></price></line><line><sku>B</sku></line></lines></inv:Order>"""
    layer = read_text_layer(xml, "application/xml")
    assert texts(layer)[:2] == ["Order currency EUR", "ID 7"]
    (table,) = layer.tables
    assert table.header == ("sku", "net") and table.rows == (("A", "1.5"), ("B", ""))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_delimiter_is_sniffed(delimiter: str) -> None:
    rows = [["Date", "Text", "Amount"], ["2025-01-03", '"a, b; c | d"', "1.5"], ["2025-01-04", "e", "2"]]
    data = "\ufeff" + "\r\n".join(delimiter.join(row) for row in rows)
    (table,) = read_text_layer(data.encode(), "text/csv").tables
    assert table.header == ("Date", "Text", "Amount")
    assert table.rows[0] == ("2025-01-03", "a, b; c | d", "1.5")


def test_csv_with_nul_is_read_without_it() -> None:
    layer = read_text_layer(b"a,b\n1\x00,2\n", "text/csv")
    assert layer.tables[0].rows == (("1", "2"),)


def test_csv_field_too_large_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="not a readable CSV"):
        read_text_layer(b'a,b\n"' + b"x" * 200_000 + b'",2\n', "text/csv")


def test_plain_text_keeps_columns_and_falls_back_to_cp1252() -> None:
    text = "Caf\xe9\nItem     Qty\nBolt       3\nNut        4\n".encode("cp1252")
    layer = read_text_layer(text, "text/plain")
    assert layer.lines[0].text == "Caf\xe9"
    assert layer.lines[1].words[1].box == (9, 2, 12, 3)
    assert layer.tables[0].header == ("Item", "Qty") and layer.tables[0].rows == (("Bolt", "3"), ("Nut", "4"))


def test_docx_paragraphs_and_tables() -> None:
    def cell(text: str) -> str:
        return f"<w:tc><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    rows = "".join(f"<w:tr>{cell(a)}{cell(b)}</w:tr>" for a, b in [("Item", "Qty"), ("Bolt", "3")])
    body = f"<w:p><w:r><w:t>Invoice No:</w:t><w:tab/><w:t>7</w:t></w:r></w:p><w:tbl>{rows}</w:tbl>"
    layer = read_text_layer(make_docx(body), DOCX)
    assert texts(layer) == ["Invoice No: 7", "Item Qty", "Bolt 3"]
    assert layer.tables[0].header == ("Item", "Qty") and layer.tables[0].rows == (("Bolt", "3"),)


@pytest.mark.parametrize("media_type", ["image/png", "application/octet-stream", ""])
def test_other_types_have_no_text_layer(media_type: str) -> None:
    assert read_text_layer(b"\x89PNG", media_type) == TextLayer(0, (), ())


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.4\n", make_pdf([INVOICE])[:150]])
def test_broken_pdf_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable PDF"):
        read_text_layer(data, "application/pdf")


def test_encrypted_pdf_is_a_value_error() -> None:
    key = "<" + "00" * 32 + ">"
    encrypt = f"/Encrypt << /Filter /Standard /V 1 /R 2 /O {key} /U {key} /P -4 >> /ID [<00> <00>] "
    with pytest.raises(ValueError, match="encrypted PDF"):
        read_text_layer(make_pdf([INVOICE], trailer=encrypt), "application/pdf")


@pytest.mark.parametrize(
    "xml",
    [
        b'<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;&x;&x;&x;&x;">]><a>&y;&y;</a>',
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        b"<a><b></a>",
        b"<a>" * 100_000,
        b"",
    ],
)
def test_hostile_xml_is_a_value_error(xml: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable XML"):
        read_text_layer(xml, "text/xml")


def test_zip_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textlayer_xml, "MAX_TEXT_BYTES", 1_000_000)
    bomb = make_docx(f"<w:p><w:r><w:t>{' ' * 2_000_000}</w:t></w:r></w:p>")
    assert len(bomb) < 10_000
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_text_layer(bomb, DOCX)


def test_docx_that_is_no_zip_or_lacks_the_document_is_a_value_error() -> None:
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("other.xml", "")
    corrupt = bytearray(make_docx("<w:p/>" * 50))
    corrupt[60:75] = b"\xff" * 15
    for data in (b"PK no", empty.getvalue(), bytes(corrupt)):
        with pytest.raises(ValueError, match="not a readable DOCX"):
            read_text_layer(data, DOCX)


@pytest.mark.parametrize(
    "unit",
    ["<div>", "<table><tr><td>", "<a", "<!--", "<!-- >", "<![", "<script>", '<a b="', "</", "&a"],
)
def test_pathological_html_is_linear(unit: str) -> None:
    started = time.monotonic()
    layer = read_text_layer((unit * 100_000).encode(), "text/html")
    assert time.monotonic() - started < 10
    assert layer.pages == 1 and layer.tables == ()


def test_colspan_and_sparse_records_do_not_multiply() -> None:
    html = "<table><tr>" + "<td colspan=200>x" * 50_000 + "<tr><td>y</table>"
    assert len(read_text_layer(html.encode(), "text/html").tables[0].header) <= 1_200
    records = "".join(f"<r><c{i % 200}>1</c{i % 200}></r>" for i in range(30_000))
    (table,) = read_text_layer(f"<a>{records}</a>".encode(), "text/xml").tables
    assert len(table.header) * len(table.rows) <= 2_000_000


def test_word_budget_stops_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oeb_ray.providers.textlayer_types.MAX_WORDS", 10)
    layer = read_text_layer(b"one two three\n" * 100, "text/plain")
    assert 0 < sum(len(line.words) for line in layer.lines) <= 10


def test_page_budget_stops_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oeb_ray.providers.textlayer_pdf.MAX_PAGES", 1)
    layer = read_text_layer(make_pdf([INVOICE, INVOICE]), "application/pdf")
    assert layer.pages == 1 and {line.page for line in layer.lines} == {1}


def test_reading_twice_gives_the_same_layer() -> None:
    data = make_pdf([INVOICE, INVOICE])
    assert read_text_layer(data, "application/pdf") == read_text_layer(data, "application/pdf")
