"""Every error the package raises, in families by who must act.

`RequestError`: the user mends the request. `AccountFailure`: the user mends the vendor account and runs again.
`DocumentError`: one document failed; it is recorded and counted, and nothing stops. `InternalError` and `StorageError`:
the machine, the storage or a bug of ours. All survive pickling, since they cross processes.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class OebError(Exception):
    """Base of all errors of this package; ``exit_code`` is what the command line ends with."""

    exit_code = 1


class RequestError(OebError):
    """The request cannot be carried out as it stands: configuration, manifest, missing file or credential."""

    exit_code = 2


class MissingCredential(RequestError):
    """An environment variable that a vendor needs is not set."""


class MissingDependency(RequestError, ImportError):
    """A package that the request needs is not installed."""


class AccountFailure(OebError):
    """The vendor refuses the account: it cannot pay, its key is rejected, or a limit is reached."""

    exit_code = 3


class LimitReached(AccountFailure):
    """A limit that the user has set for the account or run, such as ``max_usd``, is reached."""


class StorageError(OebError):
    """Reading or writing failed for good: disk full, read only, no permission, an endpoint that does not answer."""

    exit_code = 5


class Stopped(OebError):
    """The job was interrupted; what is recorded stays, and the same command goes on."""

    exit_code = 130

    def __init__(self, message: str, exit_code: int = 130) -> None:
        super().__init__(message, exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        return str(self.args[0])


class InternalError(OebError):
    """A worker was lost again and again, or something that cannot happen did."""


class DocumentError(OebError):
    """One document has no answer. ``status``: the HTTP status, if any; ``body``: what the vendor sent, if anything."""

    def __init__(self, message: str, status: int | None = None, body: Any = None) -> None:
        super().__init__(message, status, body)
        self.message, self.status, self.body = message, status, body

    def __str__(self) -> str:
        return self.message


class VendorError(DocumentError):
    """The call was made and gave no extraction. ``passing``: the vendor says that the same may succeed later."""

    def __init__(self, message: str, status: int | None = None, body: Any = None, passing: bool = False) -> None:
        super().__init__(message, status, body)
        self.args = (message, status, body, passing)
        self.passing = passing


class Unreadable(VendorError):
    """The vendor answered, and what it sent is no extraction that can be read."""


class VendorTimeout(DocumentError):
    """The document's time was used up."""


class DialectError(DocumentError):
    """The schema cannot be said in the vendor's dialect; nothing was sent."""


class Unreachable(DocumentError):
    """A request may have arrived, and its answer is lost: whether it was carried out and billed is unknown."""


class NotSent(DocumentError):
    """A request provably never reached the server."""


class WorkerLost(DocumentError):
    """The worker died each time that it asked for the document."""


MOST_NAMED = 40  # names in one message
NO_PREDICTION = "no prediction on disk"  # the row's text, also for what is there and cannot be read


class NoPrediction(DocumentError):
    """A stored prediction that should be served is not there."""


def refused(title: str, problems: Iterable[str], kind: type[RequestError] = RequestError) -> RequestError:
    """One error that lists all problems found together."""
    listed = list(problems)
    if len(listed) == 1:
        return kind(f"{title}: {listed[0]}")
    return kind(f"{title}: {len(listed)} problems\n" + "\n".join(f"  {problem}" for problem in listed))


def suggestion(name: str, known: Iterable[str]) -> str:
    """What to write instead of an unknown name: ``did you mean datalab? known: azure-cu, datalab``."""
    listed = list(known)
    near = nearest(name, listed)
    more = f" and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else ""
    every = f"known: {', '.join(listed[:MOST_NAMED]) or '(none)'}{more}"
    return f"did you mean {near}? {every}" if near else every


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that an unknown one is most like, if any is."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.5)
    return near[0] if near else None
