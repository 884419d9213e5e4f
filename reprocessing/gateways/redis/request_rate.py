"""Limit the requests of each client of the HTTP API, for all web servers together (algorithm: GCRA)."""

from __future__ import annotations

import logging
from typing import Final

import redis

from reprocessing.gateways.redis.connection import connect

logger = logging.getLogger(__name__)

#: After a pause, a client may send as many requests at once as its rate allows in this time.
BURST_SECONDS: Final = 5.0

# GCRA: the key holds a time in microseconds. Each request moves this time on by 1 / rate. A request is refused if the
# time would then be ahead of the clock by more than the burst. Returns 0, or the microseconds to wait.
_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local each, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + each
if paid - now > burst then return math.ceil(paid - now - burst) end
redis.call('SET', KEYS[1], string.format('%.0f', paid), 'PX', math.ceil((paid - now) / 1000))
return 0
"""


class RequestRates:
    """The request rates of all clients of the HTTP API. All threads of a process may share one object."""

    def __init__(self, client: redis.Redis) -> None:
        self._script = client.register_script(_SCRIPT)

    @classmethod
    def at(cls, url: str) -> RequestRates:
        """Return the object for the request rates in the Redis at this URL.

        The connection is made with the first command.
        """
        return cls(connect(url))

    def wait(self, client: int, *, rate: float) -> float:
        """Return the seconds that a client must wait before its request is allowed; 0: allowed now, and counted.

        `client`: the number of the API's client. `rate`: requests a second. If Redis does not answer, every request is
        allowed, so that people can still stop redrive.
        """
        each = 1e6 / rate
        try:
            micros = self._script(keys=[f"redrive:api:{client}"], args=[each, max(each, 1e6 * BURST_SECONDS)])
        except redis.RedisError as error:
            logger.warning("Requests of the API are not limited: Redis does not answer (%s).", type(error).__name__)
            return 0.0
        return int(micros) / 1e6
