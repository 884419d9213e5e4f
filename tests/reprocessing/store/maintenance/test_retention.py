"""Retention deletes letters past their history with all their rows, and nothing that is still needed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.apps import apps
from django.db import connection

from reprocessing.models import (
    Attempt,
    AuditEntry,
    BulkAction,
    Claim,
    DeadLetterQueue,
    DlqCopy,
    Lane,
    Letter,
    ParkingQueueMessage,
    Payload,
    Wave,
)
from reprocessing.store.maintenance import retention
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import Clock
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400
HISTORY = 90 * DAY
RETENTION = 4 * DAY  # what a dlq has by default


def _finished(stock: Stock, **fields: object) -> Letter:
    return stock.another_letter(**{"state": "delivered", "finished_at": lanes.database_now(), **fields})


def _copy(letter: Letter, state: str = "gone", **fields: object) -> DlqCopy:
    gone = {"gone_at": lanes.database_now()} if state == "gone" else {}
    values = {"message_id": letter.message_id, "handle": "h", "visible_until": lanes.database_now(), **gone, **fields}
    return DlqCopy.objects.create(dlq=letter.dlq, letter=letter, state=state, **values)


def _attempt(stock: Stock, letter: Letter, **fields: object) -> Attempt:
    """An attempt that was closed now, unless the fields say otherwise."""
    now = lanes.database_now()
    values = {"run": stock.run, "outcome": "unknown", "closed_at": now, "opened_at": now}
    return stock.attempt(letter, **{**values, **fields})


def _single(stock: Stock, key: bytes = b"s") -> Lane:
    return Lane.objects.create(dlq=stock.dlq, source=stock.source, key_hash=key * 32, single=True)


def _forget(history: float = HISTORY, limit: int = 100) -> int:
    dlqs = DeadLetterQueue.objects.values_list("pk", flat=True)
    return sum(len(retention.delete_letters(dlq, history=history, limit=limit)) for dlq in dlqs)


def _is_there(letter: Letter) -> bool:
    return Letter.objects.filter(pk=letter.pk).exists()


@pytest.mark.parametrize("state", ["delivered", "discarded"])
def test_a_finished_letter_is_deleted_after_its_history_and_not_before(state: str, clock: Clock) -> None:
    letter = _finished(Stock(), state=state)
    clock.advance(HISTORY - 60)
    assert (_forget(), _is_there(letter)) == (0, True)
    clock.advance(61)
    assert (_forget(), _is_there(letter)) == (1, False)


@pytest.mark.parametrize("state", ["captured", "waiting", "sending", "awaiting", "parked"])
def test_an_unfinished_or_parked_letter_is_never_deleted(state: str, clock: Clock) -> None:
    parked = {"reason": "refused", "finished_at": lanes.database_now()} if state == "parked" else {}
    letter = Stock().another_letter(state=state, **parked)
    clock.advance(10 * HISTORY)
    assert (_forget(), _is_there(letter)) == (0, True)


def test_a_copy_is_known_for_the_retention_and_a_day_after_its_deletion(clock: Clock) -> None:
    letter = _finished(Stock())
    _copy(letter)
    clock.advance(RETENTION + DAY - 60)
    assert (_forget(history=DAY), _is_there(letter)) == (0, True)
    clock.advance(61)
    assert (_forget(history=DAY), _is_there(letter)) == (1, False)


def test_the_copy_that_was_deleted_last_decides(clock: Clock) -> None:
    letter = _finished(Stock())
    _copy(letter)
    clock.advance(RETENTION)
    _copy(letter, message_id="it came back")
    clock.advance(2 * DAY)
    assert (_forget(history=DAY), _is_there(letter)) == (0, True)
    clock.advance(RETENTION)
    assert (_forget(history=DAY), _is_there(letter)) == (1, False)


@pytest.mark.parametrize("state", ["held", "delete"])
def test_a_copy_that_was_not_deleted_expires_in_the_end(state: str, clock: Clock) -> None:
    letter = _finished(Stock())
    _copy(letter, state, visible_until=lanes.database_now() + timedelta(seconds=120))
    clock.advance(RETENTION + DAY + 60)
    assert (_forget(history=DAY), _is_there(letter)) == (0, True)
    clock.advance(61)
    assert (_forget(history=DAY), _is_there(letter)) == (1, False)


def test_all_rows_of_a_letter_are_deleted_with_it(clock: Clock) -> None:
    stock = Stock()
    letter = _finished(stock)
    _copy(letter)
    _copy(letter, message_id="it came back", attempt=_attempt(stock, letter, outcome="returned"))
    Claim.objects.create(target=stock.target, key_space="1", key_hash=b"k", letter=letter, body_hash=b"b")
    AuditEntry.objects.create(act="released", letter=letter, dlq=stock.dlq, by="anna", reason="mended")
    ParkingQueueMessage.objects.create(letter=letter, dlq=letter.dlq, parking_event="parked")
    clock.advance(HISTORY + 1)
    assert _forget() == 1
    there = [
        model.__name__ for model in (Attempt, DlqCopy, Claim, AuditEntry, ParkingQueueMessage) if model.objects.exists()
    ]
    assert (there, list(Letter.objects.values_list("pk", flat=True))) == ([], [stock.letter.pk])
    assert list(Payload.objects.values_list("letter", flat=True)) == [stock.letter.pk]


def test_every_table_that_references_a_letter_is_deleted_from() -> None:
    hang = {
        model._meta.db_table
        for model in apps.get_app_config("reprocessing").get_models()
        for field in model._meta.concrete_fields
        if field.related_model is Letter and not model._meta.proxy and model is not Letter
    }
    assert hang == {statement.split()[2] for statement in retention._FORGET} - {"redrive_letter"}


def test_a_letter_outlives_its_duplicates(clock: Clock) -> None:
    stock = Stock()
    letter = _finished(stock)
    duplicate = _finished(stock, state="duplicate", duplicate_of=letter)
    clock.advance(DAY)
    late = _finished(stock, state="duplicate", duplicate_of=letter)
    clock.advance(HISTORY - DAY + 1)
    assert (_forget(), _is_there(letter), _is_there(duplicate), _is_there(late)) == (1, True, False, True)
    clock.advance(DAY)
    assert [_forget() for _ in range(3)] == [1, 1, 0]
    assert not _is_there(letter)


def test_a_letter_is_not_deleted_while_its_lane_waits_for_it_to_come_back(clock: Clock) -> None:
    stock = Stock()
    letter = _finished(stock, state="discarded", lane=stock.lane)
    attempt = _attempt(stock, letter, holds_lane=True, outcome=None, closed_at=None, deadline=lanes.database_now())
    clock.advance(HISTORY + 1)
    assert (_forget(), _is_there(letter)) == (0, True)
    Attempt.objects.filter(pk=attempt.pk).update(closed_at=lanes.database_now(), outcome="unknown", holds_lane=False)
    assert (_forget(), _is_there(letter)) == (1, False)


def test_a_letter_is_not_deleted_while_its_target_may_hold_a_copy(clock: Clock) -> None:
    stock = Stock()
    letter = _finished(stock, state="discarded", lane=stock.lane)
    _attempt(stock, letter, deadline=lanes.database_now() + timedelta(seconds=120))
    clock.advance(60)
    assert (_forget(history=30), _is_there(letter)) == (0, True)
    clock.advance(61)
    assert (_forget(history=30), _is_there(letter)) == (1, False)


def test_the_lane_of_a_key_stays_and_a_lane_of_one_letter_is_deleted(clock: Clock) -> None:
    stock = Stock()
    single, bystander = _single(stock), _single(stock, b"u")
    shared = Lane.objects.create(dlq=stock.dlq, source=stock.source, key_hash=b"t" * 32, highest_sent_sequence="7")
    _finished(stock, lane=single)
    _finished(stock, lane=shared)
    clock.advance(HISTORY + 1)
    assert _forget() == 2
    assert set(Lane.objects.values_list("pk", flat=True)) == {stock.lane.pk, shared.pk, bystander.pk}


def test_a_lane_stays_while_another_letter_is_on_it(clock: Clock) -> None:
    stock = Stock()
    single = _single(stock)
    _finished(stock, lane=single)
    _finished(stock, lane=single, state="parked", reason="refused")
    clock.advance(HISTORY + 1)
    assert (_forget(), Lane.objects.filter(pk=single.pk).exists()) == (1, True)


def test_letters_are_deleted_in_batches_the_oldest_first(clock: Clock) -> None:
    stock = Stock()
    letters = [_finished(stock) for _ in range(3)]
    clock.advance(HISTORY + 1)
    assert [(_forget(limit=2), [_is_there(letter) for letter in letters]) for _ in range(2)] == [
        (2, [False, False, True]), (1, [False, False, False]),
    ]  # fmt: skip


def test_a_letter_is_deleted_with_all_its_rows_or_not_at_all(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = _finished(Stock())
    clock.advance(HISTORY + 1)
    monkeypatch.setattr(retention, "_LANES", "SELECT 1 / 0 AS lane_id")
    with pytest.raises(Exception, match="division by zero"):
        _forget()
    connection.close()
    assert (_is_there(letter), Payload.objects.filter(letter=letter).exists()) == (True, True)


def test_waves_are_deleted_after_their_attempts(clock: Clock) -> None:
    stock = Stock()
    settled = {"run": stock.run, "settled_at": lanes.database_now(), "sent": 1, "failed": 0}
    waves = [Wave.objects.create(no=no, **settled) for no in (1, 2)]
    Wave.objects.create(run=stock.run, no=3)
    _attempt(stock, stock.letter, wave=waves[1])
    assert retention.delete_waves(history=HISTORY) == 0
    clock.advance(HISTORY + 1)
    assert retention.delete_waves(history=HISTORY) == 1
    assert list(Wave.objects.order_by("no").values_list("no", flat=True)) == [2, 3]


def test_bulk_actions_are_deleted_after_their_audit_log_entries(clock: Clock) -> None:
    stock, asked = Stock(), list[BulkAction]()
    for state in ("done", "done", "running"):
        ended = None if state == "running" else lanes.database_now()
        asked.append(BulkAction.objects.create(
            act="note", filter={}, by="ann", reason="a note", state=state, asked_at=lanes.database_now(),
            max_letter_id=1, asked=1,
            finished_at=ended,
        ))  # fmt: skip
    AuditEntry.objects.create(act="noted", letter=stock.letter, operation=asked[1], by="ann", reason="a note")
    own = [AuditEntry.objects.create(act="noted", operation=action, by="ann", reason="a note").pk for action in asked]
    assert retention.delete_bulk_actions(history=HISTORY, limit=9) == 0
    clock.advance(HISTORY + 1)
    assert retention.delete_bulk_actions(history=HISTORY, limit=9) == 1
    assert list(BulkAction.objects.order_by("id")) == asked[1:]
    assert list(AuditEntry.objects.filter(letter=None).order_by("pk").values_list("pk", flat=True)) == own[1:]
