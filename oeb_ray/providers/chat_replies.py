"""Reads what a chat server sends: errors inside a status of 200, bills, and what the model wrote.

In: Responses. Out: the status that is meant, the figures of the bill, and an object or why there is none. Pure
functions; nothing here calls anybody.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..errors import VendorError
from ..jsontext import read_json
from .contract import Response
from .replies import ERROR_LENGTH, answer_of, body_of, count_at, is_sound, number_at, recordable
from .transport import VendorRules, Verdict, verdict

IN_FLIGHT = "openrouter_in_flight_budget"
"""Where a limit comes from that only holds while other requests are under way."""
ACCOUNT_LIMITS = frozenset({"openrouter_credits", "openrouter_key_limit"})
CACHED = "usage.prompt_tokens_details.cached_tokens"
ACCOUNT_PHRASES = ("key limit exceeded",)

End = Literal["", "limit", "filter", "failed"]
"""How a completion ended: by itself, cut off at the limit of tokens, withheld, or by a failure of the server."""
_ENDS: dict[str, End] = {"length": "limit", "content_filter": "filter", "error": "failed"}


class Completion(NamedTuple):
    """A completion as it came. ``content``: what the model wrote, None if nothing.

    ``finish``: why it ended, in the vendor's word; ``end``: what that means, "" for an end of its own. ``is_there``:
    the reply holds a turn of the model, however empty. ``reasoning``: the part of ``tokens_out`` that went into it.
    """

    body: dict[str, Any]
    finish: str | None
    content: str | None
    end: End = ""
    refusal: str | None = None
    is_there: bool = True
    tokens_out: int | None = None
    reasoning: int | None = None


class Read(NamedTuple):
    """What a completion holds: ``answer``, or why it is of no use, and whether another try should be warmer.

    An answer that is also ``useless`` is a poor one: a better one is asked for, and it is taken where none comes.
    ``notes`` go into the record's raw part.
    """

    answer: dict[str, Any] | None
    useless: str = ""
    warmer: bool = False
    citations: Sequence[Any] = ()
    notes: Mapping[str, Any] = {}
    pages: int | None = None


def said(response: Response) -> Response:
    """The response with the status that the error inside it gives, if there is one, and with that error at the top."""
    body = body_of(response.body)
    if not isinstance(body, dict):
        return response
    error = error_of(body)
    if response.status >= 400:
        status = response.status
    else:
        status = _code_of(error) or response.status
    if error and not body.get("error"):
        response = dataclasses.replace(response, body=json.dumps({"error": error, **body}).encode())
    return dataclasses.replace(response, status=status, throttled=status >= 400 and _source_of(error) == IN_FLIGHT)


def error_of(body: dict[str, Any]) -> Any:
    """The error of an answer: at its top or in its only choice; None if there is none."""
    return body.get("error") or _choice(body).get("error") or None


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _code_of(error: Any) -> int | None:
    """The HTTP status that an error names; None if it names none."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if type(code) is int and 400 <= code <= 599 else None


def _source_of(error: Any) -> Any:
    metadata = error.get("metadata") if isinstance(error, dict) else None
    return metadata.get("limit_source") if isinstance(metadata, dict) else None


def rules(name: str, secrets: tuple[str, ...]) -> VendorRules:
    """How refusals of a chat server are read; ``name`` leads the messages."""

    def judge(response: Response) -> Verdict | None:
        if response.status < 400:
            return None
        if response.throttled:
            return "busy"
        body = body_of(response.body)
        error = error_of(body) if isinstance(body, dict) else None
        if isinstance(source := _source_of(error), str) and source in ACCOUNT_LIMITS:
            return "account"
        if error is None:
            return None
        # Phrases count in the error alone: what the model wrote may be a letter about an account.
        alone = dataclasses.replace(response, body=json.dumps(error).encode())
        return verdict(alone, VendorRules(name, ACCOUNT_PHRASES))

    return VendorRules(name, ACCOUNT_PHRASES, secrets, judge)


