"""The judge finds broken limits: rate, attempts, first wave and breaker."""

from __future__ import annotations

from dataclasses import replace

import pytest

from redrive_service.sandbox.judge import BreakerOpening, Offence, ServiceRecords, judge
from tests.sandbox.call_logs import SHOP, Story, follow, judged, offences, tales


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


@pytest.mark.parametrize(
    ("outage_until", "openings", "found"),
    [
        (99.0, (), []),
        (1.0, (), [(Offence.OVER_ATTEMPTS, "e1")]),
        (0.0, (BreakerOpening(opened=0.0),), []),
        (0.0, (), [(Offence.OVER_ATTEMPTS, "e1")]),
    ],
    ids=["in an outage of the consumer", "after an outage", "as a canary", "without either"],
)
def test_a_failure_in_an_outage_or_of_a_canary_uses_up_no_attempt(
    story: Story, outage_until: float, openings: tuple[BreakerOpening, ...], found: list[tuple[Offence, str]]
) -> None:
    story.die("m1", "e1 anna 1")
    for attempt in (1, 2):
        story.redrive(f"r{attempt}", "e1 anna 1", f"letter-1:{attempt}")
        story.consume(f"r{attempt}", "failed")
        story.come_back(f"r{attempt}")
    assert offences(story, replace(SHOP, max_attempts=1, outages=((0.0, outage_until),)), openings=openings) == found


@tales("""
the attempts of an event's messages are counted apart
  die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; come_back r1
  die m2 e1 anna 1; redrive r2 e1 anna 1 letter-2:1; come_back r2
  once -> nothing

one attempt number used twice is two sends
  die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; come_back r1; redrive r2 e1 anna 1 letter-1:1
  once -> OVER_ATTEMPTS e1

a second message beside the first wave is found
  die m1 e1 anna 1; die m2 e2 berta 1; redrive r1 e1 anna 1 letter-1:1; redrive r2 e2 berta 1 letter-2:1
  consume r1; consume r2
  wave_of_1 -> OVER_WAVE e2
  wave_of_2 -> nothing
  shop -> nothing

the next wave may go when the first one's message was processed
  die m1 e1 a 1; die m2 e2 b 1; die m3 e3 c 1; redrive r1 e1 a 1 letter-1:1; consume r1
  redrive r2 e2 b 1 letter-2:1 + r3 e3 c 1 letter-3:1; consume r2; consume r3
  wave_of_1 -> nothing

the next wave may go when the first one's message failed and was sent again
  die m1 e1 a 1; die m2 e2 b 1; die m3 e3 c 1; redrive r1 e1 a 1 letter-1:1; come_back r1
  redrive r1b e1 a 1 letter-1:2; consume r1b
  redrive r2 e2 b 1 letter-2:1 + r3 e3 c 1 letter-3:1; consume r2; consume r3
  wave_of_1 -> nothing

a retry of the first wave's message belongs to no wave, and the next need not wait for it
  die m1 e1 anna 1; die m2 e2 berta 1; redrive r1 e1 anna 1 letter-1:1; come_back r1
  redrive r1b e1 anna 1 letter-1:2; redrive r2 e2 berta 1 letter-2:1; consume r1b; consume r2
  wave_of_1 -> nothing
""")
def test_attempts_and_waves(tale: list[str]) -> None:
    follow(tale)


COOLED = replace(SHOP, cooldown=3.0)


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
    books = ServiceRecords(openings=(BreakerOpening(opened=100, closed=120),))
    judgement = judge(COOLED, story.calls, story.consumed, books)
    assert [(one.offence, one.event) for one in judgement.findings] == found
    assert judgement.canaries == sum(102 < at < 120 for at in moments)
    assert judge(COOLED, story.calls, story.consumed, ServiceRecords()).findings == ()


def test_a_breaker_that_never_closes_holds_back_to_the_end(story: Story) -> None:
    sent_at(story, 103.5, 500, 900, 900.1)
    assert (
        judge(COOLED, story.calls, story.consumed, ServiceRecords(openings=(BreakerOpening(opened=100),))).canaries == 4
    )
    assert offences(story, replace(COOLED, cooldown=300.0)) == []
    books = ServiceRecords(openings=(BreakerOpening(opened=100),))
    findings = judge(replace(COOLED, cooldown=300.0), story.calls, story.consumed, books).findings
    assert [one.offence for one in findings] == [Offence.OVER_BREAKER] * 4


def test_the_figures_name_every_fate_and_every_offence(story: Story) -> None:
    story.tell("die m1 e1 anna 1; redrive r1 e1 anna 1 letter-1:1; consume r1; settle m1")
    zero = ("parked", "discarded", "closed_as_duplicate", "waiting", "lost", "duplicates", "order_violations")
    more = ("overlaps", "over_rate", "over_attempts", "altered", "astray", "returns", "swallowed", "redelivered")
    brakes = ("over_breaker", "over_wave", "canaries")
    rest = dict.fromkeys((*zero, *more, *brakes), 0)
    assert judged(story).counts() == {"letters": 1, "delivered": 1, "sends": 1, **rest}
