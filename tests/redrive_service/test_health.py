"""The health pages tell the truth, also when a dependency is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from pytest_django.fixtures import Settings

from reprocessing.models import Pulse
from reprocessing.tasks import CONTROL

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> datetime:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    monkeypatch.setattr("redrive_service.health.timezone.now", lambda: now)
    return now


def ask(client: Client, question: str) -> tuple[int, dict[str, Any]]:
    answer = client.get(f"/health/{question}")
    return answer.status_code, answer.json()


def test_a_process_that_answers_is_live(client: Client) -> None:
    assert ask(client, "live") == (200, {"live": True})


def test_it_is_ready_when_postgres_and_redis_answer(client: Client) -> None:
    assert ask(client, "ready") == (200, {"postgres": True, "redis": True})


def test_health_is_told_in_the_clear_to_whoever_asks_by_address(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    settings.ALLOWED_HOSTS = ["redrive.example.com"]

    assert client.get("/health/live", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/admin/", headers={"host": "10.0.0.7:8000"}).status_code == 400


def test_a_question_nobody_knows_is_not_found(client: Client) -> None:
    assert client.get("/health/wealth").status_code == 404


@pytest.mark.parametrize("question", ["live", "ready", "work"])
def test_health_is_asked_and_not_told(client: Client, question: str) -> None:
    assert client.post(f"/health/{question}").status_code == 405


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("ready", {"postgres": False, "redis": True}),
        ("work", {"consuming": False, "age_seconds": None}),
    ],
)
def test_without_postgres_the_answer_is_still_an_answer(client: Client, question: str, answer: dict[str, Any]) -> None:
    with connection.execute_wrapper(refused):
        assert ask(client, question) == (503, answer)


def refused(*_: object) -> None:
    raise OperationalError("connection refused")


def test_it_is_not_ready_without_redis(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"

    assert ask(client, "ready") == (503, {"postgres": True, "redis": False})


def test_work_is_not_done_before_the_first_task(client: Client, clock: datetime) -> None:
    assert ask(client, "work") == (503, {"consuming": False, "age_seconds": None})


@pytest.mark.parametrize(("age", "status", "consuming"), [(60.0, 200, True), (60.1, 503, False)])
def test_work_is_done_while_the_last_task_is_a_minute_old_at_most(
    client: Client, clock: datetime, age: float, status: int, consuming: bool
) -> None:
    Pulse.beat(CONTROL, now=clock - timedelta(seconds=age))

    assert ask(client, "work") == (status, {"consuming": consuming, "age_seconds": age})
