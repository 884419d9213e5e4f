"""Letters are presumed delivered only with evidence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from django.db import DatabaseError

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.outcomes.delivery_status import OutcomeSource
from reprocessing.gateways.aws import request_threads
from reprocessing.gateways.sqs import Depth, QueueAddress
from reprocessing.gateways.sqs import depth as depth_of
from reprocessing.models import Attempt, Claim, DeadLetterQueue, DlqCopy, Target
from reprocessing.models.target import TargetCheck
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.store.aws import metrics
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.outcomes import evidence
from reprocessing.store.outcomes.delivery_status import status_of
from reprocessing.store.outcomes.evidence import TargetLook
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

LAG, WINDOW = 60.0, 100.0


def _awaiting() -> tuple[Workbench, datetime]:
    bench = Workbench(fields={"idempotency_key": "attribute:idem"}, absence={"window": WINDOW})
    bench.redrive("letter", idem="k")
    taken = Attempt.objects.get().taken_at
    assert taken is not None
    return bench, taken


def _failed_after_the_first_look(clock: Clock) -> Workbench:
    """A letter that is in flight at the first look, and becomes visible after it."""
    bench, _ = _awaiting()
    target = {"QueueUrl": bench.source_url}
    (out,) = bench.sqs.receive_message(**target, VisibilityTimeout=600)["Messages"]
    clock.advance(LAG + 1)
    bench.promote()  # nothing is visible
    bench.sqs.change_message_visibility(**target, ReceiptHandle=out["ReceiptHandle"], VisibilityTimeout=0)
    return bench


def _drain(bench: Workbench, taken: datetime, seconds: float) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=taken + timedelta(seconds=seconds))


def _see(bench: Workbench, taken: datetime, *seconds: float) -> None:
    for later in seconds:
        TargetCheck.objects.create(target=bench.target, seen_at=taken + timedelta(seconds=later))


def test_what_the_target_accepted_is_delivered_as_soon_as_acceptance_is_enough() -> None:
    bench, _ = _awaiting()
    assert (bench.promote(), bench.states()) == (0, {"letter": "awaiting"})
    Target.objects.filter(pk=bench.target.pk).update(proof="accepted")
    assert (bench.promote(), bench.states()) == (1, {"letter": "delivered"})
    assert (bench.letter().presumed, bench.history()) == (False, [(1, "accepted", 0)])
    assert status_of(bench.letter()).how is OutcomeSource.ACCEPTED


def test_one_search_for_evidence_serves_several_transactions(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(absence={"window": WINDOW})
    bench.redrive(*"abcde")
    for name, most in (("_GROUP", 2), ("_FOUND", 4)):
        monkeypatch.setattr(resolve_outcomes, name, most)
    closed = Mock(wraps=resolve_outcomes._close)
    monkeypatch.setattr(resolve_outcomes, "_close", closed)
    bench.delivered()
    assert bench.outlast(clock, LAG + WINDOW + 1) == 5
    assert set(bench.states().values()) == {"delivered"}
    assert [len(call.args[0]) for call in closed.call_args_list] == [2, 2, 1]


def test_attempts_that_another_worker_has_closed_are_not_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = _awaiting()
    Target.objects.filter(pk=bench.target.pk).update(proof="accepted")
    found = evidence.accepted_attempts(limit=10)
    assert (bench.promote(), bench.states()) == (1, {"letter": "delivered"})
    monkeypatch.setattr(evidence, "accepted_attempts", lambda **_: found)
    monkeypatch.setattr(resolve_outcomes, "_close", Mock(side_effect=AssertionError))
    assert bench.promote() == 0


def test_where_acceptance_is_enough_no_delivery_is_presumed() -> None:
    """It was seen empty twice, too, but what is known is more than what may be presumed."""
    bench, taken = _awaiting()
    _see(bench, taken, 60, 160)
    _drain(bench, taken, 160)
    Target.objects.filter(pk=bench.target.pk).update(proof="accepted")
    assert (bench.promote(), bench.letter().presumed) == (1, False)


@pytest.mark.parametrize(
    ("seen", "drained", "ripe"),
    [
        ([60, 160], 160, 1),
        ([60, 160, 400], 160, 1),
        ([59, 160], 160, 0),  # seen before SQS's count could be trusted
        ([60, 160], 159, 0),  # a failure after that sighting would come back later than the capture
        ([60, 159], 160, 0),  # what was in flight then may have failed, and lie there since
        ([60, 161], 160, 0),  # it may have lain there until after that capture, and be dead by the second look
        ([60, 161, 400], 161, 1),
        ([60, 100, 170, 400], 165, 0),
        ([60], 160, 0),  # never seen empty again
        ([], 160, 0),  # never seen empty
        ([60, 160], None, 0),  # never drained
        ([0, 99], 99, 0),
    ],
)
def test_the_evidence_of_absence(seen: list[int], drained: int | None, ripe: int) -> None:
    bench, taken = _awaiting()
    _see(bench, taken, *seen)
    if drained is not None:
        _drain(bench, taken, drained)
    assert len(evidence.presumable_attempts(count_lag=LAG, limit=10)) == ripe


def test_a_letter_is_not_presumed_delivered_before_its_deadline() -> None:
    bench, taken = _awaiting()
    Target.objects.filter(pk=bench.target.pk).update(window=0, visibility=0)  # lowered since the letter was sent
    _see(bench, taken, 0, 1)
    _drain(bench, taken, 99)
    assert evidence.presumable_attempts(count_lag=0, limit=10) == []
    _drain(bench, taken, 101)
    assert len(evidence.presumable_attempts(count_lag=0, limit=10)) == 1


@pytest.mark.parametrize(("again", "ripe"), [(189, 0), (190, 1)])
def test_looks_are_at_least_a_visibility_timeout_and_a_count_lag_apart(again: int, ripe: int) -> None:
    """The visibility timeout is 70 s, the count lag 60 s."""
    bench, taken = _awaiting()
    Target.objects.filter(pk=bench.target.pk).update(visibility=70)
    _see(bench, taken, 60, again)
    _drain(bench, taken, 300)
    assert len(evidence.presumable_attempts(count_lag=LAG, limit=10)) == ripe


@pytest.mark.parametrize(
    ("first", "again", "drained", "ripe"),
    [
        (0, 5, 165, 1),
        (0, 5, 164, 0),  # the capture began while the second answer was on its way
        (1, 0, 200, 0),  # from the first answer to the second question it is less than a window
    ],
)
def test_a_look_may_be_as_late_as_its_answer(first: float, again: float, drained: float, ripe: int) -> None:
    bench, taken = _awaiting()
    for seconds, took in ((60, first), (160, again)):
        TargetCheck.objects.create(target=bench.target, seen_at=taken + timedelta(seconds=seconds), took=took)
    _drain(bench, taken, drained)
    assert len(evidence.presumable_attempts(count_lag=LAG, limit=10)) == ripe


def test_an_observed_dlq_proves_nothing() -> None:
    bench, taken = _awaiting()
    _see(bench, taken, 60, 160)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(
        drained_through=taken + timedelta(seconds=160), mode="observe"
    )
    assert evidence.presumable_attempts(count_lag=LAG, limit=10) == []


@pytest.mark.soak
def test_a_target_with_messages_is_no_evidence(clock: Clock) -> None:
    bench, _ = _awaiting()  # nobody has received it from its queue
    clock.advance(LAG + WINDOW + 1)
    for _ in range(2):
        assert bench.promote() == 0
        bench.capture()
    assert TargetCheck.objects.count() == 0
    bench.delivered()
    bench.promote()
    clock.advance(WINDOW + 1)
    bench.promote()
    bench.capture()
    assert bench.promote() == 1


def test_a_letter_that_fails_after_the_capture_is_not_presumed_delivered(clock: Clock) -> None:
    bench = _failed_after_the_first_look(clock)  # its consumer pauses
    clock.advance(WINDOW + 1)
    assert bench.capture().captured.drained
    bench.come_back(bench.delivered()[0])  # the pause is over, and it dies
    assert (bench.promote(), bench.states()) == (0, {"letter": "awaiting"})
    assert bench.capture().captured.returns == 1
    assert bench.history() == [(1, "returned", 0)]


def test_a_presumed_letter_has_its_copy_deleted_and_its_key_used() -> None:
    bench, taken = _awaiting()
    bench.delivered()
    _see(bench, taken, 60, 160)
    _drain(bench, taken, 160)
    assert bench.promote() == 1
    letter = bench.letter()
    assert (letter.state, letter.presumed, letter.finished_at is not None) == ("delivered", True, True)
    assert bench.history() == [(1, "absent", 0)]
    assert (Claim.objects.get().state, bench.left(), bench.lane().phase) == ("delivered", 0, "idle")
    assert bench.promote() == 0


def test_a_promotion_that_is_rolled_back_deletes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, taken = _awaiting()
    bench.delivered()
    _see(bench, taken, 60, 160)
    _drain(bench, taken, 160)
    monkeypatch.setattr(lane_state, "advance", Mock(side_effect=DatabaseError("gone")))
    with pytest.raises(DatabaseError):
        bench.promote()
    assert (bench.left(), bench.states(), DlqCopy.objects.get().state) == (1, {"letter": "awaiting"}, "held")


def _two_targets(monkeypatch: pytest.MonkeyPatch) -> tuple[Workbench, Workbench]:
    """Two DLQs with a consumed letter each, whose targets are asked in this order."""
    first, second = Workbench(), Workbench()
    for bench in (first, second):
        bench.judge_by_absence(window=WINDOW)
        bench.redrive("letter")
        bench.delivered()
    watched = evidence.watched_targets
    monkeypatch.setattr(evidence, "watched_targets", lambda: sorted(watched(), key=lambda target: target.target_id))
    return first, second


def _each_look_takes(
    seconds: float, monkeypatch: pytest.MonkeyPatch, answer: Callable[[QueueAddress], Depth] = depth_of
) -> list[str]:
    """Ask one target after another, for so long each. Return the list of URLs."""
    now, asked = 100.0, list[str]()

    def depth(address: QueueAddress) -> Depth:
        nonlocal now
        now += seconds
        asked.append(address.url)
        return answer(address)

    monkeypatch.setattr(resolve_outcomes, "suspend_aware_clock", lambda: lambda: now)
    monkeypatch.setattr(request_threads, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(resolve_outcomes, "_THREADS", 1)
    monkeypatch.setattr(resolve_outcomes, "depth", depth)
    return asked


@pytest.mark.soak
@pytest.mark.parametrize("fault", [QueueUnreachable("no answer"), RuntimeError("nobody thought of it")])
def test_a_look_is_noted_though_another_target_does_not_answer(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _two_targets(monkeypatch)
    noted, sight, in_time = Event(), evidence.record_looks, list[bool]()

    def depth(address: QueueAddress) -> Depth:
        if address.url == first.target.url:
            in_time.append(noted.wait(60))
            raise fault
        return depth_of(address)

    def note(looks: list[TargetLook], *, at: datetime, took: float) -> None:
        sight(looks, at=at, took=took)
        noted.set()

    monkeypatch.setattr(resolve_outcomes, "depth", depth)
    monkeypatch.setattr(evidence, "record_looks", note)
    first.promote()
    assert (in_time, list(TargetCheck.objects.values_list("target", flat=True))) == ([True], [second.target.pk])


def test_each_look_has_the_time_of_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _two_targets(monkeypatch)
    _each_look_takes(5, monkeypatch)
    first.promote()
    seen = {look.target_id: look.seen_at for look in TargetCheck.objects.all()}
    assert seen[second.target.pk] - seen[first.target.pk] == timedelta(seconds=5)
    assert set(TargetCheck.objects.values_list("took", flat=True)) == {5.0}


def test_a_look_after_a_sleep_may_be_as_early_as_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = _awaiting()
    bench.delivered()
    now, clock = 100.0, lanes.database_now

    def slept() -> datetime:
        nonlocal now
        now += 3_600
        return clock()

    monkeypatch.setattr(resolve_outcomes, "suspend_aware_clock", lambda: lambda: now)
    monkeypatch.setattr(lanes, "database_now", slept)
    bench.promote()
    assert TargetCheck.objects.get().took == 3_600


def test_targets_out_of_reach_do_not_delay_promotion(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = _two_targets(monkeypatch)
    asked = _each_look_takes(
        13, monkeypatch, Mock(side_effect=QueueUnreachable("no answer"))
    )  # as long as a connection and an answer may take
    first.promote()
    assert asked == [first.target.url]


@pytest.mark.soak
def test_one_worker_looks_at_a_time_and_the_others_promote(clock: Clock) -> None:
    bench, taken = _awaiting()
    assert metrics.claim_if_due("look", every=30.0)  # somebody else's
    _see(bench, taken, LAG, LAG + WINDOW)
    DeadLetterQueue.objects.update(drained_through=taken + timedelta(seconds=LAG + WINDOW))
    clock.advance(5)
    assert (bench.promote(), TargetCheck.objects.count()) == (1, 2)
    TargetCheck.objects.all().delete()
    DeadLetterQueue.objects.update(drained_through=None)
    bench.redrive("another", idem="another")
    bench.delivered()
    assert (bench.promote(), TargetCheck.objects.count()) == (0, 0)
    clock.advance(26)  # whoever looked has died
    assert [(bench.promote(), TargetCheck.objects.count()) for _ in range(2)] == [(0, 1), (0, 2)]


@pytest.mark.soak
def test_the_dice_decide_which_target_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = _two_targets(monkeypatch)
    asked, throws = _each_look_takes(0, monkeypatch), iter([0.9, 0.1])
    resolve_outcomes.resolve_letters(conf=first.conf, dice=lambda: next(throws))
    assert asked == [second.target.url, first.target.url]


@pytest.mark.soak
def test_a_letter_that_is_visible_in_its_target_is_not_presumed_delivered(clock: Clock) -> None:
    bench = _failed_after_the_first_look(clock)  # its consumer has gone
    clock.advance(WINDOW + 1)
    assert bench.capture().captured.drained
    assert (bench.promote(), bench.states()) == (0, {"letter": "awaiting"})
    assert TargetCheck.objects.filter(empty=True).count() == 1
    bench.delivered()
    assert bench.promote() == 0
    bench.capture()
    assert bench.promote() == 1


def test_looks_are_kept_for_the_longest_window(clock: Clock) -> None:
    bench, _ = _awaiting()
    Target.objects.filter(pk=bench.target.pk).update(window=2 * 86_400.0)
    bench.delivered()
    bench.promote()
    clock.advance(2 * 86_400 + 60)
    bench.promote()
    assert TargetCheck.objects.count() == 2
    clock.advance(86_400)
    bench.promote()
    assert TargetCheck.objects.count() == 2
