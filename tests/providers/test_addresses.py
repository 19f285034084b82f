"""Results behind addresses: only public https is asked, and never with our key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from oeb_ray.errors import Unreachable, Unreadable, VendorError
from oeb_ray.providers import addresses
from oeb_ray.providers.transport import VendorRules
from tests.providers.fakes import FakeCall, reply

RULES = VendorRules("acme", secrets=("sk-1",))


def fetched(call: FakeCall, url: Any, server: str = "https://api.acme.test") -> Any:
    return asyncio.run(addresses.fetched(call, url, server=server, vendor=RULES, job="j1"))


@pytest.mark.parametrize(
    "url",
    [
        None, 5, "", "results/1", "file:///etc/passwd", "ftp://example.org/x", "http://example.org/r.json",
        "https://user@127.0.0.1/x", "https://127.0.0.1/x", "https://169.254.169.254/latest/meta-data", "https://10.0.0.1",
        "https://[::1]/x", "https://[::ffff:127.0.0.1]/x", "https://localhost/x", "https://0/x", "https://[x",
        "https://api.acme.test:1/x@y", "https://h:99999/",
    ],
)  # fmt: skip
def test_no_place_of_our_own_network_is_asked(url: Any) -> None:
    call = FakeCall([reply(200, [{"a": 1}])])
    with pytest.raises((Unreadable, Unreachable), match=r"j1|host"):
        fetched(call, url)
    assert call.requests == []


def test_a_public_address_is_asked_without_the_key() -> None:
    call = FakeCall([reply(200, [{"a": 1}])])
    assert fetched(call, "https://8.8.8.8/r.json?sig=1") == [{"a": 1}]
    (request,) = call.requests
    assert (request.method, request.url, dict(request.headers)) == ("GET", "https://8.8.8.8/r.json?sig=1", {})


def test_the_server_that_is_called_anyway_may_name_itself() -> None:
    call = FakeCall([reply(503), reply(200, {"a": 1})])
    assert fetched(call, "http://127.0.0.1:5/acme/r", server="http://127.0.0.1:5/acme") == {"a": 1}
    with pytest.raises(Unreadable):
        fetched(call, "http://127.0.0.1:6/acme/r", server="http://127.0.0.1:5/acme")


def test_nothing_said_there_concerns_the_account_or_fails_the_job() -> None:
    with pytest.raises(VendorError) as caught:
        fetched(FakeCall([reply(401, {"detail": "expired"})]), "https://8.8.8.8/r")
    assert caught.value.status == 401
    with pytest.raises(Unreachable):
        fetched(FakeCall([reply(503)]), "https://8.8.8.8/r")
    with pytest.raises(Unreadable, match="no JSON"):
        fetched(FakeCall([reply(200, "<html>")]), "https://8.8.8.8/r")
