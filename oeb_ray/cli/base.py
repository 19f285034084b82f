"""What every command shares: how it is declared, how it reads and prints JSON, how its errors become exit codes."""

from __future__ import annotations

import argparse
import errno
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import OebError, RequestError
from ..jsontext import read_json, visible


def declare(commands: Any, name: str, help: str, example: str) -> argparse.ArgumentParser:
    """A command with its help; the example stands below the flags."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help,
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(called=f"oeb {name}", flags=parser._option_string_actions)
    return parser


def json_file(path: str) -> Any:
    """What a JSON file of the user holds. Raises RequestError."""
    try:
        with open(path, "rb") as stream:
            return read_json(stream.read())
    except OSError as error:
        raise RequestError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise RequestError(f"{path} is no JSON: {error}") from error


def json_object(flag: str, text: str | None, wanted: str) -> dict[str, Any]:
    """What a flag gives as JSON, or as the name of a JSON file; empty without the flag. Raises RequestError."""
    if text is None:
        return {}
    if text.lstrip().startswith("{"):
        try:
            value = read_json(text.encode("utf-8", "surrogateescape"))
        except ValueError as error:
            raise RequestError(f"{flag} is no JSON: {error}") from error
    else:
        value = json_file(text)
    if not isinstance(value, dict):
        raise RequestError(f"{flag} wants an object {wanted}")
    return value


def take_overrides(given: argparse.Namespace, rest: list[str], words: Sequence[str]) -> list[str]:
    """Adds key=value words to the overrides, wherever among ``words`` they stand; returns what is left of ``rest``.

    argparse leaves some in ``rest``, and takes some for values of the flag before them.
    """
    found = [word for word in rest if "=" in word and not word.startswith("-")]
    names = getattr(given, "providers", None) or []
    given.overrides = [*given.overrides, *found, *(word for word in names if "=" in word)]
    given.providers = [word for word in names if "=" not in word] or None
    if "=" in (given.retry_failed or ""):
        given.overrides.append(given.retry_failed)
        given.retry_failed = "transient"
    place = {word: at for at, word in enumerate(words)}
    given.overrides.sort(key=lambda word: place.get(word, 0))  # the last word counts, as it does for Hydra
    return [word for word in rest if word not in found]


def print_json(value: Any) -> None:
    """Prints one JSON document, which any terminal in any encoding can show."""
    print(json.dumps(value, indent=2))


def print_columns(headings: Sequence[str], rows: Sequence[Sequence[str]], limit: int = 0) -> None:
    """A table as plain lines that are never wrapped: texts to the left in the first column, figures to the right.

    ``limit``: rows that are shown, 0 for all; then how many are left out is said.
    """
    shown = [[visible(cell) for cell in row] for row in (headings, *rows[: limit or None])]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for first, *others in shown:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        print("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    if limit and len(rows) > limit:
        print(f"and {len(rows) - limit} more; --limit 0 shows all")


def note(text: str) -> None:
    """A line for people, beside the result."""
    print(visible(text), file=sys.stderr, flush=True)


def ended(command: Callable[[], int]) -> int:
    """The exit code of a command; its errors are printed as one message, never as a traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - until the process ends
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a terminal cannot say
    try:
        code = command()
        sys.stdout.flush()
        return code
    except OebError as error:
        print("oeb:", "\n".join(map(visible, str(error).split("\n"))), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can be said
        return 0
    except KeyboardInterrupt:
        print("oeb: interrupted; the same command goes on where this ended", file=sys.stderr)
        return 130
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"oeb: cannot write the output: {error.strerror}", file=sys.stderr)
        return 5
