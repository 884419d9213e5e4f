from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from reprocessing.domain.parking_lot.failure_fingerprint import CauseKind, FailureCause
from reprocessing.models import AuditEntry, FailureGroup, FailureGroupStatus, Letter, Payload
from reprocessing.pipeline.parking_lot import act_on_parked, group_failures
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import failure_group_review, failure_groups
from tests.race.abreast import elsewhere, together
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def cause(name: str = "a") -> FailureCause:
    return FailureCause(CauseKind.BODY, name, name.encode() * 32)


def put(*names: str) -> int:
    found = failure_groups.ungrouped_letters(limit=100)
    with transaction.atomic():
        return failure_groups.group_letters(
            found, {letter.id: cause(names[n % len(names)]) for n, letter in enumerate(found)}
        )


def parked(stock: Stock, **fields: object) -> Letter:
    values = {"state": "parked", "reason": "stale", "finished_at": database_now(), **fields}
    return stock.another_letter(**values)


def settle(group: FailureGroup, status: FailureGroupStatus, *, by: str = "ann", note: str = "") -> bool:
    return failure_group_review.set_status(
        group.pk, status=status, note=note, seen_status=group.status, seen_note=group.note, by=by, reason="seen to"
    )


def test_letters_of_one_cause_in_a_dlq_are_one_group_with_its_first_and_last_time() -> None:
    stock, other = Stock(), Stock()
    stock.another_letter(first_sent_at=NOW + HOUR)
    assert put("a") == 3
    stock.another_letter(first_sent_at=NOW - HOUR)
    assert put("a") == 1
    assert list(FailureGroup.objects.order_by("dlq").values_list("dlq", "first_at", "last_at", "status")) == [
        (stock.dlq.pk, NOW - HOUR, NOW + HOUR, "open"),
        (other.dlq.pk, NOW, NOW, "open"),
    ]
    assert [
        count.n for count in counters.counts_in_groups(list(FailureGroup.objects.values_list("pk", flat=True)))
    ] == [3, 1]


def test_only_letters_at_rest_are_grouped_and_each_once() -> None:
    stock = Stock()
    Letter.objects.filter(pk=stock.letter.pk).update(state="sending")
    stock.another_letter(state="captured", planned=False)
    captured = stock.another_letter(state="captured")
    assert put("a") == 1
    assert put("a") == 0
    assert list(Letter.objects.exclude(group=None).values_list("pk", flat=True)) == [captured.pk]


def test_a_letter_that_was_parked_since_is_grouped_again() -> None:
    stock = Stock()
    put("a")
    Letter.objects.filter(pk=stock.letter.pk).update(state="parked", reason="stale", finished_at=database_now())
    assert put("b") == 1
    assert Letter.objects.get().group == FailureGroup.objects.get(title="b")
    counted = counters.counts_in_groups(list(FailureGroup.objects.values_list("pk", flat=True)))
    assert [(count.group_id, count.n) for count in counted] == [(FailureGroup.objects.get(title="b").pk, 1)]


def test_a_letter_that_changed_since_it_was_read_is_skipped() -> None:
    stock = Stock()
    found = failure_groups.ungrouped_letters(limit=10)
    Letter.objects.filter(pk=stock.letter.pk).update(grouped_at=None)
    assert failure_groups.group_letters(found, {letter.id: cause() for letter in found}) == 0
    assert Letter.objects.get().group is None
    assert put("a") == 1


def test_a_locked_letter_is_skipped_without_waiting() -> None:
    stock = Stock()
    free = stock.another_letter()
    with transaction.atomic():
        Letter.objects.select_for_update().get(pk=stock.letter.pk)
        with elsewhere() as begin:
            assert begin(lambda: put("a")).result(10) == 1
    assert list(Letter.objects.exclude(group=None).values_list("pk", flat=True)) == [free.pk]


@pytest.mark.parametrize(
    ("status", "then"),
    [("resolved", "open"), ("ignored", "ignored"), ("acknowledged", "acknowledged"), ("open", "open")],
)
def test_only_a_resolved_group_is_reopened_when_it_recurs(status: str, then: str) -> None:
    stock = Stock()
    put("a")
    group = FailureGroup.objects.get()
    assert settle(group, FailureGroupStatus(status))
    stock.another_letter(captured_at=database_now())
    put("a")
    group.refresh_from_db()
    assert group.status == then
    told = list(AuditEntry.objects.filter(by="the service").values_list("act", "group", "dlq", "before", "after"))
    reopened = ("changed", group.pk, stock.dlq.pk, {"status": "resolved"}, {"status": "open"})
    assert told == ([reopened] if status == "resolved" else [])


