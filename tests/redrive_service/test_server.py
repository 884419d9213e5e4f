"""The web server answers while strangers hold connections on which no request becomes whole."""

from __future__ import annotations

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import yaml
from django.db import connection

from redrive_service import server
from tests.conditions import eventually
from tests.faults.fleet import environment

PROJECT = Path(__file__).parents[2]
PATIENCE = 20.0  # seconds for one answer, on a machine that has other work

pytestmark = [pytest.mark.soak, pytest.mark.django_db(transaction=True)]


@dataclass(frozen=True, slots=True)
class Web:
    process: subprocess.Popen[bytes]
    pages: int
    health: int


@contextmanager
def started(folder: Path, *words: str) -> Iterator[Web]:
    """`manage.py serve` with the documented words, at ports that are free."""
    log = folder / "web.log"
    command = [sys.executable, "manage.py", "serve", "--bind", "127.0.0.1:0", "--health", "127.0.0.1:0", *words]
    with log.open("wb") as written:
        process = subprocess.Popen(command, cwd=PROJECT, env=environment(), stdout=written, stderr=written)
    try:
        listening = re.compile(r"Listening at: http://127\.0\.0\.1:(\d+) \(health: http://127\.0\.0\.1:(\d+)\)")
        found = eventually(lambda: listening.search(log.read_text()) or process.poll() is not None, within=60)
        assert isinstance(found, re.Match), log.read_text()
        yield Web(process, int(found[1]), int(found[2]))
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[Web]:
    with started(tmp_path_factory.mktemp("web")) as running:
        yield running


def ask(port: int, path: str, *, within: float = PATIENCE) -> int:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    try:
        asked.request("GET", path)
        answer = asked.getresponse()
        answer.read()
        return answer.status
    finally:
        asked.close()


HALF_A_HEADER = b"GET /admin/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_A_BODY = (
    b"POST /admin/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: 1000\r\n\r\nusername=root&"
)
NOTHING = b""
#: Postgres is asked whose token it has.
A_REPORT = (
    b"POST /reports HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer x\r\nContent-Type: application/json\r\n"
    b"Content-Length: 2\r\n\r\n{}"
)


def hold(stack: ExitStack, port: int, count: int, sent: bytes) -> list[socket.socket]:
    held = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)) for _ in range(count)]
    for one in held:
        one.sendall(sent)
    return held


@pytest.mark.parametrize("count", [8, 100, 400])
@pytest.mark.parametrize("sent", [HALF_A_HEADER, HALF_A_BODY, NOTHING], ids=["half a header", "half a body", "nothing"])
def test_pages_and_health_answer_while_slow_connections_are_held(web: Web, count: int, sent: bytes) -> None:
    with ExitStack() as stack:
        hold(stack, web.pages, count, sent)
        hold(stack, web.health, count, sent)

        assert [ask(web.pages, path) for path in ("/admin/login/", "/health/live", "/readyz")] == [200, 200, 200]
        assert [ask(web.health, path) for path in ("/healthz", "/health/live", "/readyz")] == [200, 200, 200]


