"""Connect to Redis."""

from __future__ import annotations

from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT: Final = 1.0  #: seconds to connect, and seconds until an answer


def connect(url: str) -> redis.Redis:
    """Return a client, which connects with its first command.

    The client never retries a command, because a retry could take tokens of a rate limit twice.
    """
    return redis.Redis.from_url(
        url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
    )
