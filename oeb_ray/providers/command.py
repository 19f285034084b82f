"""command: a command line of one's own, such as a coding agent's, works in a closed room and leaves output.json.

In: a document, its schema and the instruction, as files in a fresh folder. Out: what output.json holds, byte for byte,
also of a command that was stopped at the deadline. The gold, the home folder and the network are out of reach (see
sandbox.py). What it cost is read from usage.json, if it writes one. It goes through an account's pool like any vendor:
claims before it starts, so many at once, on whatever node of the cluster has the least to do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import storage
from ..errors import RequestError, VendorError, VendorTimeout
from ..jsontext import pretty, read_json
from ..records import Doc
from . import sandbox
from .accepts import sent_name
from .contract import Call, Document, Extraction, setting
from .errand import OUTPUT, USAGE, Errand, run_errand
from .gateway import host_fault
from .instruction import instruction
from .sandbox import BUBBLEWRAP, NO_ISOLATION

_COST = ("usd", "cost_usd", "total_cost_usd")
_IN, _OUT = ("tokens_in", "input_tokens"), ("tokens_out", "output_tokens")


@dataclass(frozen=True, slots=True)
class CommandSettings:
    command: str = setting(help="shell command that reads instruction.md in its working folder and leaves output.json")
    agent: str = setting("command", help="what it is called; commands of one name share a pool")
    model: str = setting("", help="OEB_MODEL for the command")
    setup: str = setting("", help="shell command that is run before, with a network, and whose time does not count")
    keys: str = setting("", help="environment variables that the command gets, such as OPENAI_API_KEY; commas between")


@dataclass(frozen=True, slots=True)
class CommandOptions:
    overlay: bool = setting(False, help="state the benchmark's conventions in the schema's descriptions")
    send_name: str = setting("neutral", help="the document's file name", choices=("neutral", "original"))
    isolation: str = setting(BUBBLEWRAP, help="how it is kept apart; none: it can do all that you can",
                             choices=(BUBBLEWRAP, NO_ISOLATION))  # fmt: skip
    allow_hosts: str = setting("", help="hosts that it may reach by https, commas between; none if empty")
    show: str = setting(
        "", help="folders that it gets, read only: /inside=PATH|URL, commas between; {doc_id} is filled in"
    )
    setup_seconds: float = setting(600.0, help="for the setup", unit="s", minimum=1)
    disk_gb: float = setting(4.0, help="what it may write in all", unit="GB", minimum=0.01)


class Command:
    """See the module's text. ``credential``: the variables whose values the command gets."""

    name = "command"
    paid = True
    cap = 4
    states_usd = False
    Settings = CommandSettings
    Options = CommandOptions

    def __init__(self, credential: tuple[str, ...] = ()) -> None:
        self.credential = credential

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return doc.doc_path

    def host(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        return f"process://{settings['agent']}"

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """No command, no way to keep it apart, or a promise that cannot be kept."""
        found = [] if settings["command"].strip() else ["command is empty; give the shell command to run"]
        isolation = options["isolation"]
        if isolation == BUBBLEWRAP and (fault := sandbox.bubblewrap_fault()):
            found.append(f"{fault}; isolation=none runs the command without a room, with all that you can reach")
        elif isolation not in (BUBBLEWRAP, NO_ISOLATION):
            found.append(f"isolation={isolation!r}: known: {BUBBLEWRAP}, {NO_ISOLATION}")
        hosts = _listed(options["allow_hosts"])
        if hosts and isolation == NO_ISOLATION:
            found.append(f"allow_hosts={options['allow_hosts']!r}: isolation=none cannot enforce a list of hosts")
        found += [f"allow_hosts: {fault}" for fault in map(host_fault, hosts) if fault]
        try:
            if _shown(options["show"], "") and isolation == NO_ISOLATION:
                found.append("show: without isolation nothing can be shown elsewhere than where it is")
        except RequestError as error:
            found.append(str(error))
        return found

    def prepare_schema(self, schema: dict[str, Any], settings: CommandSettings) -> dict[str, Any]:
        return schema

    async def extract(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: CommandSettings,
        options: CommandOptions,
        call: Call | None,
    ) -> Extraction:
        """Runs setup and command in a fresh room, under one claim; what ends before the command began costs nothing.

        Raises:
            VendorError: no output.json, or none that can be taken. VendorTimeout: none when the time was up.
            Unreachable: the machine that it ran on was lost.
        """
        if call is None:
            raise TypeError("a command is run under a claim")
        errand = self._errand(document, schema, settings, options, call.remaining())
        async with call.paid("first"):
            done = await call.work(run_errand, errand)
            if done.fault:  # before the command began: nothing was spent
                raise VendorError(done.fault, body=done.raw)
        _bill(done.usage, call)
        if done.unusable:
            raise VendorError(done.unusable, body=done.raw)
        if done.output is None:
            raise (VendorTimeout if done.late else VendorError)(f"it left no {OUTPUT}: {done.ended}", body=done.raw)
        return Extraction(done.output, done.raw)

    def _errand(
        self,
        document: Document,
        schema: dict[str, Any],
        settings: CommandSettings,
        options: CommandOptions,
        seconds: float,
    ) -> Errand:
        name, text = sent_name(document, options.send_name), pretty(schema)
        told = instruction(name, text.decode()).encode()
        return Errand(
            settings.command,
            max(0.0, seconds),
            {name: document.data, "schema.json": text, "instruction.md": told},
            _shown(options.show, document.doc_id),
            {"OEB_DOCUMENT": name, "OEB_MODEL": settings.model},
            self.credential,
            settings.setup,
            options.setup_seconds,
            int(options.disk_gb * 1e9),
            options.isolation,
            _listed(options.allow_hosts),
        )


def with_keys(settings: Mapping[str, Any] | None) -> Command:
    """The provider for a command's settings, which name the variables of its keys."""
    keys = (settings or {}).get("keys")
    return Command(_listed(keys) if isinstance(keys, str) else ())


def _listed(text: str) -> tuple[str, ...]:
    """The members of a text with commas between them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _shown(text: str, doc_id: str) -> dict[str, str]:
    """The folders of the option ``show``, by where they are seen. Raises RequestError."""
    found = {}
    for part in _listed(text):
        inside, _, outside = part.partition("=")
        if not inside.startswith("/") or not outside:
            raise RequestError(f"show: {part!r} is not as in /inside=PATH")
        found[inside] = storage.absolute(outside.replace("{doc_id}", doc_id))
    return found


def _bill(usage: bytes | None, call: Call) -> None:
    """Notes what usage.json states: its own keys, or the result of an agent that uses these names."""
    try:
        found = read_json(usage or b"null")
    except ValueError:
        return
    if not isinstance(found, dict):
        return
    inner = found.get("usage")
    places = [found, inner] if isinstance(inner, dict) else [found]
    usd, tokens_in, tokens_out = (_number(places, names) for names in (_COST, _IN, _OUT))
    call.billed(
        usd=usd,
        source=None if usd is None else USAGE,
        tokens_in=None if tokens_in is None else int(tokens_in),
        tokens_out=None if tokens_out is None else int(tokens_out),
    )


def _number(places: list[dict[str, Any]], names: tuple[str, ...]) -> float | None:
    for place in places:
        for name in names:
            value: Any = place.get(name)
            if type(value) in (int, float) and 0 <= value < 1e15 and math.isfinite(value):
                return float(value)
    return None
