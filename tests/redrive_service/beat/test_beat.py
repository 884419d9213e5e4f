"""The scheduler of beat, check by check, on a real PostgreSQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import psycopg
import pytest
from celery import Celery
from django.db import OperationalError, connections
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks
from django_celery_beat.schedulers import ModelEntry
from django_celery_beat.tzcrontab import TzAwareCrontab

from redrive_service.beat import BeatValue, LeaderScheduler
from redrive_service.leadership import Leadership
from tests.conditions import eventually

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


class Scheduler(LeaderScheduler):
    """Ours, with a broker that can be taken away and that keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.broker_is_away = False
        app = Celery("beat", set_as_current=False, broker="memory://")
        app.conf.update(beat_schedule={}, result_expires=None)
        super().__init__(app=app)

    def apply_async(self, entry: BeatValue, producer: BeatValue = None, advance: bool = True, **_: BeatValue) -> None:  # noqa: FBT002  # Celery's signature
        assert not advance
        if self.broker_is_away:
            raise ConnectionError("the broker is away")
        self.sent.append(entry.name)

    def work(self) -> list[str]:
        while self.tick() == 0:
            pass
        return self.sent


class WallClock:
    """The clock of beat's machine."""

    def __init__(self, time: dt.datetime) -> None:
        self.time = time

    def set_back(self, **by: float) -> None:
        self.time -= dt.timedelta(**by)


class DatabaseThatFails:
    """Fails the statements that a condition picks, before or after they were carried out."""

    def __init__(self, picks: Callable[[str], bool], *, done: bool = False) -> None:
        self.picks = picks
        self.done = done
        self.failed = 0

    def __call__(
        self, execute: BeatValue, statement: str, parameters: BeatValue, many: bool, context: BeatValue
    ) -> BeatValue:  # Django's signature
        if self.failed or not self.picks(statement):
            return execute(statement, parameters, many, context)
        self.failed += 1
        if self.done:
            execute(statement, parameters, many, context)
        raise OperationalError("the connection was lost")


def _is_claim(statement: str) -> bool:
    return statement.startswith("UPDATE") and "total_run_count" in statement


def _is_reading(statement: str) -> bool:
    return statement.startswith("SELECT") and 'FROM "django_celery_beat_periodictask"' in statement


@pytest.fixture(autouse=True)
def entry() -> PeriodicTask:
    """One entry that has long been due and, once sent, is not for an hour."""
    hourly = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.HOURS)
    return PeriodicTask.objects.create(name="entry", task="any", interval=hourly, last_run_at=LONG_AGO)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    """The clock that the scheduler, its entries and their schedules read."""
    made = WallClock(dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC))
    monkeypatch.setattr("django.utils.timezone.now", lambda: made.time)
    monkeypatch.setattr(Celery, "now", lambda _: made.time)
    monkeypatch.setattr(ModelEntry, "_default_now", lambda _: made.time)
    monkeypatch.setattr(TzAwareCrontab, "nowfunc", lambda crontab: made.time.astimezone(crontab.tz))
    return made


@pytest.fixture(params=["interval", "crontab"])
def schedule(request: pytest.FixtureRequest) -> None:
    """The entry is sent every hour, or at four o'clock."""
    if request.param == "crontab":
        at_four = CrontabSchedule.objects.create(minute="0", hour="4")
        PeriodicTask.objects.update(interval=None, crontab=at_four)


def _opened() -> Iterator[Scheduler]:
    made = Scheduler()
    yield made
    made.close()


scheduler, other = pytest.fixture(_opened), pytest.fixture(_opened)


def due_again() -> None:
    PeriodicTask.objects.update(last_run_at=LONG_AGO)
    PeriodicTasks.update_changed()


def test_the_leader_sends_and_looks_every_two_seconds_and_a_standby_asks_again_sooner(
    scheduler: Scheduler, other: Scheduler
) -> None:
    assert (scheduler.work(), other.work()) == (["entry"], [])
    assert (scheduler.tick(), other.tick()) == (2.0, 1.0)


def test_the_next_leader_does_not_send_again_what_was_sent(scheduler: Scheduler, other: Scheduler) -> None:
    scheduler.work()
    scheduler._leadership.release()  # no more than a kill would do
    assert other.work() == []
    assert PeriodicTask.objects.get().total_run_count == 1


def test_two_that_both_believe_they_lead_send_a_due_task_once(
    scheduler: Scheduler, other: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leadership, "is_held", lambda _: True)
    for each in (scheduler, other):
        each._read_schedule()
    scheduler.work()
    other.work()
    assert scheduler.sent + other.sent == ["entry"]
    assert PeriodicTask.objects.get().total_run_count == 1


def test_a_due_task_that_could_not_be_sent_is_sent_once_the_broker_is_back(scheduler: Scheduler) -> None:
    scheduler.broker_is_away = True
    assert scheduler.work() == []
    scheduler.broker_is_away = False
    assert scheduler.work() == ["entry"]
    assert scheduler.work() == ["entry"]


def test_unsent_tasks_give_way_to_the_next_ones_of_their_entries(scheduler: Scheduler) -> None:
    hourly = IntervalSchedule.objects.get()
    PeriodicTask.objects.create(name="second", task="any", interval=hourly, last_run_at=LONG_AGO)
    scheduler.broker_is_away = True
    assert scheduler.work() == []
    scheduler.broker_is_away = False
    due_again()  # before the unsent ones could go
    assert [sorted(scheduler.work()) for _ in range(2)] == [["entry", "second"]] * 2
    assert set(PeriodicTask.objects.values_list("total_run_count", flat=True)) == {2}


