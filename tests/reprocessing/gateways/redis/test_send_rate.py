"""The rate of a target holds for all workers together, whatever becomes of Redis meanwhile."""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.commands.core import Script

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.domain.safety.token_bucket import TOKEN_LIFE, Bucket, capacity
from reprocessing.gateways.redis import send_rate as rate_module
from reprocessing.gateways.redis.send_rate import Granted, Rates
from tests.conditions import eventually
from tests.reprocessing.gateways.redis.conftest import Server

QUICK = 100_000.0  # tokens a second: a bucket of this rate and burst is full after a blink
BURST = 35_000.0  # a quarter of a second's tokens less are in it at the most


@contextmanager
def asking(url: str) -> Iterator[Rates]:
    """Closed at the end: what a refused connection raises keeps it until it is collected, the socket maybe first."""
    rates = Rates.at(url)
    try:
        yield rates
    finally:
        rates._client.close()


@pytest.fixture
def rates(server: Server) -> Iterator[Rates]:
    with asking(server.url) as rates:
        yield rates


def fill(rates: Rates, *, rate: float = QUICK, burst: float = BURST) -> None:
    eventually(lambda: rates.peek(1, rate, burst).count == math.floor(capacity(rate, burst)), within=5)


def test_a_bucket_of_which_nothing_is_known_is_empty(rates: Rates) -> None:
    first = rates.take(1, 10, 0.2)
    assert first.count == 0
    assert 4.9 < first.retry_after <= 5.0


def test_no_more_is_granted_than_is_wanted_nor_than_there_is(rates: Rates) -> None:
    fill(rates, rate=100, burst=26)  # looks again and again, which takes nothing
    assert rates.take(1, 0, 100, 26).count == 0
    assert rates.take(2, 1, 100, 26).count == 0
    first = rates.take(1, 1, 100, 26)
    assert (first.count, first.retry_after) == (1, 0.0)
    assert rates.peek(1, 100, 26).count <= 1


def test_what_an_earlier_life_of_the_server_left_behind_counts_for_nothing(server: Server, rates: Rates) -> None:
    fill(rates)
    server.stop()
    server.start()
    with server.client() as client:
        assert client.hget("redrive:rate:1", "tokens") == b"10000"  # it came back with the data
    # Connections of the earlier life break once.
    granted = eventually(lambda: answered(lambda: rates.take(1, 10_000, 0.01, BURST)), within=5)
    assert granted
    assert granted.count == 0


def test_a_new_rate_brings_no_tokens(rates: Rates) -> None:
    rates.take(1, 1, 0.01)
    assert rates.take(1, 1_000, QUICK, 1_000_000).count == 0


def test_a_lower_burst_takes_the_surplus_away(rates: Rates) -> None:
    fill(rates)
    assert rates.take(1, 10_000, 0.01, 5).count == 4  # 5 - 0.01/4, rounded down


def test_a_grant_lives_for_a_quarter_of_a_second_from_before_it_was_asked_for(rates: Rates) -> None:
    before = time.monotonic()
    granted = rates.take(1, 1, 1)
    assert before <= granted.granted_at <= time.monotonic()
    assert granted.until == granted.granted_at + 0.25


def test_an_absent_redis_grants_nothing_and_says_so(server: Server, rates: Rates) -> None:
    server.stop()
    with pytest.raises(RateLimitUnavailable, match="Nothing is sent until it does"):
        rates.take(1, 1, 1)


@pytest.mark.soak
@pytest.mark.timeout(40)  # it would answer after a minute
def test_a_redis_that_does_not_answer_is_given_up(server: Server, rates: Rates) -> None:
    with server.client() as client:
        client.execute_command("CLIENT", "PAUSE", "60000", "ALL")
        with pytest.raises(RateLimitUnavailable):
            rates.take(1, 1, 1)
    server.stop()


@pytest.mark.parametrize(("rate", "burst"), [(0, None), (-1, None), (math.nan, None), (math.inf, None), (1, -1)])
def test_a_rate_that_is_none_is_refused(rates: Rates, rate: float, burst: float | None) -> None:
    with pytest.raises(ValueError, match="is invalid"):
        rates.take(1, 1, rate, burst)


def with_the_test_s_clock(client: redis.Redis) -> Script:
    """The script, which has the time from its fifth argument, in microseconds."""
    source = rate_module._SCRIPT.replace("redis.call('TIME')", "{0, tonumber(ARGV[5])}")
    assert source != rate_module._SCRIPT
    return client.register_script(source)


def test_a_higher_burst_fills_no_bucket_for_the_time_before_it_was_set(server: Server) -> None:
    """A bucket for 5 that nobody has asked for an hour holds 5, and not the 50 that it may hold from now on."""
    hour = 3_600_000_000
    with server.client() as client:
        script = with_the_test_s_clock(client)
        counts = [
            script(keys=["redrive:rate:1"], args=[1, most, 100, 60, now])[0]
            for most, now in ((5, hour), (50, 2 * hour), (50, 3 * hour))
        ]
    assert counts == [0, 5, 50]


