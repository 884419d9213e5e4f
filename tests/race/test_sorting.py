"""Whoever sorts waits for nobody, and writes nothing that another has learned better meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import transaction

from reprocessing.models import DeadLetter, GroupStatus, LetterGroup, Review
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import act_on_parked, group_failures
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.parking_lot import failure_groups
from tests.race.abreast import elsewhere, together, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)


def report(message_id: str) -> record_reports.Heard:
    said = {"message_id": message_id, "verdict": "failed", "type": "KeyError"}
    return record_reports.told([said], reporter=None, dice=lambda: 0.0)


def test_a_failure_that_is_reported_while_its_letter_is_sorted_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    message = bench.bury("{}")
    bench.capture()
    find = group_failures.cause_of
    with elsewhere() as begin:

        def meanwhile(one: failure_groups.Unsorted) -> object:
            monkeypatch.undo()
            assert begin(lambda: report(message)).result(20).accepted == 1
            return find(one)

        monkeypatch.setattr(group_failures, "cause_of", meanwhile)
        assert group_failures.letters(batches=1) == 0
    assert group_failures.letters(batches=1) == 1
    assert bench.letter().group == LetterGroup.objects.get(title="KeyError")


def test_a_report_waits_for_who_sorts_and_its_letter_is_sorted_anew() -> None:
    bench = Workbench()
    message = bench.bury("{}")
    bench.capture()
    found = failure_groups.unsorted(limit=10)
    with elsewhere() as begin:
        with transaction.atomic():
            assert failure_groups.put(found, {one.id: group_failures.cause_of(one) for one in found}) == 1
            reporting = begin(lambda: report(message))
            waits_for_us()
        assert reporting.result(20).accepted == 1
    assert bench.letter().sorted_at is None
    group_failures.letters(batches=1)
    assert bench.letter().group == LetterGroup.objects.get(title="KeyError")


def test_who_resolves_a_group_at_the_moment_it_recurs_sees_it_open_again() -> None:
    stock = Stock()
    group_failures.letters(batches=1)
    group = LetterGroup.objects.get()

    def recurs() -> int:
        stock.another_letter(captured_at=clock())
        return group_failures.letters(batches=1)

    seen = {"seen_status": "open", "seen_note": ""}
    with elsewhere() as begin:
        with transaction.atomic():
            assert failure_groups.settle(
                group.pk, status=GroupStatus.RESOLVED, note="", by="ann", reason="done", **seen
            )
            sorting = begin(recurs)
            waits_for_us()
        assert sorting.result(20) == 1
    group.refresh_from_db()
    assert (group.status, group.settled_by) == ("open", "the service")
    assert list(Review.objects.order_by("pk").values_list("by", flat=True)) == ["ann", "the service"]


@pytest.mark.soak
def test_sorting_releasing_reporting_and_settling_at_once_end_with_every_letter_sorted_once() -> None:
    stock = Stock()
    letters = [
        stock.another_letter(state="parked", reason=("stale", "expired")[n % 2], finished_at=clock())
        for n in range(60)
    ]  # fmt: skip
    ids, messages = [one.pk for one in letters], [one.message_id for one in letters]
    over = threading.Event()

    def sorting() -> None:
        while not over.is_set():
            group_failures.letters(batches=5)

    def once(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            finally:
                running.release()

        return run

    running = threading.Semaphore(0)
    releasing = once(lambda: [act_on_parked.release(ids[n : n + 10], by="ann", reason="x") for n in range(0, 40, 10)])
    reporting = once(lambda: [report(one) for one in messages[::3]])

    def ending() -> None:
        for _ in range(2):
            assert running.acquire(timeout=25)
        over.set()

    together([sorting, sorting, releasing, reporting, ending])
    group_failures.letters(batches=5)
    assert failure_groups.unsorted(limit=10) == []
    told = dict(DeadLetter.objects.filter(pk__in=ids).values_list("pk", "group__title"))
    assert {told[pk] for pk in ids[::3]} == {"KeyError"}
    assert LetterGroup.objects.get(title="KeyError").letters.count() == 20
