"""Ways into the network by a URL: each is refused before a connection is made, and said why."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest

from reprocessing.domain.safety.health_check import HealthUnknown
from reprocessing.domain.safety.url_policy import AllowList
from reprocessing.gateways import http
from reprocessing.gateways.http import Network
from tests.reprocessing.domain.corpora.network import ADDRESSES, URLS
from tests.reprocessing.gateways.http.posting import listed

PUBLIC = "93.184.216.34"


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries to connect anywhere fails the test."""

    def made(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", made)
    monkeypatch.setattr(socket, "getaddrinfo", made)


def resolving(*found: str) -> Network:
    return Network(resolve=lambda _host, _port: found)


def refused(url: str, net: Network) -> str:
    """Why it was refused."""
    found = http.check(url, allowed=listed("good.example"), net=net)
    assert isinstance(found, HealthUnknown)
    return found.why


@pytest.mark.parametrize("url", URLS, ids=lambda url: ascii(url)[1:60])
def test_a_url_that_is_not_plainly_a_listed_host_is_refused(url: str) -> None:
    assert refused(url, resolving(PUBLIC)).startswith("it may not be asked: ")


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_listed_host_that_stands_for_an_address_of_ours_is_refused(address: str) -> None:
    assert "an address that is not public" in refused("http://good.example/", resolving(address))


@pytest.mark.parametrize("found", [(PUBLIC, "10.0.0.1"), ("10.0.0.1", PUBLIC), (PUBLIC,) * 9 + ("::1",)])
def test_one_bad_address_among_good_ones_is_enough(found: Sequence[str]) -> None:
    assert "an address that is not public" in refused("http://good.example/", resolving(*found))


def test_a_host_that_does_not_resolve_is_not_asked() -> None:
    assert refused("http://good.example/", resolving()) == "good.example could not be resolved"


def test_where_nothing_is_listed_nothing_is_asked_and_the_setting_is_named() -> None:
    found = http.check("http://good.example/", allowed=AllowList(), net=resolving(PUBLIC))
    assert found == HealthUnknown("it may not be asked: good.example is not listed in REDRIVE_OUTBOUND_HOSTS")


def test_what_is_refused_is_listed_in_its_hundreds_and_once() -> None:
    assert len(set(URLS)) == len(URLS)
    assert len(URLS) + len(ADDRESSES) >= 150
