"""What the simulator is told: a Profile with the Dials of each vendor.

In: a dict or a JSON file. Out: frozen values that are known to be right; everything wrong is named in one
RequestError. Shares are 0..1, times seconds, money dollars, counts whole numbers; 0 or "" switches a dial off.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import storage
from ..errors import RequestError, StorageError, refused, suggestion
from ..jsontext import read_json

# Vendor and the class in the module of that name (`-` is `_` there). A vendor is added here and as one module.
VENDORS = {
    "anthropic": "Anthropic",
    "azure-cu": "AzureCu",
    "datalab": "Datalab",
    "extend": "Extend",
    "google": "Google",
    "llamaextract": "LlamaExtract",
    "mistral": "Mistral",
    "openai": "OpenAi",
    "openrouter": "OpenRouter",
    "reducto": "Reducto",
}

# Rolled when a submission arrives, before its document can be known.
ARRIVAL_FAULTS = ("drop_before_accept", "drop_after_headers")
# Rolled by document and attempt. Of each group at most one happens to a submission.
FAULTS = (
    "fail_500", "fail_503", "error_400", "fail_504_job_made", "drop_after_body", "drop_in_answer", "no_answer",
    "malformed", "empty", "huge", "never_ends", "talk", "cut_short", "error_inside",
)  # fmt: skip
NO_JOB_FAULTS = (*FAULTS[:3], "error_inside")
POLL_FAULTS = ("poll_503", "poll_drop")
_CHAT = ("anthropic", "google", "openai", "openrouter")
CHAT_DIALS = {"talk": _CHAT, "cut_short": _CHAT, "error_inside": _CHAT[2:], "first_402": _CHAT[3:]}  # theirs alone
MISSING = ("error", "empty")
_RETRY_AFTER = re.compile(r"date:-?\d{1,9}|ms:-?\d{1,12}|(?!date:|ms:| )[ -~]{0,100}(?<! )")


def _share() -> Any:
    return field(default=0.0, metadata={"most": 1.0})


@dataclass(frozen=True, slots=True)
class Dials:
    """How one vendor behaves. All dials off: every document is answered at once.

    Pace: ``latency`` mean seconds until a job is done or a call answers; ``latency_spread`` 0 fixed .. 1 exponential;
    ``slow_body`` seconds over which an answer with an extraction drips.

    Limits, answered 429: ``rpm`` requests accepted in any 60 s, polls among them if ``polls_count``; ``concurrent``
    jobs at once; ``first_429`` first submissions of each document. ``retry_after`` goes with each 429: any text,
    ``date:2`` an HTTP date at least 2 s ahead, ``ms:1500`` a retry-after-ms header, ``3|11`` the header twice.

    Shares of submissions: ``drop_before_accept``, ``drop_after_headers``, ``drop_after_body``, ``drop_in_answer``
    cut the connection there; ``no_answer`` keeps it open; ``fail_500``, ``fail_503``, ``error_400`` make no job,
    ``fail_504_job_made`` does; ``malformed`` cuts the JSON of the answer in half, ``empty`` extracts ``{}``, ``huge``
    adds ``huge_mb`` megabytes to the answer, ``never_ends`` keeps the job running.

    Of chat models alone: shares ``talk``, prose without JSON, ``cut_short`` at the token limit. Of openai and
    openrouter: ``error_inside`` a 200 that holds an error and costs nothing. Of openrouter: ``first_402`` first
    submissions of each document that are refused for what is in flight.

    Polls: ``poll_503`` and ``poll_drop`` shares of polls and of whatever else costs nothing, such as uploads;
    ``poll_404_first`` first polls of each job answered 404.

    Account: ``key`` the only key accepted, "" any; ``credit`` dollars that can be billed, None without end; ``price``
    dollars per document; ``state_cost``: a vendor that states no cost does so all the same.

    Answers: ``missing`` what a document without an answer comes to, ``error`` (not billed) or ``empty``; ``bodies`` a
    folder whose ``<document>.json`` is sent, byte for byte, in place of the whole answer; ``<document>.<n>.json`` goes
    before for the nth submission, and a text ``<document>.head`` or ``<document>.<n>.head`` gives status and headers;
    ``behind_address``: a vendor that does so with large extractions leaves each behind an address.
    """

    latency: float = 0.0
    latency_spread: float = _share()
    slow_body: float = 0.0
    rpm: int = 0
    polls_count: bool = False
    concurrent: int = 0
    first_429: int = 0
    retry_after: str = ""
    fail_500: float = _share()
    fail_503: float = _share()
    error_400: float = _share()
    fail_504_job_made: float = _share()
    drop_before_accept: float = _share()
    drop_after_headers: float = _share()
    drop_after_body: float = _share()
    drop_in_answer: float = _share()
    no_answer: float = _share()
    malformed: float = _share()
    empty: float = _share()
    huge: float = _share()
    huge_mb: float = field(default=1.0, metadata={"most": 4096.0})
    never_ends: float = _share()
    talk: float = _share()
    cut_short: float = _share()
    error_inside: float = _share()
    first_402: int = 0
    poll_503: float = _share()
    poll_drop: float = _share()
    poll_404_first: int = 0
    key: str = field(default="", repr=False)
    credit: float | None = None
    price: float = 0.0
    state_cost: bool = False
    missing: str = "error"
    bodies: str = ""
    behind_address: bool = False

    def changed(self, fields: Any, name: str) -> Dials:
        """These dials with some fields set anew. Raises RequestError that names every problem."""
        problems = _dial_problems(name, fields, self)
        if problems:
            raise refused("the dials are not usable", problems)
        return dataclasses.replace(self, **fields)


@dataclass(frozen=True, slots=True)
class Profile:
    """All that a simulator is started with.

    ``seed``: of every die. ``answers``: folder or URL of ``<document>.json``. ``documents``: folder or URL of the
    documents; a submission is known by the stem of the file with the same bytes, else by the SHA-256 of its bytes.
    ``log``: a file that gets one JSON line per request, "" for none. ``vendors``: dials by vendor; others have none.
    ``hub``: folders by dataset id, served below ``<url>/hub``; ``hub_token``: the only token it lets in, "" anybody.
    """

    answers: str
    seed: int = 0
    documents: str = ""
    log: str = ""
    vendors: Mapping[str, Dials] = field(default_factory=dict)
    hub: Mapping[str, str] = field(default_factory=dict)
    hub_token: str = field(default="", repr=False)

    @classmethod
    def from_dict(cls, given: Any, folder: str = "") -> Profile:
        """The profile of a JSON object; relative addresses lie below ``folder``.

        Raises:
            RequestError: lists all problems.
        """
        if not isinstance(given, Mapping):
            raise RequestError("the profile is no JSON object")
        problems = list(_unknown("", given, [item.name for item in dataclasses.fields(cls)]))
        values: dict[str, Any] = {
            name: given[name] for name in ("answers", "seed", "documents", "log") if name in given
        }
        if not values.get("answers"):
            problems.append("answers: missing, must name a folder")
        if type(values.get("seed", 0)) is not int:
            problems.append(f"seed: {values['seed']!r} is no whole number")
        problems += [
            f"{name}: {values[name]!r} is no text"
            for name in ("answers", "documents", "log")
            if values.get(name) and not isinstance(values[name], str)
        ]
        vendors = given.get("vendors", {})
        if not isinstance(vendors, Mapping):
            problems.append("vendors: no object of dials by vendor")
            vendors = {}
        problems += _unknown("vendors.", vendors, VENDORS)
        for name in [name for name in vendors if name in VENDORS]:
            problems += _dial_problems(name, vendors[name], Dials())
        hub, hub_token = given.get("hub", {}), given.get("hub_token", "")
        if not isinstance(hub, Mapping) or not all(isinstance(folder, str) for folder in hub.values()):
            problems.append('hub: no object of folders by dataset, such as {"org/name": "folder"}')
        if not isinstance(hub_token, str):
            problems.append("hub_token: no text")
        if problems:
            raise refused("the profile is not usable", problems)
        for name in ("answers", "documents", "log"):
            values[name] = _below(folder, values.get(name) or "")
        dials = {name: {**fields} for name, fields in vendors.items()}
        for fields in dials.values():
            fields["bodies"] = _below(folder, fields.get("bodies", ""))
        return cls(
            **values,
            vendors={name: Dials(**fields) for name, fields in dials.items()},
            hub={name: _below(folder, place) for name, place in hub.items()},
            hub_token=hub_token,
        )

    @classmethod
    def from_file(cls, address: str) -> Profile:
        """The profile of a JSON file; relative addresses in it lie below its folder. Raises RequestError."""
        try:
            given = read_json(storage.read(address))
        except (FileNotFoundError, StorageError) as error:
            raise RequestError(f"cannot read the profile {address}: {error}") from error
        except ValueError as error:
            raise RequestError(f"the profile {address} is no JSON: {error}") from error
        return cls.from_dict(given, storage.parent(storage.absolute(address)))


def _below(folder: str, address: str) -> str:
    if not address or not folder or os.path.isabs(address) or "://" in address:
        return address
    return storage.join(folder, address)


def _unknown(where: str, given: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    names = list(known)
    return [f"{where}{name}: unknown, {suggestion(str(name), names)}" for name in given if name not in names]


def _dial_problems(vendor: str, given: Any, base: Dials) -> list[str]:
    """Everything wrong with the dials given for a vendor, which would be set over ``base``."""
    if not isinstance(given, Mapping):
        return [f"{vendor}: no object of dials"]
    kinds = {item.name: item for item in dataclasses.fields(Dials)}
    problems = _unknown(f"{vendor}.", given, kinds)
    for name, value in given.items():
        if name in kinds and (wrong := _value_problem(name, value, kinds[name])):
            problems.append(f"{vendor}.{name}: {wrong}")
        elif vendor not in CHAT_DIALS.get(name, (vendor,)) and value:
            problems.append(f"{vendor}.{name}: a dial of {', '.join(CHAT_DIALS[name])} alone")
    if not problems:
        for group in (ARRIVAL_FAULTS, FAULTS, POLL_FAULTS):
            shares = {name: share for name in group if (share := given.get(name, getattr(base, name)))}
            if (total := sum(shares.values())) > 1 + 1e-9:
                problems.append(f"{vendor}: {', '.join(shares)} add up to {total:g}, more than 1")
    return problems


def _value_problem(name: str, value: Any, item: dataclasses.Field[Any]) -> str:
    kind = str(item.type)
    if value is None and kind == "float | None":
        return ""
    if kind == "bool":
        return "" if isinstance(value, bool) else f"{value!r} is neither true nor false"
    if kind == "str":
        if not isinstance(value, str):
            return "no text" if name == "key" else f"{value!r} is no text"
        if name == "missing" and value not in MISSING:
            return f"{value!r} is unknown, {suggestion(value, MISSING)}"
        if name == "retry_after" and not all(_RETRY_AFTER.fullmatch(part) for part in value.split("|")):
            return f"{value[:40]!r} is no header value"
        return ""
    if isinstance(value, bool) or not isinstance(value, int if kind == "int" else (int, float)):
        return f"{value!r} is no {'whole ' if kind == 'int' else ''}number"
    most = item.metadata.get("most", math.inf)
    if not 0 <= value <= min(most, 1e9):
        return f"{value!r} is not between 0 and {min(most, 1e9):g}"
    return ""
