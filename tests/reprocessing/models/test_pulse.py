"""A pulse is told by the database's clock alone, and the schema knows what a pulse is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, models
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from reprocessing.models import Pulse

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
INSTANT = timedelta(microseconds=1)


def shift(by: timedelta) -> None:
    Pulse.objects.update(beaten_at=models.ExpressionWrapper(Now() + by, output_field=models.DateTimeField()))


def age(queue: str = "redrive-control") -> timedelta | None:
    return Pulse.ages(queue).first()


def test_a_queue_nobody_consumed_has_no_age() -> None:
    assert age() is None


def test_the_age_counts_from_the_latest_beat() -> None:
    Pulse.beat("redrive-control")
    shift(-MINUTE)
    before = age()
    Pulse.beat("redrive-control")
    after = age()

    assert before is not None
    assert after is not None
    assert [before // MINUTE, after // MINUTE] == [1, 0]


def test_a_pulse_of_the_future_is_mended_by_the_next_beat() -> None:
    Pulse.beat("redrive-control")
    shift(MINUTE)
    ahead = Pulse.is_recent(age(), within=MINUTE)
    Pulse.beat("redrive-control")

    assert [ahead, Pulse.is_recent(age(), within=MINUTE)] == [False, True]


def test_the_clock_is_read_after_the_pulse_so_that_no_pulse_is_of_its_future() -> None:
    with CaptureQueriesContext(connection) as queries:
        age()
    assert "clock_timestamp()" in queries[0]["sql"]


@pytest.mark.parametrize(
    ("age", "recent"),
    [(-INSTANT, False), (timedelta(0), True), (MINUTE, True), (MINUTE + INSTANT, False), (None, False)],
)
def test_a_pulse_is_recent_from_now_until_it_is_too_old(age: timedelta | None, recent: bool) -> None:
    assert Pulse.is_recent(age, within=MINUTE) is recent


def test_queues_have_pulses_of_their_own() -> None:
    Pulse.beat("redrive-control")

    assert age("redrive-replay") is None


def test_a_pulse_without_a_queue_is_refused_by_the_schema() -> None:
    with pytest.raises(IntegrityError, match="a_pulse_names_its_queue"):
        Pulse.beat("")
