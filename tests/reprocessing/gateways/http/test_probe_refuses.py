"""Ways into the network by a URL: each is refused before a connection is made, and said why."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from reprocessing.domain.safety.health_check import HealthUnknown
from reprocessing.gateways import http
from reprocessing.gateways.http import Network
from tests.reprocessing.domain.corpora.network import ADDRESSES, URLS
from tests.reprocessing.gateways.http.posting import listed

PUBLIC = "93.184.216.34"


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", made)
    monkeypatch.setattr(socket, "getaddrinfo", made)


def refused(url: str, *found: str) -> str:
    """Why it was refused, where the host resolves to these addresses."""
    net = Network(resolve=lambda _host, _port: found)
    result = http.check(url, allowed=listed("good.example"), net=net)
    assert isinstance(result, HealthUnknown)
    return result.why


@pytest.mark.parametrize("url", URLS, ids=lambda url: ascii(url)[1:60])
def test_a_url_that_is_not_plainly_a_listed_host_is_refused(url: str) -> None:
    assert refused(url, PUBLIC).startswith("it may not be asked: ")
    assert (len(set(URLS)), len(URLS) + len(ADDRESSES) >= 150) == (len(URLS), True)


@pytest.mark.parametrize("found", [*((one,) for one in ADDRESSES), (PUBLIC, "10.0.0.1"), (PUBLIC,) * 9 + ("::1",)])
def test_a_listed_host_that_stands_for_an_address_of_ours_is_refused(found: Sequence[str]) -> None:
    assert "an address that is not public" in refused("http://good.example/", *found)


def test_an_unlisted_or_unresolved_host_is_not_asked_and_the_setting_is_named() -> None:
    assert refused("http://good.example/") == "good.example could not be resolved"
    unlisted = "it may not be asked: else.example is not listed in REDRIVE_OUTBOUND_HOSTS"
    assert refused("http://else.example/", PUBLIC) == unlisted
