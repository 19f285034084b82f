"""One HTTP server on loopback that stands in for the vendors, with dials for everything that goes wrong there.

In: a Profile (answers, documents, dials per vendor). Out: the vendors' protocols below ``<url>/<vendor>``, a log of
every request, and counts of what was submitted, accepted, billed and in flight. Nothing here is used by a real run.
"""

from __future__ import annotations

from .profile import Dials, Profile
from .server import Simulator, serve

__all__ = ["Dials", "Profile", "Simulator", "serve"]
