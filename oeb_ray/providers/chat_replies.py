"""Reads what a chat server sends: errors inside a status of 200, bills, and what the model wrote.

In: Responses. Out: the status that is meant, the figures of the bill, and an object or why there is none. Pure
functions; nothing here calls anybody.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, NamedTuple

from ..errors import Unreadable, VendorError
from ..jsontext import read_json
from .contract import Response
from .replies import ERROR_LENGTH, answer_of, body_of, count_at, is_sound, number_at, reason, recordable
from .transport import VendorRules, Verdict, verdict

IN_FLIGHT = "openrouter_in_flight_budget"
"""Where a limit comes from that only holds while other requests are under way."""
ACCOUNT_LIMITS = frozenset({"openrouter_credits", "openrouter_key_limit"})
ACCOUNT_PHRASES = ("key limit exceeded",)


class Completion(NamedTuple):
    """A completion as it came. ``finish``: why the model ended; ``content``: what it wrote, None if nothing."""

    body: dict[str, Any]
    finish: str | None
    content: str | None
    refusal: str | None


class Read(NamedTuple):
    """What a completion holds: ``answer``, or why it is of no use, and whether another try should be warmer."""

    answer: dict[str, Any] | None
    useless: str = ""
    warmer: bool = False


def said(response: Response) -> Response:
    """The response with the status that the error inside it gives, if there is one, and with that error at the top."""
    body = body_of(response.body)
    if not isinstance(body, dict):
        return response
    error = _error_of(body)
    if response.status >= 400:
        status = response.status
    else:
        status = _code_of(error) or response.status
    if error and not body.get("error"):
        response = dataclasses.replace(response, body=json.dumps({"error": error, **body}).encode())
    return dataclasses.replace(response, status=status, throttled=status >= 400 and _source_of(error) == IN_FLIGHT)


def _error_of(body: dict[str, Any]) -> Any:
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
        error = _error_of(body) if isinstance(body, dict) else None
        if isinstance(source := _source_of(error), str) and source in ACCOUNT_LIMITS:
            return "account"
        if error is None:
            return None
        # Phrases count in the error alone: what the model wrote may be a letter about an account.
        alone = dataclasses.replace(response, body=json.dumps(error).encode())
        return verdict(alone, VendorRules(name, ACCOUNT_PHRASES))

    return VendorRules(name, ACCOUNT_PHRASES, secrets, judge)


def bill(response: Response) -> dict[str, Any]:
    """What an answer states of its cost: dollars and tokens, not rounded; only what is there."""
    body = body_of(response.body)
    usage = body.get("usage") if isinstance(body, dict) else None
    if not isinstance(usage, dict):
        return {}
    figures: dict[str, Any] = {}
    if (cost := number_at(usage, "cost")) is not None:
        figures |= {"usd": float(cost), "source": "usage.cost"}
    for name, key in (("tokens_in", "prompt_tokens"), ("tokens_out", "completion_tokens")):
        if (count := count_at(usage, key)) is not None:
            figures[name] = count
    return figures


def completion(response: Response, vendor: VendorRules) -> Completion:
    """The completion in an answer that was given with success.

    Raises:
        Unreadable: the reply is no object. VendorError: it holds an error without a status.
    """
    body = body_of(response.body)
    if not isinstance(body, dict):
        text = f"{vendor.name}: unreadable reply: no JSON object"
        raise Unreadable(text, response.status, recordable(body, vendor.secrets))
    if _error_of(body):
        kept = recordable(body, vendor.secrets)
        text = f"{vendor.name}: the reply holds an error: {reason(kept) or 'no reason given'}"
        raise VendorError(text[:ERROR_LENGTH], response.status, kept)
    choice = _choice(body)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    finish, refusal = choice.get("finish_reason"), message.get("refusal")
    return Completion(
        body,
        finish if isinstance(finish, str) else None,
        _text_of(message.get("content")),
        refusal if isinstance(refusal, str) and refusal else None,
    )


def _text_of(content: Any) -> str | None:
    """What the model wrote, as one text; servers give a text or a list of parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) and content.strip() else None


def read(found: Completion, vendor: VendorRules, limit: int | None) -> Read:
    """The object in a completion, or why there is none. ``limit``: tokens that the answer could have.

    Raises:
        VendorError: another try would end the same way: cut off at the limit, withheld, refused, or empty.
    """
    if problem := _final(found, limit):
        text = f"{vendor.name}: {problem}"
        raise VendorError(text[:ERROR_LENGTH], 200, recordable(found.body, vendor.secrets))
    if found.content is None:
        return Read(None, "the reply holds no choices", warmer=True)
    if found.finish == "error":
        return Read(None, "the model's provider failed without a reason")
    answer = answer_of(found.content)
    if answer is not None:
        return Read(answer)
    if _is_json(found.content):
        return Read(None, "its JSON is no object with content")
    return Read(None, "its text is no JSON object", warmer=True)


def _final(found: Completion, limit: int | None) -> str:
    """Why no other try is worth its money; empty if one is. The finish reason counts before any content."""
    if found.finish == "length":
        usage = found.body.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        details = usage.get("completion_tokens_details")
        reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
        used = f"{usage['completion_tokens']} tokens" if "completion_tokens" in usage else "an unknown number of tokens"
        more = f", {reasoning} of them on reasoning" if reasoning else ""
        return f"the answer was cut off at max_output_tokens={limit}, with {used} spent{more}; not asked for again"
    if found.finish == "content_filter":
        return "the answer was withheld by a content filter"
    if found.content is None and _choice(found.body):
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
