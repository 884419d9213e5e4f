"""Grouping failures beside reports, releases and decisions: nobody waits for it, and it overwrites nothing newer."""

from __future__ import annotations

import pytest

from reprocessing.models import AuditEntry, FailureGroup, FailureGroupStatus
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.parking_lot import failure_group_review, failure_groups
from tests.race.abreast import behind, elsewhere
from tests.reprocessing.pipeline.bench import Workbench
from tests.reprocessing.pipeline.interposed import happens_before
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)


def report(message_id: str) -> record_reports.Recorded:
    said = {"message_id": message_id, "verdict": "failed", "type": "KeyError"}
    return record_reports.record_json([said], reporter=None, dice=lambda: 0.0)


def _captured() -> tuple[Workbench, str]:
    bench = Workbench()
    message = bench.bury("{}")
    bench.capture()
    return bench, message


def test_a_failure_reported_while_its_letter_is_grouped_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, message = _captured()
    with elsewhere() as begin:

        def reported() -> None:
            assert begin(lambda: report(message)).result(20).accepted == 1

        happens_before(monkeypatch, group_failures, "cause_of", reported, once=True)
        assert group_failures.assign_groups(batches=1) == 0
    assert group_failures.assign_groups(batches=1) == 1
    assert bench.letter().group == FailureGroup.objects.get(title="KeyError")


def test_a_report_waits_for_grouping_and_its_letter_is_grouped_again() -> None:
    bench, message = _captured()
    found = failure_groups.ungrouped_letters(limit=10)
    causes = {letter.id: group_failures.cause_of(letter) for letter in found}
    put, heard = behind(lambda: failure_groups.group_letters(found, causes), lambda: report(message))
    assert (put, heard.accepted, bench.letter().grouped_at) == (1, 1, None)
    group_failures.assign_groups(batches=1)
    assert bench.letter().group == FailureGroup.objects.get(title="KeyError")


def test_a_group_that_recurs_while_it_is_resolved_is_open_again() -> None:
    stock = Stock()
    group_failures.assign_groups(batches=1)
    group = FailureGroup.objects.get()

    def resolve() -> object:
        seen = {"seen_status": "open", "seen_note": ""}
        return failure_group_review.set_status(
            group.pk, status=FailureGroupStatus.RESOLVED, note="", by="ann", reason="done", **seen
        )

    def recur() -> int:
        stock.another_letter(captured_at=database_now())
        return group_failures.assign_groups(batches=1)

    settled, grouped = behind(resolve, recur)
    assert settled
    assert grouped == 1
    group.refresh_from_db()
    assert (group.status, group.status_by) == ("open", "the service")
    assert list(AuditEntry.objects.order_by("pk").values_list("by", flat=True)) == ["ann", "the service"]
