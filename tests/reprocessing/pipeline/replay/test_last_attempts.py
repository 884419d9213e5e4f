"""After a last attempt of unknown outcome the letter is parked, and its lane waits while a copy may come back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from reprocessing.domain.message.envelope import unpack_attributes
from reprocessing.models import Attempt, Claim, DeadLetterQueue, DlqCopy, Lane, Letter, Payload, Target
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.outcomes import record_reports
from reprocessing.pipeline.outcomes.record_reports import Recorded
from reprocessing.pipeline.parking_lot import act_on_parked, edit
from reprocessing.pipeline.parking_lot.edit import Alteration, SeenLetter
from reprocessing.pipeline.replay.gate import EQUAL_MAY_BE_THERE
from reprocessing.pipeline.replay.replay_slice import Report
from reprocessing.pipeline.routing import route
from reprocessing.pipeline.routing.route import RuleBook
from reprocessing.store.ordering import lanes
from reprocessing.store.outcomes import delivery_status
from reprocessing.store.replay.settlement import WAITS_FOR_COPY
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.rulings import rule

pytestmark = pytest.mark.django_db(transaction=True)

KEYED: dict[str, Any] = {"ordering_key": "attribute:key", "sequence": "attribute:n", "max_attempts": 1}
WINDOW = 100

End = Callable[[Workbench, Clock], None]


def _unheard(bench: Workbench, _: Clock) -> None:
    bench.replay_unheard()


def _killed(bench: Workbench, clock: Clock) -> None:
    bench.lose_worker(clock)
    bench.replay()


@pytest.fixture(params=[_unheard, _killed], ids=["unheard", "killed"])
def end(request: pytest.FixtureRequest) -> End:
    found: End = request.param
    return found


def _bench(*, advance: str = "settled", **fields: object) -> Workbench:
    """Two letters of one key with one attempt each."""
    bench = Workbench(fields=KEYED | fields, absence={"window": WINDOW, "advance": advance})
    bench.enqueue_lane("1", "2", key="k")
    return bench


def _first(bench: Workbench) -> str:
    letter = bench.letter(payload__body=b"1")
    return f"{letter.state} {letter.reason}"


def test_a_spared_attempt_leaves_another_one(clock: Clock) -> None:
    bench = _bench(max_attempts=2)
    Letter.objects.filter(payload__body=b"1").update(attempts=1, spared=1)
    _killed(bench, clock)
    assert (_first(bench), bench.letter(payload__body=b"1").attempts) == ("awaiting ", 3)
    assert [outcome for _, outcome, _ in bench.history()] == ["unknown", None]


@pytest.mark.soak
def test_the_next_letter_waits_while_the_copy_may_come_back(clock: Clock, end: End) -> None:
    bench = _bench()
    end(bench, clock)
    assert (_first(bench), bench.lane().phase) == ("parked attempts_spent", "awaiting")
    assert bench.history() == [(1, None, 0)]
    recover.sweep_all(conf=bench.conf)  # the copy of what is parked is deleted
    clock.advance(WINDOW - 5)
    bench.promote()
    bench.replay()
    assert bench.delivered_bodies() == ["1"]
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    assert bench.history() == [(1, "unknown", 0), (1, None, 0)]
    assert bench.delivered_bodies() == ["2"]
    assert _first(bench) == "parked attempts_spent"


@pytest.mark.soak
def test_the_next_letter_waits_until_the_dlq_is_captured(clock: Clock, end: End) -> None:
    bench = _bench()
    end(bench, clock)
    (sent,) = bench.delivered()
    for _ in range(3):
        bench.promote()
        clock.advance(WINDOW + 5)
    bench.come_back(sent)
    bench.promote()
    bench.replay()
    assert (bench.lane().phase, bench.delivered()) == ("awaiting", [])
    bench.capture()
    assert (_first(bench), bench.history()) == ("parked attempts_spent", [(1, "returned", 0)])
    bench.replay()
    assert bench.delivered_bodies() == ["2"]


def test_without_a_watched_dlq_the_window_ends_the_wait(clock: Clock) -> None:
    bench = _bench()
    Target.objects.filter(pk=bench.target.pk).update(proof="acknowledged", watched_by=None)
    _unheard(bench, clock)
    bench.delivered()
    clock.advance(WINDOW + 1)
    bench.promote()
    bench.replay()
    assert bench.delivered_bodies() == ["2"]


def _report(bench: Workbench, verdict: str) -> None:
    """Report on the first letter's first attempt; the report must be accepted."""
    said = {"redrive_id": f"{bench.letter(payload__body=b'1').public_id}:1", "verdict": verdict}
    assert record_reports.record_json([said], reporter=None, dice=lambda: 0.0) == Recorded(accepted=1)


