"""Keep the highest tick count of each database in Redis. A database with fewer ticks was restored from a backup.

Redis can prove a restore, but never its absence: after a flush, or without Redis, there is no proof.
"""

from __future__ import annotations

import logging

import redis

from reprocessing.gateways.redis.connection import connect

logger = logging.getLogger(__name__)

# Returns the former value, and raises it; nothing lowers it.
_RAISE = """
local was = redis.call('GET', KEYS[1])
if not was or tonumber(was) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return was
"""


class TickWatermark:
    """The tick counts of databases in one Redis. All threads of a process may share one object."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._raise = client.register_script(_RAISE)

    @classmethod
    def at(cls, url: str) -> TickWatermark:
        """Return the tick counts in the Redis at this URL; it connects with the first command."""
        return cls(connect(url))

    def raised(self, database: str, ticks: int) -> int | None:
        """Raise a database's tick count; return the former one. None: there was none, or Redis does not answer."""
        try:
            was = self._raise(keys=[_name(database)], args=[ticks])
        except redis.RedisError as error:
            logger.warning("Redis does not tell whether PostgreSQL was restored: %s", type(error).__name__)
            return None
        return None if was is None else int(was)

    def known(self, database: str) -> int | None:
        """Return a database's tick count; None: there is none, or Redis does not answer."""
        try:
            was = self._client.get(_name(database))
        except redis.RedisError:
            return None
        return None if was is None else int(was)


def _name(database: str) -> str:
    return f"redrive:highwater:{database}"
