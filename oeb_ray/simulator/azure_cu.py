"""azure-cu: analyzers, analyses, and results as nodes of values; the shapes of May 2025 and of November 2025.

In: ``PUT``/``GET /azure-cu/contentunderstanding/analyzers/<id>``, ``POST`` of the same with ``:analyze`` or
``:analyzeBinary``, ``GET .../analyzerResults/<id>``; the key in ``Ocp-Apim-Subscription-Key``. Out: a node per value.
An analyzer is ready at the second look. A field schema that breaks the vendor's documented rules is answered 400.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..jsontext import read_json
from ..providers.azure_fields import LIST, NAMES
from .account import Job, Upload, Visit
from .vendor import BadRequest, JobVendor, read_body, value_of

_OLD = "2025-05-01-preview"
_BASE = "/contentunderstanding"
_NAME = re.compile(r"[\w.-]{1,64}")
_KINDS = {"string", "number", "integer", "boolean", "array", "object", "date", "time"}
_BESIDE = {"confidence": 0.9, "source": "D(1,1,1,2,1,2,2,1,2)", "spans": [{"offset": 0, "length": 1}]}


class AzureCu(JobVendor):
    name = "azure-cu"
    key_status = (401, "Access denied due to invalid subscription key or wrong API endpoint")
    credit_status = (403, "Out of call volume quota")

    def routes(self) -> list[Route]:
        return [
            Route(f"{_BASE}/analyzers/{{analyzer}}:analyze", self.submit, methods=["POST"]),
            Route(f"{_BASE}/analyzers/{{analyzer}}:analyzeBinary", self.submit, methods=["POST"]),
            Route(f"{_BASE}/analyzers/{{analyzer}}", self.make, methods=["PUT"]),
            Route(f"{_BASE}/analyzers/{{analyzer}}", self.look, methods=["GET"]),
            Route(f"{_BASE}/analyzers/{{analyzer}}/operations/{{operation}}", self.look, methods=["GET"]),
            Route(f"{_BASE}/analyzerResults/{{job}}", self.poll, methods=["GET"]),
        ]

    def key(self, request: Request) -> str:
        return request.headers.get("ocp-apim-subscription-key", "")

    # --- analyzers ------------------------------------------------------------------------------------------------

    async def make(self, request: Request) -> Response:
        """Makes an analyzer; 409 if it is there."""
        visit = self.account.arrive("make", self.key(request))
        analyzer = request.path_params["analyzer"]
        if response := self._refusal(request, visit, f"make {analyzer}"):
            return response
        try:
            _check(analyzer, await read_body(request), request.query_params.get("api-version", ""))
        except BadRequest as wrong:
            self.account.note(visit, wrong.status, "bad_request")
            return self.answer(wrong.status, self.problem(wrong.status, wrong.text))
        if analyzer in self.account.looks and "allowReplace" not in request.query_params:
            self.account.note(visit, 409)
            return self.answer(409, self.problem(409, "The analyzer exists"))
        self.account.looks[analyzer] = 0
        self.account.note(visit, 201)
        operation = f"{request.url.replace(query='')}/operations/1?{request.url.query}"
        return self.answer(
            201, {"analyzerId": analyzer, "status": "creating"}, headers=[("operation-location", operation)]
        )

    async def look(self, request: Request) -> Response:
        """The state of an analyzer, or of the operation that makes it."""
        visit = self.account.arrive("look", self.key(request))
        analyzer = request.path_params["analyzer"]
        if response := self._refusal(request, visit, f"look {analyzer}"):
            return response
        if analyzer not in self.account.looks:
            self.account.note(visit, 404)
            return self.answer(404, self.problem(404, "The analyzer does not exist"))
        self.account.looks[analyzer] += 1
        words = ("Running", "Succeeded") if "operation" in request.path_params else ("creating", "ready")
        self.account.note(visit, 200)
        return self.answer(200, {"id": analyzer, "status": words[self.account.looks[analyzer] > 1]})

    def _refusal(self, request: Request, visit: Visit, what: str) -> Response | None:
        if why := self.account.refusal(visit, self.key(request)):
            return self._refused(visit, why)
        return self.free_fault(visit, what)

    # --- analyses -------------------------------------------------------------------------------------------------

    async def read(self, request: Request) -> Upload:
        data = await read_body(request)
        version = request.query_params.get("api-version", "")
        if request.url.path.endswith(":analyze") != (version == _OLD):
            raise BadRequest(400, f"The version {version} takes no such request")
        if self.account.looks.get(request.path_params["analyzer"], 0) < 2:
            raise BadRequest(404, "The analyzer does not exist or is not ready")
        return Upload(await self.library.document(data), len(data))

    def problem(self, status: int, text: str) -> Any:
        return {"error": {"code": str(status), "message": text}}

    def created(self, request: Request, job: Job) -> tuple[int, Any]:
        return 202, {"id": job.id, "status": "NotStarted"}

    def created_headers(self, request: Request, job: Job) -> list[tuple[str, str]]:
        url = str(request.url.replace(query=""))
        return [
            ("operation-location", f"{url[: url.index(_BASE)]}{_BASE}/analyzerResults/{job.id}?{request.url.query}")
        ]

    def running(self, job: Job) -> Any:
        return {"id": job.id, "status": "Running"}

    def failed(self, job: Job, text: str) -> tuple[int, Any]:
        return 200, {"id": job.id, "status": "Failed", "error": {"code": "InvalidContent", "message": text}}

    def result(self, job: Job, text: str, padding: str) -> Any:
        fields = _node(value_of(text)).get("valueObject", {})
        content = {"kind": "document", "startPageNumber": 1, "endPageNumber": 1, "markdown": padding, "fields": fields}
        tokens = {"gpt-4.1-mini-input": 100, "gpt-4.1-mini-output": 20}
        return {
            "id": job.id,
            "status": "Succeeded",
            "result": {"apiVersion": "simulated", "warnings": [], "contents": [content]},
            "usage": {"documentPagesStandard": 1, "tokens": tokens},
        }


def _node(value: Any) -> dict[str, Any]:
    """A value as the vendor's result has it."""
    if value is None:
        return {"type": "string"}
    if isinstance(value, dict):
        return {"type": "object", "valueObject": {NAMES.told(name): _node(item) for name, item in value.items()}}
    if isinstance(value, list):
        items = [_node({LIST: item}) if isinstance(item, list) else _node(item) for item in value]
        return {"type": "array", "valueArray": items}
    kind = {bool: "boolean", int: "integer", float: "number"}.get(type(value), "string")
    return {"type": kind, f"value{kind.title()}": value, **_BESIDE}


