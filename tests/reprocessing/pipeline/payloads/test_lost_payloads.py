"""A captured message whose payload cannot be decrypted does not hold up the messages of its DLQ, except by order."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models.functions import Now

from reprocessing.domain.errors import PayloadDestroyed, PayloadKeyUnavailable, PayloadUnreadable
from reprocessing.domain.lifecycle import ParkedReason
from reprocessing.domain.payloads.sealing import Part
from reprocessing.models import DeadLetterQueue, Letter, Payload, PayloadKey
from reprocessing.pipeline.capture import find_source
from reprocessing.pipeline.maintenance.doctor import poll_history
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.runs import drain, plan, plan_obstacles, request_plan
from reprocessing.store import rows
from reprocessing.store.ordering import lanes, placement
from reprocessing.store.payloads import content, payload_keys
from reprocessing.store.runs.plans import RunRequest
from tests.reprocessing.pipeline.bench import KEYED, Workbench

DOCS = Path(__file__).resolve().parents[4] / "docs"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("encrypted")]


def _bench(*, keyed: bool = True, first: int = 1) -> Workbench:
    """Messages 1, 2 and 3 of one key without places; the key of an older day encrypts the `first` messages."""
    bench = Workbench(fields=KEYED if keyed else {})
    for number in ("1", "2", "3"):
        bench.bury(number, key="k", n=number)
        bench.capture()
        if int(number) == first:
            _move_key_to_the_day_before(bench.dlq)
    placement.place_again(bench.dlq.pk)
    return bench


def _move_key_to_the_day_before(dlq: DeadLetterQueue) -> None:
    ring, key = payload_keys._unwrapped.ring()[0], PayloadKey.objects.get(dlq=dlq)
    assert key.day is not None
    before = key.day - timedelta(days=1)
    secret = ring.unwrap("old", bytes(key.wrapped or b""), payload_keys.context_of((dlq.pk, key.day)))
    key.day, key.wrapped = before, ring.wrap(secret, payload_keys.context_of((dlq.pk, before)))[1]
    key.save()
    payload_keys.forget_unwrapped()


def _older(**values: object) -> None:
    """Change the data key of the first messages."""
    key = PayloadKey.objects.exclude(day=None).order_by("day")[0]
    PayloadKey.objects.filter(pk=key.pk).update(**values)
    payload_keys.forget_unwrapped()


def _destroy() -> None:
    _older(wrapped=None, destroyed_at=Now(), destroyed_by="ann", destroy_reason="a password")


def _reasons() -> list[tuple[str, str]]:
    return list(Letter.objects.order_by("pk").values_list("state", "reason"))


def _with_another_end(sealed: bytes) -> bytes:
    return sealed[:-1] + bytes([sealed[-1] ^ 1])


def test_a_message_whose_key_was_destroyed_is_parked_and_the_others_are_sent_in_order() -> None:
    bench = _bench()
    _destroy()
    bench.enlist()
    bench.replay()
    assert bench.delivered_bodies() == ["2", "3"]
    assert _reasons() == [("parked", "payload_lost"), ("delivered", ""), ("delivered", "")]
    assert "was destroyed" in Letter.objects.get(state="parked").detail


def test_a_message_whose_sealed_bytes_were_changed_is_parked_and_can_be_released_after_they_were_restored() -> None:
    bench = _bench()
    sealed = Payload.objects.order_by("letter")[0]
    _change(sealed, attributes=_with_another_end(bytes(sealed.attributes)))
    bench.enlist()
    bench.replay()
    assert (bench.delivered_bodies(), _reasons()[0]) == (["2", "3"], ("parked", "payload_lost"))
    _change(sealed, attributes=bytes(sealed.attributes))
    act_on_parked.release([sealed.letter_id], by="ann", reason="restored")
    bench.replay()
    assert bench.delivered_bodies() == ["1"]


def test_a_restored_message_without_an_ordering_key_can_be_released() -> None:
    bench = Workbench(fields=KEYED)
    bench.bury("1")
    bench.capture()
    placement.place_again(bench.dlq.pk)
    sealed = Payload.objects.order_by("letter")[0]
    _change(sealed, attributes=_with_another_end(bytes(sealed.attributes)))
    bench.enlist()
    assert _reasons()[0] == ("parked", "payload_lost")
    _change(sealed, attributes=bytes(sealed.attributes))
    assert act_on_parked.release([sealed.letter_id], by="ann", reason="restored").done == (sealed.letter_id,)
    bench.replay()
    assert bench.delivered_bodies() == ["1"]


def test_a_restored_message_whose_source_is_not_known_is_refused_for_its_source() -> None:
    bench = _bench(keyed=False)
    Letter.objects.filter(pk=Letter.objects.order_by("pk")[0].pk).update(
        state="parked", reason="payload_lost", finished_at=Now(), source=None, target=None, key_hash=None
    )
    lost = Letter.objects.get(reason="payload_lost")
    with mock.patch.object(find_source.Sources, "trace", return_value={}):
        refused = act_on_parked.release([lost.pk], by="ann", reason="restored").refused[lost.pk]
    assert refused.startswith(f"its source queue is not known; add the queue to {bench.name}")


def test_what_to_do_with_a_lost_payload_names_the_backup() -> None:
    assert ParkedReason.PAYLOAD_LOST.sentence == (
        "Its payload cannot be decrypted. Restore it from a backup, or discard it."
    )


def _change(payload: Payload, **values: object) -> None:
    with transaction.atomic():
        rows.execute("SET LOCAL redrive.reseals = 'on'", {})
        Payload.objects.filter(pk=payload.pk).update(**values)


def test_without_ordering_keys_a_message_whose_key_is_missing_waits_and_the_others_are_sent() -> None:
    bench = _bench(keyed=False)
    _older(wrapped_by="former")
    bench.enlist()
    bench.replay()
    assert sorted(bench.delivered_bodies()) == ["2", "3"]
    assert _reasons()[0] == ("captured", "")
    _older(wrapped_by="old")
    bench.enlist()
    bench.replay()
    assert bench.delivered_bodies() == ["1"]


def test_with_ordering_keys_all_messages_wait_for_a_missing_key_until_its_messages_are_destroyed() -> None:
    """The key of the message is not known, so a later message of its key would be sent first."""
    bench = _bench()
    _older(wrapped_by="former")
    with pytest.raises(PayloadKeyUnavailable) as waits:
        plan.place_captured(bench.dlq)
    said = str(waits.value)
    assert said.startswith(
        f"1 captured message of {bench.name} cannot be decrypted now, and cannot be sent. 2 more were"
    )
    cure = said.partition(", and destroy them: manage.py ")[2]
    waits_for = f"no message of {bench.name} is enlisted: a later message of the same ordering key would be sent first."
    order = ["REDRIVE_PAYLOAD_KEYS has no key former", "Add the key former again", waits_for, '"A lost key"', cure]
    assert [said.find(part) for part in order] == sorted(said.find(part) for part in order)
    assert Letter.objects.exclude(planned=False).count() == 0
    (lost,) = _messages_of_a_lost_key(bench.name)
    call_command(*cure.replace("ID", lost).split(), verbosity=0)
    bench.enlist()
    bench.replay()
    assert (bench.delivered_bodies(), _reasons()[0]) == (["2", "3"], ("discarded", ""))


def _messages_of_a_lost_key(dlq: str) -> list[str]:
    """Run the statement of docs/payloads.md."""
    page = (DOCS / "payloads.md").read_text().partition("## A lost key")[2]
    return rows.column(str, page.partition("```sql")[2].partition("```")[0].replace("'orders'", f"'{dlq}'"), {})


def test_a_release_of_several_messages_leaves_out_a_lost_one() -> None:
    bench = _bench()
    _destroy()
    bench.enlist()
    lost, other, _ = Letter.objects.order_by("pk")
    Letter.objects.filter(pk=other.pk).update(state="parked", reason="attempts_spent", finished_at=Now())
    done = act_on_parked.release([lost.pk, other.pk], by="ann", reason="a test")
    why = "its payload cannot be decrypted, so it cannot be sent; restore it from a backup, or discard it"
    assert (done.done, done.refused) == ((other.pk,), {lost.pk: why})
    assert act_on_parked.discard([lost.pk], by="ann", reason="a test").done == (lost.pk,)


def test_a_release_waits_for_a_missing_key() -> None:
    bench = _bench()
    _destroy()
    bench.enlist()
    _older(wrapped=b"restored", destroyed_at=None, destroyed_by="", destroy_reason="", wrapped_by="former")
    with pytest.raises(PayloadKeyUnavailable):
        act_on_parked.release([Letter.objects.get(state="parked").pk], by="ann", reason="a test")


def test_a_key_that_cannot_be_unwrapped_is_tried_once_for_many_messages() -> None:
    bench = _bench(first=2)
    _older(wrapped_by="former")
    with mock.patch.object(payload_keys, "_unwrap", wraps=payload_keys._unwrap) as tried:
        found = placement.unplaced_letters(bench.dlq.pk, bodies=True, above=0)
    assert found is not None
    assert (len(found.readable), len(found.undecryptable_now), found.lost) == (1, 2, {})
    assert tried.call_count == 3  # all keys together, then each key


@dataclass(frozen=True, slots=True)
class _Edited:
    """A message's content in two parts, which two data keys may encrypt."""

    message_id: str
    body: bytes
    attributes: bytes


