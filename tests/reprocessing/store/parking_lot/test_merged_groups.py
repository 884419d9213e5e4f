"""What a merge, a split and a new shape do to the letters, counts and times of groups."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from reprocessing.domain.parking_lot.failure_fingerprint import CauseKind, FailureCause
from reprocessing.models import FailureGroup, GroupHour, Letter, Payload
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import failure_group_pages, failure_groups, merged_groups
from tests.race.abreast import behind, elsewhere
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db(transaction=True)
HOUR = timedelta(hours=1)


def put(*keys: str) -> int:
    """Group the letters that have no group, each by the keys of its body."""
    found = failure_groups.ungrouped_letters(limit=100)
    causes = {
        letter.id: FailureCause(CauseKind.BODY, text, text.encode(), tuple(text.split()))
        for letter, text in zip(found, keys, strict=True)
    }
    with transaction.atomic():
        return failure_groups.group_letters(found, causes)


def group(title: str) -> FailureGroup:
    return FailureGroup.objects.get(title=title)


def merge(into: str, *others: str) -> str:
    return merged_groups.merge_groups(
        [group(other).pk for other in others], into=group(into).pk, by="ann", reason="the same"
    )


def test_new_messages_of_a_merged_group_go_to_the_group_that_it_is_merged_into() -> None:
    stock = Stock()
    stock.another_letter()
    put("a", "x")
    assert merge("a", "x") == ""
    stock.another_letter(first_sent_at=NOW + HOUR)
    put("x")
    [row] = failure_group_pages.group_page(limit=9)
    assert (row.title, row.messages, row.merged, row.last_at) == ("a", 3, 1, NOW + HOUR)
    assert [(count.group_id, count.n) for count in counters.counts_in_groups([group("a").pk])] == [(group("a").pk, 3)]


def test_a_recurrence_of_a_merged_group_opens_the_group_that_it_is_merged_into() -> None:
    stock = Stock()
    stock.another_letter()
    put("a", "x")
    merge("a", "x")
    now = database_now()
    FailureGroup.objects.update(status="resolved", settled_at=now, status_by="ann")
    stock.another_letter(captured_at=now + HOUR)
    put("x")
    assert (group("a").status, group("x").status) == ("open", "resolved")


def test_a_similar_shape_joins_a_group_and_stays_apart_once_a_person_has_split_it_off() -> None:
    stock = Stock()
    put("a b c d")
    stock.another_letter()
    put("a b c")
    assert group("a b c").merged_into == group("a b c d")
    assert merged_groups.split_group(group("a b c d").pk, [group("a b c").pk], by="ann", reason="other") == 1
    stock.another_letter()
    put("a b c")
    assert group("a b c").merged_into is None
    assert {row.title: row.messages for row in failure_group_pages.group_page(limit=9)} == {"a b c d": 1, "a b c": 2}


def test_shapes_of_two_dlqs_are_not_compared() -> None:
    Stock(), Stock()
    put("a b c d", "a b c")
    assert not FailureGroup.objects.exclude(merged_into=None).exists()


@pytest.mark.soak
def test_two_workers_that_see_similar_new_shapes_make_one_group() -> None:
    stock = Stock()
    stock.another_letter()
    first, second = failure_groups.ungrouped_letters(limit=10)
    causes = {
        letter.id: FailureCause(CauseKind.BODY, text, text.encode(), tuple(text.split()))
        for letter, text in ((first, "a b c d"), (second, "a b c"))
    }
    with elsewhere() as begin:

        def another() -> int:
            with transaction.atomic():
                return failure_groups.group_letters([second], causes)

        with transaction.atomic():
            failure_groups.group_letters([first], causes)
            waiting = begin(another)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
        assert waiting.result(10) == 1
    assert group("a b c").merged_into == group("a b c d")


def test_a_new_shape_joins_no_group_that_a_person_merges_at_the_same_time() -> None:
    stock = Stock()
    stock.another_letter()
    put("a b c d", "x y")
    stock.another_letter()
    assert behind(lambda: merge("x y", "a b c d"), lambda: put("a b c")) == ("", 1)
    found = {row.title: (row.messages, row.merged) for row in failure_group_pages.group_page(limit=9)}
    assert found == {"x y": (2, 1), "a b c": (1, 0)}


def test_of_two_merges_at_once_none_merges_a_group_into_a_merged_one() -> None:
    stock = Stock()
    for _ in range(2):
        stock.another_letter()
    put("a", "k", "x")
    assert behind(lambda: merge("k", "a"), lambda: merge("x", "k")) == ("", "")
    assert {group("a").merged_into, group("k").merged_into} == {group("x")}
    stock.another_letter()
    put("z")
    first, second = behind(lambda: merge("z", "x"), lambda: merge("x", "z"))
    assert (first, second.split(".")[0]) == ("", "Another person merged or deleted one of the groups")
    assert set(FailureGroup.objects.exclude(merged_into=None).values_list("merged_into__title", flat=True)) == {"z"}


def test_letters_are_counted_by_the_hour_in_which_they_were_sent_and_once() -> None:
    stock = Stock()
    stock.another_letter(first_sent_at=NOW - HOUR)
    put("a", "a")
    Letter.objects.filter(pk=stock.letter.pk).update(grouped_at=None)
    put("x")
    hour = NOW.replace(minute=0, second=0, microsecond=0)
    assert set(GroupHour.objects.values_list("group_id", "hour", "n")) == {
        (group("a").pk, hour, 0), (group("a").pk, hour - HOUR, 1), (group("x").pk, hour, 1)
    }  # fmt: skip


def test_hours_older_than_the_longest_trend_are_deleted() -> None:
    for days in (1, 14, 16):
        GroupHour.objects.create(group_id=1, hour=database_now() - timedelta(days=days), n=days)
    assert [counters.delete_old_group_hours(limit=1) for _ in range(2)] == [1, 0]
    assert sorted(GroupHour.objects.values_list("n", flat=True)) == [1, 14]


def test_what_a_person_merged_or_renamed_is_kept_when_it_is_empty() -> None:
    stock = Stock()
    for _ in range(4):
        stock.another_letter(state="captured")
    put("a", "x", "named", "k l m n", "k l m")
    merge("a", "x")
    merged_groups.rename_group(group("named").pk, "Cities", seen="", by="ann", reason="plain words")
    Payload.objects.all().delete()
    Letter.objects.all().delete()
    for _ in range(2):  # a group that leads goes after those that joined it
        retention.delete_groups(history=3600.0, limit=10)
    assert set(FailureGroup.objects.values_list("title", flat=True)) == {"a", "x", "named"}


def test_no_group_is_merged_into_itself() -> None:
    Stock()
    put("a")
    with pytest.raises(IntegrityError, match="group_is_not_merged_into_itself"), transaction.atomic():
        FailureGroup.objects.update(merged_into=group("a"))
