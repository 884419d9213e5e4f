"""The attempts of runs by minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.domain.runs.rate_chart import MinuteCount
from reprocessing.models import RunMinute
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.runs import run_minutes

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)


def test_counts_of_a_minute_are_added_up_for_each_run() -> None:
    later = AT + timedelta(minutes=1)
    run_minutes.add({(1, later): 2, (1, AT): 3, (2, AT): 9})
    run_minutes.add({(1, later): 5})
    run_minutes.add({})
    assert run_minutes.minutes_of_run(1) == [MinuteCount(AT, 3), MinuteCount(later, 7)]


def test_the_newest_minutes_of_a_day_are_read() -> None:
    run_minutes.add({(1, AT + timedelta(minutes=minute)): 1 for minute in range(1_442)})
    found = run_minutes.minutes_of_run(1)
    assert (len(found), found[0].minute) == (1_440, AT + timedelta(minutes=2))


def test_counts_are_deleted_after_fifteen_days() -> None:
    now = database_now()
    run_minutes.add({(1, now - timedelta(days=days)): days for days in (1, 14, 16, 17)})
    assert [run_minutes.delete_old_minutes(limit=1) for _ in range(3)] == [1, 1, 0]
    assert sorted(RunMinute.objects.values_list("sent", flat=True)) == [1, 14]


def test_a_minute_begins_with_its_first_second() -> None:
    assert run_minutes.minute_of(AT.replace(second=59, microsecond=7)) == AT
