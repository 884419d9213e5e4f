"""The Redis clients that all tasks of a process share."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.redis.tick_watermark import TickWatermark


@cache
def restore_watermark() -> TickWatermark:
    """Return the tick counts in Redis, which show that PostgreSQL was restored. A forked process may use the object."""
    return TickWatermark.at(settings.REDIS_URL)


@cache
def send_rates() -> Rates:
    """Return the rate limits of targets, which Redis stores. A forked process may use the returned object."""
    return Rates.at(settings.REDIS_URL)
