"""Return the Redis clients that all tasks of a process share."""

from __future__ import annotations

from functools import cache

from django.conf import settings

from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.gateways.redis.tick_watermark import TickWatermark


@cache
def restore_watermark() -> TickWatermark:
    """Return the client for the tick counts, by which a restore of PostgreSQL is noticed.

    Processes that are forked later may use the same client.
    """
    return TickWatermark.at(settings.REDIS_URL)


@cache
def send_rates() -> Rates:
    """Return the client for the targets' rate limits. Processes that are forked later may use the same client."""
    return Rates.at(settings.REDIS_URL)