def test_a_letter_from_before_the_resolution_does_not_reopen_the_group() -> None:
    stock = Stock()
    late = stock.another_letter(state="captured", planned=False, captured_at=database_now())
    put("a")
    settle(FailureGroup.objects.get(), FailureGroupStatus.RESOLVED)
    Letter.objects.filter(pk=late.pk).update(planned=True)
    assert put("a") == 1
    assert FailureGroup.objects.get().status == "resolved"


def test_a_letter_that_failed_again_after_the_resolution_reopens_the_group() -> None:
    stock = Stock()
    Letter.objects.filter(pk=stock.letter.pk).update(captured_at=NOW)
    put("a")
    settle(FailureGroup.objects.get(), FailureGroupStatus.RESOLVED)
    Letter.objects.filter(pk=stock.letter.pk).update(state="parked", reason="stale", finished_at=database_now())
    put("a")
    assert FailureGroup.objects.get().status == "open"


def test_of_two_people_who_set_a_status_the_second_changes_nothing() -> None:
    Stock()
    put("a")
    seen = FailureGroup.objects.get()
    assert settle(seen, FailureGroupStatus.ACKNOWLEDGED, note="I see to it")
    assert not settle(seen, FailureGroupStatus.IGNORED, by="ben")
    now = FailureGroup.objects.get()
    assert (now.status, now.note, now.status_by) == ("acknowledged", "I see to it", "ann")
    assert [(entry.act, entry.by, entry.reason, entry.before, entry.after) for entry in AuditEntry.objects.all()] == [
        ("changed", "ann", "seen to", {"status": "open", "note": ""}, {"status": "acknowledged", "note": "I see to it"})
    ]


def test_a_new_note_leaves_the_status_and_its_time() -> None:
    Stock()
    put("a")
    settle(FailureGroup.objects.get(), FailureGroupStatus.IGNORED)
    since = FailureGroup.objects.get()
    assert settle(since, FailureGroupStatus.IGNORED, by="ben", note="as agreed")
    now = FailureGroup.objects.get()
    assert (now.note, now.status_by, now.settled_at) == ("as agreed", "ann", since.settled_at)
    assert list(AuditEntry.objects.order_by("pk").values_list("act", flat=True)) == ["changed", "noted"]


def test_a_release_is_recorded_only_on_the_groups_of_its_letters() -> None:
    stock = Stock()
    Letter.objects.all().delete()
    first, _ = parked(stock), parked(stock)
    put("a", "b")
    before = database_now()
    act_on_parked.release([first.pk], by="ann", reason="mended")
    assert list(FailureGroup.objects.filter(released_at__gt=before).values_list("title", flat=True)) == ["a"]
    assert FailureGroup.objects.get(title="b").released_at is None


def test_the_largest_groups_are_open_ones_with_the_most_letters_at_rest() -> None:
    stock = Stock()
    Letter.objects.all().delete()
    for _ in range(6):
        parked(stock)
    put("a", "a", "b", "c", "c", "c")
    settle(FailureGroup.objects.get(title="a"), FailureGroupStatus.ACKNOWLEDGED)
    counters.fold_deltas()
    Letter.objects.filter(group__title="c").update(state="delivered", reason="")
    stock.another_letter(state="captured")
    put("b")
    assert [(group.title, group.n) for group in failure_group_review.largest_groups(5)] == [("b", 2)]


@pytest.mark.soak
def test_concurrent_grouping_groups_each_letter_once_without_waiting() -> None:
    stock = Stock()
    stock.more_letters(200)
    done = sum(together([lambda: group_failures.assign_groups(batches=5)] * 2))
    assert done == 201 == Letter.objects.exclude(group=None).count()


def test_an_empty_group_is_deleted_unless_it_is_ignored() -> None:
    stock = Stock()
    Letter.objects.all().delete()
    for _ in range(4):
        parked(stock)
    put("left", "gone", "ignored", "young")
    for title, status in (("gone", FailureGroupStatus.RESOLVED), ("ignored", FailureGroupStatus.IGNORED)):
        settle(FailureGroup.objects.get(title=title), status)
    FailureGroup.objects.filter(title="young").update(last_at=database_now())
    Payload.objects.exclude(letter__group__title="left").delete()
    Letter.objects.exclude(group__title="left").delete()
    assert retention.delete_groups(history=3600.0, limit=10) == 1
    assert set(FailureGroup.objects.values_list("title", flat=True)) == {"left", "ignored", "young"}
    assert list(AuditEntry.objects.values_list("group__title", flat=True)) == ["ignored"]
    assert retention.delete_groups(history=3600.0, limit=10) == 0
