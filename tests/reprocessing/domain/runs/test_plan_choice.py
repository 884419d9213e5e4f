"""What each way to run a plan takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reprocessing.domain.aws.pricing import Cost, Prices
from reprocessing.domain.runs import plan_choice
from reprocessing.domain.runs.forecast import RateClimb, letters_sent_in, peak_rate, seconds_to_send
from reprocessing.domain.runs.plan_choice import Choice, ChoiceFigures, Expiring, Offer, Peak, TargetLoad

NOW = datetime(2026, 3, 1, 8, tzinfo=UTC)
PLAIN = Choice(rate=None, waits_for_outcomes=True, waves=False)
SHOP = TargetLoad(
    name="arn:aws:sqs:us-east-1:1:shop", letters=1_000, lanes=1_000, longest=1, size=1_000_000, rate=10.0, ramp=1.0,
    ramp_every=10.0, tail=0.0, round_trip=0.0, every=0.0, is_queue=True, fifo=False, late=0,
)  # fmt: skip
#: A key of 100 messages, each of which waits 30 s for its outcome.
ORDERED = replace(SHOP, lanes=10, longest=100, tail=30.0, round_trip=30.0, late=70)


def _figures(load: TargetLoad, choice: Choice = PLAIN) -> ChoiceFigures:
    return plan_choice.figures([load], choice, now=NOW, deletes=Cost(), prices=Prices(standard=1.0))


def test_a_plan_takes_as_long_as_its_rate_permits_and_costs_its_sends() -> None:
    assert _figures(SHOP) == ChoiceFigures(
        choice=PLAIN, seconds=100.0, ends_at=NOW + timedelta(seconds=100),
        cost=Cost.of(100, 1_030, each=1e-6), peaks=(Peak(SHOP.name, 10.0),), late=0,
    )  # fmt: skip


def test_half_the_rate_takes_twice_as_long_and_loads_the_consumer_half() -> None:
    found = _figures(SHOP, replace(PLAIN, rate=5.0))
    assert (found.seconds, found.peaks) == (200.0, (Peak(SHOP.name, 5.0),))


def test_a_rate_above_the_target_s_changes_nothing() -> None:
    assert _figures(SHOP, replace(PLAIN, rate=50.0)).peaks == _figures(SHOP).peaks
    assert _figures(replace(SHOP, rate=None), replace(PLAIN, rate=50.0)).peaks == (Peak(SHOP.name, 50.0),)


def test_a_key_that_waits_for_outcomes_takes_longest_and_one_that_does_not_is_limited_by_the_rate() -> None:
    waits, early = _figures(ORDERED), _figures(ORDERED, replace(PLAIN, waits_for_outcomes=False))
    assert (waits.seconds, waits.peaks, waits.late) == (3_000.0, (Peak(SHOP.name, 10 / 30),), 70)
    assert (early.seconds, early.peaks, early.late) == (130.0, (Peak(SHOP.name, 10.0),), 0)


def test_a_plan_takes_as_long_as_outcomes_permit() -> None:
    load = replace(SHOP, tail=30.0, room=100, outcome_in=50.0)
    assert _figures(load).seconds == 9 * 50 + 30


def test_what_expires_before_outcomes_permit_to_send_it_is_counted() -> None:
    load = replace(SHOP, rate=None, tail=30.0, room=100, outcome_in=50.0, expiring=(Expiring(449.0, 1_000),))
    assert (_figures(load).late, _figures(replace(load, expiring=(Expiring(450.0, 1_000),))).late) == (100, 0)


def test_waves_wait_for_outcomes_and_outcomes_are_asked_for_once_a_second() -> None:
    load = replace(SHOP, tail=30.0)  # the waves of 1, 10 and 100 have outcomes after 30, 60 and 90 seconds
    once, waves = _figures(load), _figures(load, replace(PLAIN, waves=True))
    assert (once.seconds, waves.seconds) == (130.0, 220.0)
    assert waves.cost.most - once.cost.most == 90


def test_each_wave_raises_the_rate_by_one_step_of_its_ramp() -> None:
    load, waves = replace(SHOP, tail=30.0), replace(PLAIN, waves=True)
    ramp = replace(load, ramp=0.125)  # the last of three waves ends at the whole rate
    assert _figures(ramp, waves).seconds == _figures(load, waves).seconds
    assert _figures(ramp).seconds > _figures(load).seconds


def test_a_target_that_is_no_queue_costs_only_the_deletes() -> None:
    found = plan_choice.figures(
        [replace(SHOP, is_queue=False)], PLAIN, now=NOW, deletes=Cost(1, 2, 3.0, 4.0), prices=Prices()
    )
    assert found.cost == Cost(1, 2, 3.0, 4.0)


@pytest.mark.parametrize(
    ("expiring", "late"),
    [
        ((Expiring(60.0, 600), Expiring(3_600.0, 400)), 0),
        ((Expiring(59.0, 600), Expiring(3_600.0, 400)), 10),
        ((Expiring(-1.0, 500), Expiring(60.0, 500)), 400),  # what has expired is sent, too, and takes its time
        ((Expiring(10.0, 1_000),), 900),
    ],
    ids=["in_time", "some", "after_expired_ones", "nearly_all"],
)
def test_what_expires_before_the_rate_permits_to_send_it_is_counted(expiring: tuple[Expiring, ...], late: int) -> None:
    assert _figures(replace(SHOP, expiring=expiring)).late == late


def test_a_plan_without_messages_takes_nothing() -> None:
    found = plan_choice.figures([], PLAIN, now=NOW, deletes=Cost(), prices=Prices())
    assert found == ChoiceFigures(PLAIN, 0.0, NOW, Cost(), (), 0)


def test_the_comparison_begins_as_configured_and_has_no_choice_twice() -> None:
    configured = Choice(rate=None, waits_for_outcomes=True, waves=True)
    others = [
        Offer("As configured", configured), Offer("Half the rate", replace(configured, rate=5.0)),
        Offer("All at once", replace(configured, waves=False)),
    ]  # fmt: skip
    early = Offer("Without waiting for outcomes", replace(configured, waits_for_outcomes=False))
    assert plan_choice.offers([SHOP], configured, configured, may_overtake=True) == others
    assert plan_choice.offers([ORDERED], configured, configured, may_overtake=True) == [*others, early]
    assert plan_choice.offers([ORDERED], configured, configured, may_overtake=False) == others
    half = others[1].choice
    assert plan_choice.offers([SHOP], configured, half, half, may_overtake=True) == others
    own, asked = replace(configured, rate=2.0), replace(configured, rate=3.0)
    assert plan_choice.offers([SHOP], configured, own, asked, may_overtake=True) == [
        Offer("Your values", asked), Offer("This plan", own), *others,
    ]  # fmt: skip
    assert plan_choice.offers([SHOP], configured, own, own, may_overtake=True)[0] == Offer("This plan", own)


def test_without_a_rate_limit_the_usual_rate_is_offered() -> None:
    titles = [offer.title for offer in plan_choice.offers([replace(SHOP, rate=None)], PLAIN, PLAIN, may_overtake=True)]
    assert titles == ["As configured", "At 10 messages/s", "In waves"]


@pytest.mark.parametrize("seconds", [0.0, 5.0, 10.0, 25.0, 40.0, 1_000.0])
def test_what_is_sent_in_a_time_takes_that_time(seconds: float) -> None:
    climb = RateClimb(share=0.125, every=10.0, first=10.0)
    sent = letters_sent_in(seconds, 8.0, climb)
    simulated = sum(8.0 * min(1.0, 0.125 * 2 ** (tick // 1_000)) for tick in range(round(seconds * 100))) / 100
    assert round(sent, 6) == round(simulated, 6)
    letters = int(sent)
    assert seconds_to_send(letters, 8.0, climb) <= seconds


def test_the_peak_is_the_rate_that_the_ramp_reaches_before_the_end() -> None:
    climb = RateClimb(share=0.25, every=10.0, first=10.0)
    assert [peak_rate(letters, 4.0, climb) for letters in (5, 10, 11, 30, 31, 1_000)] == [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]