@pytest.mark.parametrize("done", [False, True], ids=["was not carried out", "was carried out"])
def test_a_due_task_is_sent_once_when_the_database_failed_at_its_claim_which(
    scheduler: Scheduler, *, done: bool
) -> None:
    failure = DatabaseThatFails(_is_claim, done=done)
    with connections["default"].execute_wrapper(failure):
        assert scheduler.work() == []
    assert failure.failed == 1
    assert scheduler.work() == ["entry"]
    assert scheduler.work() == ["entry"]
    assert PeriodicTask.objects.get().total_run_count == 1


def test_a_change_is_seen_though_the_database_failed_when_it_was_read(scheduler: Scheduler) -> None:
    scheduler.work()
    due_again()
    failure = DatabaseThatFails(_is_reading)
    with connections["default"].execute_wrapper(failure):
        assert scheduler.work() == ["entry"]
    assert (failure.failed, scheduler.work()) == (1, ["entry", "entry"])


def test_an_outage_of_the_database_ends_for_beat_when_it_ends(scheduler: Scheduler) -> None:
    scheduler.work()
    due_again()
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    with psycopg.connect(**connections["default"].get_connection_params()) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
    assert scheduler.work() == ["entry", "entry"]


def test_a_due_task_that_somebody_else_claimed_is_read_again_and_the_next_is_sent(scheduler: Scheduler) -> None:
    scheduler._leadership.is_held()
    scheduler._read_schedule()
    PeriodicTask.objects.update(total_run_count=5)  # it leaves no word for beat
    assert scheduler.work() == []
    assert scheduler.work() == ["entry"]
    assert PeriodicTask.objects.get().total_run_count == 6


def test_who_leads_again_reads_again_what_happened_meanwhile(
    scheduler: Scheduler, other: Scheduler, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.work()
    scheduler._leadership.release()
    eventually(other._leadership.is_held, within=5)  # the server frees the lock when it sees the session's end
    other.work()
    assert scheduler.work() == ["entry"]  # a standby now
    PeriodicTask.objects.update(last_run_at=LONG_AGO, total_run_count=5)  # it leaves no word for beat
    other._leadership.release()
    assert eventually(lambda: len(scheduler.work()) == 2, within=5)
    assert "claim_failed" not in caplog.text


@pytest.mark.usefixtures("schedule")
def test_a_clock_that_was_set_back_delays_no_task(
    scheduler: Scheduler, clock: WallClock, caplog: pytest.LogCaptureFixture
) -> None:
    assert scheduler.work() == ["entry"]
    clock.set_back(hours=2)
    assert scheduler.work() == ["entry", "entry"]
    assert scheduler.work() == ["entry", "entry"]
    assert PeriodicTask.objects.get().last_run_at == clock.time
    told = [message for message in caplog.messages if "clock" in message]
    assert told == ["redrive.beat.clock_was_set_back seconds=7200.0: reading the schedule again"]


@pytest.mark.usefixtures("schedule")
def test_the_next_leader_sends_at_once_what_a_clock_ahead_of_its_own_sent(
    scheduler: Scheduler, other: Scheduler, clock: WallClock
) -> None:
    scheduler.work()
    scheduler._leadership.release()
    eventually(other._leadership.is_held, within=5)
    clock.set_back(minutes=20)
    assert other.work() == ["entry"]
    assert other.work() == ["entry"]
    assert PeriodicTask.objects.get().last_run_at == clock.time


def test_a_clock_that_runs_on_or_was_set_forward_repeats_no_task(scheduler: Scheduler, clock: WallClock) -> None:
    scheduler.work()
    clock.set_back(minutes=-59)
    assert scheduler.work() == ["entry"]
    clock.set_back(minutes=-1)
    assert scheduler.work() == ["entry", "entry"]


def test_an_error_nobody_foresaw_is_logged_and_outlived(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_entry: BeatValue) -> None:
        raise LookupError("nobody foresaw this")

    with monkeypatch.context() as broken:
        broken.setattr(scheduler, "reserve", fail)
        assert scheduler.tick() == 1.0
    assert "redrive.beat.schedule_check_failed" in caplog.messages
    assert scheduler.work() == ["entry"]


def test_an_entry_that_cannot_be_understood_takes_no_other_with_it(scheduler: Scheduler) -> None:
    hourly = IntervalSchedule.objects.get()
    PeriodicTask.objects.create(name="broken", task="any", interval=hourly, last_run_at=LONG_AGO)
    PeriodicTask.objects.filter(name="broken").update(headers="[]")
    assert scheduler.work() == ["entry"]


def test_an_entry_that_was_disabled_meanwhile_is_not_sent(scheduler: Scheduler) -> None:
    scheduler._leadership.is_held()
    scheduler._read_schedule()
    PeriodicTask.objects.update(enabled=False)  # as an UPDATE by hand: it leaves no word for beat
    assert scheduler.work() == []


def test_the_entries_of_the_settings_are_stored_by_whoever_leads(scheduler: Scheduler) -> None:
    scheduler.app.conf.beat_schedule = {"declared": {"task": "any", "schedule": 3600.0}}
    scheduler.work()
    assert list(PeriodicTask.objects.order_by("name").values_list("name", flat=True)) == ["declared", "entry"]


def test_a_scheduler_made_to_be_looked_at_takes_nothing() -> None:
    lazy = LeaderScheduler(app=Celery("beat", set_as_current=False, broker="memory://"), lazy=True)
    assert lazy._leadership._session is None
    lazy.close()


def test_closing_twice_gives_up_the_lead(scheduler: Scheduler, other: Scheduler) -> None:
    scheduler.work()
    scheduler.close()
    scheduler.close()
    other.work()
    assert other._leadership.is_held()
