"""A return and a promotion of the same letter, at the same moment: it is never both delivered and lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reprocessing.models import Attempt, DeadLetterQueue
from reprocessing.models.target import Sighting
from reprocessing.pipeline.outcomes import resolve_outcomes
from reprocessing.store.outcomes.evidence import Ripe
from reprocessing.store.replay.settlement import presume
from tests.race.abreast import elsewhere, holding_lanes, together, waits_for_us
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _come_back_and_ripe() -> Workbench:
    """A letter whose absence seems proven, while its copy lies in the dlq."""
    bench = Workbench()
    bench.judge_by_absence(window=0)
    bench.bury("letter")
    bench.ready()
    bench.replay()
    bench.come_back(bench.delivered()[0])
    taken = Attempt.objects.get().taken_at
    assert taken is not None
    for later in (0, 30):
        Sighting.objects.create(target=bench.target, seen_at=taken + timedelta(minutes=later))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=taken + timedelta(hours=1))
    return bench


def _waits_to_be_sent_again(bench: Workbench) -> None:
    letter, lane = bench.letter(), bench.lane()
    assert (letter.state, letter.epoch, letter.presumed, letter.finished_at) == ("waiting", 1, False, None)
    assert (lane.phase, lane.due_at is not None) == ("ready", True)
    assert bench.replay().taken == 1


@pytest.mark.parametrize("round_", range(3))
def test_whichever_comes_first_the_letter_waits_to_be_sent_again(round_: int) -> None:
    bench = _come_back_and_ripe()
    works: list[Callable[[], object]] = [bench.capture, bench.promote]
    together(works)
    _waits_to_be_sent_again(bench)


def test_a_promotion_that_waited_for_a_return_promotes_nothing() -> None:
    bench = _come_back_and_ripe()
    attempt = Attempt.objects.get()
    with elsewhere() as begin:
        with holding_lanes():
            promoting = begin(lambda: resolve_outcomes._close([Ripe(attempt.pk, attempt.lane_id)], presume))
            waits_for_us()
            bench.capture()
        promoting.result(20)
    assert bench.history() == [(1, "returned", 0)]
    _waits_to_be_sent_again(bench)


def test_a_return_that_waited_for_a_promotion_reopens_what_was_promoted() -> None:
    bench = _come_back_and_ripe()
    with elsewhere() as begin:
        with holding_lanes():
            capturing = begin(bench.capture)
            waits_for_us()
            bench.promote()
            assert bench.letter().state == "delivered"
        capturing.result(20)
    assert bench.history() == [(1, "absent", 0)]
    _waits_to_be_sent_again(bench)


def test_a_letter_that_is_back_before_its_send_is_settled_is_settled_once() -> None:
    bench = Workbench()

    def back() -> None:
        bench.come_back(bench.delivered()[0])
        bench.capture()

    bench.bury("letter")
    bench.ready()
    once = iter([False, True])
    with bench.meanwhile(back):
        bench.replay(stop=lambda: next(once))
    assert bench.history() == [(1, "returned", 0)]
    assert (bench.letter().state, bench.letter().epoch, bench.letter().attempts) == ("waiting", 1, 1)
    assert bench.replay().taken == 1
