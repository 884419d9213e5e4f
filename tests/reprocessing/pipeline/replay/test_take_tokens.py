"""Tokens of rate limits, of targets and of rate classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from django.conf import settings

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.gateways.redis import send_rate
from reprocessing.gateways.redis.send_rate import Granted
from reprocessing.models import Target
from reprocessing.pipeline.replay import take_tokens
from reprocessing.pipeline.replay.take_tokens import REDIS_RETRY, MeteredHeads
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.safety.send_limits import SendLimit
from tests.reprocessing.pipeline.bench import enqueued

SHOP, BANK = 1, 2
PLAIN, CLASSED, BANKED = 11, 12, 22
NEWSLETTER = 7


@dataclass
class Rates:
    """Tokens by key. Redis does not answer for those in `lost`. Without a token, the wait is two seconds."""

    tokens: dict[int | str, int]
    lost: set[int | str] = field(default_factory=set)
    granted_at: dict[int | str, float] = field(default_factory=dict)
    asked: list[tuple[int | str, int, float, float | None]] = field(default_factory=list)

    def take(self, key: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        found = self.peek(key, rate, burst)
        self.asked.append((key, wanted, rate, burst))
        count = min(wanted, found.count)
        self.tokens[key] -= count
        return Granted(count, 0.0 if count == wanted else 2.0, found.granted_at)

    def peek(self, key: int | str, _rate: float, _burst: float | None = None) -> Granted:
        if key in self.lost:
            raise RateLimitUnavailable("gone")
        count = self.tokens[key]
        return Granted(count, 0.0 if count else 2.0, self.granted_at.get(key, 100.0))


def _head(lane: int, breaker: int = PLAIN) -> LaneState:
    target = BANK if breaker == BANKED else SHOP
    return LaneState(
        lane, 1, "leased", lane, 1, target, attempts=0, max_attempts=3, never_sent=True, stale=False,
        stale_policy="park", released=False, receives=None, receive_limit=None, claim_state=None, claim_letter=None,
        claim_same_body=None, breaker_id=breaker, rate_class_id=None if breaker == PLAIN else NEWSLETTER,
    )  # fmt: skip


def _brake(breaker: int, ramp: float = 1.0) -> SendLimit:
    of_class = None if breaker == PLAIN else NEWSLETTER
    rate = None if breaker == PLAIN else 5.0
    return SendLimit(
        breaker, SHOP, of_class, "closed", 0, None, 0, ramp, 0.0, step_due=False, class_rate=rate, class_burst=None,
        rules=0,
    )  # fmt: skip


def _metered(some: list[LaneState], rates: Rates, *, burst: float | None = None, **ramps: float) -> MeteredHeads:
    targets = {pk: Target(pk=pk, rate=10.0, burst=burst) for pk in (SHOP, BANK)}
    brakes = {
        PLAIN: _brake(PLAIN, ramps.get("plain", 1.0)),
        CLASSED: _brake(CLASSED, ramps.get("classed", 1.0)),
        BANKED: _brake(BANKED),
    }
    return take_tokens.take_for_heads(some, targets=targets, send_limits=brakes, rates=rates)  # type: ignore[arg-type]


def test_heads_go_with_tokens_and_until_these_expire() -> None:
    rates = Rates({SHOP: 2})
    metered = _metered([_head(1), _head(2), _head(3)], rates)
    assert [head.lane_id for head in metered.heads] == [1, 2]
    assert metered.valid_until == {SHOP: 100.25}


def test_rate_and_burst_are_those_of_the_least_ramp() -> None:
    rates = Rates({SHOP: 9, f"class:{NEWSLETTER}": 9})
    _metered([_head(1), _head(2, CLASSED)], rates, burst=20, plain=0.5, classed=0.1)
    assert rates.asked[-1] == (SHOP, 2, 1.0, 2.0)
    _metered([_head(1)], rates, burst=4, plain=0.1)
    assert rates.asked[-1] == (SHOP, 1, 1.0, 1.0)  # a letter fits in any burst


def test_a_letter_of_a_rate_class_needs_two_tokens() -> None:
    rates = Rates({SHOP: 9, f"class:{NEWSLETTER}": 1}, granted_at={f"class:{NEWSLETTER}": 99.0})
    metered = _metered([_head(1, CLASSED), _head(2, CLASSED), _head(3)], rates)
    assert [head.lane_id for head in metered.heads] == [1, 3]
    assert metered.valid_until == {SHOP: 99.25}
    assert rates.asked == [(f"class:{NEWSLETTER}", 2, 5.0, None), (SHOP, 2, 10.0, None)]


def test_a_rate_class_spends_no_token_on_a_target_without_one() -> None:
    rates = Rates({SHOP: 0, BANK: 3, f"class:{NEWSLETTER}": 3})
    metered = _metered([*(_head(lane, CLASSED) for lane in range(1, 9)), _head(9, BANKED)], rates)
    assert [head.lane_id for head in metered.heads] == [9]
    assert rates.tokens == {SHOP: 0, BANK: 2, f"class:{NEWSLETTER}": 2}


@pytest.mark.parametrize("lost", [SHOP, f"class:{NEWSLETTER}"])
def test_nothing_goes_while_redis_does_not_answer(lost: int | str) -> None:
    rates = Rates({SHOP: 9, f"class:{NEWSLETTER}": 9}, lost={lost})
    metered = _metered([_head(1, CLASSED)], rates)
    assert (metered.heads, metered.pause, metered.unknown) == ([], REDIS_RETRY, True)


def test_the_pause_is_the_shortest_wait() -> None:
    metered = _metered([_head(1), _head(2, BANKED)], Rates({SHOP: 0, f"class:{NEWSLETTER}": 9}, lost={BANK}))
    assert (metered.heads, metered.pause) == ([], REDIS_RETRY)


@pytest.mark.django_db(transaction=True)
def test_one_turn_waits_for_slow_tokens_and_the_others_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = enqueued("0", target_fields={"rate": 0.5})
    rates = send_rate.Rates.at(settings.REDIS_URL)
    assert rates.claim_wait(bench.target.pk, "another turn", 5)
    monkeypatch.setattr("reprocessing.pipeline.replay.replay_slice.time.sleep", lambda _: pytest.fail("it waits, too"))
    report = bench.replay(seconds=5)
    assert (report.taken, report.left) == (0, [])
    lane = bench.lane()
    assert (lane.phase, lane.why) == ("ready", "another worker waits for the rate limit")
    assert lanes.lease("at once", limit=9, lease=8) == []  # due again a little later
