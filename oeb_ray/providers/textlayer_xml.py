"""Reads the text of XML and DOCX as lines and tables, from parser events and without building a tree.

In: hostile bytes. Out: a `TextLayer` on a virtual grid (no geometry).
XML goes through defusedxml: entity declarations and external references are refused; depth and unpacked size are
bounded. Nothing is fetched, run or written.
"""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from typing import Protocol
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import DefusedXMLParser  # type: ignore[import-untyped]

from .textlayer_markup import Flow
from .textlayer_types import MAX_COLUMNS, MAX_TEXT_BYTES, MAX_WORDS, GridBuilder, Table, TextLayer

MAX_DEPTH = 200
"""Deepest nesting of XML elements; deeper documents are refused."""

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


class _Target(Protocol):
    def start(self, tag: str, attrs: dict[str, str]) -> None: ...
    def data(self, data: str) -> None: ...
    def end(self, tag: str) -> None: ...
    def close(self) -> None: ...


def _parse(data: bytes, target: _Target, what: str) -> None:
    try:
        parser = DefusedXMLParser(target=target, forbid_entities=True, forbid_external=True)
        parser.feed(data)
        parser.close()
    except DefusedXmlException as error:
        raise ValueError(f"not a readable {what}: entities and external references are refused") from error
    except (ParseError, LookupError) as error:
        raise ValueError(f"not a readable {what}: {error}") from error


class _XmlElement:
    """An open XML element: its path id, own text, and the (name, value) leaves seen in it so far."""

    def __init__(self, name: str, path: int) -> None:
        self.name, self.path = name, path
        self.text: list[str] = []
        self.leaf = True
        self.leaves: dict[str, str] = {}
        self.seen: dict[int, int] = {}
        self.groups: list[_XmlElement] = []


class _XmlReader:
    """One line per leaf ("name  value") and per attribute; elements repeated under one parent become table rows."""

    def __init__(self) -> None:
        self.grid = GridBuilder()
        self.stack: list[_XmlElement] = []
        self.paths: dict[tuple[int, str], int] = {}
        self.rows: dict[int, list[dict[str, str]]] = {}
        self.repeated: set[int] = set()

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise ValueError(f"not a readable XML document: elements nested deeper than {MAX_DEPTH}")
        name = tag.rpartition("}")[2]
        parent = self.stack[-1] if self.stack else None
        # Paths are interned as numbers: a path as text would grow with the depth.
        path = self.paths.setdefault((parent.path if parent else 0, name), len(self.paths) + 1)
        element = _XmlElement(name, path)
        if parent:
            parent.leaf = False
            parent.seen[path] = parent.seen.get(path, 0) + 1
            if parent.seen[path] > 1:
                self.repeated.add(path)
        self.stack.append(element)
        for key, value in attrs.items():
            label = key.rpartition("}")[2]
            element.leaves.setdefault(label, value)
            if self.grid.left > 0:
                self.grid.add([name, label, value])

    def data(self, data: str) -> None:
        self.stack[-1].text.append(data)

    def end(self, tag: str) -> None:
        element = self.stack.pop()
        parent = self.stack[-1] if self.stack else None
        if element.leaf:
            value = " ".join("".join(element.text).split())
            if value and self.grid.left > 0:
                self.grid.add([element.name, value])
            if parent:
                parent.leaves.setdefault(element.name, value)
            return
        # A single nested group belongs to its parent's record; a repeated one is a table of its own.
        for group in element.groups:
            if group.path not in self.repeated and len(element.leaves) + len(group.leaves) <= MAX_COLUMNS:
                for key, value in group.leaves.items():
                    element.leaves.setdefault(key, value)
        element.groups = []
        if self.grid.left > 0:
            self.rows.setdefault(element.path, []).append(element.leaves)
            if parent and len(parent.groups) < MAX_COLUMNS:
                parent.groups.append(element)

    def close(self) -> None:
        return None

    def tables(self) -> list[Table]:
        """One table per repeated path, its header the names in order of appearance, at most `MAX_COLUMNS`.

        Missing values are filled in, so the cells are counted: `MAX_WORDS` of them in all.
        """
        tables = []
        left = MAX_WORDS
        for path in sorted(self.repeated & self.rows.keys()):
            names = list(dict.fromkeys(name for row in self.rows[path] for name in row))[:MAX_COLUMNS]
            kept = self.rows[path][: left // (len(names) or 1)]
            left -= len(kept) * len(names)
            rows = tuple(tuple(row.get(name, "") for name in names) for row in kept)
            if names and rows:
                tables.append(Table(1, tuple(names), rows))
        return tables


def read_xml(data: bytes) -> TextLayer:
    """Every leaf element and attribute of an XML document as a labelled line, and its repeated elements as tables."""
    reader = _XmlReader()
    _parse(data, reader, "XML document")
    return TextLayer(1, tuple(reader.grid.lines), tuple(reader.tables()))


class _DocxReader:
    """Feeds `Flow` from the WordprocessingML events of word/document.xml."""

    def __init__(self) -> None:
        self.flow = Flow()
        self.depth = 0
        self.in_text = False

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise ValueError(f"not a readable DOCX: elements nested deeper than {MAX_DEPTH}")
        self.in_text = tag == _W + "t"
        if tag == _W + "tbl":
            self.flow.open_table()
        elif tag in (_W + "tab", _W + "br", _W + "cr"):
            self.flow.text.append(" ")

    def data(self, data: str) -> None:
        if self.in_text and self.flow.grid.left > 0:
            self.flow.text.append(data)

    def end(self, tag: str) -> None:
        self.depth -= 1
        self.in_text = False
        if tag == _W + "p":
            self.flow.block()
        elif tag == _W + "tc":
            self.flow.end_cell()
        elif tag == _W + "tr":
            self.flow.end_row()
        elif tag == _W + "tbl":
            self.flow.close_table()

    def close(self) -> None:
        return None


def read_docx(data: bytes) -> TextLayer:
    """The paragraphs and tables of a DOCX body; ValueError when it is no DOCX or would unpack too large."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            info = archive.getinfo("word/document.xml")
            if info.file_size > MAX_TEXT_BYTES:
                raise ValueError(f"not a readable DOCX: its text unpacks to more than {MAX_TEXT_BYTES} bytes")
            with archive.open(info) as member:
                # The size in the directory may lie, so the read itself is bounded too.
                body = member.read(MAX_TEXT_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, LookupError, RuntimeError, EOFError, OSError) as error:
        # RuntimeError covers an encrypted member and an unknown compression method.
        raise ValueError(f"not a readable DOCX: {error}") from error
    if len(body) > MAX_TEXT_BYTES:
        raise ValueError(f"not a readable DOCX: its text unpacks to more than {MAX_TEXT_BYTES} bytes")
    reader = _DocxReader()
    _parse(body, reader, "DOCX")
    return reader.flow.finish()
