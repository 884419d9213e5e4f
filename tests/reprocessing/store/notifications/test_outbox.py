"""An event is written down once, in the transaction in which it happened."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.models import Incident, Notification, NotificationRoute
from reprocessing.store import rows
from reprocessing.store.notifications import notification_writer
from reprocessing.store.notifications.outbox import RESUME_WITHIN, SETTLING_SECONDS, announce, conclude
from reprocessing.store.ordering import lanes
from tests.race.abreast import together
from tests.reprocessing.domain.notifications.events import event
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

BREAKER = (EventKind.BREAKER_OPEN, "breaker:1")


def opened(why: str = "5 failures in a row", subject: str = "breaker:1") -> Event:
    return Event(EventKind.BREAKER_OPEN, subject, {"target": "orders", "breaker_id": 1, "why": why})


def test_a_condition_that_is_announced_again_stays_one_incident_with_the_newest_facts() -> None:
    announce([opened("first")])
    announce([opened("second"), opened("third")])
    (incident,) = Incident.objects.all()
    assert (incident.facts["why"], incident.times, incident.ended_at) == ("third", 3, None)


def test_the_same_facts_again_write_nothing() -> None:
    announce([opened()])
    before = Incident.objects.values().get()
    announce([opened()])
    assert Incident.objects.values().get() == before


def test_each_announcement_of_a_moment_counts() -> None:
    stock = Stock()
    facts: dict[str, str | int | float] = {"group_id": 7, "dlq": "orders-dlq", "title": "KeyError", "messages": 3}
    for _ in range(2):
        announce([Event(EventKind.FAILURE_GROUP_NEW, "group:7", facts, dlq_id=stock.dlq.pk)])
    (incident,) = Incident.objects.all()
    assert (incident.times, incident.dlq_id) == (2, stock.dlq.pk)


def test_an_announcement_that_is_rolled_back_is_not_stored() -> None:
    with transaction.atomic():
        announce([opened()])
        transaction.set_rollback(True)
    assert not Incident.objects.exists()


def filed() -> list[str]:
    notification_writer.file_notifications()
    return list(Notification.objects.order_by("id").values_list("phase", flat=True))


def test_a_condition_that_comes_back_a_minute_after_its_end_is_a_new_incident(clock: Clock) -> None:
    announce([opened()])
    conclude([BREAKER, (EventKind.BREAKER_OPEN, "breaker:2")])
    clock.advance(RESUME_WITHIN)
    announce([opened()])
    assert [incident.ended_at is None for incident in Incident.objects.order_by("id")] == [False, True]


def test_a_condition_that_comes_back_sooner_is_the_same_incident_with_the_newest_facts() -> None:
    announce([opened("first")])
    conclude([BREAKER])
    together([lambda: rows.in_transaction(lambda: announce([opened("second")]))] * 4)
    (incident,) = Incident.objects.all()
    assert (incident.facts["why"], incident.times, incident.ended_at) == ("second", 2, None)


def test_a_condition_that_cannot_flap_and_recurs_is_a_new_incident() -> None:
    for _ in range(2):
        announce([event(EventKind.RUN_STOPPED, "run:1")])
        conclude([(EventKind.RUN_STOPPED, "run:1")])
    assert Incident.objects.count() == 2


@pytest.mark.parametrize(("lasts", "pauses"), [(9, 1), (1, 9)])
def test_a_condition_that_flaps_for_over_10_seconds_is_notified_once_and_its_end_once(
    clock: Clock, lasts: int, pauses: int
) -> None:
    NotificationRoute.objects.create(destination="ops")
    for _ in range(20):
        announce([opened()])
        clock.advance(lasts)
        notification_writer.file_notifications()
        conclude([BREAKER])
        clock.advance(pauses)
        notification_writer.file_notifications()
    assert filed() == ["opened"]
    clock.advance(RESUME_WITHIN)
    assert (filed(), Incident.objects.get().times) == (["opened", "ended"], 20)


def test_a_condition_that_flaps_for_a_day_gets_a_reminder(clock: Clock) -> None:
    NotificationRoute.objects.create(destination="ops")
    announce([opened()])
    clock.advance(SETTLING_SECONDS)
    assert filed() == ["opened"]
    Notification.objects.update(sent_at=lanes.database_now())
    clock.advance(86_390)
    conclude([BREAKER])
    announce([opened()])
    assert filed() == ["opened"]
    clock.advance(10)
    assert filed() == ["opened", "reminded"]


def test_a_condition_that_outlasted_its_settling_time_is_notified_though_it_ended(clock: Clock) -> None:
    NotificationRoute.objects.create(destination="ops")
    announce([opened()])
    clock.advance(SETTLING_SECONDS)
    conclude([BREAKER])
    assert filed() == ["opened"]
    clock.advance(RESUME_WITHIN)
    assert filed() == ["opened", "ended"]


def test_a_condition_that_ends_within_its_settling_time_is_not_notified() -> None:
    announce([opened()])
    conclude([BREAKER])
    assert Incident.objects.get().due_at is None


@pytest.mark.parametrize(("kind", "after"), [(EventKind.BREAKER_OPEN, RESUME_WITHIN), (EventKind.RUN_STOPPED, 0)])
def test_the_end_of_a_notified_incident_is_due_when_it_cannot_resume(kind: EventKind, after: float) -> None:
    announce([event(kind, "one")])
    Incident.objects.update(filed_at=lanes.database_now(), due_at=None)
    conclude([(kind, "one")])
    incident = Incident.objects.get()
    assert incident.due_at is not None
    assert incident.ended_at is not None
    assert incident.due_at - incident.ended_at == timedelta(seconds=after)


def test_an_incident_does_not_end_before_its_beginning_when_the_clock_is_set_back(clock: Clock) -> None:
    announce([opened()])
    clock.advance(-300)
    conclude([BREAKER])
    incident = Incident.objects.get()
    assert incident.ended_at == incident.opened_at


def test_a_thousand_events_are_written_at_once() -> None:
    announce([opened(subject=f"breaker:{number}") for number in range(1_000)])
    conclude([(EventKind.BREAKER_OPEN, f"breaker:{number}") for number in range(1_000)])
    assert Incident.objects.filter(ended_at__isnull=False).count() == 1_000
