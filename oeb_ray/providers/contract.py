"""What a provider is: typed settings, a schema dialect, and one coroutine that extracts.

In: a document's bytes, a prepared schema, settings. Out: an Extraction. A provider knows nothing of runs, storage,
scoring or Ray, and raises the errors of errors.py: DocumentError for one document, AccountFailure for all of them.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..errors import suggestion
from ..records import Doc
from ..storage import absolute

G = TypeVar("G")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Document:
    """A provider's source as it is read: most often the document itself, for replay the stored prediction.

    ``name`` is the file's own, ``media_type`` comes from content and name; ``found``: the file is there.
    """

    doc_id: str
    name: str
    media_type: str
    data: bytes
    found: bool = True


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a provider gave: the bytes of the prediction as they are stored, and the evidence for the record."""

    prediction: bytes
    raw: Any = None
    citations: tuple[Any, ...] = ()
    pages: int | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """A vendor's answer, read to its end (bounded): ``status``, ``headers`` with lower-case names, ``body``.

    ``throttled``: it says, with whatever status, that the account sends too much.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    throttled: bool = False


UNUSABLE = "no usable answer"
"""The reason for asking a model again. It says of the attempt before that its answer was read and paid for in vain."""


class Call(Protocol):
    """One document's dealings with a vendor: the only way to reach it, and the only way to spend.

    ``job_id`` is a job that was accepted for this document earlier: poll it, do not submit. Every method may raise
    VendorTimeout when the document's time is used up, and AccountFailure when the account has been stopped.
    """

    job_id: str | None

    def remaining(self) -> float:
        """Seconds of the document's budget that are left; below or at 0 when it is used up."""
        ...

    def paid(self, reason: str) -> AbstractAsyncContextManager[None]:
        """Claims one paid attempt, durably, before anything is sent; inside, one request that may cost is sent.

        ``reason`` says why it is made: ``first``, ``status 503``, ``connection refused`` or `UNUSABLE`.
        """
        ...

    async def accepted(self, job_id: str) -> None:
        """Makes the vendor's job id durable at once; from now on the job is polled and never submitted again."""
        ...

    async def refused(self, why: str) -> None:
        """Notes that the vendor did nothing for the current attempt: another may be made once the account is in order.

        ``why``: the vendor's word, such as OUT_OF_CREDITS.
        """
        ...

    def billed(
        self,
        *,
        usd: float | None = None,
        source: str | None = None,
        credits: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        tokens_cached: int | None = None,
    ) -> None:
        """Notes what the vendor states for the current attempt; a later figure replaces an earlier one of it.

        ``tokens_in`` counts all that was read, and among it ``tokens_cached`` from a cache.
        """
        ...

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str | Sequence[str]] | None = None,
        json: Any = None,
        data: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes, str]] | None = None,
        content: bytes | None = None,
        timeout: float = 120.0,
        late: bool = False,
        reading: Callable[[Response], Response] | None = None,
    ) -> Response:
        """Sends one request in the account's turn, within the budget, and returns whatever status comes.

        ``late``: it is sent although the budget is used up, such as the cancelling of a job that took too long.
        ``reading`` says what an answer means where a status of 200 may hold an error; all go by the status it gives.

        Raises:
            NotSent: it provably never reached the server, so it may be sent again.
            Unreachable: it may have arrived, and the answer is lost.
        """
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits, at most as long as the budget lasts."""
        ...

    async def work(self, function: Callable[[G], Coroutine[Any, Any, R]], given: G) -> R:
        """What ``function`` returns, run where there is room for what takes long: here, or on a node of the cluster.

        ``function``, ``given`` and what is returned travel: nothing in them is a key.

        Raises:
            Unreachable: the process that ran it was lost.
        """
        ...


class Provider(Protocol):
    """One vendor, model or offline source.

    ``Settings`` is a dataclass whose fields make the run's name; ``Options`` one of the run options it adds, which do
    not. ``paid`` providers go through an account's pool.
    """

    name: str
    paid: bool
    Settings: type[Any]
    Options: type[Any]

    def source(self, doc: Doc, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The file that the prediction is made from; when it changes, the prediction is stale."""
        ...

    def problems(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
        """What, beyond types, would make every document fail; looked for before anything runs."""
        ...

    def prepare_schema(self, schema: dict[str, Any], settings: Any) -> dict[str, Any]: ...

    async def extract(
        self, document: Document, schema: dict[str, Any], settings: Any, options: Any, call: Call | None
    ) -> Extraction: ...


class PaidProvider(Provider, Protocol):
    """A vendor that bills. ``credential``: environment variables that may hold the key, in order.

    ``cap``: calls in flight unless the user says otherwise; ``states_usd``: its answers name the price in dollars.
    """

    cap: int
    states_usd: bool

    @property
    def credential(self) -> tuple[str, ...]: ...

    def host(self, settings: Mapping[str, Any], options: Mapping[str, Any]) -> str:
        """The server that is called; with the key it makes the account."""
        ...


@dataclass(frozen=True, slots=True)
class NoOptions:
    """A provider without run options of its own."""


def setting(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    unit: str = "",
    choices: Iterable[str] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    address: bool = False,
) -> Any:
    """A field of a Settings or Options class.

    ``choices`` only warn, since vendors extend them. An ``address`` is made independent of the working folder.
    """
    return dataclasses.field(
        default=default,
        metadata={
            "help": help,
            "unit": unit,
            "choices": tuple(choices),
            "bounds": (minimum, maximum),
            "address": address,
        },
    )


@dataclass(frozen=True, slots=True)
class VendorOptions:
    """The run options of every vendor."""

    overlay: bool = setting(True, help="state the benchmark's conventions in the schema's descriptions")
    send_name: str = setting("neutral", help="the file name the vendor sees", choices=("neutral", "original"))
    address: str = setting("", help="server to call instead of the vendor's own; else OEB_<PROVIDER>_ADDRESS")


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """What a job puts on a vendor account; in no run's name, and free to differ from job to job."""

    in_flight: int | None = setting(None, help="calls in flight; null: the provider's own number", minimum=1)
    rpm: float | None = setting(None, help="requests per minute; null: no limit", minimum=0.001)
    max_usd: float | None = setting(None, help="dollars that each run may spend; null: no limit", minimum=0)
    usd_per_doc: float | None = setting(None, help="what a call is reckoned to cost", unit="USD", minimum=0)


def typed(kind: type[Any], given: Mapping[str, Any], prefix: str) -> tuple[dict[str, Any], list[str]]:
    """The fields of a Settings or Options class with ``given`` applied, as plain values, and every problem found.

    A whole number is taken for a float; any other mismatch of type is a problem, as are unknown keys. ``prefix`` leads
    each problem's key, such as ``providers.datalab``.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {name: field.default for name, field in fields.items()}
    problems = []
    for key, value in given.items():
        if key not in fields:
            problems.append(f"{prefix}.{key}: no such setting; {suggestion(str(key), fields)}")
            continue
        try:
            values[key] = _coerced(value, hints[key], fields[key].metadata.get("bounds", (None, None)))
        except TypeError as error:
            problems.append(f"{prefix}.{key}={value!r}: {error}")
    for name, field in fields.items():
        given_address = values[name]
        if field.metadata.get("address") and isinstance(given_address, str) and given_address:
            values[name] = absolute(given_address)
    problems.extend(
        f"{prefix}.{name}: must be given ({fields[name].metadata.get('help', '')})"
        for name, value in values.items()
        if value is dataclasses.MISSING and name not in given
    )
    return values, problems


def _coerced(value: Any, hint: Any, bounds: tuple[float | None, float | None]) -> Any:
    if isinstance(hint, types.UnionType):
        if value is None and type(None) in hint.__args__:
            return None
        (hint,) = (member for member in hint.__args__ if member is not type(None))
    wanted = {float: "a number", int: "a whole number", str: "a text", bool: "true or false"}[hint]
    given = type(value)
    if hint is float and given is int:
        value = float(value)
    elif given is not hint:
        raise TypeError(f"wants {wanted}, got {_named(value)}")
    if hint is float and not math.isfinite(value):
        raise TypeError("wants a finite number")
    least, most = bounds
    if least is not None and value < least:
        raise TypeError(f"must be at least {least:g}")
    if most is not None and value > most:
        raise TypeError(f"must be at most {most:g}")
    return value


def _named(value: Any) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def choice_warnings(kind: type[Any], values: Mapping[str, Any], prefix: str) -> list[str]:
    """A line for each value that is not among the choices we know; the vendor may know more."""
    lines = []
    for field in dataclasses.fields(kind):
        value, known = values[field.name], field.metadata.get("choices")
        if known and value not in known:
            lines.append(f"{prefix}.{field.name}={value!r} is not one of {', '.join(known)}; sent as it is")
    return lines
