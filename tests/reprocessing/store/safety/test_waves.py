"""A run's open wave is settled by what its letters came to: the next one opens, or the run pauses and says why."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from reprocessing.models import Attempt, Breaker, DeadLetter, DeadLetterQueue, Lane, RateClass, Review, Run, Wave
from reprocessing.store.ordering.lanes import clock
from reprocessing.store.safety import waves
from tests.race.abreast import elsewhere, together, waits_for_us
from tests.reprocessing.post import statements
from tests.reprocessing.store.stock import Stock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def stock() -> Stock:
    """A running run that goes in waves, at its beginning."""
    stock = Stock()
    Run.objects.filter(pk=stock.run.pk).update(waves=True)
    with transaction.atomic():
        waves.begin(stock.run.pk)
    return stock


def opened(stock: Stock) -> Wave:
    return Wave.objects.get(run=stock.run, settled_at=None)


def history(stock: Stock) -> list[tuple[int | None, int | None, int | None]]:
    """Size, touched and failed of every wave."""
    return list(Wave.objects.filter(run=stock.run).order_by("no").values_list("size", "touched", "failed"))


def go(stock: Stock, outcomes: Sequence[str | None], *, ill: bool | None = None, **fields: Any) -> list[Attempt]:  # noqa: ANN401
    """Letters sent for the first time in the open wave; None: nothing is known of it yet."""
    wave, made = opened(stock), list[Attempt]()
    for outcome in outcomes:
        lane = Lane.objects.create(dlq=stock.dlq, origin=stock.origin, key_hash=uuid.uuid4().bytes, run=stock.run)
        letter = stock.another_letter(lane=lane, state="awaiting" if outcome is None else "waiting")
        made.append(_attempt(stock, letter, outcome, wave=wave, ill=ill, **fields))
    return made


def _attempt(stock: Stock, letter: DeadLetter, outcome: str | None, *, no: int = 1, **fields: Any) -> Attempt:  # noqa: ANN401
    assert letter.lane
    closed = {"outcome": outcome, "closed_at": clock()} if outcome else {}
    return Attempt.objects.create(
        letter=letter, lane=letter.lane, target=stock.target, run=stock.run, no=no, epoch=0, fence=1,
        opened_at=clock(), holds_lane=False,
        **{"breaker": stock.target.breakers.get(rate_class=None), **closed, **fields},
    )  # fmt: skip


def paused(stock: Stock) -> Run | None:
    return Run.objects.filter(pk=stock.run.pk, state="paused").first()


def test_a_run_goes_from_one_letter_to_ten_to_a_hundred_to_all(stock: Stock) -> None:
    for size in (1, 10, 100):
        go(stock, ["accepted"] * size)
        assert waves.look([stock.run.pk]) == []
    assert history(stock) == [(1, 1, 0), (10, 10, 0), (100, 100, 0), (None, None, None)]


def test_a_wave_waits_until_the_last_of_its_letters_is_settled(stock: Stock) -> None:
    (sent,) = go(stock, [None])
    waves.look([stock.run.pk])
    assert history(stock) == [(1, None, None)]
    Attempt.objects.filter(pk=sent.pk).update(outcome="absent", closed_at=clock())
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (10, None, None)]


def test_three_letters_that_fail_one_after_another_pause_the_run_which_says_how_to_go_on(stock: Stock) -> None:
    for _ in range(2):
        go(stock, ["returned"])
        assert waves.look([stock.run.pk]) == []
    go(stock, ["returned"])
    (stopped,) = waves.look([stock.run.pk])
    run = paused(stock)
    assert run
    assert (stopped.run_id, stopped.name, stopped.why) == (run.pk, run.name, run.why)
    assert (run.stopped_by, run.why) == (
        "the service",
        "It stopped itself: 3 waves of one message failed in a row.",
    )
    review = Review.objects.get(run=run)
    assert (review.act, review.by, review.before, review.after) == (
        "paused", "the service", {"state": "running"}, {"state": "paused"},
    )  # fmt: skip
    assert history(stock) == [(1, 1, 1)] * 3


def test_a_failed_wave_of_ten_stops_as_soon_as_it_cannot_succeed_any_more(stock: Stock) -> None:
    go(stock, ["accepted"])
    waves.look([stock.run.pk])
    go(stock, ["returned", "returned", None])
    assert waves.look([stock.run.pk]) == []
    go(stock, ["unknown"], ill=True)
    (stopped,) = waves.look([stock.run.pk])
    assert "3 of the 4 messages sent in its wave of 10 failed; 80 % of a wave must succeed" in stopped.why
    assert history(stock) == [(1, 1, 0), (10, 4, 3)]


def test_a_poison_letter_is_a_failed_letter_and_another_is_tried(stock: Stock) -> None:
    go(stock, ["refused"])
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 1), (1, None, None)]


def test_what_went_well_and_came_back_later_has_failed(stock: Stock) -> None:
    go(stock, ["accepted"], returned_at=clock())
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 1), (1, None, None)]


@pytest.mark.parametrize(("then", "verdict"), [("accepted", (10, None, None)), ("refused", (1, None, None))])
def test_a_letter_that_was_not_sent_is_judged_by_its_next_try(
    stock: Stock, then: str, verdict: tuple[int, None, None]
) -> None:
    (attempt,) = go(stock, ["not_sent"])
    waves.look([stock.run.pk])
    assert history(stock) == [(1, None, None)]
    _attempt(stock, attempt.letter, then, no=2)
    waves.look([stock.run.pk])
    assert history(stock)[-1] == verdict


def test_a_letter_that_ended_without_having_been_sent_says_nothing(stock: Stock) -> None:
    (attempt,) = go(stock, ["not_sent"])
    DeadLetter.objects.filter(pk=attempt.letter_id).update(state="discarded", finished_at=clock())
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (1, None, None)]


def test_a_letter_that_an_earlier_one_goes_before_says_nothing_until_it_goes_again(stock: Stock) -> None:
    (attempt,) = go(stock, ["unknown"])
    waves.look([stock.run.pk])
    assert history(stock) == [(1, None, None)]
    stock.another_letter(lane=attempt.lane, sequence="0")
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (1, None, None)]


def test_a_letter_whose_lane_is_held_says_nothing(stock: Stock) -> None:
    (attempt,) = go(stock, ["unknown"])
    Lane.objects.filter(pk=attempt.lane_id).update(phase="held")
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (1, None, None)]


def test_a_letter_whose_consumer_said_nothing_says_nothing(stock: Stock) -> None:
    (attempt,) = go(stock, ["silent"])
    DeadLetter.objects.filter(pk=attempt.letter_id).update(state="parked", reason="no_answer", finished_at=clock())
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (1, None, None)]


def test_a_letter_whose_consumer_said_too_late_that_it_worked_went_well_though_it_was_released(stock: Stock) -> None:
    go(stock, ["silent"], ill=False)
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 0), (10, None, None)]


def test_a_letter_that_rests_because_its_target_asked_for_it_is_waited_for(stock: Stock) -> None:
    (attempt,) = go(stock, ["not_sent"])
    DeadLetter.objects.filter(pk=attempt.letter_id).update(due_at=clock() + timedelta(days=1), released_by="ann")
    waves.look([stock.run.pk])
    assert history(stock) == [(1, None, None)]


def _last_wave(stock: Stock) -> None:
    Wave.objects.filter(run=stock.run).update(size=None)


def test_in_the_last_wave_it_stops_when_too_many_of_the_last_hundred_failed(stock: Stock) -> None:
    _last_wave(stock)
    go(stock, ["accepted"] * 60 + ["refused"] * 20 + ["accepted"] * 20)
    assert waves.look([stock.run.pk]) == []
    go(stock, [None, "refused"])
    (stopped,) = waves.look([stock.run.pk])
    assert "21 of its last 100 messages failed" in stopped.why
    assert history(stock) == [(None, 102, 21)]


def test_a_standing_run_s_wave_that_failed_opens_the_breakers_of_what_failed_and_begins_anew(stock: Stock) -> None:
    Run.objects.update(kind="standing")
    vip, slow = (
        Breaker.objects.create(target=stock.target, rate_class=RateClass.objects.create(name=name))
        for name in ("vip", "slow")
    )
    Wave.objects.filter(run=stock.run).update(size=10)
    go(stock, ["accepted"] * 2)
    for outcome, breaker, epoch in (("refused", vip, 0), ("refused", slow, 1), ("accepted", slow, 0)):
        go(stock, [outcome] * 2, ill=outcome == "refused", breaker=breaker, breaker_epoch=epoch)
    assert waves.look([stock.run.pk]) == []
    states = dict(Breaker.objects.values_list("rate_class__name", "state"))
    assert states == {None: "closed", "vip": "open", "slow": "closed"}
    assert (Run.objects.get().state, history(stock)) == ("running", [(10, 8, 4), (1, None, None)])


@pytest.mark.parametrize(
    ("size", "poison", "failed", "state"),
    [(1, 1, 0, "closed"), (10, 3, 0, "closed"), (10, 2, 1, "closed"), (10, 6, 2, "open"), (None, 21, 0, "closed")],
)
def test_poison_letters_of_a_standing_run_begin_its_waves_anew_and_open_no_breaker(
    stock: Stock, size: int | None, poison: int, failed: int, state: str
) -> None:
    """But where what is left failed too often, too, the breaker opens for that."""
    Run.objects.update(kind="standing")
    Wave.objects.update(size=size)
    go(stock, ["refused"] * failed, ill=True)
    go(stock, ["refused"] * poison)
    assert waves.look([stock.run.pk]) == []
    assert Breaker.objects.get().state == state
    assert (Run.objects.get().state, history(stock)) == (
        "running", [(size, poison + failed, poison + failed), (1, None, None)],
    )  # fmt: skip


def test_the_third_poison_letter_in_a_row_opens_the_breaker(stock: Stock) -> None:
    Run.objects.update(kind="standing")
    states = []
    for _ in range(3):
        go(stock, ["refused"])
        waves.look([stock.run.pk])
        states.append(Breaker.objects.get().state)
    assert states == ["closed", "closed", "open"]


def test_a_failed_wave_opens_no_breaker_of_which_only_poison_failed(stock: Stock) -> None:
    Run.objects.update(kind="standing")
    vip = Breaker.objects.create(target=stock.target, rate_class=RateClass.objects.create(name="vip"))
    Wave.objects.update(size=10)
    go(stock, ["refused"] * 3, ill=True)
    go(stock, ["refused"], breaker=vip)
    waves.look([stock.run.pk])
    assert dict(Breaker.objects.values_list("rate_class__name", "state")) == {None: "open", "vip": "closed"}


def test_failures_after_which_the_breaker_has_opened_do_not_stop_the_last_wave(stock: Stock) -> None:
    _last_wave(stock)
    go(stock, ["refused"] * 30, ill=True)
    Breaker.objects.update(state="open", retry_at=clock(), rest=30, epoch=1)
    assert waves.look([stock.run.pk]) == []
    Breaker.objects.update(state="closed", retry_at=None, failing_since=None, epoch=2)
    go(stock, ["refused"] * 30, ill=True, breaker_epoch=2)
    assert len(waves.look([stock.run.pk])) == 1


def test_what_was_sent_after_the_newest_that_is_settled_is_not_counted_yet(stock: Stock) -> None:
    _last_wave(stock)
    go(stock, ["refused"] * 5 + ["accepted"] * 14 + [None] * 60)
    assert waves.look([stock.run.pk]) == []
    go(stock, ["refused"])
    assert waves.look([stock.run.pk]) == []


def test_a_look_costs_one_statement_when_nothing_follows(stock: Stock) -> None:
    go(stock, [None])
    with statements() as sent:
        waves.look([stock.run.pk])
    assert len(sent) == 1


@pytest.mark.parametrize("state", ["planned", "paused", "aborted", "finished"])
def test_a_run_that_does_not_run_is_left_alone(stock: Stock, state: str) -> None:
    go(stock, ["accepted"])
    Run.objects.filter(pk=stock.run.pk).update(state=state, why="w", stopped_by="s", finished_at=clock())
    assert waves.look([stock.run.pk]) == []
    assert history(stock) == [(1, None, None)]


def test_two_looks_at_once_settle_a_wave_once(stock: Stock) -> None:
    go(stock, ["accepted"])
    together([lambda: waves.look([stock.run.pk])] * 4)
    assert history(stock) == [(1, 1, 0), (10, None, None)]


def test_two_looks_at_once_stop_a_run_once(stock: Stock) -> None:
    _last_wave(stock)
    go(stock, ["refused"] * 20)
    stopped = together([lambda: waves.look([stock.run.pk])] * 4)
    assert sum(len(one) for one in stopped) == 1
    assert Review.objects.filter(run=stock.run, act="paused").count() == 1


def test_a_look_waits_for_an_intent_and_counts_what_that_sent(stock: Stock) -> None:
    _last_wave(stock)
    go(stock, ["refused"] * 20)
    with elsewhere() as do:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT id FROM redrive_wave WHERE settled_at IS NULL FOR UPDATE")
            looking = do(lambda: waves.look([stock.run.pk]))
            waits_for_us()
            go(stock, ["accepted"] * 80)
        assert looking.result(20) == []
    assert history(stock) == [(None, None, None)]


def test_a_run_that_begins_again_begins_with_one_letter(stock: Stock) -> None:
    go(stock, ["accepted"])
    waves.look([stock.run.pk])
    go(stock, ["accepted", "refused", None])
    with transaction.atomic():
        waves.begin(stock.run.pk)
    assert history(stock) == [(1, 1, 0), (10, 3, 1), (1, None, None)]


def test_a_run_without_waves_gets_none(stock: Stock) -> None:
    Run.objects.filter(pk=stock.run.pk).update(waves=False)
    with transaction.atomic():
        waves.begin(stock.run.pk)
    assert history(stock) == [(1, 0, 0)]
    assert waves.look([stock.run.pk]) == []


def test_after_a_stop_the_letters_that_may_fail_are_counted_anew(stock: Stock) -> None:
    for _ in range(3):
        go(stock, ["returned"])
        waves.look([stock.run.pk])
    Run.objects.filter(pk=stock.run.pk).update(state="running")
    with transaction.atomic():
        waves.begin(stock.run.pk)
    for _ in range(2):
        go(stock, ["returned"])
        assert waves.look([stock.run.pk]) == []
    go(stock, ["returned"])
    assert len(waves.look([stock.run.pk])) == 1


@pytest.mark.parametrize(
    ("under_way", "touched", "anew"), [(True, True, False), (False, False, False), (False, True, True)]
)
def test_waves_begin_anew_when_nothing_is_left_and_one_was_touched(
    stock: Stock, under_way: bool, touched: bool, anew: bool
) -> None:
    if touched:
        go(stock, ["accepted"])
    if not under_way:
        DeadLetter.objects.filter(run=stock.run).update(state="delivered", finished_at=clock())
    with transaction.atomic():
        waves.begin_anew(stock.run.pk)
    assert len(history(stock)) == (2 if anew else 1)


def test_the_sweep_looks_where_a_look_was_lost(stock: Stock) -> None:
    go(stock, ["accepted"])
    waves.sweep()
    assert history(stock) == [(1, 1, 0), (10, None, None)]


def test_the_share_is_the_dlqs(stock: Stock) -> None:
    DeadLetterQueue.objects.filter(pk=stock.dlq.pk).update(wave_success=0)
    go(stock, ["returned"])
    waves.look([stock.run.pk])
    assert history(stock) == [(1, 1, 1), (10, None, None)]