@pytest.mark.parametrize("destroyed", [0, 1])
def test_a_destroyed_key_wins_over_a_missing_one(destroyed: int) -> None:
    _bench()
    missing, gone = PayloadKey.objects.exclude(day=None).order_by("day")[:: -1 if destroyed == 0 else 1]
    sealers = [content.Sealer(payload_keys.unwrapped_keys({key.pk})[key.pk]) for key in (missing, gone)]
    row = _Edited("m", sealers[0].bytes(b"1", Part.BODY, of="m"), sealers[1].bytes(b"2", Part.ATTRIBUTES, of="m"))
    PayloadKey.objects.filter(pk=missing.pk).update(wrapped_by="former")
    PayloadKey.objects.filter(pk=gone.pk).update(
        wrapped=None, destroyed_at=Now(), destroyed_by="ann", destroy_reason="a password"
    )
    payload_keys.forget_unwrapped()
    with pytest.raises(PayloadDestroyed):
        content.opened([row])
    assert isinstance(content.opened_or_errors([row])[1]["m"], PayloadDestroyed)


@pytest.mark.parametrize("sealed", ["x", "bm90IHNlYWxlZA=="], ids=["no base64", "not sealed"])
def test_changed_system_attributes_park_their_message_only(sealed: str) -> None:
    bench = _bench()
    payload = Payload.objects.order_by("letter")[0]
    _change(payload, system={**payload.system, "sealed": sealed})
    bench.enlist()
    bench.replay()
    assert (bench.delivered_bodies(), _reasons()[0]) == (["2", "3"], ("parked", "payload_lost"))
    assert "The sealed system was changed in the database" in Letter.objects.get(state="parked").detail