def bill(body: dict[str, Any]) -> dict[str, Any]:
    """What a reply states of its cost: dollars and tokens, not rounded; only what is there."""
    figures: dict[str, Any] = {}
    if (cost := number_at(body, "usage.cost")) is not None:
        figures |= {"usd": float(cost), "source": "usage.cost"}
    return figures | tokens(body, "usage.prompt_tokens", "usage.completion_tokens", CACHED)


def tokens(body: dict[str, Any], given: str, made: str, cached: str) -> dict[str, int]:
    """The tokens of a reply at their places in it, as Call.billed takes them; only what is there."""
    places = (("tokens_in", given), ("tokens_out", made), ("tokens_cached", cached))
    return {name: count for name, place in places if (count := count_at(body, place)) is not None}


def completion(body: dict[str, Any]) -> Completion:
    """The completion in a reply that holds no error."""
    choice = _choice(body)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish, refusal = choice.get("finish_reason"), message.get("refusal")
    finish = finish if isinstance(finish, str) else None
    return Completion(
        body,
        finish,
        text_of(message.get("content")),
        _ENDS.get(finish or "", ""),
        refusal if isinstance(refusal, str) and refusal else None,
        bool(choice),
        count_at(body, "usage.completion_tokens"),
        count_at(body, "usage.completion_tokens_details.reasoning_tokens"),
    )


def text_of(content: Any, kinds: Collection[str] = ("text",)) -> str | None:
    """What the model wrote, as one text; servers give a text or a list of parts, of which those of ``kinds`` count."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") in kinds]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) and content.strip() else None


def read(found: Completion, vendor: VendorRules, limit: int | None) -> Read:
    """The object in a completion, or why there is none. ``limit``: tokens that the answer could have.

    Raises:
        VendorError: another try would end the same way: cut off at the limit, withheld, refused, or empty.
    """
    refuse_final(found, vendor, limit)
    if found.content is None:
        return Read(None, "the reply holds no choices", warmer=True)
    if found.end == "failed":
        return Read(None, "the model's provider failed without a reason")
    answer = answer_of(found.content)
    if answer is not None:
        return Read(answer)
    if _is_json(found.content):
        return Read(None, "its JSON is no object with content")
    return Read(None, "its text is no JSON object", warmer=True)


def refuse_final(found: Completion, vendor: VendorRules, limit: int | None) -> None:
    """Raises VendorError for a completion after which another try would end the same way."""
    if problem := _final(found, limit):
        text = f"{vendor.name}: {problem}"
        raise VendorError(text[:ERROR_LENGTH], 200, recordable(found.body, vendor.secrets))


def _final(found: Completion, limit: int | None) -> str:
    """Why no other try is worth its money; empty if one is. The finish reason counts before any content."""
    if found.end == "limit":
        used = "an unknown number of tokens" if found.tokens_out is None else f"{found.tokens_out} tokens"
        more = f", {found.reasoning} of them on reasoning" if found.reasoning else ""
        return f"the answer was cut off at max_output_tokens={limit}, with {used} spent{more}; not asked for again"
    if found.end == "filter":
        return "the answer was withheld by a content filter"
    if found.content is None and found.is_there:
        return f"the model refused: {found.refusal}" if found.refusal else "the model wrote nothing"
    return ""


def _is_json(text: str) -> bool:
    try:
        return is_sound(read_json(text.strip().encode("utf-8", "surrogatepass")))
    except ValueError:
        return False


def without_content(body: dict[str, Any]) -> dict[str, Any]:
    """The body of a completion for the record, without the text that became the prediction."""
    choice = _choice(body)
    message = choice.get("message")
    if not isinstance(message, dict):
        return body
    shorter = choice | {"message": {key: value for key, value in message.items() if key != "content"}}
    return body | {"choices": [shorter, *body["choices"][1:]]}
