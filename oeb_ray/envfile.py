"""The file `.env` of the working folder: fills in what the environment does not set, and overrides nothing.

It is read where a command or a job starts, so it holds for that machine; nodes of a cluster have their own environment.
"""

from __future__ import annotations

from pathlib import Path

from .errors import RequestError

NAME = ".env"


def load() -> None:
    """Reads it into the environment of this process; nothing happens without it.

    Raises:
        RequestError: it is there and cannot be read.
    """
    path = Path(NAME)
    if not path.is_file():
        return
    from dotenv import load_dotenv

    try:
        load_dotenv(path, override=False, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"cannot read {path.resolve()}: {error}") from error
