"""Determine when each DLQ is polled, from the DLQ's own schedule.

A poll reads SQS's message counts of the DLQ, and starts a capture if the DLQ needs one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from reprocessing.models.dlq import DeadLetterQueue
from reprocessing.store.ordering import lanes

logger = logging.getLogger(__name__)

#: Interval of a DLQ without a schedule.
DEFAULT_INTERVAL = timedelta(seconds=60)
#: If a poll's task was lost or failed, the DLQ is polled again after this time.
RETRY_AFTER = timedelta(seconds=60)
#: A DLQ whose schedule has no next time (such as 30 February) is checked again after this time.
RECHECK_AFTER = timedelta(days=1)
_A_DAY = 86_400.0
_NO_TIME = "Its schedule has no next time. Set another interval or crontab."


@dataclass(frozen=True, slots=True)
class OpenPoll:
    """A poll in progress.

    Attributes:
        stamp: the DLQ's `next_poll_at` when the poll began. If the stored value differs later, somebody has made the
            DLQ due for another poll.
        then: the next scheduled time; None: `next_poll_at` is this time already.
    """

    dlq_id: int
    stamp: datetime | None
    then: datetime | None


def claim_due(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of up to `limit` DLQs that must be polled now, and set when each is due for a poll again.

    The DLQ that has been due for longest comes first. A DLQ is due again after 60 s, in case the poll's task is lost,
    or at its next scheduled time if that is earlier. The poll then sets the scheduled time (`end_poll`). A DLQ with a
    new crontab is first due at the crontab's time. A DLQ with a new interval is due at once. If a schedule has no next
    time, the DLQ's error text (`last_error`) says so.
    """
    with transaction.atomic():
        found = list(
            DeadLetterQueue.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
            .select_related("interval", "crontab")
            .filter(Q(next_poll_at=None) | Q(next_poll_at__lte=now))
            .filter(Q(leased_until=None) | Q(leased_until__lte=now))
            .order_by(F("next_poll_at").asc(nulls_first=True), "pk")[:limit]
        )
        due: list[int] = []
        for dlq in found:
            then = _next_poll(dlq, now)
            if then is None:
                dlq.last_error = _NO_TIME
            elif dlq.next_poll_at is not None or dlq.crontab is None:
                due.append(dlq.pk)
                then = min(then, now + RETRY_AFTER)
            dlq.next_poll_at = then or now + RECHECK_AFTER
        DeadLetterQueue.objects.bulk_update(found, ["next_poll_at"])
        DeadLetterQueue.objects.bulk_update([dlq for dlq in found if dlq.last_error == _NO_TIME], ["last_error"])
    return due


def begin_poll(dlq: DeadLetterQueue, *, now: datetime, since: str | None = None) -> OpenPoll | None:
    """Begin a poll of this DLQ, whose row was just read. None: another process polls it, or has just polled it.

    `since`: when the task of this poll was enqueued (ISO 8601). If a poll began after this time, the task came late or
    twice, and polls nothing (docs/adr/0064).
    """
    stamp, then = dlq.next_poll_at, _next_poll(dlq, now)
    if stamp is None or then is None or then <= now + RETRY_AFTER:
        then = None
    elif stamp > now + RETRY_AFTER:
        return None
    after = datetime.fromisoformat(since) if since else now
    begun = DeadLetterQueue.objects.filter(pk=dlq.pk).exclude(poll_began_at__gt=after).update(poll_began_at=now)
    return OpenPoll(dlq.pk, stamp, then) if begun else None


def extend_poll(poll: OpenPoll, *, until: datetime) -> OpenPoll:
    """Make the DLQ due 60 s after the time `until`, or at its next scheduled time if that is earlier.

    Nothing changes if the next scheduled time is near (`poll.then` is None), or if somebody has made the DLQ due since.
    """
    return poll if poll.then is None else _set_next_poll(poll, min(poll.then, until + RETRY_AFTER))


def end_poll(poll: OpenPoll) -> None:
    """End the poll: the DLQ is due at its next scheduled time, unless somebody has made the DLQ due earlier."""
    if poll.then is not None:
        _set_next_poll(poll, poll.then)


def _set_next_poll(poll: OpenPoll, at: datetime) -> OpenPoll:
    DeadLetterQueue.objects.filter(pk=poll.dlq_id, next_poll_at=poll.stamp).update(next_poll_at=at)
    return replace(poll, stamp=at)


def first_poll(dlq: DeadLetterQueue, *, now: datetime) -> datetime | None:
    """Return when this DLQ is first polled; None: at once, or never if its schedule has no next time."""
    if dlq.next_poll_at is not None or dlq.crontab is None:
        return dlq.next_poll_at
    return _next_poll(dlq, now)


def poll_now(dlq: DeadLetterQueue) -> None:
    """Make the DLQ due for a poll now."""
    DeadLetterQueue.objects.filter(pk=dlq.pk).update(next_poll_at=lanes.database_now())


def polls_per_second() -> float:
    """Return how many polls per second the schedules of all DLQs cause together."""
    found = DeadLetterQueue.objects.select_related("interval", "crontab").only("interval", "crontab")
    return sum(_polls_per_second(dlq) for dlq in found)


def poll_intervals(dlqs: Collection[int]) -> dict[int, float]:
    """Return the seconds between two polls of each of these DLQs, by id; for a crontab, the average."""
    found = DeadLetterQueue.objects.filter(pk__in=dlqs).select_related("interval", "crontab")
    often = {dlq.pk: _polls_per_second(dlq) for dlq in found.only("interval", "crontab")}
    return {dlq: 1 / rate if rate else RECHECK_AFTER.total_seconds() for dlq, rate in often.items()}


def _polls_per_second(dlq: DeadLetterQueue) -> float:
    schedule = dlq.interval or dlq.crontab
    if schedule is None:
        return 1 / DEFAULT_INTERVAL.total_seconds()
    try:
        timing = schedule.schedule
        if dlq.interval is not None:
            return 1 / max(1.0, float(timing.run_every.total_seconds()))
        days = len(timing.day_of_week) / 7 * len(timing.day_of_month) / 31 * len(timing.month_of_year) / 12
        return len(timing.minute) * len(timing.hour) * days / _A_DAY
    except Exception:  # noqa: BLE001  # the library cannot compute it, so the schedule causes no polls
        return 0.0


def _next_poll(dlq: DeadLetterQueue, now: datetime) -> datetime | None:
    schedule = dlq.interval or dlq.crontab
    if schedule is None:
        return now + DEFAULT_INTERVAL
    try:
        timing = schedule.schedule
        timing.nowfun = lambda: now  # the default, this machine's clock, may differ from the database's clock
        remaining: timedelta = timing.remaining_estimate(now)
        return now + max(remaining, timedelta(0))
    except Exception:  # noqa: BLE001  # the library failed: a broken schedule must not stop other DLQs
        logger.warning("%s: %s", dlq, _NO_TIME, extra={"dlq": str(dlq)})
        return None


def find_dlq(dlq_id: int) -> DeadLetterQueue | None:
    """Return a DLQ with its schedule and default source; None: it was removed."""
    return DeadLetterQueue.objects.select_related("default_source", "interval", "crontab").filter(pk=dlq_id).first()
