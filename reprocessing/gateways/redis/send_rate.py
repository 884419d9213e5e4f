"""How many letters may go to a target now, by all workers together."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import redis

from reprocessing.domain.errors import RateLimitUnavailable
from reprocessing.domain.safety.token_bucket import TOKEN_LIFE, Bucket, capacity
from reprocessing.gateways.redis.connection import TIMEOUT, connect

_FORGOTTEN_AFTER = 60  # seconds that a full bucket is kept; a forgotten one begins empty, so this costs little

# Buckets are filled by the server's own clock, and hold for one life of the server: the run id changes with a restart
# and with a failover. Whatever data came along then is older than the last grants.
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
    """Tokens that may be spent until `until`, and not a moment later: others count on it.

    Attributes:
        count: letters that may go; perhaps fewer than wanted, perhaps none.
        retry_after: seconds after which it is worth asking for the rest; 0 when there is no rest.
        granted_at: when the request for them began, on this process's monotonic clock.
    """

    count: int
    retry_after: float
    granted_at: float

    @property
    def until(self) -> float:
        """On the monotonic clock, when the last of them is dead."""
        return self.granted_at + TOKEN_LIFE


class Rates:
    """The rates of all targets. One object serves all threads of a process, and its children after a fork."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._script = client.register_script(_SCRIPT)

    @classmethod
    def at(cls, url: str) -> Rates:
        """Return the rates kept by the Redis at a URL; connects when first asked."""
        return cls(connect(url))

    def take(self, key: int | str, wanted: int, rate: float, burst: float | None = None) -> Granted:
        """Take up to `wanted` tokens of a target, or of a class of letters.

        In no second do all workers together spend more than `rate` + `burst`, provided that each spends its tokens
        while they live. Nobody's tokens are known to a Redis that restarted, failed over or was flushed: each target
        begins with none there. A new rate brings no tokens either.

        Args:
            key: whose rate it is: a target's id, or a class's name.
            wanted: tokens, 1 or more.
            rate: letters a second, above 0; 0.2 is one in five seconds.
            burst: letters at once, above the rate; None stands for one second of it.

        Raises:
            RateLimitUnavailable: Redis did not answer, or not within a second. Nothing may be sent.
        """
        began = time.monotonic()
        count, _, bucket = self._ask(key, wanted, rate, burst)
        return Granted(count, bucket.wait(wanted - count) if count < wanted else 0.0, began)

    def claim_wait(self, key: int | str, who: str, seconds: float) -> bool:
        """Return whether this one is to wait for the tokens of a target, for so many seconds: one at a time is.

        It guards no promise: without Redis nobody waits, and where it has forgotten, two may.
        """
        name, life = f"redrive:waits:{key}", math.ceil((seconds + TIMEOUT) * 1_000)
        try:
            if self._client.set(name, who, nx=True, px=life):
                return True
            return self._client.get(name) == who.encode() and bool(self._client.pexpire(name, life))
        except redis.RedisError:
            return False

    def eviction_policy(self) -> str | None:
        """By which policy Redis drops keys when its memory is full; empty: it drops none; None: it does not say.

        Raises:
            RateLimitUnavailable: Redis did not answer, or not within a second.
        """
        try:
            said = self._client.config_get("maxmemory-policy")
        except redis.ResponseError:  # managed servers do not tell
            return None
        except redis.RedisError as error:
            raise RateLimitUnavailable(
                f"Redis is out of reach ({type(error).__name__}: {error}). Check REDIS_URL, and that the server runs."
            ) from error
        policy = str(said.get("maxmemory-policy", ""))
        return "" if policy == "noeviction" else policy or None

    def peek(self, key: int | str, rate: float, burst: float | None = None) -> Granted:
        """The tokens that there are, none of them taken; arguments and errors as of `take`."""
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
                f"Redis did not say whether letters may go to target {key} ({type(error).__name__}: {error}). "
                "Nothing is sent until it does. Check REDIS_URL, and that the server runs and can be written to."
            ) from error
        return int(count), int(there), Bucket(float(left), 0, rate, most)