def test_a_consumer_may_acknowledge_a_last_attempt_without_a_reply(clock: Clock, end: End) -> None:
    bench = _bench(idempotency_key="attribute:n")
    end(bench, clock)
    _report(bench, "delivered")
    assert (_first(bench), _key(bench), bench.lane().phase) == ("delivered ", "delivered", "ready")
    assert delivery_status.status_of(bench.letter(payload__body=b"1")).how.value == "acknowledged"
    bench.replay()
    assert bench.delivered_bodies() == ["1", "2"]


def _reported_as_failed(bench: Workbench) -> None:
    _report(bench, "failed")


def _returned(bench: Workbench) -> None:
    (sent,) = bench.delivered()
    bench.take_back(sent)


@pytest.mark.parametrize("fails", [_reported_as_failed, _returned])
def test_a_last_attempt_that_fails_after_its_acknowledgement_parks_its_letter(
    clock: Clock, end: End, fails: Callable[[Workbench], None]
) -> None:
    bench = _bench(idempotency_key="attribute:n")
    end(bench, clock)
    _report(bench, "delivered")
    fails(bench)
    assert (_first(bench), _key(bench)) == ("parked attempts_spent", "free")


@pytest.mark.soak
@pytest.mark.parametrize("poison", [False, True])
def test_a_known_failure_after_an_unknown_one_does_not_free_the_lane(clock: Clock, poison: bool) -> None:
    bench = _bench(max_attempts=2, backoff_base=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeadLetterQueue, "backoff_delay", lambda *_: timedelta(hours=1))
        _unheard(bench, clock)
    Letter.objects.filter(state="waiting", payload__body=b"1").update(due_at=lanes.database_now())
    Lane.objects.update(phase="ready", due_at=lanes.database_now())
    with bench.refusing("1", poison=poison):
        bench.replay()
    assert (_first(bench).partition(" ")[0], bench.lane().phase) == ("parked", "awaiting")
    bench.replay()
    assert bench.delivered_bodies() == ["1"]
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    assert bench.delivered_bodies() == ["2"]


def test_a_released_letter_waits_for_its_copy(clock: Clock) -> None:
    bench = _bench()
    _unheard(bench, clock)
    act_on_parked.release([bench.letter(payload__body=b"1").pk], by="ann", reason="mended")
    bench.replay()
    assert (bench.lane().phase, len(bench.delivered())) == ("awaiting", 1)
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    assert bench.delivered_bodies() == ["1"]
    assert bench.history() == [(1, "unknown", 0), (2, None, 0)]


@pytest.mark.soak
def test_a_discard_keeps_its_key_while_a_copy_may_come_back(clock: Clock) -> None:
    bench = _bench(idempotency_key="attribute:n")
    _unheard(bench, clock)
    act_on_parked.discard([bench.letter(payload__body=b"1").pk], by="ann", reason="old")
    assert bench.delivered_bodies() == ["1"]
    bench.outlast(clock, WINDOW + 5)
    assert Claim.objects.get(letter__payload__body=b"1").state == "discarded"
    bench.replay()
    assert bench.delivered_bodies() == ["2"]


