"""Take tokens of the rate limit (a token bucket in Redis) for letters that may be sent."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.gateways.redis.send_rate import Granted, Rates
from reprocessing.models import Target
from reprocessing.store.ordering.lane_state import LaneState
from reprocessing.store.safety.send_limits import SendLimit

logger = logging.getLogger(__name__)

REDIS_RETRY = 1.0  # seconds until lanes ask for tokens again if Redis does not answer


@dataclass(slots=True)
class MeteredHeads:
    """The letters (heads of lanes) that got tokens of the rate limit, and how long the others must wait."""

    heads: list[LaneState] = field(default_factory=list)
    valid_until: dict[int, float] = field(default_factory=dict)  # when tokens expire (monotonic), by target, if limited
    pause: float = 0.0  # seconds that heads without a token wait
    unknown: bool = False  # heads wait because Redis did not answer


def take_for_heads(
    going: Sequence[LaneState], *, targets: Mapping[int, Target], send_limits: Mapping[int, SendLimit], rates: Rates
) -> MeteredHeads:
    """Take tokens for as many heads (lanes' first unfinished letters) as possible. Each token allows one send.

    A head needs a token of its target; also one of its rate class, if a rule gave it a rate class; and also one of its
    run, if the run has a rate of its own. No token is needed where no rate limit is set. Tokens of classes and runs are
    taken only for heads that can get a token of the target. `send_limits`: by breaker id. `targets`: by id.
    """
    metered, meter = MeteredHeads(), _Meter(send_limits, rates)
    by_target: dict[int, list[LaneState]] = {}
    for head in going:
        by_target.setdefault(head.target_id or 0, []).append(head)
    for target_id, some in by_target.items():
        limit = meter.limit_of(targets[target_id], some)
        narrowed = any(meter.send_limit(head).class_rate is not None or head.run_rate is not None for head in some)
        room = meter.available(limit) if limit and narrowed else len(some)
        left, until = meter.take_of_classes(some, room)
        left, until = meter.take_of_runs(left, until, targets[target_id])
        if left and limit is not None:
            left, until = meter.take(left, until, limit)
        metered.heads += left
        if left and until is not None:
            metered.valid_until[target_id] = until
    metered.pause, metered.unknown = min(meter.waits, default=0.0), meter.unknown
    return metered


@dataclass(frozen=True, slots=True)
class _Limit:
    """A rate limit: `rate` tokens per second; at most `burst` tokens at once (None: the tokens of one second)."""

    key: int | str
    rate: float
    burst: float | None


@dataclass(slots=True)
class _Meter:
    send_limits: Mapping[int, SendLimit]
    rates: Rates
    waits: list[float] = field(default_factory=list)  # seconds that heads without a token wait
    unknown: bool = False

    def send_limit(self, head: LaneState) -> SendLimit:
        return self.send_limits[head.breaker_id or 0]

    def limit_of(self, target: Target, some: Sequence[LaneState]) -> _Limit | None:
        """Return a target's rate limit during ramp-up; None: the target has no rate limit.

        If heads have different ramp-up shares, the lowest share counts.
        """
        if target.rate is None:
            return None
        ramp = min(self.send_limit(head).ramp for head in some)
        return _Limit(target.pk, target.rate * ramp, None if target.burst is None else max(1.0, target.burst * ramp))

    def available(self, limit: _Limit) -> int:
        """Return how many tokens of a limit are available. No token is taken."""
        try:
            found = self.rates.peek(limit.key, limit.rate, limit.burst)
        except RateLimitUnavailable as error:
            self._await_redis(error)
            return 0
        if not found.count:
            self.waits.append(found.retry_after)
        return found.count

    def take_of_classes(self, some: Sequence[LaneState], room: int) -> tuple[list[LaneState], float | None]:
        """Take tokens of the rate classes of one target's heads, for `room` heads at most.

        Return the heads that may go on: those that got a token, and those without a rate class or whose class has no
        rate limit. Also return the monotonic time at which the first token expires; None: no token was taken.
        """
        left: list[LaneState] = []
        until: float | None = None
        by_class: dict[int | None, list[LaneState]] = {}
        for head in some:
            by_class.setdefault(head.rate_class_id, []).append(head)
        for rate_class, every in by_class.items():
            send_limit, those = self.send_limit(every[0]), every[: room - len(left)]
            if those and rate_class is not None and send_limit.class_rate is not None:
                limit = _Limit(f"class:{rate_class}", send_limit.class_rate, send_limit.class_burst)
                those, until = self.take(those, until, limit)
            left += those
        return left, until

    def take_of_runs(
        self, some: Sequence[LaneState], until: float | None, target: Target
    ) -> tuple[list[LaneState], float | None]:  # fmt: skip
        """Take tokens for heads of runs whose own rate is lower than the target's rate.

        A run's rate is multiplied by the ramp-up share. Return the heads that got a token or need none, and the
        monotonic time at which the first token expires.
        """
        left: list[LaneState] = []
        by_run: dict[tuple[int | None, float | None], list[LaneState]] = {}
        for head in some:
            by_run.setdefault((head.run_id, head.run_rate), []).append(head)
        for (run, rate), every in by_run.items():
            those = every
            if rate is not None and (target.rate is None or rate < target.rate):
                ramp = min(self.send_limit(head).ramp for head in every)
                those, until = self.take(every, until, _Limit(f"run:{run}:{target.pk}", rate * ramp, None))
            left += those
        return left, until

    def take(
        self, some: list[LaneState], until: float | None, limit: _Limit
    ) -> tuple[list[LaneState], float | None]:  # fmt: skip
        """Take tokens of a limit for these heads. Return heads that got a token, and when their first token expires.

        Times are monotonic. `until`: when tokens of another limit expire that these heads have already; None: they have
        none.
        """
        try:
            token: Granted = self.rates.take(limit.key, len(some), limit.rate, limit.burst)
        except RateLimitUnavailable as error:
            self._await_redis(error)
            return [], until
        if not token.count:
            self.waits.append(token.retry_after)
            return [], until
        return some[: token.count], token.until if until is None else min(until, token.until)

    def _await_redis(self, error: RateLimitUnavailable) -> None:
        logger.warning("%s", error)
        self.waits.append(REDIS_RETRY)
        self.unknown = True
