"""datalab: Datalab's extract interface. One submission, then polls until the job has ended.

In: a PDF and a schema in Datalab's dialect. Out: the extraction without the evidence beside its fields, which goes to
the citations and the record. The vendor states the cost in cents, sometimes only after the job is complete.
"""

from __future__ import annotations

import json
from typing import Any

from . import vendors
from .contract import Document, Response
from .jobs import Answer, JobVendor, State, state_of
from .replies import count_at, number_at, reason
from .schema import datalab_dialect
from .vendor import Line, Request, quoted, without

PATH = "/api/v1/extract"
EXTRACTION = "extraction_schema_json"


class Datalab(JobVendor):
    """See the module's text."""

    name = "datalab"
    Settings = vendors.Datalab
    credential = ("DATALAB_API_KEY",)
    cap = 10
    states_usd = True
    # The vendor's documented refusals (403, 401) that concern the account.
    account_phrases = ("you need an active, paid subscription", "your payment has failed", "invalid api key")
    late_bill = ("cost_breakdown", "total_cost")
    side_keys = ("extraction_score_average",)

    def prepare_schema(self, schema: dict[str, Any], settings: vendors.Datalab) -> dict[str, Any]:
        return datalab_dialect(schema)

    def headers(self, key: str, settings: vendors.Datalab) -> dict[str, str]:
        return {"X-Api-Key": key}

    async def submission(self, line: Line, document: Document, schema: dict[str, Any]) -> Request:
        form = {
            "page_schema": json.dumps(schema),
            "extraction_mode": line.settings.mode,
            "output_format": "json",
        }
        return Request("POST", PATH, data=form, files={"file": line.file(document)})

    def job_of(self, response: Response, body: Any) -> str | None:
        return body.get("request_id") if isinstance(body, dict) and body.get("success") is not False else None

    async def polling(self, line: Line, job: str) -> Request:
        return Request("GET", f"{PATH}/{quoted(job)}")

    def state(self, body: dict[str, Any]) -> State | None:
        state = state_of(body.get("status"), done=("complete",), failed=("error",))
        if state and body.get("success") is False and state.word != "processing":
            state = state._replace(kind="failed")
        where = body.get("error_in")
        if state and isinstance(where, str) and where:
            state = state._replace(why=f"{reason(body) or 'no reason given'} (error in {where[:40]})")
        return state

    def bill(self, body: dict[str, Any]) -> dict[str, Any]:
        """Cents become dollars here."""
        for path in ("cost_breakdown.final_cost_cents", "total_cost"):
            cents = number_at(body, path)
            if cents is not None:
                return {"usd": round(cents / 100, 6), "source": path}
        return {}

    async def answer(self, line: Line, job: str, body: dict[str, Any], schema: dict[str, Any]) -> Answer:
        return Answer(body.get(EXTRACTION), without(body, EXTRACTION), pages=count_at(body, "page_count"))
