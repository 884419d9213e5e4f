"""Ways into the network by a URL: each is refused before a connection is made, in no time, and said why."""

# ruff: noqa: RUF001  # letters that look like others are what is tried here
from __future__ import annotations

import socket
import time
from collections.abc import Sequence

import pytest

from reprocessing import web
from reprocessing.domain.endpoint import AllowList, allow_list
from reprocessing.domain.health import Unknown
from reprocessing.web import Net

SOON = 0.05  #: seconds
PUBLIC = "93.184.216.34"

#: Written so that one reader sees the listed good.example and another one something else, or an address in disguise.
URLS = [
    # addresses, as they are and in disguise
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://0/", "http://0.0.0.0/", "http://2130706433/",
    "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0X7F.1/", "http://017700000001/", "http://0177.0.0.1/",
    "http://127.0.0.0x1/", "http://127.0.0.01/", "http://00000177.1/", "http://3232235521/", "http://4294967297/",
    "http://127.0.0.1./", "http://１２７.０.０.１/", "http://127。0。0。1/", "http://①②⑦.⓪.⓪.①/", "http://١٢٧.٠.٠.١/",
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://1.2.3.4.5/", "http://256.256.256.256/",
    "http://10.0.0.1/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "http://[::127.0.0.1]/", "http://[64:ff9b::169.254.169.254]/",
    "http://[2002:7f00:1::]/", "http://[2001:0:7f00:1::]/", "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/",
    "http://[fd00:ec2::254]/", "http://[::1", "http://::1/", "http://[good.example]/",
    # names
    "http://localhost/", "http://localhost./", "http://LOCALHOST/", "http://metadata.google.internal/",
    "http://127.0.0.1.nip.io/", "http://good.example.evil.example/", "http://evil.example/good.example",
    "http://sub.good.example/", "http://example/", "http://good.example../", "http://.good.example/",
    "http://good..example/", "http://good%2eexample/", "http://g%6fod.example/", "http://good.exam\u00adple.evil/",
    "http://good\u200d.example/", "http://faß.example/", "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 200 + "example/", "http://" + "a" * 100_000 + "/", "http://" + "\u0391" * 250 + "/",
    "http://good.example/" + "x" * 2_000,
    # who hides behind whom
    "http://good.example@127.0.0.1/", "http://good.example:80@127.0.0.1/", "http://user:secret@good.example/",
    "http://@good.example/", "http://127.0.0.1#@good.example/", "http://good.example#@127.0.0.1/",
    "http://127.0.0.1\\@good.example/", "http://good.example\\@127.0.0.1/", "http://good.example\\.evil.example/",
    "http:\\\\good.example/", "http:/good.example/", "http:good.example", "//good.example/", "good.example",
    "http://good.example＠127.0.0.1/", "http://127.0.0.1／good.example/", "http://127.0.0.1？good.example/",
    "http://good.example：80/", "http://good.example\u2100/", "http://good.example;evil.example/",
    "http://good.example,127.0.0.1/", "http://good.example&@127.0.0.1/",
    # what would be sent
    "http://good.example/\r\nX-Forged: yes", "http://good.example/\nHost: evil", "http://good.example\r\n.evil/",
    "http://good.example/ HTTP/1.1", "http://good.example/\t", "http://good.example/\x00", " http://good.example/",
    "http://good.example/ ", "http://good.example/ü", "http://good.example/#top",
    # ports and schemes
    "http://good.example:22/", "http://good.example:6379/", "http://good.example:0/", "http://good.example:65616/",
    "http://good.example:-80/", "http://good.example:８０/", "http://good.example:80:80/", "http://good.example:/",
    "http://good.example:0x50/", "https://good.example:80/", "file:///etc/passwd", "ftp://good.example/",
    "gopher://good.example/", "dict://good.example:80/", "unix:///run/redis.sock", "httpſ://good.example/",
    "jar:http://good.example/!/", "http+unix://good.example/", "javascript:alert(1)", "", "http://", "http:///",
    "https://:443/",
]  # fmt: skip

#: What the listed good.example may not stand for.
ADDRESSES = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1",
    "172.31.255.255", "192.168.0.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:db8::1", "2001:10::1",
    "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%2",
    "fec0::1", "ff02::1", "ff0e::1", "not an address", "127.1", "",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever tries to connect anywhere fails the test."""

    def made(*_: object, **__: object) -> None:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", made)
    monkeypatch.setattr(socket, "getaddrinfo", made)


def resolving(*found: str) -> Net:
    return Net(resolve=lambda _host, _port: found)


def listed(*entries: str) -> AllowList:
    made = allow_list(entries)
    assert isinstance(made, AllowList)
    return made


def refused(url: str, net: Net) -> str:
    """Why it was refused; the quickest of three times was quick."""
    allowed, times, whys = listed("good.example"), list[float](), list[str]()
    for _ in range(3):
        began = time.perf_counter()
        found = web.check(url, allowed=allowed, net=net)
        times.append(time.perf_counter() - began)
        assert isinstance(found, Unknown)
        whys.append(found.why)
    assert min(times) < SOON
    return whys[0]


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
    found = web.check("http://good.example/", allowed=AllowList(), net=resolving(PUBLIC))
    assert found == Unknown("it may not be asked: good.example is not listed in REDRIVE_HEALTH_HOSTS")


def test_what_is_refused_is_listed_in_its_hundreds_and_once() -> None:
    assert len(set(URLS)) == len(URLS)
    assert len(URLS) + len(ADDRESSES) >= 150
