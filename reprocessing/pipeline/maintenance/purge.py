"""Delete rows past their retention, such as letters, their bodies and history, and consumer reports."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reprocessing.conf import Conf
from reprocessing.models import DeadLetterQueue
from reprocessing.store.api import calls
from reprocessing.store.approvals import requests
from reprocessing.store.maintenance import body_retention, counters, retention
from reprocessing.store.notifications import incident_retention, sending
from reprocessing.store.runs import run_minutes

#: Most rows that one call deletes: letters and similar rows; reports; failure groups, bulk actions and incidents.
_GROUP, _REPORTS, _CAUSES = 1_000, 100_000, 10_000


def purge_expired(*, conf: Conf) -> int:
    """Delete letters that finished longer ago than `conf.history`, and other old rows; return how many letters.

    A letter is kept at least until the DLQ's retention and one more day have passed since its message was deleted from
    the DLQ: until then, SQS could deliver the message again, and it would count as new. The body of a letter is deleted
    earlier if its DLQ has a retention for bodies (`keep_bodies`).
    """
    history, purged = conf.history.total_seconds(), 0
    for dlq in DeadLetterQueue.objects.order_by("pk").values_list("pk", flat=True):
        purged += _repeated(partial(retention.delete_letters, dlq, history=history, limit=_GROUP))
    for dlq in body_retention.dlqs_with_body_retention():
        _repeated(partial(body_retention.delete_bodies, dlq, limit=_GROUP))
        body_retention.store_deleted_through(dlq)
    retention.delete_waves(history=history)
    retention.delete_groups(history=history, limit=_CAUSES)
    retention.delete_bulk_actions(history=history, limit=_CAUSES)
    requests.delete_ended(history=history)
    counters.delete_old_hours(history=history)
    _repeated(partial(counters.delete_old_group_hours, limit=_GROUP))
    _repeated(partial(run_minutes.delete_old_minutes, limit=_GROUP))
    incident_retention.delete_incidents(history=history, limit=_CAUSES)
    sending.give_up_old()  # gives up old notifications, also for destinations without a URL
    _repeated(partial(calls.delete_old, limit=_GROUP))
    retention.delete_reports(history=history, limit=_REPORTS)
    return purged


def _repeated(delete: Callable[[], int]) -> int:
    """Call `delete` until it deletes fewer than the 1,000 rows of a full batch; return the number of all rows."""
    deleted = found = _GROUP
    while found >= _GROUP:
        found = delete()
        deleted += found
    return deleted - _GROUP
