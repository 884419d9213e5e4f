"""The judge finds broken limits: rate, attempts, first wave and breaker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive_service.sandbox.judge import BreakerOpening, Offence, ServiceRecords, judge
from tests.sandbox.call_logs import SHOP, Story, judged, offences


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.mark.parametrize(("last", "found"), [(2.0, []), (1.999, [(Offence.OVER_RATE, "orders")])])
def test_no_second_holds_more_than_rate_and_burst(story: Story, last: float, found: list[tuple[Offence, str]]) -> None:
    for number, at in enumerate((1.0, 1.4, 1.9, last)):
        story.die(f"m{number}", f"e{number} account-{number} 1")
        story.redrive(f"r{number}", f"e{number} account-{number} 1", f"letter-{number}:1", at=at)
    assert offences(story, replace(SHOP, rate=2, burst=1)) == found
    assert offences(story) == []


@pytest.mark.parametrize(("most", "found"), [(2, []), (1, [(Offence.OVER_ATTEMPTS, "e1")])])
@pytest.mark.parametrize("accepted", [True, False])
def test_a_letter_is_not_sent_more_often_than_allowed(
    story: Story, most: int, found: list[tuple[Offence, str]], accepted: bool
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}" if accepted else None, "e1 anna 1", f"letter-1:{attempt}")
        if accepted:
            story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=most)) == found


def test_the_attempts_of_an_events_letters_are_counted_apart(story: Story) -> None:
    for number in (1, 2):
        story.die(f"m{number}", "e1 anna 1")
        story.redrive(f"r{number}", "e1 anna 1", f"letter-{number}:1")
        story.come_back(f"r{number}")
    assert offences(story, replace(SHOP, max_attempts=1)) == []


@pytest.mark.parametrize(
    ("outage_until", "shut", "found"),
    [
        (99.0, (), []),
        (1.0, (), [(Offence.OVER_ATTEMPTS, "e1")]),
        (0.0, (BreakerOpening(opened=0.0),), []),
        (0.0, (), [(Offence.OVER_ATTEMPTS, "e1")]),
    ],
    ids=["in an outage of the consumer", "after an outage", "as a canary", "without either"],
)
def test_a_failure_in_an_outage_or_of_a_canary_uses_up_no_attempt(
    story: Story, outage_until: float, shut: tuple[BreakerOpening, ...], found: list[tuple[Offence, str]]
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}", "e1 anna 1", f"letter-1:{attempt}")
        story.consume(f"r{attempt}", "failed")
        story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=1, outages=((0.0, outage_until),)), shut=shut) == found


def test_one_attempt_number_used_twice_is_two_sends(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; come_back r1; redrive r2 e1 anna 1 letter-1:1")
    assert offences(story, replace(SHOP, max_attempts=1)) == [(Offence.OVER_ATTEMPTS, "e1")]


WAVES = replace(SHOP, first_wave=1)
COOLED = replace(SHOP, cooldown=3.0)


def test_a_second_letter_beside_the_first_wave_is_found(story: Story) -> None:
    story.tell(
        "die m1 e1 anna 1; die m2 e2 berta 1; redrive r1 e1 anna 1 letter-1:1; redrive r2 e2 berta 1 letter-2:1",
        "consume r1; consume r2",
    )
    assert offences(story, WAVES) == [(Offence.OVER_WAVE, "e2")]
    assert offences(story, replace(SHOP, first_wave=2)) == []
    assert offences(story, SHOP) == []


@pytest.mark.parametrize("outcome", ["ok", "failed"])
def test_when_the_outcome_of_the_first_wave_is_known_the_next_may_go(story: Story, outcome: str) -> None:
    for number in (1, 2, 3):
        story.die(f"m{number}", f"e{number} account-{number} 1")
    story.redrive("r1", "e1 account-1 1", "letter-1:1")
    if outcome == "ok":
        story.consume("r1")
    else:
        story.tell("come_back r1; redrive r1b e1 account-1 1 letter-1:2; consume r1b")
    story.redrive_batch(("r2", "e2 account-2 1", "letter-2:1"), ("r3", "e3 account-3 1", "letter-3:1"))
    story.tell("consume r2; consume r3")
    assert offences(story, WAVES) == []


def test_a_retry_of_the_first_wave_s_letter_belongs_to_no_wave_and_the_next_need_not_wait_for_it(story: Story) -> None:
    story.tell(
        "die m1 e1 anna 1; die m2 e2 berta 1; redrive r1 e1 anna 1 letter-1:1; come_back r1",
        "redrive r1b e1 anna 1 letter-1:2; redrive r2 e2 berta 1 letter-2:1; consume r1b; consume r2",
    )
    assert offences(story, WAVES) == []


def sent_at(story: Story, *moments: float) -> None:
    for number, at in enumerate(moments):
        story.die(f"m{number}", f"e{number} account-{number} 1")
        story.redrive(f"r{number}", f"e{number} account-{number} 1", f"letter-{number}:1", at=at)
        story.consume(f"r{number}")


@pytest.mark.parametrize(
    ("moments", "found"),
    [
        ((100.5, 101.9, 103.1, 109.2, 120.1, 120.2), []),  # let go before; two canaries; after it closed
        ((103.1, 103.2), [(Offence.OVER_BREAKER, "orders")]),
        ((102.1,), [(Offence.OVER_BREAKER, "orders")]),
        ((106.1, 106.2), []),  # two cooldowns have passed
        ((106.1, 106.2, 106.3), [(Offence.OVER_BREAKER, "orders")]),
    ],
)
def test_while_a_breaker_is_open_one_letter_goes_for_each_cooldown(
    story: Story, moments: tuple[float, ...], found: list[tuple[Offence, str]]
) -> None:
    sent_at(story, *moments)
    books = ServiceRecords(shut=(BreakerOpening(opened=100, closed=120),))
    judgement = judge(COOLED, story.calls, story.consumed, books)
    assert [(one.offence, one.event) for one in judgement.findings] == found
    assert judgement.canaries == sum(102 < at < 120 for at in moments)
    assert judge(COOLED, story.calls, story.consumed, ServiceRecords()).findings == ()


def test_a_breaker_that_never_closes_holds_back_to_the_end(story: Story) -> None:
    sent_at(story, 103.5, 500, 900, 900.1)
    assert judge(COOLED, story.calls, story.consumed, ServiceRecords(shut=(BreakerOpening(opened=100),))).canaries == 4
    assert offences(story, replace(COOLED, cooldown=300.0)) == []
    books = ServiceRecords(shut=(BreakerOpening(opened=100),))
    findings = judge(replace(COOLED, cooldown=300.0), story.calls, story.consumed, books).findings
    assert [one.offence for one in findings] == [Offence.OVER_BREAKER] * 4


def test_the_figures_name_every_fate_and_every_offence(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; settle m1")
    zero = ("parked", "discarded", "closed_as_duplicate", "waiting", "lost", "duplicates", "order_violations")
    more = ("overlaps", "over_rate", "over_attempts", "altered", "astray", "returns", "swallowed", "redelivered")
    brakes = ("over_breaker", "over_wave", "canaries")
    rest = dict.fromkeys((*zero, *more, *brakes), 0)
    assert judged(story).counts() == {"letters": 1, "delivered": 1, "sends": 1, **rest}
