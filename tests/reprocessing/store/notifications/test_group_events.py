"""A failure group that is new, or opens again, is announced by whoever sorts, once, without a word of its messages."""

from __future__ import annotations

import pytest

from reprocessing.models import FailureGroup, FailureGroupStatus, Letter, NotificationRoute, Payload
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.store.notifications import notification_writer, sending
from reprocessing.store.notifications.outbox import SETTLING_SECONDS
from reprocessing.store.ordering import lanes
from tests.race.abreast import together
from tests.reprocessing.incidents import statements, told
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.parking_lot.test_failure_groups import parked, put, settle
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("letters", [50, pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.long])])
def test_many_letters_of_one_cause_are_one_new_group(letters: int) -> None:
    Stock().more_letters(letters)
    Payload.objects.all().delete()  # of the first one alone is one kept: all letters say as little
    while group_failures.assign_groups(batches=1):
        pass
    group = FailureGroup.objects.get()
    assert told("failure_group_new") == [(f"group:{group.pk}", 1, True)]


def test_the_text_about_a_group_has_its_title_and_current_count(clock: Clock) -> None:
    route = NotificationRoute.objects.create(destination="ops")
    stock = Stock()
    put("a")
    clock.advance(SETTLING_SECONDS)
    notification_writer.file_notifications()
    stock.more_letters(4)
    put("a")
    Letter.objects.filter(pk=stock.letter.pk).update(state="delivered", finished_at=lanes.database_now())
    owed = sending.pending_text(route.pk)
    assert owed is not None
    (told,) = owed.sections[0].examples
    assert told.facts == {"group_id": FailureGroup.objects.get().pk, "dlq": stock.dlq.name, "title": "a", "messages": 4}


def test_a_batch_of_many_new_groups_is_announced_with_one_statement() -> None:
    stock = Stock()
    stock.more_letters(29)
    with statements() as asked:
        put(*(f"{number}" for number in range(30)))
    assert len([statement for statement in asked if "INSERT INTO redrive_incident" in statement]) == 1
    assert len(told("failure_group_new")) == 30


def test_grouping_into_existing_groups_runs_five_statements() -> None:
    stock = Stock()
    put("a")
    stock.another_letter()
    with statements() as asked:
        put("a")
    assert len(asked) == 5  # what is unsorted, the lock, the group, the letters, what recurs


def test_concurrent_grouping_announces_a_group_once() -> None:
    Stock().more_letters(50)
    Payload.objects.all().delete()
    together([lambda: group_failures.assign_groups(batches=3)] * 3)
    assert [times for _, times, _ in told("failure_group_new")] == [1]


def test_a_resolved_group_that_recurs_is_announced_and_an_ignored_one_is_not() -> None:
    stock = Stock()
    put("a")
    settle(FailureGroup.objects.get(), FailureGroupStatus.RESOLVED)
    parked(stock)
    put("a")
    group = FailureGroup.objects.get()
    assert told("failure_group_reopened") == [(f"group:{group.pk}", 1, True)]
    settle(group, FailureGroupStatus.IGNORED)
    parked(stock)
    put("a")
    assert [times for _, times, _ in told("failure_group_reopened")] == [1]
