"""Capture: nothing is deleted before its commit, and returns, copies and new letters are told apart."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import DatabaseError, connection

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.lifecycle import LetterState
from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.domain.message.redrive_attributes import MarkNames
from reprocessing.gateways.sqs import Deleted, QueueAddress, receive
from reprocessing.models import Attempt, Claim, DeadLetterQueue, DlqCopy, Letter
from reprocessing.pipeline.capture import capture, delete_copies, receivers
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import lease_keeper, settle
from reprocessing.store.capture import capture_lease, received_copies
from reprocessing.store.capture.received_copies import KnownCopy
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.replay.settlement import Deletable, LetterClosing
from tests.reprocessing.pipeline.bench import Clock, Killed, Workbench, enqueued, fake_time, redriven
from tests.reprocessing.pipeline.interposed import happens_after, happens_before

pytestmark = pytest.mark.django_db(transaction=True)


_killed = Mock(side_effect=Killed)


def _keeps(*_: object, **__: object) -> int:
    return 0


AT_CAPTURE = {"delete_when": "captured"}


def test_a_message_that_was_not_committed_stays_in_the_dlq(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=AT_CAPTURE)
    bench.bury("letter")
    monkeypatch.setattr(received_copies, "admit", _killed)
    with pytest.raises(Killed):
        bench.capture()
    assert (bench.left(), Letter.objects.count()) == (1, 0)


def test_a_copy_left_by_a_dead_capture_is_known_and_deleted(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=AT_CAPTURE)
    bench.bury("letter")
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "delete_from_dlq", _killed)
        with pytest.raises(Killed):
            bench.capture()
    assert (bench.left(), bench.states()) == (1, {"letter": "captured"})  # nothing is deleted before its commit
    bench.show_again()
    assert (capture.LEASE, bench.capture().captured.busy) == (20, True)
    clock.advance(capture.LEASE + 1)
    assert bench.capture().captured.known == 1
    assert (bench.left(), Letter.objects.count()) == (0, 1)


def test_a_copy_stays_in_the_dlq_until_its_letter_is_finished() -> None:
    bench = enqueued("letter")
    assert (bench.left(), DlqCopy.objects.get().state) == (1, "held")
    bench.replay()
    assert (bench.left(), DlqCopy.objects.get().state) == (0, "gone")


def test_a_settlement_that_is_rolled_back_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = enqueued("letter")
    with monkeypatch.context() as patch:
        patch.setattr(lanes, "lock", lambda lanes, _: set(lanes))
        patch.setattr(lane_state, "advance", Mock(side_effect=DatabaseError("gone")))
        with pytest.raises(DatabaseError):
            settle.heads({(bench.lane().pk, 0): LetterClosing(bench.letter().pk, LetterState.DISCARDED)}, lease=8)
    assert (bench.left(), bench.letter().state, DlqCopy.objects.get().state) == (1, "waiting", "held")


def test_a_message_received_twice_is_one_letter() -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.capture()
    bench.show_again()
    captured = bench.capture().captured
    assert (captured.letters, captured.known, Letter.objects.count()) == (0, 1, 1)
    assert (DlqCopy.objects.get().receives, DlqCopy.objects.get().state, bench.left()) == (2, "held", 1)


def test_a_copy_of_a_finished_letter_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = enqueued("letter")
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "delete_from_dlq", _keeps)
        bench.replay()
    bench.show_again()
    assert bench.capture().captured.known == 1
    assert (bench.left(), bench.states()) == (0, {"letter": "delivered"})


def test_above_the_custody_limit_copies_are_deleted_at_capture() -> None:
    bench = Workbench(fields={"held_copies_limit": 0})
    bench.bury("letter")
    bench.capture()
    assert (bench.left(), bench.states()) == (0, {"letter": "captured"})


def _delivered_and_back(bench: Workbench) -> dict[str, Any]:
    bench.redrive("letter")
    (sent,) = bench.delivered()
    bench.come_back(sent)
    return sent


def test_a_return_reopens_a_letter_that_was_delivered() -> None:
    bench = Workbench(fields={"backoff_base": 60, "backoff_jitter": "none"})
    _delivered_and_back(bench)
    assert bench.letter().state == "delivered"
    assert bench.capture().captured.returns == 1
    letter = bench.letter()
    assert (letter.state, letter.epoch, letter.finished_at, letter.presumed) == ("waiting", 1, None, False)
    assert letter.due_at is not None
    assert (bench.lane().phase, bench.lane().due_at) == ("ready", letter.due_at)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.returned_at is not None) == ("accepted", True)
    assert bench.left() == 0


@pytest.mark.soak
def test_a_return_reopens_a_letter_that_was_presumed_delivered() -> None:
    bench = redriven("letter", absence={"window": 0})
    (sent,) = bench.delivered()
    bench.promote()
    bench.capture()
    assert bench.promote() == 1
    bench.take_back(sent)
    letter = bench.letter()
    assert (letter.state, letter.presumed, letter.epoch) == ("waiting", False, 1)
    bench.replay()
    assert len(bench.delivered()) == 1


def test_a_return_after_the_last_attempt_is_parked() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    _delivered_and_back(bench)
    bench.capture()
    assert (bench.letter().state, bench.letter().reason) == ("parked", "attempts_spent")


def test_a_letter_released_during_its_return_is_not_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = enqueued("letter", fields={"max_attempts": 1})
    bench.replay_unheard()
    bench.come_back(bench.delivered()[0])
    assert bench.states() == {"letter": "parked"}
    letter = bench.letter().pk
    happens_after(
        monkeypatch, received_copies, "find_returns",
        lambda: act_on_parked.release([letter], by="ann", reason="once more"), once=True,
    )  # fmt: skip
    assert bench.capture().captured.returns == 1
    assert (bench.states(), bench.letter().reason) == ({"letter": "waiting"}, "")


def test_the_same_return_seen_again_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    _delivered_and_back(bench)
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "delete_from_dlq", _keeps)
        bench.capture()
    before = _facts(bench)
    bench.show_again()
    captured = bench.capture().captured
    assert (captured.returns, captured.known) == (0, 1)
    assert (_facts(bench), bench.left()) == (before, 0)


def test_two_copies_of_one_return_are_one_failure() -> None:
    bench = Workbench()
    sent = _delivered_and_back(bench)
    bench.capture()
    before = _facts(bench)
    assert bench.take_back(sent).captured.returns == 1
    assert (_facts(bench), bench.left()) == (before, 0)


def test_two_copies_of_one_return_in_one_receive_are_one_failure() -> None:
    bench = Workbench()
    assert bench.take_back(_delivered_and_back(bench)).captured.returns == 2
    assert (bench.letter().state, bench.letter().epoch, bench.letter().attempts, bench.left()) == ("waiting", 1, 1, 0)


def _facts(bench: Workbench) -> tuple[object, ...]:
    letter, returned_at = bench.letter(), Attempt.objects.get().returned_at
    return letter.state, letter.epoch, letter.attempts, letter.due_at, letter.finished_at, returned_at


def test_a_return_of_an_older_attempt_is_recorded_and_moves_nothing(clock: Clock) -> None:
    bench = enqueued("letter", absence={"window": 60})
    bench.lose_worker(clock)
    (first,) = bench.delivered()
    bench.replay()
    assert (bench.letter().state, bench.letter().attempts) == ("awaiting", 2)
    assert bench.take_back(first).captured.returns == 1
    older, newer = Attempt.objects.order_by("no")
    assert (older.outcome, older.returned_at is not None) == ("unknown", True)
    assert (newer.outcome, newer.returned_at, newer.closed_at) == (None, None, None)
    assert (bench.letter().state, bench.letter().epoch) == ("awaiting", 0)


def test_a_return_frees_the_key_of_its_letter() -> None:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"})
    bench.redrive("letter", idem="k")
    assert Claim.objects.get().state == "delivered"
    bench.take_back(bench.delivered()[0])
    assert Claim.objects.get().state == "free"


@pytest.mark.parametrize("allowed", [1, 9])
@pytest.mark.parametrize("state", ["parked", "discarded"])
def test_a_return_changes_no_parked_or_discarded_letter(clock: Clock, state: str, allowed: int) -> None:
    bench = enqueued("letter", fields={"max_attempts": 1})
    bench.lose_worker(clock)
    bench.replay()
    if state == "discarded":
        act_on_parked.discard([bench.letter().pk], by="anna", reason="of no use")
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    before = bench.letter()
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(max_attempts=allowed)
    assert bench.take_back(bench.delivered()[0]).captured.returns == 1
    letter, attempt = bench.letter(), Attempt.objects.get()
    assert (letter.state, letter.reason, letter.detail) == (state, before.reason, before.detail)
    assert (letter.finished_at, letter.due_at, bench.lane().phase) == (before.finished_at, None, "idle")
    assert (attempt.outcome, attempt.returned_at is not None, bench.left()) == ("unknown", True, 0)


def test_a_return_is_recognised_by_the_message_id_of_the_target() -> None:
    bench = Workbench()
    bench.conf = replace(bench.conf, marks=MarkNames(redrive=None))
    bench.redrive("letter")
    id_in_the_dlq = bench.bury("letter")
    _pretend_it_was_sent_as(id_in_the_dlq)
    assert bench.capture().captured.returns == 1
    assert bench.letter().state == "waiting"


def _pretend_it_was_sent_as(message_id: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE redrive_attempt DISABLE TRIGGER attempts_are_written_once")
        cursor.execute("UPDATE redrive_attempt SET sent_message_id = %s", [message_id])
        cursor.execute("ALTER TABLE redrive_attempt ENABLE TRIGGER attempts_are_written_once")


def test_without_redrive_ids_a_possible_return_is_parked(clock: Clock) -> None:
    bench = Workbench()
    bench.conf = replace(bench.conf, marks=MarkNames(redrive=None))
    bench.enqueue("letter")
    bench.replay_and_die(sent=True)
    bench.enqueue("letter")
    assert sorted(Letter.objects.values_list("state", "reason")) == [("parked", "possible_return"), ("sending", "")]


@pytest.mark.soak
def test_a_redrive_id_on_another_body_is_a_new_letter() -> None:
    bench = Workbench()
    sent = _delivered_and_back(bench)
    bench.capture()
    captured = bench.take_back({**sent, "Body": "another"}).captured
    assert (captured.letters, captured.returns) == (1, 0)


def test_a_redrive_id_with_an_attempt_of_earlier_tools_is_a_new_letter() -> None:
    bench = Workbench()
    bench.bury("letter", redrive_attempt="2")
    bench.capture()
    bench.bury("letter", RedriveId=f"{bench.letter().public_id}:2")
    captured = bench.capture().captured
    assert (captured.letters, captured.returns) == (1, 0)


def test_equal_bytes_without_a_redrive_id_are_a_new_letter() -> None:
    bench = redriven("letter")
    bench.bury("letter")
    captured = bench.capture().captured
    assert (captured.letters, captured.returns) == (1, 0)
    assert sorted(Letter.objects.values_list("state", flat=True)) == ["captured", "delivered"]


def test_attempts_of_earlier_tools_count() -> None:
    bench = Workbench(fields={"max_attempts": 3})
    bench.bury("tried", redrive_attempt="2")
    bench.redrive("spent", redrive_attempt="3")
    assert bench.states() == {"tried": "delivered", "spent": "parked"}
    assert bench.letter(payload__body=b"tried").attempts == 3


@pytest.mark.parametrize("most", ["CHUNK", "CHUNK_BYTES"])  # the bodies have one or two bytes
def test_a_chunk_is_written_as_soon_as_it_is_full(monkeypatch: pytest.MonkeyPatch, most: str) -> None:
    bench, sizes, refresh = Workbench(), list[int](), received_copies.refresh_known

    def counted(dlq: int, ids: Sequence[str], *rest: Any, **options: Any) -> list[KnownCopy]:  # noqa: ANN401  as refresh
        sizes.append(len(ids))
        return refresh(dlq, ids, *rest, **options)

    monkeypatch.setattr(capture, most, 3)
    monkeypatch.setattr(capture, "CHUNK_WAIT", 600)
    monkeypatch.setattr(receivers, "receive", partial(receive, maximum=2))
    monkeypatch.setattr(received_copies, "refresh_known", counted)
    bench.bury_all(*map(str, range(20)))
    assert (bench.capture().captured.drained, Letter.objects.count(), sum(sizes)) == (True, 20, 20)
    assert max(sizes) <= 4  # what is waiting when two more arrive


def test_an_observed_dlq_is_never_received_from() -> None:
    bench = Workbench(fields={"mode": "observe"})
    bench.bury("letter")
    assert bench.capture().captured.received == 0
    (message,) = bench.sqs.receive_message(QueueUrl=bench.dlq_url, MessageSystemAttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_a_capture_that_lost_its_lease_writes_nothing(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")

    def another_takes_the_dlq() -> None:
        clock.advance(capture.LEASE + 1)
        assert capture_lease.lease(bench.dlq.pk, lease=60, dirty=140) is not None

    happens_before(monkeypatch, capture_lease, "renew", another_takes_the_dlq)
    captured = bench.capture().captured
    assert (captured.letters, captured.drained, Letter.objects.count()) == (0, False, 0)


def test_after_a_lost_answer_nothing_counts_as_drained_for_a_while(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench()
    bench.bury("letter")
    with monkeypatch.context() as patch:
        patch.setattr(receivers, "receive", Mock(side_effect=QueueUnreachable("no answer")))
        assert bench.capture().captured.error == "no answer"
    assert (bench.capture().captured.drained, _drained_through(bench)) == (False, None)
    clock.advance(bench.conf.receive_visibility + bench.conf.long_poll)
    bench.bury("another")
    assert bench.capture().captured.drained is True


def _drained_through(bench: Workbench) -> object:
    return DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through


def test_unreadable_bodies_are_parked_and_the_others_go_on() -> None:
    bench = Workbench(fields={"ordering_key": "body:account", "sequence": "system:SentTimestamp"})
    bodies = ["{", "[" * 5000, '{"account": "\\ud800"}', "\ufeff{}", "{}", '{"account": [1]}', "NaN"]
    bench.redrive(*bodies, '{"account": "a"}')
    assert bench.states()['{"account": "a"}'] == "delivered"
    reasons = dict(Letter.objects.filter(state="parked").values_list("payload__body", "reason"))
    assert set(reasons.values()) == {"unreadable_body", "no_ordering_key"}
    assert {bytes(body).decode() for body in reasons} == set(bodies)


def test_a_copy_that_sqs_did_not_delete_stays_to_be_deleted() -> None:
    bench = Workbench()
    ids = [bench.bury("one"), bench.bury("other")]
    bench.capture()
    DlqCopy.objects.update(state="delete")

    def the_first(_: QueueAddress, handles: Mapping[str, str]) -> Deleted:
        return Deleted({ids[0]}, {message_id: "not now" for message_id in handles if message_id != ids[0]})

    copies = [Deletable(bench.dlq.pk, copy.message_id, copy.handle) for copy in DlqCopy.objects.all()]
    assert delete_copies.delete_from_dlq(bench.dlq, copies, by=the_first) == 1
    assert dict(DlqCopy.objects.values_list("message_id", "state")) == {ids[0]: "gone", ids[1]: "delete"}


@pytest.mark.soak
def test_a_copy_written_late_is_hidden_from_when_it_was_received(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = redriven("back")
    bench.bury("known")
    bench.capture()
    handle = DlqCopy.objects.get(state="held").handle
    bench.sqs.change_message_visibility(QueueUrl=bench.dlq_url, ReceiptHandle=handle, VisibilityTimeout=0)
    bench.come_back(bench.delivered()[0])
    bench.bury("new")
    late = [0]

    def received(*args: Any, **options: Any) -> list[ReceivedMessage]:  # noqa: ANN401  those of receive
        arrived = receive(*args, **options)
        late[0] = bench.conf.receive_visibility - 4
        return arrived

    with monkeypatch.context() as patch:
        patch.setattr(receivers, "receive", received)
        patch.setattr(lease_keeper, "time", fake_time(lambda: time.monotonic() + late[0]))
        captured = bench.capture().captured
    assert (captured.letters, captured.returns, captured.known) == (1, 1, 1)
    held = DlqCopy.objects.filter(state="held")
    assert [copy.visible_until <= lanes.database_now() + timedelta(seconds=4) for copy in held] == [True, True]
    clock.advance(4)
    bench.enlist()
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.filter(extended=True).count() == 0


def test_a_longer_visibility_noted_late_counts_from_the_request(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _about_to_be_extended(clock)
    happens_after(monkeypatch, recover, "extend", lambda: clock.advance(1000))
    asked = lanes.database_now()
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert round((DlqCopy.objects.get().visible_until - asked).total_seconds(), -2) == round(
        recover.MAX_HIDDEN_SECONDS - bench.conf.receive_visibility, -2
    )


def test_a_copy_received_again_meanwhile_is_not_noted_as_extended(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _about_to_be_extended(clock)
    happens_after(monkeypatch, recover, "extend", lambda: DlqCopy.objects.update(handle="a later one"))
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.get().extended is False


def _about_to_be_extended(clock: Clock) -> Workbench:
    bench = enqueued("letter")
    clock.advance(bench.conf.receive_visibility * 2 / 3 + 1)
    return bench
