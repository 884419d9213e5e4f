"""A pulse never goes back, and the schema knows what a pulse is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError

from reprocessing.models import Pulse

pytestmark = pytest.mark.django_db
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_a_queue_nobody_consumed_has_no_age() -> None:
    assert Pulse.age("redrive-control", now=NOON) is None


def test_the_age_counts_from_the_latest_beat() -> None:
    Pulse.beat("redrive-control", now=NOON)
    Pulse.beat("redrive-control", now=NOON + timedelta(seconds=2))

    assert Pulse.age("redrive-control", now=NOON + timedelta(seconds=5)) == timedelta(seconds=3)


def test_a_beat_that_arrives_late_does_not_turn_the_clock_back() -> None:
    Pulse.beat("redrive-control", now=NOON)
    Pulse.beat("redrive-control", now=NOON - timedelta(hours=1))

    assert Pulse.age("redrive-control", now=NOON) == timedelta(0)


def test_queues_have_pulses_of_their_own() -> None:
    Pulse.beat("redrive-control", now=NOON)

    assert Pulse.age("redrive-replay", now=NOON) is None


def test_a_pulse_without_a_queue_is_refused_by_the_schema() -> None:
    with pytest.raises(IntegrityError, match="a_pulse_names_its_queue"):
        Pulse.beat("", now=NOON)
