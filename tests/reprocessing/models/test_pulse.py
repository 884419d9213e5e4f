from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, models
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from reprocessing.models import Heartbeat

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
INSTANT = timedelta(microseconds=1)


def shift(by: timedelta) -> None:
    Heartbeat.objects.update(consumed_at=models.ExpressionWrapper(Now() + by, output_field=models.DateTimeField()))


def age(queue: str = "redrive-control") -> timedelta | None:
    return Heartbeat.ages(queue).first()


def test_a_queue_without_heartbeat_has_no_age() -> None:
    assert age() is None


def test_the_age_counts_from_the_latest_heartbeat_of_the_queue() -> None:
    Heartbeat.record("redrive-control")
    shift(-MINUTE)
    assert MINUTE <= (age() or INSTANT) < 2 * MINUTE
    Heartbeat.record("redrive-control")
    assert (age() or MINUTE) < MINUTE
    assert age("redrive-replay") is None


def test_a_heartbeat_in_the_future_is_corrected_by_the_next_one() -> None:
    Heartbeat.record("redrive-control")
    shift(MINUTE)
    assert not Heartbeat.is_recent(age(), within=MINUTE)
    Heartbeat.record("redrive-control")
    assert Heartbeat.is_recent(age(), within=MINUTE)


def test_the_clock_is_read_after_the_heartbeat() -> None:
    with CaptureQueriesContext(connection) as queries:
        age()
    assert "clock_timestamp()" in queries[0]["sql"]


@pytest.mark.parametrize(
    ("age", "recent"),
    [(-INSTANT, False), (timedelta(0), True), (MINUTE, True), (MINUTE + INSTANT, False), (None, False)],
)
def test_a_heartbeat_is_recent_from_now_until_it_is_too_old(age: timedelta | None, recent: bool) -> None:
    assert Heartbeat.is_recent(age, within=MINUTE) is recent
