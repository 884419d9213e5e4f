"""A redrive id tells a return only in a DLQ of the attempt's target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import connection

from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.gateways.sqs import QueueAddress, receive
from reprocessing.models import Attempt, DeadLetterQueue, Letter, Payload, Source
from reprocessing.pipeline.capture import receivers
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.store.maintenance import body_retention
from tests.reprocessing.pipeline.bench import Workbench, redriven

pytestmark = pytest.mark.django_db(transaction=True)

LETTER, RETURN = {"letter": "delivered"}, {"letter": "waiting"}


def _delivered() -> tuple[Workbench, dict[str, Any]]:
    bench = redriven("letter", fields={"max_attempts": 5})
    return bench, bench.delivered()[0]


def _died_in(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQS says that all messages failed in the source queue of this workbench."""

    def named(address: QueueAddress, *, wait: int, visibility: int) -> list[ReceivedMessage]:
        source = {"DeadLetterQueueSourceArn": bench.target.arn}
        found = receive(address, wait=wait, visibility=visibility)
        return [replace(message, system={**message.system, **source}) for message in found]

    monkeypatch.setattr(receivers, "receive", named)


@pytest.mark.soak
@pytest.mark.parametrize("same_dlq", [False, True])
def test_a_message_that_failed_in_another_queue_is_a_new_letter(
    monkeypatch: pytest.MonkeyPatch, same_dlq: bool
) -> None:
    bench, sent = _delivered()
    another = Workbench()
    _died_in(another, monkeypatch)
    assert (bench if same_dlq else another).take_back(sent).captured.letters == 1
    assert same_dlq or (bench.states(), another.states()) == (LETTER, {"letter": "captured"})


def test_a_message_that_failed_in_the_target_is_a_return_in_any_dlq(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, sent = _delivered()
    another = Workbench()
    _died_in(bench, monkeypatch)
    assert another.take_back(sent).captured.returns == 1
    assert (bench.states(), another.states()) == (RETURN, {})


def test_a_message_without_a_source_is_no_return_in_an_unrelated_dlq() -> None:
    bench, sent = _delivered()
    another = Workbench()
    another.take_back(sent)
    assert (bench.states(), another.states()) == (LETTER, {"letter": "captured"})


@pytest.mark.parametrize("way", ["its own", "watching", "a source's"])
def test_a_message_without_a_source_is_a_return_in_a_dlq_of_the_target(way: str) -> None:
    bench, sent = _delivered()
    here = bench if way == "its own" else Workbench()
    if way == "watching":
        bench.judge_by_absence()
        type(bench.target).objects.filter(pk=bench.target.pk).update(watched_by=here.dlq)
    if way == "a source's":
        Source.objects.create(dlq=DeadLetterQueue.objects.get(pk=here.dlq.pk), arn=f"{here.name}", target=bench.target)
    assert here.take_back(sent).captured.returns == 1
    assert bench.states() == RETURN


# -- letters whose bodies were deleted


def _without_body() -> tuple[Workbench, dict[str, Any]]:
    """A delivered letter whose body was deleted, and the message that was sent."""
    bench, sent = _delivered()
    DeadLetterQueue.objects.update(keep_bodies=0)
    assert len(body_retention.delete_bodies(bench.dlq.pk, limit=10)) == 1
    return bench, sent


def test_a_message_that_comes_back_after_its_body_was_deleted_is_sent_again_as_it_came_back() -> None:
    bench, sent = _without_body()
    assert bench.take_back(sent).captured.returns == 1
    assert (bench.letter().state, bench.letter().body_deleted_at) == ("waiting", None)
    bench.show_again()
    bench.replay()
    assert bench.delivered_bodies() == ["letter"]


def test_a_discarded_message_that_comes_back_gets_no_body() -> None:
    bench, sent = _without_body()
    Letter.objects.update(state="discarded")
    bench.take_back(sent)
    assert (bench.letter().state, Payload.objects.count()) == ("discarded", 0)


def test_a_copy_without_its_attempt_gives_the_body_back_too() -> None:
    bench, sent = _without_body()
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # as a restore from a backup leaves it
        cursor.execute("DELETE FROM redrive_attempt")
        cursor.execute("SET session_replication_role = origin")
    assert bench.take_back(sent).captured.returns == 1
    assert (bench.states(), bytes(Payload.objects.get().body)) == (RETURN, b"letter")


def test_a_late_report_of_failure_waits_for_the_message_itself_where_the_body_was_deleted() -> None:
    bench, sent = _without_body()
    failed = {"message_id": Attempt.objects.get().sent_message_id, "verdict": "failed", "at": "2026-03-01T08:00:00Z"}
    record_reports.record_json([failed], reporter=None, dice=lambda: 0.0)
    assert bench.letter().state == "delivered"
    bench.take_back(sent)
    assert bench.states() == RETURN


def test_a_discarded_message_without_a_body_is_not_restored_and_the_reason_is_told() -> None:
    bench, _ = _without_body()
    Letter.objects.update(state="discarded")
    (letter,) = Letter.objects.all()
    done = act_on_parked.restore([letter.pk], by="ann", reason="needed")
    day = f"{letter.body_deleted_at:%Y-%m-%d}"
    told = f"its body was deleted on {day}, because {bench.name} keeps bodies for fewer days than history"
    assert (done.done, done.refused, bench.letter().state) == ((), {letter.pk: told}, "discarded")