def test_pages_answer_while_answers_are_not_read(web: Web) -> None:
    with ExitStack() as stack:
        for _ in range(50):
            asked = stack.enter_context(socket.socket())
            asked.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)  # before it connects: that is what it offers
            asked.connect(("127.0.0.1", web.pages))
            asked.sendall(b"GET /static/admin/js/vendor/xregexp/xregexp.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 20)

        assert ask(web.pages, "/admin/login/") == 200


def test_health_answers_while_every_thread_for_pages_waits_for_postgres(tmp_path: Path) -> None:
    with started(tmp_path, "--threads", "2") as web, psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("LOCK TABLE redrive_reporter IN ACCESS EXCLUSIVE MODE")
        with ExitStack() as stack:
            hold(stack, web.pages, 4, A_REPORT)
            eventually(lambda: _waiting_for_a_lock() == 2, within=PATIENCE)

            assert ask(web.health, "/healthz") == 200
            assert ask(web.health, "/readyz") == 200
            with pytest.raises(TimeoutError):  # it is the threads that are all taken
                ask(web.pages, "/health/live", within=1)
            other.rollback()
            assert ask(web.pages, "/health/live") == 200


def _waiting_for_a_lock() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def test_the_health_listener_shows_no_page(web: Web) -> None:
    assert [ask(web.health, path) for path in ("/admin/login/", "/reports", "/", "/metrics")] == [404, 404, 404, 404]


def test_a_request_that_was_begun_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    with started(tmp_path) as web, psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("LOCK TABLE redrive_reporter IN ACCESS EXCLUSIVE MODE")
        with socket.create_connection(("127.0.0.1", web.pages), timeout=PATIENCE) as begun:
            begun.sendall(A_REPORT)
            eventually(lambda: _waiting_for_a_lock() == 1, within=PATIENCE)
            web.process.send_signal(signal.SIGTERM)
            eventually(lambda: _refuses(web.pages), within=PATIENCE)
            other.rollback()

            assert begun.recv(12) == b"HTTP/1.1 401"
            assert web.process.wait(PATIENCE) == 0


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except ConnectionResetError:  # it was in the kernel's queue in the moment in which the socket was closed
        return False
    return False


A_CHECK = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def listener() -> server.Server:
    return server.Server(server.HealthApplication(), server.Address("127.0.0.1", 0), threads=1)


def test_a_request_that_waits_in_the_kernel_s_queue_is_answered_before_the_server_ends(listener: server.Server) -> None:
    with socket.create_connection(("127.0.0.1", listener.address.port), timeout=PATIENCE) as queued:
        queued.sendall(A_CHECK)
        listener.end()
        listener.run()

        assert queued.recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize("sent", [0, 20], ids=["nothing", "half a header"])
def test_a_request_that_arrives_while_the_server_ends_is_answered(
    monkeypatch: pytest.MonkeyPatch, listener: server.Server, sent: int
) -> None:
    monkeypatch.setattr(server, "_TO_ARRIVE_AT_END", PATIENCE)
    running, port = threading.Thread(target=listener.run), listener.address.port
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as begun:
        begun.sendall(A_CHECK[:sent])
        listener.end()
        running.start()
        eventually(lambda: _refuses(port), within=PATIENCE)
        begun.sendall(A_CHECK[sent:])

        assert begun.recv(12) == b"HTTP/1.1 200"
    running.join(PATIENCE)
    assert not running.is_alive()


def test_a_request_that_does_not_become_whole_holds_up_no_end(
    monkeypatch: pytest.MonkeyPatch, listener: server.Server
) -> None:
    monkeypatch.setattr(server, "_TO_ARRIVE_AT_END", 0.1)
    monkeypatch.setattr(server, "_TO_FINISH", 3_600.0)
    running = threading.Thread(target=listener.run, daemon=True)
    with socket.create_connection(("127.0.0.1", listener.address.port), timeout=PATIENCE) as begun:
        begun.sendall(HALF_A_HEADER)
        listener.end()
        running.start()
        running.join(PATIENCE)

        assert not running.is_alive()


def test_an_address_that_is_taken_is_told_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        at = f"127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run(
            [sys.executable, "manage.py", "serve", "--bind", at, "--health", "127.0.0.1:0"],
            cwd=PROJECT, env=environment(), capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    told = f"Nothing can listen at {at}: Address already in use. Stop the process that listens there, or choose another"
    assert (done.returncode, done.stderr) == (1, f"CommandError: {told} address: --bind HOST:PORT.\n")


@pytest.mark.parametrize("began_with", [HALF_A_HEADER, HALF_A_BODY], ids=["header", "body"])
def test_a_connection_whose_request_does_not_become_whole_is_closed(
    monkeypatch: pytest.MonkeyPatch, listener: server.Server, began_with: bytes
) -> None:
    monkeypatch.setattr(server, "_TO_ARRIVE", 0.5)
    running = threading.Thread(target=listener.run)
    running.start()
    try:
        with socket.create_connection(("127.0.0.1", listener.address.port), timeout=PATIENCE) as slow:
            slow.sendall(began_with)

            eventually(lambda: _is_closed_byte_by_byte(slow), within=PATIENCE)
    finally:
        listener.end()
        running.join()


def _is_closed_byte_by_byte(slow: socket.socket) -> bool:
    """It sends one more byte, so that the connection is never idle."""
    try:
        slow.sendall(b"x")
        slow.settimeout(0.05)
        return slow.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_the_documented_and_composed_command_is_the_one_that_is_tried_here() -> None:
    documented = re.findall(r"^python manage\.py serve .*$", (PROJECT / "docs/production.md").read_text(), re.MULTILINE)
    (composed,) = re.findall(r"^CMD (\[.*\"serve\".*\])$", (PROJECT / "Dockerfile").read_text(), re.MULTILINE)
    wanted = ["python", "manage.py", "serve", "--bind", "0.0.0.0:8000", "--health", "0.0.0.0:8001"]
    assert [line.split("  #")[0].split() for line in documented] == [wanted]
    assert yaml.safe_load(composed) == wanted
