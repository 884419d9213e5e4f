"""Failure groups: letters of one cause, reopened when it recurs, settled by one person at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from reprocessing.domain.parking_lot.failure_fingerprint import Cause, CauseKind
from reprocessing.models import DeadLetter, GroupStatus, LetterGroup, Payload, Review
from reprocessing.pipeline.parking_lot import act_on_parked, group_failures
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.parking_lot import failure_groups
from tests.race.abreast import elsewhere, together
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def cause(name: str = "a") -> Cause:
    return Cause(CauseKind.BODY, name, name.encode() * 32)


def put(*names: str) -> int:
    """Everything unsorted is of these causes, in turn."""
    found = failure_groups.unsorted(limit=100)
    with transaction.atomic():
        return failure_groups.put(found, {letter.id: cause(names[n % len(names)]) for n, letter in enumerate(found)})


def parked(stock: Stock, **fields: object) -> DeadLetter:
    values = {"state": "parked", "reason": "stale", "finished_at": clock(), **fields}
    return stock.another_letter(**values)


def settle(group: LetterGroup, status: GroupStatus, *, by: str = "ann", note: str = "") -> bool:
    return failure_groups.settle(
        group.pk, status=status, note=note, seen_status=group.status, seen_note=group.note, by=by, reason="seen to"
    )


def test_letters_of_one_cause_in_a_dlq_are_one_group_with_its_first_and_last_time() -> None:
    stock, other = Stock(), Stock()
    stock.another_letter(died_at=NOW + HOUR)
    assert put("a") == 3
    stock.another_letter(died_at=NOW - HOUR)
    assert put("a") == 1
    assert list(LetterGroup.objects.order_by("dlq").values_list("dlq", "first_at", "last_at", "status")) == [
        (stock.dlq.pk, NOW - HOUR, NOW + HOUR, "open"),
        (other.dlq.pk, NOW, NOW, "open"),
    ]
    assert [count.n for count in counters.in_groups(list(LetterGroup.objects.values_list("pk", flat=True)))] == [3, 1]


def test_only_letters_at_rest_are_grouped_and_each_once() -> None:
    stock = Stock()
    DeadLetter.objects.filter(pk=stock.letter.pk).update(state="sending")
    stock.another_letter(state="captured", planned=False)
    captured = stock.another_letter(state="captured")
    assert put("a") == 1
    assert put("a") == 0
    assert list(DeadLetter.objects.exclude(group=None).values_list("pk", flat=True)) == [captured.pk]


def test_a_letter_that_was_parked_since_is_grouped_again() -> None:
    stock = Stock()
    put("a")
    DeadLetter.objects.filter(pk=stock.letter.pk).update(state="parked", reason="stale", finished_at=clock())
    assert put("b") == 1
    assert DeadLetter.objects.get().group == LetterGroup.objects.get(title="b")
    counted = counters.in_groups(list(LetterGroup.objects.values_list("pk", flat=True)))
    assert [(count.group_id, count.n) for count in counted] == [(LetterGroup.objects.get(title="b").pk, 1)]


def test_a_letter_that_changed_since_it_was_read_is_skipped() -> None:
    stock = Stock()
    found = failure_groups.unsorted(limit=10)
    DeadLetter.objects.filter(pk=stock.letter.pk).update(sorted_at=None)
    assert failure_groups.put(found, {letter.id: cause() for letter in found}) == 0
    assert DeadLetter.objects.get().group is None
    assert put("a") == 1


def test_a_locked_letter_is_skipped_without_waiting() -> None:
    stock = Stock()
    free = stock.another_letter()
    with transaction.atomic():
        DeadLetter.objects.select_for_update().get(pk=stock.letter.pk)
        with elsewhere() as begin:
            assert begin(lambda: put("a")).result(10) == 1
    assert list(DeadLetter.objects.exclude(group=None).values_list("pk", flat=True)) == [free.pk]


@pytest.mark.parametrize(
    ("status", "then"),
    [("resolved", "open"), ("ignored", "ignored"), ("acknowledged", "acknowledged"), ("open", "open")],
)
def test_only_a_resolved_group_is_reopened_when_it_recurs(status: str, then: str) -> None:
    stock = Stock()
    put("a")
    group = LetterGroup.objects.get()
    assert settle(group, GroupStatus(status))
    stock.another_letter(captured_at=clock())
    put("a")
    group.refresh_from_db()
    assert group.status == then
    told = list(Review.objects.filter(by="the service").values_list("act", "group", "dlq", "before", "after"))
    reopened = ("changed", group.pk, stock.dlq.pk, {"status": "resolved"}, {"status": "open"})
    assert told == ([reopened] if status == "resolved" else [])


def test_a_letter_from_before_the_resolution_does_not_reopen_the_group() -> None:
    stock = Stock()
    late = stock.another_letter(state="captured", planned=False, captured_at=clock())
    put("a")
    settle(LetterGroup.objects.get(), GroupStatus.RESOLVED)
    DeadLetter.objects.filter(pk=late.pk).update(planned=True)
    assert put("a") == 1
    assert LetterGroup.objects.get().status == "resolved"


def test_a_letter_that_failed_again_after_the_resolution_reopens_the_group() -> None:
    stock = Stock()
    DeadLetter.objects.filter(pk=stock.letter.pk).update(captured_at=NOW)
    put("a")
    settle(LetterGroup.objects.get(), GroupStatus.RESOLVED)
    DeadLetter.objects.filter(pk=stock.letter.pk).update(state="parked", reason="stale", finished_at=clock())
    put("a")
    assert LetterGroup.objects.get().status == "open"


def test_of_two_people_who_set_a_status_the_second_changes_nothing() -> None:
    Stock()
    put("a")
    seen = LetterGroup.objects.get()
    assert settle(seen, GroupStatus.ACKNOWLEDGED, note="I see to it")
    assert not settle(seen, GroupStatus.IGNORED, by="ben")
    now = LetterGroup.objects.get()
    assert (now.status, now.note, now.settled_by) == ("acknowledged", "I see to it", "ann")
    assert [(entry.act, entry.by, entry.reason, entry.before, entry.after) for entry in Review.objects.all()] == [
        ("changed", "ann", "seen to", {"status": "open", "note": ""}, {"status": "acknowledged", "note": "I see to it"})
    ]


def test_a_new_note_leaves_the_status_and_its_time() -> None:
    Stock()
    put("a")
    settle(LetterGroup.objects.get(), GroupStatus.IGNORED)
    since = LetterGroup.objects.get()
    assert settle(since, GroupStatus.IGNORED, by="ben", note="as agreed")
    now = LetterGroup.objects.get()
    assert (now.note, now.settled_by, now.settled_at) == ("as agreed", "ann", since.settled_at)
    assert list(Review.objects.order_by("pk").values_list("act", flat=True)) == ["changed", "noted"]


def test_a_release_is_recorded_only_on_the_groups_of_its_letters() -> None:
    stock = Stock()
    DeadLetter.objects.all().delete()
    first, _ = parked(stock), parked(stock)
    put("a", "b")
    before = clock()
    act_on_parked.release([first.pk], by="ann", reason="mended")
    assert list(LetterGroup.objects.filter(replayed_at__gt=before).values_list("title", flat=True)) == ["a"]
    assert LetterGroup.objects.get(title="b").replayed_at is None


def test_the_largest_groups_are_open_ones_with_the_most_letters_at_rest() -> None:
    stock = Stock()
    DeadLetter.objects.all().delete()
    for _ in range(6):
        parked(stock)
    put("a", "a", "b", "c", "c", "c")
    settle(LetterGroup.objects.get(title="a"), GroupStatus.ACKNOWLEDGED)
    counters.fold()
    DeadLetter.objects.filter(group__title="c").update(state="delivered", reason="")
    stock.another_letter(state="captured")
    put("b")
    assert [(group.title, group.n) for group in failure_groups.worst(5)] == [("b", 2)]


def test_concurrent_grouping_groups_each_letter_once_without_waiting() -> None:
    stock = Stock()
    stock.more_letters(200)
    done = sum(together([lambda: group_failures.letters(batches=5)] * 2))
    assert done == 201 == DeadLetter.objects.exclude(group=None).count()


def test_an_empty_group_is_deleted_unless_it_is_ignored() -> None:
    stock = Stock()
    DeadLetter.objects.all().delete()
    for _ in range(4):
        parked(stock)
    put("left", "gone", "ignored", "young")
    for title, status in (("gone", GroupStatus.RESOLVED), ("ignored", GroupStatus.IGNORED)):
        settle(LetterGroup.objects.get(title=title), status)
    LetterGroup.objects.filter(title="young").update(last_at=clock())
    Payload.objects.exclude(letter__group__title="left").delete()
    DeadLetter.objects.exclude(group__title="left").delete()
    assert retention.forget_groups(history=3600.0, limit=10) == 1
    assert set(LetterGroup.objects.values_list("title", flat=True)) == {"left", "ignored", "young"}
    assert list(Review.objects.values_list("group__title", flat=True)) == ["ignored"]
    assert retention.forget_groups(history=3600.0, limit=10) == 0
