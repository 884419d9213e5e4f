from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from reprocessing.domain.approvals.requested_action import ApprovalRefused
from reprocessing.domain.errors import ErasureRefused, PayloadDestroyed, PayloadKeyUnavailable
from reprocessing.domain.parking_lot.message_filter import MessageFilter
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import AuditEntry, DeadLetterQueue, Letter, Payload, PayloadKey
from reprocessing.pipeline.payloads import erase, shred
from reprocessing.store.maintenance import body_retention
from reprocessing.store.payloads import content, payload_keys
from reprocessing.store.runs import run_transitions
from tests.reprocessing.payload_rings import Rings
from tests.reprocessing.pipeline.bench import KEYED, Workbench, enqueued

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("encrypted")]


def _shred(bench: Workbench) -> shred.Shredded:
    return shred.shred_dlq(bench.dlq, by="ann", reason="the customer left", on_progress=lambda _: None)


def test_a_dlq_whose_keys_are_destroyed_has_no_readable_payload_left() -> None:
    bench, other = Workbench(), Workbench()
    for each in (bench, other):
        each.bury_all("1", "2")
        each.capture()
    sealed = Payload.objects.filter(letter__dlq=bench.dlq).values_list("body", "letter__message_id")[0]
    assert _shred(bench) == shred.Shredded(1, 2)
    with pytest.raises(PayloadDestroyed):
        content.opened_bytes(bytes(sealed[0]), Part.BODY, of=sealed[1])
    assert set(Payload.objects.values_list("letter__dlq", flat=True)) == {other.dlq.pk}
    assert set(Letter.objects.filter(dlq=bench.dlq).values_list("state", flat=True)) == {"discarded"}
    entries = AuditEntry.objects.filter(act="shredded", dlq=bench.dlq).order_by("pk").values_list("by", "letter")
    assert [by for by, _ in entries] == ["ann"] * 3


def test_a_dlq_with_messages_in_progress_is_not_shredded() -> None:
    bench = enqueued("1")
    with pytest.raises(ErasureRefused, match=f"1 messages of {bench.name} are queued"):
        _shred(bench)
    bench.replay()
    assert bench.delivered_bodies() == ["1"]


def test_queued_messages_of_an_aborted_run_are_shredded_and_the_key_continues() -> None:
    bench = Workbench(fields=KEYED)
    run = bench.enqueue_lane("1", "2", key="customer-1")
    about = MessageFilter(key="customer-1", states=())
    assert erase.count_erasable(about).busy == 2
    run_transitions.abort(run, by="ann", reason="wrong", stop_dlq=False)
    first, second = Letter.objects.order_by("sequence")
    assert (first.state, erase.count_erasable(about).busy) == ("waiting", 0)
    shred.shred_messages([first.pk], by="ann", reason="a password")
    bench.enlist()
    bench.replay()
    assert bench.delivered_bodies() == ["2"]
    assert [Letter.objects.get(pk=one.pk).state for one in (first, second)] == ["discarded", "delivered"]


def test_a_dlq_whose_run_was_aborted_is_shredded_and_nothing_is_sent_later() -> None:
    bench = Workbench(fields=KEYED)
    run = bench.enqueue_lane("1", "2")
    run_transitions.abort(run, by="ann", reason="wrong", stop_dlq=False)
    assert _shred(bench) == shred.Shredded(1, 2)
    bench.enlist()
    bench.replay(seconds=1)
    assert (bench.delivered_bodies(), {*Letter.objects.values_list("state", flat=True)}) == ([], {"discarded"})


@pytest.mark.soak
def test_messages_are_captured_with_a_new_key_after_shredding() -> None:
    bench = Workbench()
    bench.bury("1")
    bench.capture()
    _shred(bench)
    bench.redrive("2")
    assert (bench.delivered_bodies(), PayloadKey.objects.filter(dlq=bench.dlq).count()) == (["2"], 2)


def test_a_capture_that_knows_the_destroyed_key_loses_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("1")
    bench.capture()
    bench.dlq.refresh_from_db()
    before = bench.dlq.drained_through
    sealer = content.sealer_of(bench.dlq.pk, Letter.objects.get().captured_at.date())
    _shred(bench)
    with monkeypatch.context() as patch:
        patch.setattr(content, "sealer_of", lambda *_: sealer)
        bench.bury("2")
        captured = bench.capture().captured
    assert Payload.objects.count() == 0
    assert bench.left() > 0
    bench.dlq.refresh_from_db()
    assert (captured.drained, bench.dlq.drained_through) == (False, before)


