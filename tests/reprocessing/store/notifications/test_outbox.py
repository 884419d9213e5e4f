"""An event is written down once, in the transaction in which it happened."""

from __future__ import annotations

import pytest
from django.db import transaction

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.models import Incident
from reprocessing.store.notifications.outbox import announce, conclude
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

BREAKER = (EventKind.BREAKER_OPEN, "breaker:1")


def opened(why: str = "5 failures in a row", subject: str = "breaker:1") -> Event:
    return Event(EventKind.BREAKER_OPEN, subject, {"target": "orders", "breaker_id": 1, "why": why})


def grouped(dlq_id: int, messages: int) -> Event:
    return Event(EventKind.FAILURE_GROUP_NEW, "group:7", {"group_id": 7, "dlq": "orders-dlq", "messages": messages},
                 dlq_id=dlq_id)  # fmt: skip


def test_a_condition_that_is_announced_again_stays_one_incident_with_the_newest_facts() -> None:
    announce([opened("first")])
    announce([opened("second"), opened("third")])
    (incident,) = Incident.objects.all()
    assert (incident.facts["why"], incident.times, incident.ended_at) == ("third", 3, None)


def test_the_same_facts_again_write_nothing() -> None:
    announce([opened()])
    before = Incident.objects.get().changed_at
    announce([opened()])
    assert (Incident.objects.get().changed_at, Incident.objects.get().times) == (before, 1)


def test_each_time_of_a_moment_counts() -> None:
    stock = Stock()
    for _ in range(2):
        announce([grouped(stock.dlq.pk, 3)])
    (incident,) = Incident.objects.all()
    assert (incident.times, incident.dlq_id) == (2, stock.dlq.pk)


def test_what_was_rolled_back_did_not_happen() -> None:
    with transaction.atomic():
        announce([opened()])
        transaction.set_rollback(True)
    assert not Incident.objects.exists()


def test_a_condition_that_comes_back_after_its_end_is_a_new_incident() -> None:
    announce([opened()])
    conclude([BREAKER, (EventKind.BREAKER_OPEN, "breaker:2")])
    announce([opened()])
    assert [one.ended_at is None for one in Incident.objects.order_by("id")] == [False, True]


def test_what_is_over_before_anybody_was_told_is_told_to_nobody() -> None:
    announce([opened()])
    conclude([BREAKER])
    assert Incident.objects.get().due_at is None


def test_the_end_of_what_was_told_is_to_be_told() -> None:
    announce([opened()])
    Incident.objects.update(filed_at=lanes.clock(), due_at=None)
    conclude([BREAKER])
    incident = Incident.objects.get()
    assert incident.due_at == incident.ended_at


def test_an_incident_ends_after_the_clock_was_set_back_with_its_end_at_its_beginning(clock: Clock) -> None:
    announce([opened()])
    clock.advance(-300)
    conclude([BREAKER])
    incident = Incident.objects.get()
    assert incident.ended_at == incident.opened_at


def test_a_thousand_events_are_written_at_once() -> None:
    announce([opened(subject=f"breaker:{number}") for number in range(1_000)])
    conclude([(EventKind.BREAKER_OPEN, f"breaker:{number}") for number in range(1_000)])
    assert Incident.objects.filter(ended_at__isnull=False).count() == 1_000
