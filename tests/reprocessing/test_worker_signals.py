"""A task of the service that fails every time is found by redrive_doctor, until it succeeds or no longer exists."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from celery import shared_task
from django.db import OperationalError, connection

from reprocessing import tasks
from reprocessing.models.system import Metric
from reprocessing.pipeline.maintenance import recover as recovery
from reprocessing.pipeline.maintenance.doctor import beat_and_workers
from reprocessing.store.maintenance import task_failures
from reprocessing.worker_signals import TaskResults
from tests.reprocessing.pipeline.bench import Clock

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "reprocessing.recover"
FINE = [("well", "tasks", "none fails again and again.")]


@shared_task(name="shop.ship")
def ship() -> None:
    raise ValueError("a task of another app")


def found() -> list[tuple[str, str, str]]:
    return [(finding.severity.value, finding.where, finding.what) for finding in beat_and_workers.task_findings()]


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """The sweep, which fails."""
    mock = Mock(side_effect=ValueError)
    monkeypatch.setattr(recovery, "sweep_alone", mock)
    return mock


def repeat(times: int, act: Callable[[], object]) -> None:
    for _ in range(times):
        act()


def test_the_third_failure_of_a_task_is_an_error_until_the_task_succeeds(sweep: Mock) -> None:
    repeat(2, tasks.recover.apply)
    assert found() == FINE
    tasks.recover.apply()
    assert found() == [("error", NAME, "It failed or expired 3 times without a success, last at most a second ago.")]
    sweep.side_effect = None
    tasks.recover.apply()
    assert found() == FINE
    assert Metric.objects.count() == 0


def test_a_success_between_failures_begins_the_count_again(sweep: Mock) -> None:
    for fault in (ValueError, ValueError, None, ValueError, ValueError):
        sweep.side_effect = fault
        tasks.recover.apply()
    assert found() == FINE


def test_a_task_that_expires_before_a_worker_takes_it_counts_as_a_failure() -> None:
    results, task = TaskResults(), SimpleNamespace(name=NAME)
    results.revoked(sender=task, expired=False)
    repeat(3, lambda: results.revoked(sender=task, expired=True))
    assert connection.connection is None  # Celery calls this in the main process, whose children inherit connections
    assert [(name, what.partition(" times")[0]) for _, name, what in found()] == [(NAME, "It failed or expired 3")]


def test_a_task_that_no_longer_exists_is_forgotten(sweep: Mock, clock: Clock) -> None:
    repeat(3, tasks.recover.apply)
    clock.advance(3 * 3600 - 1)
    assert [name for _, name, _ in found()] == [NAME]
    clock.advance(2)
    assert found() == FINE


def test_failures_of_tasks_of_other_apps_are_not_recorded() -> None:
    repeat(3, ship.apply)
    assert Metric.objects.count() == 0


def test_a_process_records_one_success_of_a_task_in_ten_seconds_but_each_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds, calls = 0.0, list[str]()
    monkeypatch.setattr(task_failures, "record_success", lambda _: calls.append("success"))
    monkeypatch.setattr(task_failures, "record_failure", lambda _: calls.append("failure"))
    results, task = TaskResults(lambda: seconds), SimpleNamespace(name=NAME)
    for seconds in (0.0, 9.9, 10.0, 19.9):  # noqa: B007  # the clock reads it
        results.succeeded(sender=task)
    assert calls == ["success"] * 2
    repeat(2, lambda: results.failed(sender=task))
    results.succeeded(sender=task)
    assert calls[2:] == ["failure", "failure", "success"]


def test_a_result_that_cannot_be_recorded_is_only_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(task_failures, "record_failure", Mock(side_effect=OperationalError("the server closed it")))
    with caplog.at_level(logging.WARNING):
        TaskResults().failed(sender=SimpleNamespace(name=NAME))
    assert caplog.messages == [f"It was not recorded whether {NAME} failed: OperationalError."]
