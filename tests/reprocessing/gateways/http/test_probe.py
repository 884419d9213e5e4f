"""Whatever a server does, the check is a value in time, and tells nothing of what was answered."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprocessing.domain.safety.health_check import HealthResult, HealthUnknown, Healthy, Unhealthy
from reprocessing.gateways import http
from reprocessing.gateways.http import Network
from tests.nobody import nobody
from tests.reprocessing.gateways.http.posting import listed
from tests.reprocessing.web_servers import (
    BLANK,
    Script,
    Server,
    answering,
    certify,
    dribbling,
    endless,
    greeting,
    serving,
    silent,
    status,
)

PATIENCE = 1.0  #: seconds that a check may take whose server never comes to an end
AMPLE = 30.0  #: seconds that it may take where the server's answer decides, on the slowest machine
NAME = "status.test"


def ask(server: Server, path: str = "/health", **options: object) -> HealthResult:
    scheme = "https" if "tls" in options else "http"
    net = Network(lambda _host, _port: ["127.0.0.1"], options.pop("tls", None))  # type: ignore[arg-type]
    allowed = listed(f"{NAME}:{server.port}", "127.0.0.0/8")
    url = f"{scheme}://{NAME}:{server.port}{path}"
    return http.check(url, allowed=allowed, net=net, **{"timeout": AMPLE, **options})  # type: ignore[arg-type]


def ask_in_vain(server: Server, **options: object) -> HealthResult:
    """As `ask`, where only the clock ends it."""
    return ask(server, **{"timeout": PATIENCE, **options})  # type: ignore[arg-type]  # the options of `ask`


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return certify(tmp_path_factory.mktemp("tls"), NAME)


@pytest.mark.parametrize(
    ("number", "expected", "finding"),
    [
        (200, None, Healthy("it answered 200")),
        (204, None, Healthy("it answered 204")),
        (299, None, Healthy("it answered 299")),
        (500, None, Unhealthy("it answered 500 where 200 to 299 is expected")),
        (404, None, Unhealthy("it answered 404 where 200 to 299 is expected")),
        (418, 418, Healthy("it answered 418")),
        (200, 204, Unhealthy("it answered 200 where 204 is expected")),
    ],
)
def test_the_status_decides(number: int, expected: int | None, finding: HealthResult) -> None:
    body = b"" if number == 204 else b"well"
    with serving(answering(status(number, body=body))) as server:
        assert ask(server, expected=expected) == finding


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_nor_well(number: int) -> None:
    with serving(answering(status(200))) as metadata:
        there = f"Location: http://127.0.0.1:{metadata.port}/latest/meta-data/"
        with serving(answering(status(number, there))) as server:
            for expected in (None, number):
                found = ask(server, expected=expected)
                why = f"it answered {number}, a redirect, which is not followed; use the URL to which it leads"
                assert found == Unhealthy(why)
        assert metadata.asked == []


LATE = Unhealthy(f"it had not answered within {PATIENCE:g} s")
LARGE = Unhealthy("its answer is larger than 65,536 bytes")
NOT_HTTP = Unhealthy("what it answered is not HTTP")
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked" + BLANK


@pytest.mark.soak
@pytest.mark.parametrize(
    ("script", "finding"),
    [
        pytest.param(silent, LATE, id="says nothing"),
        pytest.param(dribbling(b"", b"H"), LATE, id="dribbles its first line"),
        pytest.param(dribbling(HEAD, b"X-A: b\r\n"), LATE, id="dribbles its head"),
        pytest.param(dribbling(HEAD + b"Content-Length: 9999" + BLANK, b"x"), LATE, id="dribbles its body"),
        pytest.param(dribbling(CHUNKED, b"1\r\nx\r\n"), LATE, id="dribbles its chunks"),
        pytest.param(dribbling(b"", b"HTTP/1.1 100 Continue" + BLANK), LATE, id="always continues"),
        pytest.param(endless(HEAD + BLANK, b"x" * 9_999), LARGE, id="has no end"),
        pytest.param(endless(HEAD + b"Content-Length: 99999999" + BLANK, b"x" * 9_999), LARGE, id="is huge"),
        pytest.param(endless(CHUNKED, b"1\r\nx\r\n" * 999), LARGE, id="has no last chunk"),
        pytest.param(endless(HEAD + b"X-A: ", b"x" * 999), LARGE, id="has a line of head without end"),
        pytest.param(endless(HEAD, b"X-A: b\r\n"), NOT_HTTP, id="has a head without end"),
        pytest.param(greeting, NOT_HTTP, id="speaks first"),
        pytest.param(answering(b"SSH-2.0-OpenSSH_9.6\r\n"), NOT_HTTP, id="speaks something else"),
        pytest.param(answering(b"\x00\xff\xfe" * 99 + b"\n"), NOT_HTTP, id="speaks garbage"),
        pytest.param(answering(b"HTTP/1.1 abc OK" + BLANK), NOT_HTTP, id="has no status"),
        pytest.param(answering(b"HTTP/1.1 99 OK" + BLANK), NOT_HTTP, id="has a status that is none"),
        pytest.param(answering(CHUNKED + b"zz\r\n"), NOT_HTTP, id="has chunks that are none"),
        pytest.param(answering(b""), None, id="hangs up"),
        pytest.param(answering(HEAD + b"Content-Length: 10" + BLANK + b"x"), NOT_HTTP, id="hangs up in the middle"),
    ],
)
def test_a_server_that_misbehaves_is_not_well_and_that_in_time(script: Script, finding: HealthResult | None) -> None:
    with serving(script) as server:
        found = ask_in_vain(server) if finding == LATE else ask(server)
    assert isinstance(found, Unhealthy)
    assert found == (finding or found)


def test_what_was_answered_is_never_told() -> None:
    answers = [status(500, body=b"secret"), b"secret\r\n", b"HTTP/1.1 secret OK" + BLANK, CHUNKED + b"secret\r\n",
               b"HTTP/1.1 500 secret" + BLANK, status(302, "Location: http://secret/")]  # fmt: skip
    for answer in answers:
        with serving(answering(answer)) as server:
            found = ask(server)
        assert isinstance(found, Unhealthy)
        assert "secret" not in found.why


def test_who_refuses_the_connection_is_not_well() -> None:
    with nobody() as port:
        assert ask(Server(port)) == Unhealthy("the connection failed: Connection refused")


@pytest.mark.soak
def test_a_name_that_takes_too_long_to_resolve_is_not_asked() -> None:
    over, answered = threading.Event(), list[str]()

    def resolve(_host: str, _port: int) -> Sequence[str]:
        over.wait(AMPLE)
        answered.append("93.184.216.34")
        return answered

    found = http.check("http://status.test/", allowed=listed(NAME), net=Network(resolve), timeout=PATIENCE)
    assert (found, answered) == (HealthUnknown("status.test could not be resolved"), [])
    over.set()


def test_a_name_is_resolved_once_and_the_address_that_was_judged_is_connected_to() -> None:
    """Rebinding: the name's second answer would be somebody else, who waits at the same port."""
    answers = iter(["127.0.0.1", "127.0.0.2"])
    asked: list[str] = []

    def resolve(host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return [next(answers)]

    with serving(answering(status(200))) as server, socket.create_server(("127.0.0.2", server.port)) as other:
        allowed = listed(f"{NAME}:{server.port}", "127.0.0.1")
        other.settimeout(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", None)
            found = http.check(f"http://{NAME}:{server.port}/", allowed=allowed, net=Network(resolve), timeout=AMPLE)
        with pytest.raises(BlockingIOError):
            other.accept()
    assert (found, asked) == (Healthy("it answered 200"), [NAME])


def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    with serving(answering(status(200))) as server:
        allowed = listed(f"{NAME}:{server.port}", "127.0.0.0/8")
        net = Network(lambda _host, _port: ["127.0.0.9", "127.0.0.1"])
        found = http.check(f"http://{NAME}:{server.port}/", allowed=allowed, net=net, timeout=AMPLE)
    assert found == Healthy("it answered 200")


def test_a_question_is_plain_and_carries_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(answering(status(200, "Set-Cookie: a=b"))) as server:
        ask(server, "/up?a=1&b=%0d%0a")
        ask(server, "/up?a=1&b=%0d%0a")
        assert (
            server.asked
            == [
                f"GET /up?a=1&b=%0d%0a HTTP/1.1\r\nHost: {NAME}:{server.port}\r\nUser-Agent: redrive-health-check\r\n"
                "Accept: */*\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n".encode()
            ]
            * 2
        )


Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


def test_a_certificate_must_be_the_names_and_trusted(certified: Contexts, tmp_path: Path) -> None:
    shows, trusts = certified
    other, trusts_other = certify(tmp_path, "other.test")
    with serving(answering(status(200)), tls=shows) as server:
        assert ask(server, tls=trusts) == Healthy("it answered 200")
        found = ask(server, tls=trusts_other)
        assert isinstance(found, Unhealthy)
        assert found.why.startswith("its certificate is invalid: ")
    with serving(answering(status(200)), tls=other) as server:
        found = ask(server, tls=trusts_other)
        assert isinstance(found, Unhealthy)
        assert found.why.startswith("its certificate is invalid: Hostname mismatch")
        assert "its certificate is invalid" in str(ask(server, tls=None))


@pytest.mark.soak
def test_who_speaks_no_tls_or_never_ends_its_handshake_is_not_well(certified: Contexts) -> None:
    with serving(greeting) as server:
        found = ask(server, tls=certified[1])
        assert isinstance(found, Unhealthy)
        assert found.why.startswith("no secure connection came about: ")
    with serving(silent) as server:
        assert ask_in_vain(server, tls=certified[1]) == LATE
    for script in (dribbling(HEAD, b"X-A: b\r\n"), dribbling(HEAD + BLANK, b"x")):
        with serving(script, tls=certified[0]) as server:
            assert ask_in_vain(server, tls=certified[1]) == LATE
