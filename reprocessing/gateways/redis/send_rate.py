"""Limit the rate at which all workers together send to a target, with token buckets in Redis."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import redis

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.domain.safety.token_bucket import TOKEN_LIFE, Bucket, capacity
from reprocessing.gateways.redis.connection import TIMEOUT, connect

_FORGOTTEN_AFTER = 60  # seconds for which Redis keeps an unused bucket after it is full; a new bucket begins empty

# Buckets are refilled by the clock of the Redis server. A bucket is valid for one run id of the server. The run id
# changes with a restart or failover, after which the server's data may be older than the last command.
_SCRIPT = """
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
if not run then return redis.error_reply('this server does not tell its run id') end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local rate, capacity, wanted, life = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local was = redis.call('HMGET', KEYS[1], 'run', 'tokens', 'at', 'rate', 'capacity')
local tokens = 0
if was[1] == run then
    local refill = math.max(0, now - was[3]) * math.min(was[4], rate) / 1000000
    tokens = math.min(was[2] + refill, was[5], capacity)
end
local count = math.min(wanted, math.floor(tokens))
local left = string.format('%.17g', tokens - count)
redis.call('HSET', KEYS[1], 'run', run, 'tokens', left, 'at', string.format('%.0f', now),
           'rate', ARGV[1], 'capacity', ARGV[2])
redis.call('EXPIRE', KEYS[1], life)
return {count, math.floor(tokens), left}
"""


@dataclass(frozen=True, slots=True)
class Granted:
    """Tokens for sending letters: one letter needs one token.

    Tokens must be used before the time `until`. If they are used later, workers may exceed the rate.

    Attributes:
        count: number of tokens, from 0 to the number that the caller wanted.
        retry_after: seconds after which to ask for the missing tokens; 0 if none are missing.
        granted_at: monotonic time at which the request for the tokens began.
    """

    count: int
    retry_after: float
    granted_at: float

    @property
    def until(self) -> float:
        """Return the monotonic time at which the tokens expire: 0.25 s after `granted_at`."""
        return self.granted_at + TOKEN_LIFE


class Rates:
    """The send rates of all targets. All threads of a process, and its forked children, may share one object."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._script = client.register_script(_SCRIPT)

    @classmethod
    def at(cls, url: str) -> Rates:
        """Return the object for the send rates in the Redis at this URL.

        The connection is made with the first command.
        """
        return cls(connect(url))

    def take(self, key: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        """Take up to `wanted` tokens of a target, or of a rate class.

        In any second, all workers together use at most `rate` + `burst` tokens, if each worker uses its tokens before
        they expire. After a restart, failover or flush of Redis, every bucket begins empty. A change of the
        rate adds no tokens.

        Args:
            key: a target's id, or `class:ID` for the rate class (a rate that rules give to letters) with this id.
            wanted: number of tokens, 1 or more.
            rate: letters a second, above 0; 0.2 is one letter in five seconds.
            burst: letters that may be sent at once, in addition to the rate; None: as many as in one second.

        Raises:
            RateLimitUnavailable: Redis did not answer, or not within a second. Nothing may be sent.
        """
        began = time.monotonic()
        count, _, bucket = self._ask(key, wanted, rate, burst)
        return Granted(count, bucket.wait(wanted - count) if count < wanted else 0.0, began)

    def claim_wait(self, key: int | str, who: str, seconds: float) -> bool:
        """Return whether the task `who` may wait `seconds` for tokens of a target. One task at a time may wait.

        This is not a reliable lock. If Redis does not answer, no task may wait. If Redis has lost its data, two tasks
        may wait.
        """
        name, life = f"redrive:waits:{key}", math.ceil((seconds + TIMEOUT) * 1_000)
        try:
            if self._client.set(name, who, nx=True, px=life):
                return True
            return self._client.get(name) == who.encode() and bool(self._client.pexpire(name, life))
        except redis.RedisError:
            return False

    def eviction_policy(self) -> str | None:
        """Return the policy by which Redis evicts keys when its memory is full.

        Return "" if Redis evicts no keys (noeviction). Return None if Redis does not tell its policy.

        Raises:
            RateLimitUnavailable: Redis did not answer within a second.
        """
        try:
            said = self._client.config_get("maxmemory-policy")
        except redis.ResponseError:  # managed Redis services often refuse CONFIG GET
            return None
        except redis.RedisError as error:
            raise RateLimitUnavailable(
                f"Redis is out of reach ({type(error).__name__}: {error}). Check REDIS_URL, and that the server runs."
            ) from error
        policy = str(said.get("maxmemory-policy", ""))
        return "" if policy == "noeviction" else policy or None

    def peek(self, key: int | str, rate: float, burst: float | None = None) -> Granted:
        """Return how many tokens of a target are available (`count`), without taking any.

        `retry_after` is the time until one token is available. `key`, `rate` and `burst` mean the same as for `take`.

        Raises:
            RateLimitUnavailable: Redis did not answer within a second.
        """
        began = time.monotonic()
        _, count, bucket = self._ask(key, 0, rate, burst)
        return Granted(count, bucket.wait(1), began)

    def _ask(self, key: int | str, wanted: int, rate: float, burst: float | None) -> tuple[int, int, Bucket]:
        most = capacity(rate, burst)
        life = math.ceil(most / rate) + _FORGOTTEN_AFTER
        try:
            count, there, left = self._script(keys=[f"redrive:rate:{key}"], args=[rate, most, wanted, life])
        except redis.RedisError as error:
            raise RateLimitUnavailable(
                f"Redis did not say whether messages may go to target {key} ({type(error).__name__}: {error}). "
                "Nothing is sent until it does. Check REDIS_URL, and that the server runs and can be written to."
            ) from error
        return int(count), int(there), Bucket(float(left), 0, rate, most)
