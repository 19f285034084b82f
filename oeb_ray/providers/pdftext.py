"""pdftext: the offline floor. Reads the text layer and fills the schema by printed labels and table headers.

It guesses nothing and sees no picture; what every vendor must beat. See textlayer.py and pdftext_fill.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import VendorError
from ..records import Doc
from .contract import Call, Document, Extraction, NoOptions
from .pdftext_fill import fill
from .textlayer import read_text_layer


@dataclass(frozen=True, slots=True)
class PdfTextSettings:
    """No settings at all."""


class PdfText:
    """See the module's text. Free: no account, no claims."""

    name = "pdftext"
    paid = False
    Settings = PdfTextSettings
    Options = NoOptions

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return doc.doc_path

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        return []

    def prepare_schema(self, schema: dict[str, Any], settings: PdfTextSettings) -> dict[str, Any]:
        return schema

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: PdfTextSettings,
        options: NoOptions,
        call: Call | None,
    ) -> Extraction:
        try:
            # In a thread: what takes too long is recorded as a time-out, though the thread goes on to its end.
            layer = await asyncio.to_thread(read_text_layer, document.data, document.media_type)
            prediction, citations = await asyncio.to_thread(fill, schema, layer)
        except ValueError as error:
            raise VendorError(str(error)) from error
        return Extraction(
            prediction=json.dumps(prediction, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace"),
            citations=tuple(citations),
            pages=layer.pages,
        )
