"""A capture is no evidence of absence while another reader may hide a returned message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, TypeAlias

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.gateways.sqs import Depth, QueueAddress, depth
from reprocessing.models import DeadLetterQueue, DlqCopy
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.capture import capture_lease
from reprocessing.store.ordering import lanes
from tests.reprocessing.pipeline.bench import BRISK, Clock, Workbench
from tests.reprocessing.pipeline.interposed import happens_after

pytestmark = pytest.mark.django_db(transaction=True)

Doing: TypeAlias = Callable[[int], object]


def test_copies_deleted_a_moment_ago_may_still_be_counted_as_hidden() -> None:
    bench = Workbench()
    bench.bury_all("held", "deleted")
    bench.ready(limit=1)
    bench.replay()
    assert [capture_lease.count_invisible(bench.dlq.pk, count_lag=lag) for lag in (0.0, 60.0)] == [1, 2]


def test_copies_that_are_visible_again_are_not_counted_as_hidden(clock: Clock) -> None:
    bench = Workbench()
    bench.bury_all("held", "deleted by one who could not note it")
    bench.ready(limit=1)
    DlqCopy.objects.filter(letter__state="waiting").update(state="delete")
    clock.advance(bench.conf.receive_visibility + 30)
    assert [capture_lease.count_invisible(bench.dlq.pk, count_lag=lag) for lag in (0.0, 60.0)] == [0, 1]


def _sent_and_captured() -> tuple[Workbench, dict[str, Any]]:
    """A manual DLQ, and the message that was sent. The copies of "sent" and "captured" are hidden."""
    bench = Workbench(conf=replace(BRISK, receive_visibility=600), absence={"window": 0})
    bench.bury_all("sent", "captured")
    bench.ready(limit=1)
    bench.replay()
    (message,) = bench.delivered()
    assert bench.states() == {"sent": "awaiting", "captured": "captured"}
    return bench, message


def _time_is_over(bench: Workbench, body: str) -> dict[str, str]:
    """Note that the copy is visible again. Return the arguments with which SQS makes it so."""
    copies = DlqCopy.objects.filter(letter__payload__body=body.encode(), letter__dlq=bench.dlq)
    copies.update(visible_until=lanes.database_now() - timedelta(seconds=1))
    return {"QueueUrl": bench.dlq_url, "ReceiptHandle": copies.get().handle}


def _hidden_by_another_reader(bench: Workbench) -> dict[str, str]:
    (hidden,) = bench.sqs.receive_message(QueueUrl=bench.dlq_url, VisibilityTimeout=600)["Messages"]
    return {"QueueUrl": bench.dlq_url, "ReceiptHandle": hidden["ReceiptHandle"]}


def _with_a_hidden_return() -> tuple[Workbench, dict[str, str]]:
    bench, message = _sent_and_captured()
    bench.come_back(message)
    return bench, _hidden_by_another_reader(bench)


@pytest.mark.soak
def test_no_absence_while_another_reader_hides_a_return() -> None:
    bench, reader = _with_a_hidden_return()
    bench.sqs.change_message_visibility(**_time_is_over(bench, "captured"), VisibilityTimeout=0)
    bench.promote()
    assert bench.capture().captured == capture.Captured(received=1, known=1, drained=True)
    assert (bench.promote(), bench.states()["sent"]) == (0, "awaiting")
    bench.sqs.change_message_visibility(**reader, VisibilityTimeout=0)
    assert bench.capture().captured.returns == 1
    assert bench.history() == [(1, "returned", 0)]


@pytest.mark.soak
def test_visible_copies_do_not_weaken_the_evidence() -> None:
    bench, _ = _sent_and_captured()
    bench.sqs.change_message_visibility(**_time_is_over(bench, "captured"), VisibilityTimeout=0)
    bench.promote()
    assert bench.capture().captured == capture.Captured(received=1, known=1, drained=True)
    assert bench.promote() == 1


@pytest.mark.soak
def test_a_copy_hidden_for_longer_than_noted_is_ours_when_sqs_says_so() -> None:
    bench, _ = _sent_and_captured()
    _time_is_over(bench, "sent")
    bench.promote()
    assert bench.capture().captured.drained
    assert bench.promote() == 1


@pytest.mark.soak
def test_a_copy_deleted_by_somebody_else_hides_no_return() -> None:
    bench, _ = _with_a_hidden_return()
    bench.sqs.delete_message(**_time_is_over(bench, "sent"))
    bench.promote()
    assert bench.capture().captured.drained
    assert (bench.promote(), bench.states()["sent"]) == (0, "awaiting")


@pytest.mark.soak
def test_a_copy_visible_again_after_a_freeze_hides_no_return(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = _with_a_hidden_return()
    DlqCopy.objects.update(visible_until=lanes.database_now() + timedelta(hours=1))
    ours = _time_is_over(bench, "sent")

    def freezes() -> None:
        clock.advance(bench.conf.receive_visibility + 1)
        bench.sqs.delete_message(**ours)  # by whoever received it since

    happens_after(monkeypatch, feed_run, "extend", freezes)
    bench.promote()
    assert bench.capture().captured == capture.Captured(drained=True)
    assert (bench.promote(), bench.states()["sent"]) == (0, "awaiting")


def _whenever_sqs_counts(
    monkeypatch: pytest.MonkeyPatch, *, before: Doing = lambda _: None, after: Doing = lambda _: None
) -> None:
    """Call these around each count: the turn asks for the depth, then at the beginning and the end of the capture."""
    asked_so_far = count(1)

    def counted(address: QueueAddress) -> Depth:
        number = next(asked_so_far)
        before(number)
        found = depth(address)
        after(number)
        return found

    monkeypatch.setattr(feed_run, "depth", counted)


@pytest.mark.soak
def test_copies_hidden_after_the_count_hide_no_return(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = _with_a_hidden_return()

    def to_sight(_: int) -> None:
        bench.sqs.change_message_visibility(**_time_is_over(bench, "captured"), VisibilityTimeout=0)

    def another_captures(_: int) -> None:
        found = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
        capture.letters(found, conf=bench.conf, dice=lambda: 0.0, seconds=10, receivers=1, alone=lambda: False)

    bench.promote()
    _whenever_sqs_counts(monkeypatch, before=to_sight, after=another_captures)
    assert bench.capture().captured.drained
    assert (bench.promote(), bench.states()["sent"]) == (0, "awaiting")


@pytest.mark.soak
def test_no_absence_when_a_reader_comes_during_the_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, message = _sent_and_captured()
    bench.come_back(message)
    bench.promote()
    _whenever_sqs_counts(monkeypatch, after=lambda number: _hidden_by_another_reader(bench) if number == 2 else None)
    assert bench.capture().captured == capture.Captured(drained=True)
    assert (bench.promote(), bench.states()["sent"]) == (0, "awaiting")


def test_no_absence_when_a_reader_leaves_during_the_capture() -> None:
    bench, _ = _sent_and_captured()
    bench.promote()
    found = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    polls: list[capture.Captured] = []
    captured = capture.letters(
        found,
        conf=bench.conf,
        dice=lambda: 0.0,
        seconds=10,
        receivers=1,
        on_progress=polls.append,
        alone=lambda: bool(polls),
    )
    assert (captured.drained, bench.promote(), bench.states()["sent"]) == (True, 0, "awaiting")


@pytest.mark.soak
@pytest.mark.parametrize("end", [2, 3])
def test_no_absence_when_sqs_does_not_say_what_is_in_flight(
    end: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench, _ = _sent_and_captured()
    bench.promote()

    def fails(number: int) -> None:
        if number == end:
            raise QueueUnreachable("no answer")

    with monkeypatch.context() as patch:
        _whenever_sqs_counts(patch, before=fails)
        assert bench.capture().captured == capture.Captured(drained=True)
    assert (bench.promote(), [line for name, _, line in caplog.record_tuples if name == feed_run.logger.name]) == (
        0, [f"{bench.dlq.name}: nothing counts as drained, because whether another reads it is not known: no answer"],
    )  # fmt: skip
    bench.capture()
    assert bench.promote() == 1
