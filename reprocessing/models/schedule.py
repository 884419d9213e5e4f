"""When beat polls which dlq: its own schedule, kept on the dlq."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from reprocessing.models.attempt import Attempt
from reprocessing.models.dead_letter_queue import DeadLetterQueue, Mode

#: How often an automatic dlq without a schedule is polled, and how often one that only proves something to others.
EVERY = timedelta(seconds=60)


def due(*, now: datetime, limit: int) -> list[int]:
    """The dlqs to capture now, the longest due first, so that dlqs take turns; each is stamped with its next time.

    Automatic ones by their schedule; also manual ones while letters await what a capture of them would prove.
    """
    waiting = Attempt.objects.filter(target__watched_by=OuterRef("pk"), closed_at=None, taken_at__isnull=False)
    with transaction.atomic():
        found = list(
            DeadLetterQueue.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("interval", "crontab")
            .filter(Q(next_poll_at=None) | Q(next_poll_at__lte=now), stopped_at=None)
            .filter(Q(leased_until=None) | Q(leased_until__lte=now))
            .exclude(mode=Mode.OBSERVE)
            .filter(Q(mode=Mode.AUTOMATIC) | Exists(waiting))
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