def test_with_advance_accepted_the_next_letter_goes_at_once(clock: Clock, end: End) -> None:
    bench = _bench(advance="accepted")
    end(bench, clock)
    bench.replay()
    assert bench.delivered_bodies() == ["1", "2"]
    assert bench.history()[0] == (1, "unknown", 0)


def test_the_status_says_until_when_the_copy_may_come_back(clock: Clock) -> None:
    bench = _bench()
    _unheard(bench, clock)
    deadline = Attempt.objects.get().deadline
    assert deadline is not None
    assert delivery_status.status_of(bench.letter(payload__body=b"1")).sentence == (
        "Its outcome is not known: it may have been sent, and no answer came, and it may come back until "
        f"{deadline:%Y-%m-%d %H:%M:%S} UTC. It is parked for review."
    )


def _equal_letters(clock: Clock) -> tuple[Workbench, Letter]:
    """Two letters of one idempotency key. The first is parked after a last attempt of unknown outcome."""
    bench = Workbench(
        fields={"idempotency_key": "attribute:event", "max_attempts": 1},
        absence={"window": WINDOW, "advance": "settled"},
    )
    bench.enqueue("1", "2", event="e")
    _unheard(bench, clock)
    return bench, bench.letter(state="parked")


def _give_another_key(bench: Workbench, letter: Letter) -> None:
    attributes = unpack_attributes(bytes(Payload.objects.get(letter=letter).attributes))
    assert letter.finished_at
    edit.edit_letter(
        letter.pk, SeenLetter(letter.finished_at, 0), Alteration(b"another", attributes, "another-key"),
        names=bench.conf.marks, replay=False, by="ann", reason="mended",
    )  # fmt: skip


def _send_elsewhere(bench: Workbench, letter: Letter) -> None:
    other = bench.another_target()
    act_on_parked.release([letter.pk], target=other.pk, by="ann", reason="mended")


@pytest.mark.soak
@pytest.mark.parametrize("done", [_give_another_key, _send_elsewhere])
def test_an_equal_letter_goes_after_the_letter_got_another_key_or_target(
    clock: Clock, done: Callable[[Workbench, Letter], None]
) -> None:
    bench, letter = _equal_letters(clock)
    done(bench, letter)
    bench.delivered()
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    equal = Letter.objects.exclude(pk=letter.pk).get()
    assert (equal.state, equal.attempts) == ("awaiting", 1)


@pytest.mark.soak
@pytest.mark.parametrize("done", [_give_another_key, _send_elsewhere])
def test_an_equal_letter_goes_when_the_copy_of_a_changed_letter_is_back(
    clock: Clock, done: Callable[[Workbench, Letter], None]
) -> None:
    bench, letter = _equal_letters(clock)
    (sent,) = bench.delivered()
    done(bench, letter)
    bench.take_back(sent)
    clock.advance(EQUAL_MAY_BE_THERE.total_seconds())  # which is less than the window
    bench.replay()
    equal = Letter.objects.exclude(pk=letter.pk).get()
    assert (equal.state, equal.attempts) == ("awaiting", 1)


@pytest.mark.soak
def test_a_restored_letter_keeps_its_key_while_a_copy_may_come_back(clock: Clock) -> None:
    bench, letter = _equal_letters(clock)
    act_on_parked.discard([letter.pk], by="ann", reason="old")
    act_on_parked.restore([letter.pk], by="ann", reason="not old")
    assert Claim.objects.get().state == "held"
    bench.replay()
    assert len(bench.delivered()) == 1
    bench.outlast(clock, WINDOW + 5)
    bench.replay()
    assert len(bench.delivered()) == 1


def _spend(bench: Workbench) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(max_attempts=1)


def _exceed(bench: Workbench) -> None:
    DlqCopy.objects.filter(letter__payload__body=b"1").update(receives=9)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(receive_limit=5)


def _quarantine(_: Workbench) -> None:
    rule("look", "quarantine", "attribute:n equals 1")


def _quarantine_released(bench: Workbench) -> None:
    Letter.objects.filter(payload__body=b"1").update(released_by="ann")
    _quarantine(bench)


