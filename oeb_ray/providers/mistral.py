"""mistral: Mistral OCR with a document annotation. One synchronous call per document, no job, no settings.

In: a PDF and a schema, sent as it is. Out: the annotation. The pages' text stays in the record. The vendor documents
no price in its answer, so the cost is usually unknown.
"""

from __future__ import annotations

import base64
from typing import Any

from ..errors import Unreadable
from . import vendors
from .contract import Call, Document, Extraction, Response, VendorOptions
from .replies import ERROR_LENGTH, answer_of, body_of, count_at, number_at, prediction_bytes, reason, recordable
from .transport import VendorRules, submit
from .vendor import Request, Vendor, without

MODEL = "mistral-ocr-latest"


class Mistral(Vendor):
    """See the module's text."""

    name = "mistral"
    Settings = vendors.Mistral
    credential = ("MISTRAL_API_KEY",)
    cap = 5
    own_server = "https://api.mistral.ai"

    def headers(self, key: str, settings: vendors.Mistral) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: vendors.Mistral,
        options: VendorOptions,
        call: Call | None,
    ) -> Extraction:
        """Asks for the annotation.

        Raises:
            VendorError: the document is refused, or the answer holds no annotation that can be read.
            MissingCredential, AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        line = self.line(call, settings, options)
        await self.check(document)
        body = request_body(document, schema)

        async def send() -> Response:
            return await line.send(Request("POST", "/v1/ocr", json=body, timeout=max(1.0, line.call.remaining())))

        return read_answer(await submit(line.call, send, vendor=line.vendor), line.call, line.vendor)


def request_body(document: Document, schema: dict[str, Any]) -> dict[str, Any]:
    """The request as the vendor's OCR interface takes it; the document is inside, in base64 (a third longer)."""
    data = base64.b64encode(document.data).decode("ascii")
    return {
        "model": MODEL,
        "document": {"type": "document_url", "document_url": f"data:{document.media_type};base64,{data}"},
        "document_annotation_format": {
            "type": "json_schema",
            "json_schema": {"name": "extraction", "schema": schema, "strict": False},
        },
    }


def read_answer(response: Response, call: Call, vendor: VendorRules) -> Extraction:
    """The annotation of an answer; its cost is noted first, for a useless answer is billed as well.

    Raises:
        Unreadable: no annotation, or none that is a non-empty JSON object. It keeps status and body.
    """
    body = body_of(response.body)
    kept = recordable(body, vendor.secrets)
    if not isinstance(body, dict):
        raise Unreadable("mistral: unreadable reply: no JSON object", response.status, kept)
    cost = number_at(body, "usage_info.cost")
    if cost is not None:
        call.billed(usd=round(float(cost), 6), source="usage_info.cost")
    annotation = body.get("document_annotation")
    answer = answer_of(annotation)
    if answer is None:
        if annotation is None:
            problem = f"no annotation in the reply: {reason(kept) or 'no reason given'}"
        else:
            problem = "unreadable annotation: not a non-empty JSON object (it may have been cut off)"
        raise Unreadable(f"mistral: {problem}"[:ERROR_LENGTH], response.status, kept)
    return Extraction(
        prediction=prediction_bytes(answer),
        raw=without(kept, "document_annotation"),
        pages=count_at(body, "usage_info.pages_processed"),
    )
