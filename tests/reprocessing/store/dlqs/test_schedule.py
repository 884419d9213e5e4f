from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django_celery_beat.models import CrontabSchedule, IntervalSchedule

from reprocessing.models import DeadLetterQueue
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


def _dlq(**fields: object) -> int:
    dlq = Stock().dlq
    DeadLetterQueue.objects.filter(pk=dlq.pk).update(**fields)
    return int(dlq.pk)


def _due(now: datetime, limit: int = 20) -> list[int]:
    return schedule.claim_due(now=now, limit=limit)


def _next(dlq: int) -> datetime | None:
    return DeadLetterQueue.objects.get(pk=dlq).next_poll_at


def _take(dlq: int, now: datetime) -> schedule.OpenPoll | None:
    return schedule.begin_poll(DeadLetterQueue.objects.get(pk=dlq), now=now)


def _taken(dlq: int, now: datetime) -> schedule.OpenPoll:
    turn = _take(dlq, now)
    assert turn is not None
    return turn


def _have(dlq: int, now: datetime) -> datetime | None:
    """Have the turn that was given; when the dlq is due again."""
    schedule.end_poll(_taken(dlq, now))
    return _next(dlq)


def _every(minutes: int) -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=minutes, period="minutes")


def test_without_a_schedule_a_dlq_is_polled_now_and_every_minute() -> None:
    dlq = _dlq()
    assert (_due(NOON), _have(dlq, NOON + SECOND)) == ([dlq], NOON + MINUTE)
    assert _due(NOON + MINUTE - SECOND) == []
    assert _due(NOON + MINUTE) == [dlq]


def test_an_interval_sets_the_time_between_polls() -> None:
    dlq = _dlq(interval=_every(10))
    assert (_due(NOON), _have(dlq, NOON)) == ([dlq], NOON + 10 * MINUTE)
    assert _due(NOON + 10 * MINUTE - SECOND) == []
    assert (_due(NOON + 11 * MINUTE), _have(dlq, NOON + 11 * MINUTE)) == ([dlq], NOON + 21 * MINUTE)


def test_a_crontab_also_sets_the_first_poll() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="UTC"))
    night = datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC)
    assert (_due(NOON), _next(dlq)) == ([], night)
    assert _due(night - SECOND) == []
    assert (_due(night), _have(dlq, night + SECOND)) == ([dlq], night + timedelta(days=1))


def test_a_poll_that_did_not_run_is_due_again_every_minute_until_it_runs() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="UTC"), next_poll_at=NOON)
    assert [_due(NOON + n * MINUTE / 2) for n in range(4)] == [[dlq], [], [dlq], []]
    assert _have(dlq, NOON + 2 * MINUTE) == datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC)
    assert _due(NOON + 3 * MINUTE) == []


def test_a_poll_given_to_two_workers_runs_once() -> None:
    dlq = _dlq(interval=_every(10))
    assert (_due(NOON), _due(NOON + MINUTE)) == ([dlq], [dlq])
    assert (_have(dlq, NOON + MINUTE), _take(dlq, NOON + MINUTE)) == (NOON + 11 * MINUTE, None)


def test_a_running_poll_is_due_again_a_minute_after_its_time_limit() -> None:
    dlq = _dlq(interval=_every(10))
    _due(NOON)
    schedule.extend_poll(_taken(dlq, NOON), until=NOON + 3 * MINUTE)
    assert (_take(dlq, NOON), _due(NOON + 4 * MINUTE - SECOND)) == (None, [])
    assert _due(NOON + 4 * MINUTE) == [dlq]


def test_a_running_poll_does_not_delay_the_next_scheduled_one() -> None:
    dlq = _dlq(interval=_every(2))
    _due(NOON)
    schedule.extend_poll(_taken(dlq, NOON), until=NOON + 3 * MINUTE)
    assert _next(dlq) == NOON + 2 * MINUTE


