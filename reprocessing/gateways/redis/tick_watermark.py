"""Store in Redis how many ticks (tasks that beat sends every 2 s) each PostgreSQL database has counted.

If a database has counted fewer ticks than Redis has stored, the database was restored from a backup. The reverse is not
certain, because Redis may have lost the count.
"""

from __future__ import annotations

import logging

import redis

from reprocessing.gateways.redis.connection import connect

logger = logging.getLogger(__name__)

# Returns the stored tick count, and stores the new count if it is higher.
_RAISE = """
local was = redis.call('GET', KEYS[1])
if not was or tonumber(was) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return was
"""


class TickWatermark:
    """The highest tick count of each database that was ever stored. Threads may share one object."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._raise = client.register_script(_RAISE)

    @classmethod
    def at(cls, url: str) -> TickWatermark:
        """Return the object for the tick counts in the Redis at this URL.

        The connection is made with the first command.
        """
        return cls(connect(url))

    def raised(self, database: str, ticks: int) -> int | None:
        """Store a database's tick count if it is higher than the stored count. Return the count that was stored before.

        Return None if no count was stored, or if Redis does not answer.
        """
        try:
            was = self._raise(keys=[_name(database)], args=[ticks])
        except redis.RedisError as error:
            logger.warning("Redis does not tell whether PostgreSQL was restored: %s", type(error).__name__)
            return None
        return None if was is None else int(was)

    def known(self, database: str) -> int | None:
        """Return a database's stored tick count; None if none is stored, or Redis does not answer."""
        try:
            was = self._client.get(_name(database))
        except redis.RedisError:
            return None
        return None if was is None else int(was)


def _name(database: str) -> str:
    return f"redrive:highwater:{database}"
