"""A file that somebody else left: read whole, bounded, and never by way of a link, a pipe or a device.

Only the standard library: a task's verifier carries this module.
"""

from __future__ import annotations

import errno
import os
import stat


def read_untrusted(path: str, most: int) -> bytes:
    """The bytes of a regular file of at most ``most``.

    Raises:
        FileNotFoundError: there is nothing at the path.
        ValueError: what is there is something else, too large, or cannot be read; says what.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        what = "is a link" if error.errno == errno.ELOOP else f"cannot be read: {os.strerror(error.errno or 0)}"
        raise ValueError(what) from error
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("is no regular file")
        pieces: list[bytes] = []
        left = most + 1
        while about.st_size <= most and left > 0 and (piece := os.read(handle, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        if about.st_size > most or left <= 0:
            raise ValueError(f"is larger than {most} bytes")
        return b"".join(pieces)
    finally:
        os.close(handle)
