"""Ways into the network by a target's URL: no letter goes where nobody listed, nor where others can read it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from reprocessing.domain.replay.verdicts import NotSent, Taken
from reprocessing.domain.safety.url_policy import Endpoint
from reprocessing.domain.targets.async_sender import HttpCall
from reprocessing.domain.targets.http_responses import StatusMeanings
from reprocessing.gateways.http import Network, Posts, dns, request
from reprocessing.gateways.http.request import QueuedPost
from reprocessing.gateways.http.resolved_targets import ResolvedTarget
from tests.conditions import eventually
from tests.contract.carriers import all_ended, always
from tests.reprocessing.gateways.http.posting import NAME, become, listed, post, posting
from tests.reprocessing.gateways.http.stand_in import standing_in
from tests.reprocessing.web_servers import certify

PUBLIC = "93.184.216.34"


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certify(tmp_path_factory.mktemp("tls"), NAME)


def refusal(url: str, *found: str) -> NotSent:
    posts = Posts(listed("good.example"), Network(lambda _host, _port: found))
    try:
        [outcome] = become(posts, HttpCall(1, url, b"letter", (), 5.0, StatusMeanings()))
    finally:
        posts.close()
    assert isinstance(outcome, NotSent)
    return outcome


def test_a_host_that_this_process_may_not_reach_says_nothing_of_the_target_and_a_bad_address_does() -> None:
    assert not refusal("https://else.example/", PUBLIC).unreachable
    assert refusal("https://good.example/", "10.0.0.1").unreachable
    assert refusal("http://good.example/", PUBLIC).why == (
        "it may not be posted to: good.example has no address in a listed network, so plain http is refused; use https"
    )


def test_a_certificate_must_be_the_names_own(certified: tuple[ssl.SSLContext, ssl.SSLContext], tmp_path: Path) -> None:
    shows, trusts = certified
    other, trusts_other = certify(tmp_path, "other.test")
    with standing_in(tls=shows) as there, posting(there.port, tls=trusts) as posts:
        for _ in range(3):
            assert become(posts, post(there.port, scheme="https")) == [Taken()]
        assert [asked.connection for asked in there.asked] == [1, 1, 1]
    for tls, trusted in ((other, trusts), (other, trusts_other), (shows, None)):
        with standing_in(tls=tls) as there, posting(there.port, tls=trusted) as posts:
            [outcome] = become(posts, post(there.port, scheme="https"))
            assert outcome == NotSent("its certificate is invalid", unreachable=True)
            assert there.asked == []


def test_a_server_without_tls_is_shown_nothing(certified: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with standing_in() as there, posting(there.port, tls=certified[1]) as posts:
        [outcome] = become(posts, post(there.port, scheme="https", timeout=0.3))
        assert isinstance(outcome, NotSent)
        assert outcome.unreachable
        assert there.asked == []


def test_a_host_is_resolved_once_for_many_letters() -> None:
    asked: list[str] = []

    def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with standing_in() as there, posting(there.port, resolve=resolve) as posts:
        assert become(posts, *(post(there.port, attempt=one) for one in range(20))) == [Taken()] * 20
        assert asked == [NAME]


@pytest.mark.soak
def test_a_host_that_turns_to_an_address_of_ours_gets_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "LIFE", 1.0)
    found = [["10.0.0.1"], ["127.0.0.1"]]

    def resolve(_host: str, _port: int) -> Sequence[str]:
        return found.pop() if len(found) > 1 else found[0]

    with standing_in() as there, posting(there.port, resolve=resolve) as posts:
        assert become(posts, post(there.port)) == [Taken()]
        [outcome] = eventually(lambda: [one for one in become(posts, post(there.port)) if one != Taken()], within=10)
        assert isinstance(outcome, NotSent)
        assert "an address that is not public" in outcome.why


def test_a_connection_to_an_address_that_was_not_judged_is_shown_nothing() -> None:
    with standing_in() as there, posting(there.port) as posts:
        asked = Endpoint("http", NAME, there.port, "/200")
        made = request.Request(None, posts.clock, lambda _address, _port: False)
        place = ResolvedTarget(("127.0.0.1",), (), ())
        made.prepare(QueuedPost(post(there.port), asked, always), place)
        assert made._may_send_now("127.0.0.1", "127.0.0.1", there.port, 1) == 1
        made.handle.close()


@pytest.mark.soak
def test_a_slow_resolver_holds_up_no_other_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns, "TIMEOUT", 1.0)
    over = threading.Event()

    def resolve(host: str, _port: int) -> Sequence[str]:
        if host == "slow.test":
            over.wait(600)
        return ["127.0.0.1"]

    with standing_in() as there:
        allowed = listed(f"{NAME}:{there.port}", f"slow.test:{there.port}", "127.0.0.0/8")
        posts = Posts(allowed, Network(resolve), limit=1)
        slow = HttpCall(1, f"http://slow.test:{there.port}/200", b"letter", (), 5.0, StatusMeanings())
        posts.start([slow, post(there.port, attempt=2)], may_start=always)
        told = all_ended(posts, within=15)
        assert told == [(2, Taken()), (1, NotSent("slow.test could not be resolved", unreachable=True))]
        assert not over.is_set()
        over.set()
        posts.close()


def test_a_place_where_nobody_takes_the_connection_is_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "CONNECT", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as waiting:
        port = full.getsockname()[1]
        for _ in range(3):  # more than its queue holds: the next one gets no answer
            one = waiting.enter_context(socket.socket())
            one.settimeout(0)
            one.connect_ex(("127.0.0.1", port))
        with posting(port) as posts:
            outcome = NotSent("no connection came about within 0.1 s", unreachable=True)
            assert become(posts, post(port, timeout=30)) == [outcome]
