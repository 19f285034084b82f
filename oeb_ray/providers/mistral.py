"""mistral: Mistral OCR with a document annotation. One synchronous call per document, no job, no settings.

In: a PDF and a schema, sent as it is. Out: the annotation. The pages' text stays in the record. The vendor documents
no price in its answer, so the cost is usually unknown.
"""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InternalError, VendorError
from ..records import Doc
from . import vendors
from .accepts import refused_document
from .contract import Call, Document, Extraction, Response, setting
from .replies import ERROR_LENGTH, answer_of, body_of, prediction_bytes, reason, recordable
from .schema import check_bounds
from .transport import VendorRules, key_of, server, server_problems, submit

ADDRESS = "OEB_MISTRAL_ADDRESS"
"""Environment variable: the server to call, where no option names one."""
SERVER = "https://api.mistral.ai"
MODEL = "mistral-ocr-latest"


@dataclass(frozen=True, slots=True)
class MistralOptions:
    overlay: bool = setting(True, help="state the benchmark's conventions in the schema's descriptions")
    send_name: str = setting(
        "neutral", help="the file name the vendor sees (this one sees none)", choices=("neutral", "original")
    )
    address: str = setting("", help="server to call instead of the vendor's own; else OEB_MISTRAL_ADDRESS")


class Mistral:
    """See the module's text."""

    name = "mistral"
    paid = True
    Settings = vendors.Mistral
    Options = MistralOptions
    credential: tuple[str, ...] = ("MISTRAL_API_KEY",)
    cap = 5
    states_usd = False

    def host(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return server(options["address"], ADDRESS, SERVER)

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return doc.doc_path

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """A server that cannot be called. The key is looked for when a document is asked for."""
        return server_problems(options.get("address", ""), ADDRESS, SERVER)

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.Mistral) -> dict[str, Any]:
        """The dialect: any schema that can be written as JSON, as it is (not strict)."""
        check_bounds(schema)
        return copy.deepcopy(schema)

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: vendors.Mistral,
        options: MistralOptions,
        call: Call | None,
    ) -> Extraction:
        """Asks for the annotation.

        Raises:
            VendorError: the document is refused, or the answer holds no annotation that can be read.
            MissingCredential, AccountFailure, NotSent, Unreachable, VendorTimeout: see errors.py.
        """
        if call is None:
            raise InternalError("mistral is a paid provider and was given no call")
        key = key_of(self.credential, self.name)
        problem = await asyncio.to_thread(refused_document, self.name, document)
        if problem:
            raise VendorError(problem)
        vendor = VendorRules(self.name, secrets=(key,))
        url = server(options.address, ADDRESS, SERVER) + "/v1/ocr"
        body = request_body(document, schema)

        async def send() -> Response:
            headers = {"Authorization": f"Bearer {key}"}
            return await call.send("POST", url, headers=headers, json=body, timeout=max(1.0, call.remaining()))

        response = await submit(call, send, vendor=vendor)
        return read_answer(response, call, vendor)


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
        VendorError: no annotation, or none that is a non-empty JSON object. It keeps status and body.
    """
    body = body_of(response.body)
    if not isinstance(body, dict):
        kept = recordable(body, vendor.secrets)
        raise VendorError("mistral: unreadable reply: no JSON object", response.status, kept)
    usage = body.get("usage_info")
    usage = usage if isinstance(usage, dict) else {}
    cost, pages = usage.get("cost"), usage.get("pages_processed")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf"):
        call.billed(usd=round(float(cost), 6), source="usage_info.cost")
    annotation = body.get("document_annotation")
    answer = answer_of(annotation)
    kept = recordable(body, vendor.secrets)
    if answer is None:
        if annotation is None:
            problem = f"no annotation in the reply: {reason(kept) or 'no reason given'}"
        else:
            problem = "unreadable annotation: not a non-empty JSON object (it may have been cut off)"
        raise VendorError(f"mistral: {problem}"[:ERROR_LENGTH], response.status, kept)
    raw = {key: value for key, value in kept.items() if key != "document_annotation"}
    known = isinstance(pages, int) and not isinstance(pages, bool) and pages >= 0
    return Extraction(prediction=prediction_bytes(answer), raw=raw, pages=pages if known else None)
