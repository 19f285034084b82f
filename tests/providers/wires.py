"""A vendor's adapter over real HTTP: an account at work against the simulator, and the records it leaves."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oeb_ray import layout, storage
from oeb_ray.cluster.account import Account
from oeb_ray.cluster.contract import Predicted
from oeb_ray.digests import text_digest
from oeb_ray.errors import OebError
from oeb_ray.plan import run_name
from oeb_ray.providers.jobs import JobVendor
from oeb_ray.providers.registry import PAID, settings_for
from oeb_ray.records import Doc, PredictBatch, Run
from oeb_ray.simulator import Profile, Simulator
from oeb_ray.storage import encode_id

KEY = "canary-0815/key"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "total": {"type": ["number", "null"]},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": "string"}}},
        },
    },
    "required": ["id"],
}
GOLD: dict[str, Any] = {"id": "A-17", "total": 12.5, "rows": [{"id": 1, "note": "ok"}, {"id": 2, "note": "späť"}]}
_FAST = {"poll_interval": 0, "attempts": 1}
FAST: dict[str, dict[str, Any]] = {
    name: {key: value for key, value in _FAST.items() if key in one.Settings.__dataclass_fields__}
    for name, one in PAID.items()
}
"""Settings that do not wait between polls, and ask a model once."""
JOB_VENDORS = sorted(name for name, one in PAID.items() if isinstance(one, JobVendor))


def in_a_hurry(patch: pytest.MonkeyPatch) -> None:
    """Keys for all vendors, and schedules of moments."""
    for one in PAID.values():
        for variable in one.credential:
            patch.setenv(variable, KEY)
    patch.setattr("oeb_ray.providers.transport.WAITS", (0.05, 0.1, 0.15))
    patch.setattr("oeb_ray.providers.transport.backoff", lambda n: 0.05 * n)
    patch.setattr("oeb_ray.providers.transport.SHORTEST_INTERVAL", 0.03)
    patch.setattr("oeb_ray.providers.extend.POLL_SECONDS", 0.0)
    patch.setattr("oeb_ray.providers.azure_cu._READY", set())  # another simulator may have had this port


class Wire:
    """One vendor, a simulator with its dials, and documents with their answers; ``ask`` predicts them all at once.

    ``bodies``: whole replies by document, sent in place of the vendor's.
    """

    def __init__(self, folder: Path, vendor: str, simulator: Simulator, schema: Any, options: dict[str, Any]) -> None:
        self.vendor, self.simulator, self.folder = vendor, simulator, folder
        self.out = str(folder / "out")
        settings = FAST.get(vendor, {}) | options.pop("settings", {})
        given = {"timeout_s": 20.0, "address": f"{simulator.url}/{vendor}"} | options
        self.run = Run(run_name(vendor, settings), vendor, settings_for(vendor, settings), given)
        text = json.dumps(schema)
        self.docs = [
            Doc(path.stem, "s", str(path), "", text, text_digest(text)) for path in sorted((folder / "docs").iterdir())
        ]

    async def _ask(self, again: bool) -> list[Predicted]:
        account = Account(f"{self.vendor}@test")
        member = {"cap": 8, "rpm": None, "max_usd": None, "digest": "1", "spent": {}, "resumed": False, "paused": False}
        account.register("job", member)
        try:
            asked = (account.predict("job", PredictBatch(self.out, self.run, (doc,), again)) for doc in self.docs)
            return await asyncio.wait_for(asyncio.gather(*asked), 60)
        finally:
            await account.close()

    def ask(self, again: bool = False) -> list[dict[str, Any]]:
        """The records of all documents; raises what stopped the account."""
        began = time.monotonic()
        ended = asyncio.run(self._ask(again))
        self.seconds = time.monotonic() - began
        stopped = [one.stopped for one in ended if one.stopped]
        if stopped:
            raise stopped[0]
        return [self.record(doc.doc_id) for doc in self.docs]

    def stop(self) -> OebError:
        """What stops the account; no document has a record then."""
        with pytest.raises(OebError) as caught:
            self.ask()
        assert KEY not in str(caught.value)
        assert not storage.listed(storage.join(self.out, self.run.name, "records"))
        return caught.value

    def record(self, doc_id: str) -> dict[str, Any]:
        data = storage.read(layout.record(self.out, self.run.name, doc_id))
        assert KEY.encode() not in data and json.dumps(KEY)[1:-1].encode() not in data
        found = json.loads(data)
        assert isinstance(found, dict)
        if found["error"]:
            assert found["error"]["message"] and len(found["error"]["message"]) <= 600
        return found

    def prediction(self, doc_id: str) -> Any:
        return json.loads(storage.read(layout.prediction(self.out, self.run.name, doc_id)))

    def stats(self) -> dict[str, Any]:
        found = self.simulator.stats()[self.vendor]
        assert isinstance(found, dict)
        return found

    def bought(self) -> list[int]:
        """How often each document was submitted, and accepted."""
        return [sum(self.stats()[name].values()) for name in ("submissions", "accepted")]

    def paths(self, kind: str) -> int:
        """How many requests of a kind came."""
        return int(self.stats()["kinds"].get(kind, 0))


@contextmanager
def wire(
    folder: Path,
    vendor: str,
    *,
    answers: Any = GOLD,
    schema: Any = SCHEMA,
    documents: int = 1,
    stems: Sequence[str] = (),
    bodies: Any = None,
    content: bytes = b"%PDF-1.4\n",
    options: dict[str, Any] | None = None,
    **dials: Any,
) -> Iterator[Wire]:
    """A Wire with ``documents`` documents, or some called ``stems``, that all have the same answer or whole reply."""
    for part in ("docs", "answers", "bodies"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for number, stem in enumerate(stems or [f"doc {number} [x]" for number in range(documents)]):
        (folder / "docs" / f"{stem}.pdf").write_bytes(content + (str(number).encode() if content else b""))
        if answers is not None:
            (folder / "answers" / f"{encode_id(stem)}.json").write_text(json.dumps(answers))
        if bodies is not None:
            text = bodies if isinstance(bodies, str) else json.dumps(bodies)
            (folder / "bodies" / f"{encode_id(stem)}.json").write_text(text)
    if bodies is not None:
        dials["bodies"] = "bodies"
    given = {"answers": "answers", "documents": "docs", "vendors": {vendor: {"price": 0.03} | dials}}
    with Simulator(Profile.from_dict(given, str(folder))) as simulator:
        yield Wire(folder, vendor, simulator, schema, dict(options or {}))
