"""A listed host is found in every spelling, and unclear entries are refused."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from reprocessing.domain.safety.url_policy import AllowList, Endpoint, UrlDenied, allow_list, read_url

LISTED = [
    "status.example.com", "status.example.com:8443", "bücher.example", "10.1.0.0/16", "10.2.3.4:8080", "[fd00::1]",
]  # fmt: skip


def listed(*entries: str) -> AllowList:
    made = allow_list(entries)
    assert isinstance(made, AllowList)
    return made


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://status.example.com", Endpoint("http", "status.example.com", 80, "/")),
        ("HTTPS://Status.Example.COM./up?a=1&b=%20", Endpoint("https", "status.example.com", 443, "/up?a=1&b=%20")),
        ("https://status.example.com:8443?deep", Endpoint("https", "status.example.com", 8443, "/?deep")),
        ("https://status.example.com:443/", Endpoint("https", "status.example.com", 443, "/")),
        ("https://BÜCHER.example/", Endpoint("https", "xn--bcher-kva.example", 443, "/")),
        ("https://xn--bcher-kva.example/", Endpoint("https", "xn--bcher-kva.example", 443, "/")),
        ("http://status\u3002example\uff0ecom/", Endpoint("http", "status.example.com", 80, "/")),
        ("http://10.1.2.3/", Endpoint("http", IPv4Address("10.1.2.3"), 80, "/")),
        ("http://10.2.3.4:8080/", Endpoint("http", IPv4Address("10.2.3.4"), 8080, "/")),
        ("http://[FD00:0::1]/", Endpoint("http", IPv6Address("fd00::1"), 80, "/")),
    ],
)  # fmt: skip
def test_a_listed_host_is_found_in_every_spelling(url: str, endpoint: Endpoint) -> None:
    assert read_url(url, listed(*LISTED)) == endpoint


@pytest.mark.parametrize(
    "url",
    [
        "http://status.example.com:8080/",  # an entry without a port is for the scheme's default
        "http://status.example.com:443/", "http://10.1.2.3:8080/", "http://10.2.3.4/", "http://[fd00::1]:8080/",
        "http://[fd00::2]/",
    ],
)  # fmt: skip
def test_an_unlisted_host_is_refused_with_the_setting(url: str) -> None:
    denied = read_url(url, listed(*LISTED))
    assert isinstance(denied, UrlDenied)
    assert denied.why.endswith("is not listed in REDRIVE_OUTBOUND_HOSTS")


@pytest.mark.parametrize(
    ("endpoint", "authority"),
    [
        (Endpoint("http", "a.example", 80, "/"), "a.example"),
        (Endpoint("https", "a.example", 80, "/"), "a.example:80"),
        (Endpoint("https", IPv6Address("fd00::1"), 443, "/"), "[fd00::1]"),
        (Endpoint("https", IPv6Address("fd00::1"), 80, "/"), "[fd00::1]:80"),
    ],
)
def test_the_default_port_is_left_out_of_the_authority(endpoint: Endpoint, authority: str) -> None:
    assert endpoint.authority == authority


@pytest.mark.parametrize(
    "entry",
    ["", "*", "*.example.com", "https://status.example.com", "10.0.0.5/8", "10.1", "0x7f.1", "a..b", "fd00::1",
     "status.example.com:0", "status.example.com:70000", "[::1]x", "me@status.example.com", "faß.example", "a b", "/"],
)  # fmt: skip
def test_an_unclear_entry_is_refused_by_its_position(entry: str) -> None:
    denied = allow_list(["status.example.com", entry])
    assert isinstance(denied, UrlDenied)
    assert denied.why.startswith("entry 2: ")


@pytest.mark.parametrize(
    ("entries", "port", "addresses", "expected"),
    [
        (["10.2.3.4:8080"], 8080, ["10.2.3.4", "10.3.0.1"], [True, False]),
        (["10.2.3.4:8080", "10.1.0.0/16"], 6379, ["10.2.3.4", "10.1.2.3"], [False, True]),
        (
            ["10.1.0.0/16"], 80, ["::ffff:10.1.0.1", "64:ff9b::10.1.0.1", "::10.1.0.1", "2002:a01:1::1"],
            [True, True, False, False],
        ),
        (
            [], 443,
            ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "172.32.0.1"],
            [True] * 6,
        ),
    ],
)  # fmt: skip
def test_listed_and_public_addresses_are_allowed(
    entries: list[str], port: int, addresses: list[str], expected: list[bool]
) -> None:
    assert [listed(*entries).allows_address(ip_address(address), port) for address in addresses] == expected


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_allowed_like_every_ipv6_address_that_reaches_it(four: IPv4Address) -> None:
    mapped, nat64 = IPv6Address(f"::ffff:{four}"), IPv6Address(f"64:ff9b::{four}")
    assert (
        AllowList().allows_address(mapped, 80)
        == AllowList().allows_address(nat64, 80)
        == AllowList().allows_address(four, 80)
    )


@given(st.ip_addresses())
@example(IPv6Address("64:ff9b::1.0.0.0"))
def test_what_the_standard_library_calls_private_is_never_public(one: IPv4Address | IPv6Address) -> None:
    assume(one not in IPv6Network("64:ff9b::/96"))  # like the address that it reaches: see above
    meant = getattr(one, "ipv4_mapped", None) or one
    if meant.is_private or meant.is_multicast or meant.is_reserved:
        assert not AllowList().allows_address(one, 80)


@given(st.text(alphabet="god127.x0[]:@/\\%#?-_ \r\n\0\u3002\uff0e\uff11\u0661\u00df\u200d\u2100", max_size=40))
def test_no_text_is_read_as_a_host_that_is_not_listed(text: str) -> None:
    assert isinstance(read_url(f"http://{text}", AllowList()), UrlDenied)


def test_the_line_to_set_adds_the_endpoint_to_the_list() -> None:
    entries = ("status.example.com:8443", "10.1.0.0/16", "10.2.0.1:8080", "[fd00::1]:8080", "fd01::/64")
    url = "https://[fd00::2]:444/hook"
    denied = read_url(url, listed(*entries))
    assert isinstance(denied, UrlDenied)
    line = denied.cure.split()[1].partition("=")[2]
    assert sorted(line.split(",")) == sorted([*entries, "[fd00::2]:444"])
    assert read_url(url, listed(*line.split(","))) == Endpoint("https", IPv6Address("fd00::2"), 444, "/hook")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        (f"http://a/{'x' * 2_000}", "it is longer than 2,000 characters"),
        ("a b", "it is not a URL such as https://status.example.com/health, in visible ASCII and without a fragment"),
        ("http://me@a/", "it carries credentials, or an @ that hides its host; write the host alone"),
        ("http://[::1/", "its host cannot be read; write HOST or HOST:PORT, with a name or an address"),
        ("http://a:0/", "its port is not one of 1 to 65,535"),
        ("http://a:65536/", "its port is not one of 1 to 65,535"),
        ("http://[1]/", "the text in brackets is not an IPv6 address"),
        ("http://0x7f.1/", "its host is a number; write an address with four decimal numbers"),
        ("http://-a/", "its host is not a valid host name"),
        (f"http://{'a.' * 130}a/", "its host is longer than 253 characters"),
        ("http://fa\u00df.example/", "its host has letters that are encoded in two ways; write it in its xn-- form"),
        ("http://\u2100\ud800/", "its host is not a valid name; write it in its xn-- form"),
    ],
)  # fmt: skip
def test_a_url_is_refused_with_the_reason(url: str, why: str) -> None:
    assert read_url(url, AllowList()) == UrlDenied(why)


def test_a_network_is_refused_with_the_reason() -> None:
    why = "entry 1: it is not a network; write one such as 10.1.0.0/16, with zeros after the prefix"
    assert allow_list(["10.0.0.5/8"]) == UrlDenied(why)
