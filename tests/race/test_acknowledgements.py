"""What a consumer says, at the same moment as a return, a promotion, a settlement, or the same thing said again."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from reprocessing.models import Attempt, DeadLetterQueue, Report
from reprocessing.models.target import Sighting
from reprocessing.pipeline.outcomes import record_reports, resolve_outcomes
from reprocessing.pipeline.outcomes.record_reports import Heard
from reprocessing.store.outcomes import acknowledgements
from reprocessing.store.outcomes.evidence import Ripe
from reprocessing.store.replay.settlement import presume
from tests.race.abreast import elsewhere, holding_lanes, together, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _taken(**fields: Any) -> Workbench:  # noqa: ANN401  of the dlq
    """A letter that its target took, and whose consumer is to say what became of it."""
    bench = Workbench(fields=fields, target_fields={"proof": "acknowledged", "advance": "settled", "window": 60})
    bench.bury("letter")
    bench.ready()
    bench.replay()
    return bench


def _says(verdict: str) -> Callable[[], Heard]:
    said = {"message_id": Attempt.objects.latest("no").sent_message_id, "verdict": verdict}
    return lambda: record_reports.told([said], reporter=None, dice=lambda: 0.0)


def _state(bench: Workbench) -> tuple[str, int, str]:
    letter = bench.letter()
    return letter.state, letter.epoch, bench.lane().phase


def test_what_is_said_twice_at_once_is_one_report() -> None:
    bench = _taken()
    found = together([_says("delivered"), _says("delivered"), _says("delivered")])
    assert sorted((one.accepted, one.repeated) for one in found) == [(0, 1), (0, 1), (1, 0)]
    assert (_state(bench), Report.objects.count()) == (("delivered", 0, "idle"), 1)


@pytest.mark.parametrize("round_", range(3))
def test_said_both_at_once_it_failed_whichever_comes_first(round_: int) -> None:
    bench = _taken()
    together([_says("delivered"), _says("failed")])
    assert _state(bench) == ("waiting", 1, "ready")
    assert bench.replay().taken == 1


@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_return_at_the_same_moment_reopens_the_letter_once(verdict: str) -> None:
    bench = _taken()
    bench.come_back(bench.delivered()[0])
    works: list[Callable[[], object]] = [_says(verdict), bench.capture]
    together(works)
    assert _state(bench) == ("waiting", 1, "ready")
    assert Attempt.objects.get().returned_at is not None
    assert (bench.replay().taken, bench.letter().attempts) == (1, 2)


@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_word_that_waited_for_a_return_comes_too_late(verdict: str) -> None:
    bench = _taken()
    bench.come_back(bench.delivered()[0])
    with elsewhere() as begin:
        with holding_lanes():
            hearing = begin(_says(verdict))
            waits_for_us()
            bench.capture()
        assert hearing.result(20) == Heard(accepted=1)
    assert (_state(bench), bench.history()) == (("waiting", 1, "ready"), [(1, "returned", 0)])


@pytest.mark.parametrize(("verdict", "state"), [("delivered", "waiting"), ("failed", "waiting")])
def test_a_return_that_waited_for_a_word_wins_over_it_and_does_not_count_twice(verdict: str, state: str) -> None:
    bench = _taken()
    bench.come_back(bench.delivered()[0])
    with elsewhere() as begin:
        with holding_lanes():
            capturing = begin(bench.capture)
            waits_for_us()
            _says(verdict)()
        capturing.result(20)
    assert _state(bench) == (state, 1, "ready")
    assert bench.history() == [(1, "acknowledged" if verdict == "delivered" else "failed", 0)]


def _ripe(bench: Workbench) -> Attempt:
    """The letter's absence seems proven."""
    attempt = Attempt.objects.get()
    assert attempt.taken_at
    for later in (0, 30):
        Sighting.objects.create(target=bench.target, seen_at=attempt.taken_at + timedelta(minutes=later))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=attempt.taken_at + timedelta(hours=1))
    return attempt


@pytest.mark.parametrize(
    ("verdict", "state", "outcome"), [("delivered", "delivered", "acknowledged"), ("failed", "waiting", "failed")]
)
def test_a_promotion_that_waited_for_a_word_promotes_nothing(verdict: str, state: str, outcome: str) -> None:
    bench = _taken()
    attempt = _ripe(bench)
    with elsewhere() as begin:
        with holding_lanes():
            promoting = begin(lambda: resolve_outcomes._close([Ripe(attempt.pk, attempt.lane_id)], presume))
            waits_for_us()
            _says(verdict)()
        promoting.result(20)
    assert (bench.letter().state, bench.letter().presumed, bench.history()) == (state, False, [(1, outcome, 0)])


@pytest.mark.parametrize(
    ("close", "outcome"), [(presume, "absent"), (acknowledgements.silence, "silent")], ids=["absent", "silent"]
)
@pytest.mark.parametrize("verdict", ["delivered", "failed"])
def test_a_word_that_waited_for_a_promotion_is_believed_after_it(
    close: Callable[..., Any], outcome: str, verdict: str
) -> None:
    bench = _taken()
    attempt = _ripe(bench)
    with elsewhere() as begin:
        with holding_lanes():
            hearing = begin(_says(verdict))
            waits_for_us()
            resolve_outcomes._close([Ripe(attempt.pk, attempt.lane_id)], close)
        hearing.result(20)
    parked = "parked" if outcome == "silent" else "waiting"  # what silence parked is a person's when it failed
    expected = "delivered" if verdict == "delivered" else parked
    assert (bench.letter().state, bench.letter().presumed) == (expected, False)
    assert bench.history() == [(1, outcome, 0)]


def test_a_word_on_a_letter_whose_lane_is_leased_for_the_next_leaves_the_lane_to_its_owner() -> None:
    bench = Workbench(
        fields={"ordering_key": "attribute:key"},
        target_fields={"proof": "acknowledged", "advance": "accepted", "window": 60},
    )
    for body in ("a1", "a2"):
        bench.bury(body, key="a")
    bench.ready()
    once = iter([False])
    bench.replay(stop=lambda: next(once, True))
    with bench.meanwhile(_says("failed")):
        bench.replay()
    assert bench.history() == [(1, "failed", 0), (1, None, 0), (2, None, 1)]
    assert bench.states() == {"a1": "awaiting", "a2": "awaiting"}


def test_two_calls_that_say_the_same_of_many_letters_in_other_orders_do_not_wait_for_each_other_for_ever() -> None:
    bench = Workbench(target_fields={"proof": "acknowledged", "window": 60})
    for number in range(20):
        bench.bury(str(number))
    bench.ready()
    bench.replay()
    said: list[object] = [
        {"message_id": one, "verdict": "delivered", "fingerprint": uuid.uuid4().hex}
        for one in Attempt.objects.values_list("sent_message_id", flat=True)
    ]
    orders = (said, said[::-1], said[10:] + said[:10])
    found = together([partial(record_reports.told, order, reporter=None, dice=lambda: 0.0) for order in orders])
    assert sum(one.accepted for one in found) == 20
    assert set(bench.states().values()) == {"delivered"}
