from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import RFC_4122

import pytest
from django.db import IntegrityError, connection, transaction

from reprocessing import models
from tests.reprocessing.store.stock import NOW, Stock

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)
WRITTEN: dict[str, Any] = {
    "taken_at": NOW, "deadline": NOW, "sent_message_id": "id", "outcome": "absent", "detail": "d", "closed_at": NOW,
    "returned_at": NOW, "counts_as_failure": True,
}  # fmt: skip
REWRITTEN: dict[str, Any] = {
    "no": 2, "epoch": 1, "fence": 2, "opened_at": LATER, "taken_at": LATER, "deadline": LATER, "sent_message_id": "x",
    "outcome": "unknown", "detail": "x", "closed_at": LATER, "returned_at": LATER, "holds_lane": True,
    "breaker_epoch": 8, "counts_as_failure": False,
}  # fmt: skip
KEPT = ("letter", "lane", "target", "run", "breaker", "wave")


def _closed(stock: Stock) -> models.Attempt:
    wave = models.Wave.objects.create(run=stock.run, no=1)
    breaker = stock.target.breakers.get()
    return stock.attempt(run=stock.run, breaker=breaker, breaker_epoch=7, spared=True, wave=wave, **WRITTEN)


@pytest.mark.parametrize("column", REWRITTEN)
def test_a_column_of_an_attempt_is_written_once(column: str) -> None:
    attempt = _closed(Stock())
    with pytest.raises(IntegrityError, match="history is not rewritten"), transaction.atomic():
        models.Attempt.objects.filter(pk=attempt.pk).update(**{column: REWRITTEN[column]})


@pytest.mark.parametrize("column", KEPT)
def test_the_relations_of_an_attempt_never_change(column: str) -> None:
    attempt, other = _closed(Stock()), Stock()
    others = {column: getattr(other, column, None)} | {
        "breaker": other.target.breakers.get(), "wave": models.Wave.objects.create(run=other.run, no=1)
    }  # fmt: skip
    for value in (others[column], None):
        with pytest.raises(IntegrityError), transaction.atomic():
            models.Attempt.objects.filter(pk=attempt.pk).update(**{column: value})


@pytest.mark.parametrize("column", sorted(WRITTEN))
def test_a_written_column_of_an_attempt_is_never_cleared(column: str) -> None:
    attempt = _closed(Stock())
    with pytest.raises(IntegrityError), transaction.atomic():
        models.Attempt.objects.filter(pk=attempt.pk).update(**{column: None})


def test_an_attempt_may_become_a_failure_but_not_unknown() -> None:
    attempt = Stock().attempt(counts_as_failure=False)
    mine = models.Attempt.objects.filter(pk=attempt.pk)
    with pytest.raises(IntegrityError, match="history is not rewritten"), transaction.atomic():
        mine.update(counts_as_failure=None)
    assert mine.update(counts_as_failure=True) == 1


def test_every_column_of_an_attempt_is_guarded() -> None:
    columns = {field.name for field in models.Attempt._meta.concrete_fields}
    assert columns == {"id", "spared", *KEPT} | set(REWRITTEN)


def test_a_target_gets_its_breaker() -> None:
    stock = Stock()
    breaker = models.Breaker.objects.get(target=stock.target)
    assert (breaker.rate_class, breaker.state, breaker.epoch, breaker.retry_at) == (None, "closed", 0, None)
    assert (breaker.ramp, breaker.ramp_from) == (0.1, 0.1)


@pytest.mark.parametrize("column", ["body", "attributes", "system"])
def test_the_bytes_of_a_letter_never_change(column: str) -> None:
    stock = Stock()
    with pytest.raises(IntegrityError, match="captured bytes never change"), transaction.atomic():
        models.Payload.objects.filter(pk=stock.letter.pk).update(**{column: {} if column == "system" else b"other"})


def test_fences_rise() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('redrive_fence'), nextval('redrive_fence')")
        first, second = cursor.fetchone()
    assert first < second


def test_redrive_ids_are_uuids_that_rise_with_time() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT redrive_now(), redrive_new_uuid(), redrive_new_uuid(), redrive_now()")
        before, one, other, after = cursor.fetchone()
    assert (one.version, one.variant, one == other) == (7, RFC_4122, False)
    earliest, latest = (int(at.timestamp() * 1000) for at in (before, after))
    assert all(earliest - 1 <= uuid.int >> 80 <= latest + 1 for uuid in (one, other))  # floats round


def test_parking_a_letter_and_settling_it_are_each_announced_to_the_parking_queue() -> None:
    stock = Stock()
    models.DeadLetterQueue.objects.update(parking_url="http://127.0.0.1:9/0/parking")
    letter = models.Letter.objects.filter(pk=stock.letter.pk)
    letter.update(state="parked", reason="refused", finished_at=NOW)
    letter.update(detail="looked at")
    letter.update(state="discarded", reason="")
    assert list(models.ParkingQueueMessage.objects.order_by("id").values_list("letter", "dlq", "parking_event")) == [
        (stock.letter.pk, stock.dlq.pk, "parked"),
        (stock.letter.pk, stock.dlq.pk, "left"),
    ]


def test_without_a_parking_queue_nothing_is_announced() -> None:
    stock = Stock()
    models.Letter.objects.filter(pk=stock.letter.pk).update(state="parked", reason="refused", finished_at=NOW)
    assert models.ParkingQueueMessage.objects.count() == 0


def _review(stock: Stock) -> models.AuditEntry:
    return models.AuditEntry.objects.create(
        act=models.AuditAct.RELEASED, letter=stock.letter, dlq=stock.dlq, by="ann", reason="mended"
    )


@pytest.mark.parametrize(
    "fields", [{"by": "bob"}, {"reason": "x"}, {"act": "discarded"}, {"at": NOW}, {"letter": None}, {"dlq_id": -1}]
)
def test_an_audit_log_entry_never_changes(fields: dict[str, Any]) -> None:
    review = _review(Stock())
    with pytest.raises(IntegrityError, match="is written once"), transaction.atomic():
        models.AuditEntry.objects.filter(pk=review.pk).update(**fields)
    with pytest.raises(IntegrityError, match="is written once"), transaction.atomic():
        models.AuditEntry.objects.filter(pk=review.pk).delete()


def test_a_review_outlives_the_rule_that_it_names() -> None:
    rule = models.Rule.objects.create(name="rule", action="replay", created_by="ann")
    review = models.AuditEntry.objects.create(act=models.AuditAct.ADDED, rule=rule, by="ann", reason="a test")
    rule.delete()
    review.refresh_from_db()
    assert (review.rule, review.by) == (None, "ann")


def test_an_edit_never_changes() -> None:
    stock = Stock()
    revision = models.Revision.objects.create(
        letter=stock.letter, no=1, body=b"{}", attributes=b"", body_hash=b"h", previous_body_hash=b"g", size=2,
        by="ann",
        reason="a typo",
    )  # fmt: skip
    with pytest.raises(IntegrityError, match="never changes"), transaction.atomic():
        models.Revision.objects.filter(pk=revision.pk).update(body=b"[]")
