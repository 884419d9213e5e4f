"""Consumer reports, returns, promotions and settlements of one letter at the same moment."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from reprocessing.models import Attempt, DeadLetterQueue
from reprocessing.models.target import TargetCheck
from reprocessing.pipeline.outcomes import record_reports, resolve_outcomes
from reprocessing.pipeline.outcomes.record_reports import Recorded
from reprocessing.store.outcomes import acknowledgements
from reprocessing.store.outcomes.evidence import OpenAttempt
from reprocessing.store.replay.settlement import presume_delivered
from tests.race.abreast import overtaken, together
from tests.race.letters import bury
from tests.reprocessing.pipeline.bench import Workbench, redriven

pytestmark = pytest.mark.django_db(transaction=True)


def _taken() -> Workbench:
    """A letter that its target took, and whose consumer is to report the outcome."""
    return redriven("letter", target_fields={"proof": "acknowledged", "advance": "settled", "window": 60})


def _returned() -> Workbench:
    bench = _taken()
    bench.come_back(bench.delivered()[0])
    return bench


def _reports(verdict: str) -> Callable[[], Recorded]:
    said = {"message_id": Attempt.objects.latest("no").sent_message_id, "verdict": verdict}
    return lambda: record_reports.record_json([said], reporter=None, dice=lambda: 0.0)


def _closes(attempt: Attempt, how: Callable[..., Any] = presume_delivered) -> Callable[[], object]:
    return lambda: resolve_outcomes._close([OpenAttempt(attempt.pk, attempt.lane_id)], how)


def _state(bench: Workbench) -> tuple[str, int, str]:
    letter = bench.letter()
    return letter.state, letter.epoch, bench.lane().phase


@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_report_that_waited_for_a_return_comes_too_late(verdict: str) -> None:
    bench = _returned()
    assert overtaken(_reports(verdict), bench.capture) == Recorded(accepted=1)
    assert (_state(bench), bench.history()) == (("waiting", 1, "ready"), [(1, "returned", 0)])


@pytest.mark.parametrize(("verdict", "outcome"), [("delivered", "acknowledged"), ("failed", "failed")])
def test_a_return_that_waited_for_a_report_wins_and_does_not_count_twice(verdict: str, outcome: str) -> None:
    bench = _returned()
    overtaken(bench.capture, _reports(verdict))
    assert (_state(bench), bench.history()) == (("waiting", 1, "ready"), [(1, outcome, 0)])


def _ripe(bench: Workbench) -> Attempt:
    attempt = Attempt.objects.get()
    assert attempt.taken_at
    for later in (0, 30):
        TargetCheck.objects.create(target=bench.target, seen_at=attempt.taken_at + timedelta(minutes=later))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=attempt.taken_at + timedelta(hours=1))
    return attempt


@pytest.mark.parametrize(
    ("verdict", "state", "outcome"), [("delivered", "delivered", "acknowledged"), ("failed", "waiting", "failed")]
)
def test_a_promotion_that_waited_for_a_report_promotes_nothing(verdict: str, state: str, outcome: str) -> None:
    bench = _taken()
    overtaken(_closes(_ripe(bench)), _reports(verdict))
    assert (bench.letter().state, bench.letter().presumed, bench.history()) == (state, False, [(1, outcome, 0)])


@pytest.mark.parametrize(
    ("close", "outcome"),
    [(presume_delivered, "absent"), (acknowledgements.close_silent, "silent")],
    ids=["absent", "silent"],
)
@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_report_that_waited_for_a_promotion_is_applied_after_it(
    close: Callable[..., Any], outcome: str, verdict: str
) -> None:
    bench = _taken()
    overtaken(_reports(verdict), _closes(_ripe(bench), close))
    parked = "parked" if outcome == "silent" else "waiting"  # a person decides about what silence parked
    expected = "delivered" if verdict == "delivered" else parked
    assert (bench.letter().state, bench.letter().presumed) == (expected, False)
    assert bench.history() == [(1, outcome, 0)]


def test_a_report_on_a_letter_whose_lane_is_leased_for_the_next_leaves_the_lane_to_its_owner() -> None:
    bench = Workbench(
        fields={"ordering_key": "attribute:key"},
        target_fields={"proof": "acknowledged", "advance": "accepted", "window": 60},
    )
    for body in ("a1", "a2"):
        bench.bury(body, key="a")
    bench.ready()
    once = iter([False])
    bench.replay(stop=lambda: next(once, True))
    with bench.meanwhile(_reports("failed")):
        bench.replay()
    assert bench.history() == [(1, "failed", 0), (1, None, 0), (2, None, 1)]
    assert bench.states() == {"a1": "awaiting", "a2": "awaiting"}


def test_simultaneous_calls_with_equal_reports_in_other_orders_do_not_deadlock() -> None:
    bench = Workbench(target_fields={"proof": "acknowledged", "window": 60})
    bury(bench, 20)
    bench.ready()
    bench.replay()
    said: list[object] = [
        {"message_id": sent, "verdict": "delivered", "fingerprint": uuid.uuid4().hex}
        for sent in Attempt.objects.values_list("sent_message_id", flat=True)
    ]
    orders = (said, said[::-1], said[10:] + said[:10])
    found = together([partial(record_reports.record_json, order, reporter=None, dice=lambda: 0.0) for order in orders])
    assert sum(heard.accepted for heard in found) == 20
    assert set(bench.states().values()) == {"delivered"}


# A return and a promotion


def _returned_and_ripe() -> Workbench:
    """A letter whose absence seems proven, while its copy is in the DLQ."""
    bench = Workbench()
    bench.judge_by_absence(window=0)
    bench.redrive("letter")
    bench.come_back(bench.delivered()[0])
    _ripe(bench)
    return bench


def _is_queued_again(bench: Workbench) -> None:
    letter, lane = bench.letter(), bench.lane()
    assert (letter.state, letter.epoch, letter.presumed, letter.finished_at) == ("waiting", 1, False, None)
    assert (lane.phase, lane.due_at is not None) == ("ready", True)
    assert bench.replay().taken == 1


def test_a_promotion_that_waited_for_a_return_promotes_nothing() -> None:
    bench = _returned_and_ripe()
    overtaken(_closes(Attempt.objects.get()), bench.capture)
    assert bench.history() == [(1, "returned", 0)]
    _is_queued_again(bench)


def test_a_return_that_waited_for_a_promotion_queues_the_promoted_letter() -> None:
    bench = _returned_and_ripe()

    def promote() -> None:
        bench.promote()
        assert bench.letter().state == "delivered"

    overtaken(bench.capture, promote)
    assert bench.history() == [(1, "absent", 0)]
    _is_queued_again(bench)


def test_a_letter_that_returns_before_its_send_is_settled_is_settled_once() -> None:
    bench = Workbench()

    def back() -> None:
        bench.take_back(bench.delivered()[0])

    bench.enqueue("letter")
    once = iter([False, True])
    with bench.meanwhile(back):
        bench.replay(stop=lambda: next(once))
    assert bench.history() == [(1, "returned", 0)]
    assert (bench.letter().state, bench.letter().epoch, bench.letter().attempts) == ("waiting", 1, 1)
    assert bench.replay().taken == 1