def test_a_capture_that_knows_the_destroyed_key_reads_the_keys_again(rings: Rings) -> None:
    """The process that shredded is another one: this process still has the unwrapped key in memory."""
    bench = Workbench()
    bench.bury("1")
    bench.capture()
    with pytest.MonkeyPatch.context() as other_process:
        other_process.setattr(payload_keys, "forget_unwrapped", lambda: None)
        _shred(bench)
    bench.bury("2")
    assert (bench.capture().captured.drained, Payload.objects.count()) == (True, 1)


def test_a_body_that_comes_back_is_kept_in_the_dlq_if_its_key_was_destroyed_meanwhile(
    rings: Rings, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench()
    bench.redrive("canary")
    (sent,) = bench.delivered()
    DeadLetterQueue.objects.update(keep_bodies=1)
    Letter.objects.update(finished_at=Now() - timedelta(days=2))
    body_retention.delete_bodies(bench.dlq.pk, limit=10)
    with monkeypatch.context() as other_process:
        other_process.setattr(payload_keys, "forget_unwrapped", lambda: None)
        _shred(bench)
    with pytest.raises(PayloadKeyUnavailable, match="The next capture uses a new key"):
        bench.take_back(sent)
    assert (bench.left(), Payload.objects.count()) == (1, 0)


def test_a_single_message_is_shredded_and_others_stay() -> None:
    bench = Workbench()
    bench.bury_all("1", "2")
    bench.capture()
    letter = Letter.objects.order_by("pk")[0]
    done = shred.shred_messages([letter.pk], by="ann", reason="a password")
    assert (done.letters, done.counts["payloads"], Payload.objects.count()) == ([letter.pk], 1, 1)
    bench.enlist()
    bench.replay()
    assert bench.delivered_bodies() == ["2"]


@pytest.mark.soak
def test_a_shredded_message_that_comes_back_is_parked_without_its_content(rings: Rings) -> None:
    bench = Workbench()
    bench.redrive("canary")
    (sent,) = bench.delivered()
    shred.shred_messages([bench.letter().pk], by="ann", reason="a password")
    payload_keys.forget_unwrapped()
    assert bench.take_back(sent).captured.returns == 1
    bench.replay(seconds=2)
    letter = bench.letter()
    assert (letter.state, letter.reason, Payload.objects.count()) == ("parked", "refused", 0)


@pytest.mark.soak
@pytest.mark.parametrize("first", ["retention", "shredding"])
def test_the_body_of_a_shredded_message_is_not_stored_again_after_its_retention(rings: Rings, first: str) -> None:
    bench = Workbench()
    bench.redrive("canary")
    (sent,) = bench.delivered()
    DeadLetterQueue.objects.update(keep_bodies=1)
    Letter.objects.update(finished_at=Now() - timedelta(days=2))
    steps: list[Callable[[], object]] = [
        lambda: body_retention.delete_bodies(bench.dlq.pk, limit=10),
        lambda: shred.shred_messages([bench.letter().pk], by="ann", reason="a password"),
    ]
    for step in steps if first == "retention" else reversed(steps):
        step()
    assert bench.take_back(sent).captured.returns == 1
    bench.replay(seconds=2)
    assert (bench.letter().state, Payload.objects.count()) == ("parked", 0)


def test_one_person_alone_shreds_no_more_messages_than_the_limit() -> None:
    bench = Workbench(fields={"ordering_key": "attribute:key", "sequence": "attribute:n"})
    about = MessageFilter(key="customer-1", states=())
    for body in ("1", "2"):
        bench.bury(body, key="customer-1", n=body)
    bench.capture()
    DeadLetterQueue.objects.update(approval_above=1)
    ids = list(Letter.objects.values_list("pk", flat=True))
    with pytest.raises(ApprovalRefused, match="Shredding these messages needs a second person"):
        shred.shred_messages(ids, by="ann", reason="the customer left")
    with pytest.raises(ApprovalRefused, match=f"Shredding {bench.name} needs a second person"):
        _shred(bench)
    with pytest.raises(ApprovalRefused, match="Erasing these messages needs a second person"):
        erase.erase(about, by="ann", reason="the customer left", on_progress=lambda _: None)
    assert (Payload.objects.count(), PayloadKey.objects.filter(dlq=bench.dlq, destroyed_at=None).count()) == (2, 1)
