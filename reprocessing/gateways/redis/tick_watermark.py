"""How far PostgreSQL had come when Redis was told last: what is behind that was restored from a backup.

Redis proves a restore and never its absence: one that was flushed, or is gone, says nothing.
"""

from __future__ import annotations

import logging

import redis

from reprocessing.gateways.redis.connection import connect

logger = logging.getLogger(__name__)

# Answers what was there, and raises it; nothing lowers it.
_RAISE = """
local was = redis.call('GET', KEYS[1])
if not was or tonumber(was) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return was
"""


class TickWatermark:
    """The marks of all databases of one Redis. One object serves all threads of a process."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._raise = client.register_script(_RAISE)

    @classmethod
    def at(cls, url: str) -> TickWatermark:
        """Return the marks kept by the Redis at a URL; connects when first asked."""
        return cls(connect(url))

    def raised(self, database: str, ticks: int) -> int | None:
        """Tell how far a database has come; what was known before. None: nothing was, or Redis does not answer."""
        try:
            was = self._raise(keys=[_name(database)], args=[ticks])
        except redis.RedisError as error:
            logger.warning("Redis does not tell whether PostgreSQL was restored: %s", type(error).__name__)
            return None
        return None if was is None else int(was)

    def known(self, database: str) -> int | None:
        """Return how far a database is known to have come; None as above."""
        try:
            was = self._client.get(_name(database))
        except redis.RedisError:
            return None
        return None if was is None else int(was)


def _name(database: str) -> str:
    return f"redrive:highwater:{database}"
