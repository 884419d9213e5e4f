"""The health pages tell the truth, also when a dependency is gone."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection, models
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory
from pytest_django.fixtures import Settings

from redrive_service import health
from reprocessing.models import Heartbeat
from reprocessing.tasks import CONTROL
from tests.conditions import eventually

pytestmark = pytest.mark.django_db(transaction=True)  # the pages look through a connection of their own


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server like one that was stopped: it accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.fixture
def silent_port(silent: socket.socket) -> int:
    return int(silent.getsockname()[1])


def connections_to(server: socket.socket) -> int:
    """How many have come to a server that has answered none."""
    server.settimeout(0)
    count = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


def beat(ago: timedelta) -> None:
    Heartbeat.record(CONTROL)
    Heartbeat.objects.update(consumed_at=models.ExpressionWrapper(Now() - ago, output_field=models.DateTimeField()))


def ask(client: Client, question: str) -> tuple[int, dict[str, Any]]:
    answer = client.get(f"/health/{question}")
    return answer.status_code, answer.json()


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("live", (200, {"live": True})),
        ("ready", (200, {"postgres": True, "redis": True})),
        ("work", (503, {"consuming": False, "age_seconds": None})),
    ],
)
def test_before_the_first_task_it_is_live_and_ready_and_does_no_work(
    client: Client, question: str, answer: tuple[int, dict[str, Any]]
) -> None:
    assert ask(client, question) == answer


def test_health_is_told_in_the_clear_to_whoever_asks_by_address(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["redrive.example.com"]

    assert client.get("/health/live", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/admin/", headers={"host": "10.0.0.7:8000"}).status_code == 400


@pytest.mark.parametrize("question", ["live", "ready", "work"])
def test_health_is_asked_and_not_told(client: Client, question: str) -> None:
    told = client.post(f"/health/{question}")
    assert (told.status_code, told.headers["Allow"]) == (405, "GET, HEAD")
    assert client.get(f"/health/{question}s").status_code == 404


@pytest.mark.parametrize("question", ["/healthz", "/readyz", "/health/work"])
def test_who_asks_for_the_head_alone_is_told_what_would_follow_and_nothing_follows(question: str) -> None:
    def asked(request: HttpRequest) -> HttpResponse:
        return JsonResponse({"method": request.method}, status=503)

    told: dict[str, HttpResponseBase] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(health.HEALTH_PAGES, question, asked)
        for method in ("GET", "HEAD"):
            # Not Django's client: it drops the body by itself.
            told[method] = health.HealthMiddleware(missing)(RequestFactory().generic(method, question))
    assert (told["HEAD"].status_code, told["HEAD"].headers["Content-Length"]) == (503, "18")
    assert (told["HEAD"].getvalue(), told["GET"].getvalue()) == (b"", b'{"method": "GET"}')


def missing(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=404)


WITHOUT_POSTGRES = [("ready", {"postgres": False, "redis": True}), ("work", {"consuming": False, "age_seconds": None})]


@pytest.mark.parametrize(("question", "answer"), WITHOUT_POSTGRES)
def test_without_postgres_or_redis_the_answer_is_still_an_answer(
    client: Client, monkeypatch: pytest.MonkeyPatch, settings: Settings, question: str, answer: dict[str, Any]
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "PORT", 1)
        assert ask(client, question) == (503, answer)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert ask(client, "ready") == (503, {"postgres": True, "redis": False})


@pytest.mark.soak
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("question", "answer"), [WITHOUT_POSTGRES[0], pytest.param(*WITHOUT_POSTGRES[1], marks=pytest.mark.soak)]
)
def test_a_postgres_that_accepts_and_says_nothing_is_waited_for_two_seconds(
    client: Client, monkeypatch: pytest.MonkeyPatch, silent_port: int, question: str, answer: dict[str, Any]
) -> None:
    monkeypatch.setitem(connection.settings_dict, "PORT", silent_port)

    assert ask(client, question) == (503, answer)
    assert health.TIMEOUT == 2


@pytest.mark.soak
@pytest.mark.timeout(60)
def test_a_postgres_that_falls_silent_after_the_question_is_waited_for_two_seconds(client: Client) -> None:
    beat(timedelta(0))
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("LOCK TABLE redrive_heartbeat")

        assert ask(client, "work") == (503, {"consuming": False, "age_seconds": None})


@pytest.mark.soak
@pytest.mark.timeout(60)
def test_a_redis_that_accepts_and_says_nothing_is_waited_for_one_second_whatever_its_url_says(
    client: Client, settings: Settings, silent: socket.socket, silent_port: int
) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{silent_port}/0?socket_timeout=60&retry_on_timeout=yes"

    assert ask(client, "ready") == (503, {"postgres": True, "redis": False})
    assert connections_to(silent) == 1  # there was no second try


def test_connecting_to_redis_has_its_limit_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []
    connect = socket.socket.connect

    class Watched(socket.socket):
        def connect(self, address: Any) -> None:  # noqa: ANN401  # as the socket has it
            limits.append(self.gettimeout())
            connect(self, address)

    monkeypatch.setattr("socket.socket", Watched)

    assert ask(client, "ready") == (200, {"postgres": True, "redis": True})
    assert limits == [1.0]


def test_the_pages_leave_no_connection_behind(client: Client) -> None:
    def connections_there() -> set[int]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_type = 'client backend'"
            )
            return {pid for (pid,) in cursor.fetchall()}

    before = connections_there()
    for question in ("ready", "work"):
        ask(client, question)
    assert eventually(lambda: connections_there() <= before, within=5)


@pytest.mark.parametrize(
    ("age", "status", "consuming"),
    [(timedelta(seconds=55), 200, True), (timedelta(seconds=61), 503, False), (timedelta(hours=-1), 503, False)],
    ids=["recent", "old", "of the future"],
)
def test_work_is_done_while_the_last_task_is_a_minute_old_at_most(
    client: Client, age: timedelta, status: int, consuming: bool
) -> None:
    beat(age)

    code, answer = ask(client, "work")

    assert (code, answer["consuming"]) == (status, consuming)
    assert 0 <= answer["age_seconds"] - age.total_seconds() < 5
