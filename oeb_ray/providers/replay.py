"""replay: serves stored predictions as they are, byte for byte, so that any system's answers are graded as a Run.

The predictions lie at ``<folder>/<system>/<doc_id>.json``. ``system`` names the run; where the folder is, and the
seeded dials for latency and failures, are run options.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import storage
from ..errors import NO_PREDICTION, NoPrediction, VendorError
from ..records import Doc
from .contract import Call, Document, Extraction, setting


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    system: str = setting(help="the folder of the predictions to serve")


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    folder: str = setting("predictions", help="where the systems' folders are: a path or URL", address=True)
    latency: float = setting(0.0, help="mean of a seeded exponential wait per document", unit="s", minimum=0)
    failures: float = setting(0.0, help="share of documents that fail as a vendor would, seeded", minimum=0, maximum=1)
    seed: int = setting(0, help="of the dials")
    tally: str = setting("", help="a folder to count servings in: one empty file each; none if empty", address=True)


class Replay:
    """See the module's text. Free: no account, no claims."""

    name = "replay"
    paid = False
    Settings = ReplaySettings
    Options = ReplayOptions

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return storage.join(options["folder"], settings["system"], f"{doc.doc_id}.json")

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        system, folder = settings["system"], options["folder"]
        if "/" in system or system in ("", ".", ".."):
            return [f"system={system!r} is no name of a folder in {folder}"]
        if not storage.is_folder(storage.join(folder, system)):
            return [f"no predictions at {storage.join(folder, system)}; set folder to where the systems' folders are"]
        return []

    def prepare_schema(self, schema: dict[str, Any], settings: ReplaySettings) -> dict[str, Any]:
        return schema

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: ReplaySettings,
        options: ReplayOptions,
        call: Call | None,
    ) -> Extraction:
        dice = random.Random(f"{options.seed}/{settings.system}/{document.doc_id}")
        if options.latency:
            await asyncio.sleep(dice.expovariate(1 / options.latency))
        if options.tally:
            served = storage.encode_id(document.doc_id)
            storage.put(storage.join(options.tally, settings.system, f"{served}.{uuid.uuid4().hex}"), b"")
        if dice.random() < options.failures:
            raise VendorError("a failure by the dial `failures`", status=503)
        if not document.found:
            raise NoPrediction(NO_PREDICTION)
        return Extraction(prediction=document.data)