moments = st.lists(
    st.tuples(
        st.integers(-2_000_000, 5_000_000),
        st.integers(0, 300),
        st.sampled_from([0.2, 1.0, 10.0, 333.3]),
        st.sampled_from([None, 0.0, 7.5, 400.0]),
    ),
    min_size=1,
    max_size=20,
)


@given(moments)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_server_does_the_sums_of_the_domain(
    server: Server, steps: list[tuple[int, int, float, float | None]]
) -> None:
    now, bucket = 1_800_000_000_000_000, None
    with server.client() as client:
        client.flushall()
        script = with_the_test_s_clock(client)
        for passed, wanted, rate, burst in steps:
            now += passed
            most = capacity(rate, burst)
            bucket = bucket.filled(now, rate, most) if bucket else Bucket.cold(now, rate, most)
            there = math.floor(bucket.tokens)
            bucket, count = bucket.take(wanted)
            answer = script(keys=["redrive:rate:1"], args=[rate, most, wanted, 60, now])
            assert (answer[0], answer[1], float(answer[2])) == (count, there, bucket.tokens)


def answered(ask: Callable[[], Granted]) -> Granted | None:
    try:
        return ask()
    except RateLimitUnavailable:
        return None


@dataclass
class Crowd:
    """Workers that want all they can get, and what they got: moments before and after each request, and how much."""

    url: str
    rate: float
    burst: float
    over: threading.Event = field(default_factory=threading.Event)
    grants: list[tuple[float, float, int]] = field(default_factory=list)

    def work(self) -> None:
        with asking(self.url) as rates:
            while not self.over.is_set():
                granted = answered(lambda: rates.take(1, 20, self.rate, self.burst))
                if granted is None:
                    self.over.wait(0.02)
                    continue
                self.grants.append((granted.granted_at, time.monotonic(), granted.count))
                self.over.wait(granted.retry_after)

    def worst_second(self) -> int:
        """The most letters that any second could have seen, had each been sent at the worst moment of its token."""
        paid = [(began, ended, count) for began, ended, count in self.grants if count]
        starts = [began + TOKEN_LIFE for began, _, _ in paid]
        return max(
            sum(count for began, ended, count in paid if began + TOKEN_LIFE >= start and ended < start + 1)
            for start in starts
        )

    def used(self, since: float, until: float) -> int:
        return sum(count for began, _, count in self.grants if since <= began <= until)

    def first_answer(self, since: float) -> float:
        return min(began for began, _, _ in self.grants if began >= since)


def crowd_out(server: Server, seconds: float, rate: float, burst: float) -> tuple[Crowd, float]:
    """Eight workers through flushes and a restart: what they did, and the used part of the rate while Redis was up."""
    crowd = Crowd(server.url, rate, burst)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(crowd.work)
        began = time.monotonic()
        pass_until(began + seconds / 3)
        with server.client() as client:
            for _ in range(3):
                client.flushall()
        pass_until(began + 2 * seconds / 3)
        stopped = time.monotonic()
        server.stop()
        server.start()
        started = time.monotonic()
        pass_until(started + seconds / 3)
        ended = time.monotonic()
        crowd.over.set()
    periods = [(crowd.first_answer(began), stopped), (crowd.first_answer(started), ended)]
    used = sum(crowd.used(*period) for period in periods)
    return crowd, used / sum(rate * (until - since) for since, until in periods)


def pass_until(moment: float) -> None:
    eventually(lambda: time.monotonic() >= moment, within=60)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("seconds", "burst", "used"),
    [
        (4, 100, 0.1),  # it goes on after flushes and a restart
        pytest.param(20, 200, 0.9, marks=(pytest.mark.alone, pytest.mark.long)),  # alone on a machine 97 % and more
    ],
)
def test_eight_workers_stay_below_the_rate_and_use_it(
    server: Server, seconds: float, burst: float, used: float
) -> None:
    crowd, of_the_rate = crowd_out(server, seconds, 200, burst)
    assert crowd.worst_second() <= 200 + burst
    assert of_the_rate > used


@pytest.mark.soak
def test_flushes_one_after_another_bring_no_burst(server: Server, rates: Rates) -> None:
    crowd = Crowd(server.url, 400, 400)
    fill(rates, rate=400, burst=400)
    with server.client() as client:
        for _ in range(10):
            granted = rates.take(1, 1_000, 400, 400)
            crowd.grants.append((granted.granted_at, time.monotonic(), granted.count))
            client.flushall()
    assert crowd.grants[0][2] == 300
    assert crowd.worst_second() <= 800


def test_one_waits_for_a_slow_rate_at_a_time(rates: Rates) -> None:
    key = uuid.uuid4().hex
    assert rates.claim_wait(key, "first", 5)
    assert not rates.claim_wait(key, "second", 5)
    assert rates.claim_wait(key, "first", 5)
    assert rates.claim_wait(uuid.uuid4().hex, "second", 5)
    assert not Rates.at("redis://127.0.0.1:1/0").claim_wait("any", "first", 5)  # without Redis nobody waits
