"""Every dlq has its turn when its own schedule says so, the longest due first."""

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
    return schedule.due(now=now, limit=limit)


def _next(dlq: int) -> datetime | None:
    return DeadLetterQueue.objects.get(pk=dlq).next_poll_at


def _take(dlq: int, now: datetime) -> schedule.Turn | None:
    return schedule.take(DeadLetterQueue.objects.get(pk=dlq), now=now)


def _have(dlq: int, now: datetime) -> datetime | None:
    """Have the turn that was given; when the dlq is due again."""
    turn = _take(dlq, now)
    assert turn is not None
    schedule.had(turn)
    return _next(dlq)


def _every(minutes: int) -> IntervalSchedule:
    return IntervalSchedule.objects.create(every=minutes, period="minutes")


def test_without_a_schedule_a_dlq_has_its_turn_now_and_every_minute() -> None:
    dlq = _dlq()
    assert (_due(NOON), _have(dlq, NOON + SECOND)) == ([dlq], NOON + MINUTE)
    assert _due(NOON + MINUTE - SECOND) == []
    assert _due(NOON + MINUTE) == [dlq]


def test_an_interval_says_how_often() -> None:
    dlq = _dlq(interval=_every(10))
    assert (_due(NOON), _have(dlq, NOON)) == ([dlq], NOON + 10 * MINUTE)
    assert _due(NOON + 10 * MINUTE - SECOND) == []
    assert (_due(NOON + 11 * MINUTE), _have(dlq, NOON + 11 * MINUTE)) == ([dlq], NOON + 21 * MINUTE)


def test_a_crontab_says_when_the_first_time_too() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="UTC"))
    night = datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC)
    assert (_due(NOON), _next(dlq)) == ([], night)
    assert _due(night - SECOND) == []
    assert (_due(night), _have(dlq, night + SECOND)) == ([dlq], night + timedelta(days=1))


def test_a_turn_that_nobody_had_is_given_again_a_minute_later_until_somebody_has_it() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="UTC"), next_poll_at=NOON)
    assert [_due(NOON + n * MINUTE / 2) for n in range(4)] == [[dlq], [], [dlq], []]
    assert _have(dlq, NOON + 2 * MINUTE) == datetime(2026, 3, 2, 3, 0, 0, tzinfo=UTC)
    assert _due(NOON + 3 * MINUTE) == []


def test_a_turn_that_was_given_twice_to_a_slow_worker_is_had_once() -> None:
    dlq = _dlq(interval=_every(10))
    assert (_due(NOON), _due(NOON + MINUTE)) == ([dlq], [dlq])
    assert (_have(dlq, NOON + MINUTE), _take(dlq, NOON + MINUTE)) == (NOON + 11 * MINUTE, None)


def test_a_turn_that_somebody_is_having_is_given_again_a_minute_after_its_time() -> None:
    dlq = _dlq(interval=_every(10))
    _due(NOON)
    turn = _take(dlq, NOON)
    assert turn is not None
    schedule.keep(turn, until=NOON + 3 * MINUTE)
    assert (_take(dlq, NOON), _due(NOON + 4 * MINUTE - SECOND)) == (None, [])
    assert _due(NOON + 4 * MINUTE) == [dlq]


def test_a_turn_is_kept_no_longer_than_until_the_next() -> None:
    dlq = _dlq(interval=_every(2))
    _due(NOON)
    turn = _take(dlq, NOON)
    assert turn is not None
    schedule.keep(turn, until=NOON + 3 * MINUTE)
    assert _next(dlq) == NOON + 2 * MINUTE


@pytest.mark.parametrize("due_at", [None, NOON - SECOND])
def test_who_has_had_a_turn_puts_off_nothing_that_became_due_meanwhile(due_at: datetime | None) -> None:
    dlq = _dlq(interval=_every(10))
    _due(NOON)
    turn = _take(dlq, NOON)
    assert turn is not None
    DeadLetterQueue.objects.filter(pk=dlq).update(next_poll_at=due_at)  # another schedule; or letters, and so at once
    schedule.keep(turn, until=NOON + MINUTE)
    schedule.had(turn)
    assert _next(dlq) == due_at


def test_a_crontab_goes_by_the_clocks_of_its_own_place() -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3", timezone="Asia/Tokyo"))
    assert (_due(NOON), _next(dlq)) == ([], datetime(2026, 3, 1, 18, 0, 0, tzinfo=UTC))


@pytest.mark.parametrize("fields", [{"day_of_month": "30", "month_of_year": "2"}, {"minute": "99"}, {"hour": "?"}])
def test_a_crontab_that_names_no_time_keeps_nobody_else_from_their_turn(fields: dict[str, str]) -> None:
    never = _dlq(crontab=CrontabSchedule.objects.create(**fields))
    dlq = _dlq()
    assert _due(NOON) == [dlq]
    assert _due(NOON + timedelta(days=2)) == [dlq]
    assert _next(never) == NOON + timedelta(days=3)


@pytest.mark.parametrize("days", [2_147_483_647, 999_999_999, 5_000_000])
def test_an_interval_longer_than_any_calendar_is_its_dlqs_trouble_and_nobody_elses(days: int) -> None:
    never = _dlq(interval=IntervalSchedule.objects.create(every=days, period="days"), next_poll_at=NOON)
    dlq = _dlq(next_poll_at=NOON)
    assert _due(NOON) == [dlq]
    assert _next(never) == NOON + timedelta(days=1)
    assert [DeadLetterQueue.objects.get(pk=one).trouble for one in (never, dlq)] == [
        "Its schedule names no time at which it could be polled. Give it another interval or crontab.", ""
    ]  # fmt: skip


def test_what_is_to_go_on_at_once_is_due_now_whatever_its_schedule_says(clock: Clock) -> None:
    dlq = _dlq(crontab=CrontabSchedule.objects.create(minute="0", hour="3"))
    _due(lanes.clock())
    clock.advance(1)
    assert _due(lanes.clock()) == []
    schedule.at_once(DeadLetterQueue.objects.get(pk=dlq))
    assert _due(lanes.clock()) == [dlq]


def test_the_longest_due_go_first_so_that_all_have_their_turn() -> None:
    late, later, latest = (_dlq(next_poll_at=NOON - ago * MINUTE) for ago in (1, 2, 3))
    assert [_due(NOON, limit=1) for _ in range(4)] == [[latest], [later], [late], []]


def test_a_dlq_that_is_being_captured_has_no_second_turn() -> None:
    dlq = _dlq(leased_until=NOON + SECOND)
    assert _due(NOON) == []
    assert _due(NOON + SECOND) == [dlq]


def test_two_ticks_at_the_same_time_give_one_turn() -> None:
    dlq = _dlq()
    with elsewhere() as begin:
        turns = [*begin(lambda: _due(NOON)).result(10), *_due(NOON)]
    assert turns == [dlq]


def test_how_often_a_dlq_has_its_turn_is_its_schedules_or_every_minute() -> None:
    fifty = IntervalSchedule.objects.create(every=50, period="seconds")
    hourly = CrontabSchedule.objects.create(minute="0", hour="*")
    never = IntervalSchedule.objects.create(every=2_147_483_647, period="days")
    dlqs = [_dlq(), _dlq(interval=fifty), _dlq(crontab=hourly), _dlq(interval=never)]
    assert list(map(schedule.cadences(dlqs).get, dlqs)) == [60, 50, 3_600, 86_400]