def _automatic() -> Workbench:
    bench = _bench(keyed=False)
    DeadLetterQueue.objects.update(mode="automatic", next_poll_at=None)
    _older(wrapped_by="former")
    return bench


def test_a_poll_enlists_the_others_and_says_at_the_dlq_how_many_cannot_be_decrypted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = _automatic()
    enlisted = bench.capture().enlisted
    said = (
        f"1 captured message of {bench.name} cannot be decrypted now, and cannot be sent. REDRIVE_PAYLOAD_KEYS has no "
        "key former, which sealed this message. Add the key former again, behind the first key."
    )
    assert (enlisted and enlisted.letters, DeadLetterQueue.objects.get().last_error) == (2, said)
    assert said in caplog.messages
    found = {finding.what for finding in poll_history.findings(DeadLetterQueue.objects.get(), bench.conf)}
    assert said in found  # the capture did not fail
    _older(wrapped_by="old")
    bench.capture()
    assert (DeadLetterQueue.objects.get().last_error, Letter.objects.filter(state="captured").count()) == ("", 0)


def test_a_plan_says_how_many_messages_cannot_be_decrypted() -> None:
    bench = _bench(keyed=False, first=3)
    _older(wrapped_by="former")
    plan.place_captured(bench.dlq)
    run = drain.plan_run(bench.dlq, RunRequest("monday", "ann"))
    said = (
        f"3 captured messages of {bench.name} cannot be decrypted now, and cannot be sent. REDRIVE_PAYLOAD_KEYS has no"
    )
    assert said in request_plan.planned_text(run)
    assert any(text.startswith(said) for text in plan_obstacles.plan_obstacles(bench.dlq, [], lanes.database_now()))


def _one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read one letter at a time."""
    monkeypatch.setattr(placement, "_UNPLACED", placement._UNPLACED.replace("LIMIT 1000", "LIMIT 1"))


def test_a_failed_key_is_tried_once_for_all_sets_of_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench(keyed=False, first=2)
    _older(wrapped_by="former")
    _one_by_one(monkeypatch)
    failed: dict[int, PayloadUnreadable] = {}
    with mock.patch.object(payload_keys, "_unwrap", wraps=payload_keys._unwrap) as tried:
        first = placement.unplaced_letters(bench.dlq.pk, bodies=False, above=0, failed=failed)
        assert first
        calls = tried.call_count
        second = placement.unplaced_letters(bench.dlq.pk, bodies=False, above=first.last, failed=failed)
    assert second
    assert (len(first.undecryptable_now), len(second.undecryptable_now), tried.call_count) == (1, 1, calls)


def test_a_poll_ends_after_letters_that_cannot_be_decrypted_and_the_next_poll_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = _bench(keyed=False, first=2)
    _older(wrapped_by="former")
    _one_by_one(monkeypatch)
    done = [plan.place_captured(bench.dlq) for _ in range(3)]
    assert [result.placed for result in done] == [0, 0, 1]
    assert "2 more were not tried yet." in done[0].error
    assert done[2].error.startswith("2 captured messages")


def test_placing_stops_when_it_is_told_to_and_a_key_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench(keyed=False)
    _older(wrapped_by="former")
    monkeypatch.setattr(placement, "_UNPLACED", placement._UNPLACED.replace("LIMIT 1000", "LIMIT 2"))
    assert plan.place_captured(bench.dlq, stop=lambda: True).placed == 1
    assert plan.place_captured(bench.dlq).placed == 1