def _hold(_: Workbench) -> None:
    rule("wait", "hold", "attribute:n equals 1")


def _discard(_: Workbench) -> None:
    rule("drop", "discard", "attribute:n equals 1")


_CLOSED = {
    "spent": (_spend, "parked attempts_spent", "free"),
    "received too often": (_exceed, "parked received_too_often", "free"),
    "quarantined": (_quarantine, "parked quarantined", "free"),
    "released, and quarantined": (_quarantine_released, "parked quarantined", "free"),
    "discarded": (_discard, "discarded ", "discarded"),
}


def _to_be_closed(clock: Clock, closes: Callable[[Workbench], None]) -> tuple[Workbench, Report]:
    """A first letter whose attempt ended unknown, and which is to end now."""
    bench = _bench(max_attempts=3, idempotency_key="attribute:n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeadLetterQueue, "backoff_delay", lambda *_: timedelta(hours=1))
        _unheard(bench, clock)
    closes(bench)
    Letter.objects.filter(state="waiting", payload__body=b"1").update(due_at=lanes.database_now())
    Lane.objects.update(phase="ready", due_at=lanes.database_now())
    return bench, bench.replay()


def _key(bench: Workbench) -> str:
    return Claim.objects.get(letter=bench.letter(payload__body=b"1")).state


@pytest.mark.soak
@pytest.mark.parametrize("why", _CLOSED)
def test_a_letter_that_is_to_end_keeps_lane_and_key_while_a_copy_may_come_back(clock: Clock, why: str) -> None:
    closes, ends, key = _CLOSED[why]
    bench, report = _to_be_closed(clock, closes)
    closed = Attempt.objects.earliest("id").closed_at
    letter, lane = bench.letter(payload__body=b"1"), bench.lane()
    assert closed is not None
    assert (report.parked, bench.delivered_bodies()) == (0, ["1"])
    assert (_first(bench), _key(bench), lane.phase, lane.why) == ("waiting ", "held", "ready", WAITS_FOR_COPY)
    assert (letter.due_at, lane.due_at) == (closed + timedelta(seconds=WINDOW),) * 2
    clock.advance(WINDOW + 1)
    bench.replay()
    assert (_first(bench), _key(bench)) == (ends, key)
    assert bench.delivered_bodies() == ["2"]


@pytest.mark.soak
@pytest.mark.parametrize("why", _CLOSED)
def test_a_letter_that_is_to_end_ends_when_its_copy_is_back(clock: Clock, why: str) -> None:
    closes, ends, key = _CLOSED[why]
    bench, _ = _to_be_closed(clock, closes)
    (sent,) = bench.delivered()
    bench.take_back(sent)
    bench.replay()
    assert (_first(bench), _key(bench), bench.history()[0]) == (ends, key, (1, "unknown", 0))
    assert bench.delivered_bodies() == ["2"]


@pytest.mark.soak
def test_a_held_letter_that_is_quarantined_keeps_its_lane(clock: Clock) -> None:
    bench, _ = _to_be_closed(clock, _hold)
    assert bench.lane().phase == "held"
    rule("wait", "quarantine", "attribute:n equals 1")
    route.wake_stopped(RuleBook.load())
    assert (_first(bench), bench.lane().phase, bench.lane().why) == ("waiting ", "ready", WAITS_FOR_COPY)
    clock.advance(WINDOW + 1)
    bench.replay()
    assert _first(bench) == "parked quarantined"


@pytest.mark.soak
def test_a_letter_released_after_its_window_ends_at_once(clock: Clock) -> None:
    bench = _bench()
    _unheard(bench, clock)
    assert bench.delivered_bodies() == ["1"]
    bench.outlast(clock, WINDOW + 5)
    rule("look", "quarantine", "attribute:n equals 1")
    act_on_parked.release([bench.letter(payload__body=b"1").pk], by="ann", reason="mended")
    bench.replay()
    assert (_first(bench), bench.delivered_bodies()) == ("parked quarantined", ["2"])