def _check(analyzer: str, data: bytes, version: str) -> None:
    """Raises BadRequest for a definition that the version does not take."""
    try:
        given = read_json(data)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not isinstance(given.get("fieldSchema"), dict):
        raise BadRequest(400, "fieldSchema is required")
    if not re.fullmatch("[a-zA-Z0-9._]{1,64}", analyzer):
        raise BadRequest(400, "The analyzer's name is not allowed")
    old = version == _OLD
    model = given.get("config" if old else "models", {}).get("completion")
    base = "prebuilt-documentAnalyzer" if old else "prebuilt-document"
    if not isinstance(model, str) or given.get("baseAnalyzerId") != base:
        raise BadRequest(400, f"The version {version} wants a model and {base}")
    for wrong in _wrong(given["fieldSchema"].get("fields"), _KINDS if old else _KINDS | {"json"}):
        raise BadRequest(400, wrong)


def _wrong(fields: Any, kinds: set[str]) -> list[str]:
    """What the vendor's documentation does not allow in fields."""
    if not isinstance(fields, dict) or not fields:
        return ["fields are required"]
    found = [f"the name {name!r} is not allowed" for name in fields if not _NAME.fullmatch(name)]
    for name, field in fields.items():
        if not isinstance(field, dict) or field.get("type") not in kinds:
            return [f"{name}: unknown type"]
        if len(field.get("description", "")) > 1024:
            found.append(f"{name}: the description is too long")
        if field["type"] == "array":
            item = field.get("items")
            if not isinstance(item, dict) or item.get("type") == "array":
                return [f"{name}: items are objects or primitives"]
            found += _wrong({"item": item}, kinds)
        if "properties" in field:
            found += _wrong(field["properties"], kinds)
    return found
