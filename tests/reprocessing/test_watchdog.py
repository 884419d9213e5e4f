"""The watchdog: beat and workers that fall silent are told of once, by whoever is left, and concluded."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import OperationalError
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from pytest_django import Settings

from reprocessing import watchdog
from reprocessing.domain.notifications.heartbeat import Silence
from reprocessing.models import Heartbeat
from reprocessing.pipeline.notifications import silence
from reprocessing.store.notifications import heartbeats
from reprocessing.watchdog import Watchdog
from tests.race.abreast import together
from tests.reprocessing.incidents import is_open, told

pytestmark = pytest.mark.django_db(transaction=True)

EVERY = 15.0


class Fleet:
    """Beat and workers as the tables know them, and watchdogs that look at one time."""

    def __init__(self, watchdogs: int) -> None:
        every, _ = IntervalSchedule.objects.get_or_create(every=2, period="seconds")
        self.tick = PeriodicTask.objects.create(name="tick", task="reprocessing.tick", interval=every)
        self.delivered: list[float] = []
        self.now = 0.0
        self.dogs = [Watchdog("redrive-control") for _ in range(watchdogs)]

    def goes_on(self, looks: int, *, beat: bool = True, workers: bool = True) -> None:
        for _ in range(looks):
            if beat:
                self.tick.total_run_count += 1
                self.tick.save()
            if beat and workers:
                Heartbeat.record("redrive-control")
            self.now += EVERY
            together([partial(dog.look, every=EVERY, now=self.now) for dog in self.dogs])


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Fleet:
    settings.REDRIVE = {"ALERT_SILENT_FOR": 120}
    fleet = Fleet(watchdogs=3)
    monkeypatch.setattr(watchdog, "is_due", lambda _: True)
    monkeypatch.setattr(watchdog, "start_delivery", lambda _: fleet.delivered.append(fleet.now))
    return fleet


@pytest.mark.soak
def test_workers_that_fall_silent_are_one_incident_that_the_others_deliver_and_conclude(fleet: Fleet) -> None:
    fleet.goes_on(2)
    fleet.goes_on(7, workers=False)
    assert told("workers_silent") == []
    fleet.goes_on(5, workers=False)
    assert is_open("workers_silent") == {"workers:redrive-control": {"queue": "redrive-control", "seconds": 120}}
    assert told("workers_silent") == [("workers:redrive-control", 1, True)]
    assert len(fleet.delivered) == 5 * len(fleet.dogs)
    assert told("beat_silent") == []
    fleet.goes_on(1)
    assert told("workers_silent") == [("workers:redrive-control", 1, False)]


def test_workers_that_are_back_under_another_name_of_the_queue_end_the_incident_of_the_old_name(fleet: Fleet) -> None:
    silence.record_silence(Silence(beat=False, workers=True), control="old-control", silent_for=120)
    silence.record_silence(Silence(beat=False, workers=None), control="new-control", silent_for=120)
    assert told("workers_silent") == [("workers:old-control", 1, True)]
    silence.record_silence(Silence(beat=False, workers=False), control="new-control", silent_for=120)
    assert told("workers_silent") == [("workers:old-control", 1, False)]


@pytest.mark.soak
def test_a_beat_that_falls_silent_is_one_incident_and_says_nothing_of_the_workers(fleet: Fleet) -> None:
    fleet.goes_on(2)
    fleet.goes_on(12, beat=False)
    assert is_open("beat_silent") == {"beat": {"seconds": 120}}
    assert (told("beat_silent"), told("workers_silent")) == ([("beat", 1, True)], [])
    assert fleet.delivered
    fleet.goes_on(1)
    assert told("beat_silent") == [("beat", 1, False)]


def test_a_look_that_fails_ends_no_watchdog(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(_: str) -> None:
        raise OperationalError("the database of s3cret is away")

    with monkeypatch.context() as patch:
        patch.setattr(heartbeats, "read_signs", breaks)
        fleet.dogs[0].look(every=EVERY, now=0)
    assert "It is not known whether beat and workers are running: OperationalError." in caplog.text
    assert "s3cret" not in caplog.text
    fleet.goes_on(1)


def test_a_watchdog_looks_by_itself_until_it_is_stopped(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    dog = Watchdog("redrive-control")
    looked: list[float] = []

    def look(*, every: float, now: float) -> None:
        looked.append(every)
        dog.stop()

    monkeypatch.setattr(dog, "look", look)
    dog.start()
    dog.join(10)
    assert (looked, dog.is_alive()) == ([15.0], False)
