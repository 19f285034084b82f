"""Results that a vendor leaves behind an address: fetched without our key, and from public places only.

In: a URL that stood in a reply. Out: its JSON value. The URL is a stranger's word: what is not public https is never
asked, and no redirect is followed. The server that is called anyway (in tests one on loopback) may name itself.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit

from ..errors import Unreachable, Unreadable
from .contract import Call, Response
from .replies import body_of, recordable
from .transport import LOST, RETRIED, VendorRules, Verdict, ask

FETCH_TIMEOUT = 300.0
"""Seconds for one request."""


async def fetched(call: Call, url: Any, *, server: str, vendor: VendorRules, job: str) -> Any:
    """The JSON value behind the address.

    Raises:
        Unreadable: the address is none that we ask, or what lies there is no JSON.
        Unreachable: it gave no answer; the job itself is fine, and a later poll may name another address.
        VendorError, VendorTimeout: see errors.py.
    """
    problem = await _problem(url, server, call)
    if problem:
        raise Unreadable(f"{vendor.name}: job {job}: its result lies behind an address that is not asked: {problem}")
    rules = VendorRules(f"{vendor.name} (result of job {job})", secrets=vendor.secrets, judge=_judge)
    response = await ask(call, lambda: call.send("GET", url, timeout=FETCH_TIMEOUT), vendor=rules, job=job)
    value = body_of(response.body)
    if not isinstance(value, dict | list):
        kept = recordable(value, vendor.secrets)
        raise Unreadable(f"{vendor.name}: job {job}: its result's address gives no JSON", response.status, kept)
    return value


def _judge(response: Response) -> Verdict:
    """Nothing that a store of results says concerns the account."""
    if 200 <= response.status < 300:
        return "fine"
    return "again" if response.status in RETRIED | LOST else "document"


async def _problem(url: Any, server: str, call: Call) -> str | None:
    """Why an address is not asked."""
    try:
        parts, own = urlsplit(url), urlsplit(server)
        host, port = parts.hostname, parts.port
    except (ValueError, TypeError, AttributeError):
        return "it is none"
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return None
    if parts.scheme != "https" or not host or "@" in parts.netloc:
        return "it is not https, or names a user"
    try:
        async with asyncio.timeout(max(0.0, min(30.0, call.remaining()))):
            found = await asyncio.get_running_loop().getaddrinfo(host, port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Unreachable(f"the result's host {host[:100]} is not found: {error}"[:300]) from error
    return None if all(_is_public(str(entry[4][0])) for entry in found) else "its host is not a public one"


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_global
