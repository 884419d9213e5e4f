"""When beat polls which dlq: its own schedule, kept on the dlq."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from reprocessing.models.dead_letter_queue import DeadLetterQueue

#: How often a dlq without a schedule has its turn.
EVERY = timedelta(seconds=60)


def due(*, now: datetime, limit: int) -> list[int]:
    """The dlqs whose turn it is, the longest due first, so that they take turns; each is stamped with its next time."""
    with transaction.atomic():
        found = list(
            DeadLetterQueue.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("interval", "crontab")
            .filter(Q(next_poll_at=None) | Q(next_poll_at__lte=now))
            .filter(Q(leased_until=None) | Q(leased_until__lte=now))
            .order_by(F("next_poll_at").asc(nulls_first=True), "pk")[:limit]
        )
        for dlq in found:
            dlq.next_poll_at = now + _until_next(dlq, now)
        DeadLetterQueue.objects.bulk_update(found, ["next_poll_at"])
    return [dlq.pk for dlq in found]


def at_once(dlq: DeadLetterQueue) -> None:
    """Make the dlq due now."""
    DeadLetterQueue.objects.filter(pk=dlq.pk).update(next_poll_at=None)


def _until_next(dlq: DeadLetterQueue, now: datetime) -> timedelta:
    schedule = dlq.interval or dlq.crontab
    if schedule is None:
        return EVERY
    remaining: timedelta = schedule.schedule.remaining_estimate(now)
    return max(remaining, timedelta(0))