@pytest.mark.parametrize("due_at", [None, NOON - SECOND])
def test_the_end_of_a_poll_does_not_delay_what_became_due_meanwhile(due_at: datetime | None) -> None:
    dlq = _dlq(interval=_every(10))
    _due(NOON)
    turn = _taken(dlq, NOON)
    DeadLetterQueue.objects.filter(pk=dlq).update(next_poll_at=due_at)  # another schedule; or letters, and so at once
    schedule.extend_poll(turn, until=NOON + MINUTE)
    schedule.end_poll(turn)
    assert _next(dlq) == due_at


def test_a_crontab_uses_its_own_time_zone() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="Asia/Tokyo"))
    assert (_due(NOON), _next(dlq)) == ([], datetime(2026, 3, 1, 18, 0, 0, tzinfo=UTC))


@pytest.mark.parametrize("fields", [{"day_of_month": "30", "month_of_year": "2"}, {"minute": "99"}, {"hour": "?"}])
def test_a_crontab_without_a_next_time_does_not_delay_other_dlqs(fields: dict[str, str]) -> None:
    never = _dlq(crontab=CrontabSchedule.objects.create(**fields))
    dlq = _dlq()
    assert _due(NOON) == [dlq]
    assert _due(NOON + timedelta(days=2)) == [dlq]
    assert _next(never) == NOON + timedelta(days=3)


@pytest.mark.parametrize("days", [2_147_483_647, 999_999_999, 5_000_000])
def test_an_interval_longer_than_any_calendar_is_the_trouble_of_its_dlq_only(days: int) -> None:
    never = _dlq(interval=IntervalSchedule.objects.create(every=days, period="days"), next_poll_at=NOON)
    dlq = _dlq(next_poll_at=NOON)
    assert _due(NOON) == [dlq]
    assert _next(never) == NOON + timedelta(days=1)
    assert [DeadLetterQueue.objects.get(pk=pk).last_error for pk in (never, dlq)] == [
        "Its schedule has no next time. Set another interval or crontab.", ""
    ]  # fmt: skip


def test_a_dlq_made_due_at_once_ignores_its_schedule(clock: Clock) -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3"))
    _due(lanes.database_now())
    clock.advance(1)
    assert _due(lanes.database_now()) == []
    schedule.poll_now(DeadLetterQueue.objects.get(pk=dlq))
    assert _due(lanes.database_now()) == [dlq]


def test_the_longest_due_dlqs_are_polled_first() -> None:
    late, later, latest = (_dlq(next_poll_at=NOON - ago * MINUTE) for ago in (1, 2, 3))
    assert [_due(NOON, limit=1) for _ in range(4)] == [[latest], [later], [late], []]


def test_a_dlq_is_not_polled_during_a_capture() -> None:
    dlq = _dlq(leased_until=NOON + SECOND)
    assert _due(NOON) == []
    assert _due(NOON + SECOND) == [dlq]


def test_two_ticks_at_the_same_time_start_one_poll() -> None:
    dlq = _dlq()
    with elsewhere() as begin:
        turns = [*begin(lambda: _due(NOON)).result(10), *_due(NOON)]
    assert turns == [dlq]


def test_the_poll_interval_follows_the_schedule_or_is_a_minute() -> None:
    fifty = IntervalSchedule.objects.create(every=50, period="seconds")
    hourly = CrontabSchedule.objects.create(minute="0", hour="*")
    never = IntervalSchedule.objects.create(every=2_147_483_647, period="days")
    weekly = CrontabSchedule.objects.create(minute="0", hour="3", day_of_week="1")
    dlqs = [_dlq(), _dlq(interval=fifty), _dlq(crontab=hourly), _dlq(interval=never), _dlq(crontab=weekly)]
    assert list(map(schedule.poll_intervals(dlqs).get, dlqs)) == [60, 50, 3_600, 86_400, 7 * 86_400]
