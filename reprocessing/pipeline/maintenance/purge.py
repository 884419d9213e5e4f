"""Delete finished letters, their history, reports, counters, incidents and the API's answers past their retention."""

from __future__ import annotations

from reprocessing.conf import Conf
from reprocessing.store.api import calls
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.notifications import incident_retention, sending

_GROUP, _REPORTS, _CAUSES = 1_000, 100_000, 10_000


def purge_expired(*, conf: Conf) -> int:
    """Delete letters that were delivered or discarded longer ago than `conf.history`; return how many.

    A letter is kept until the DLQ's retention and a day have passed since its copy was deleted: SQS could deliver the
    copy again.
    """
    history, purged, found = conf.history.total_seconds(), 0, _GROUP
    while found >= _GROUP:
        found = retention.delete_letters(history=history, limit=_GROUP)
        purged += found
    retention.delete_waves(history=history)
    retention.delete_groups(history=history, limit=_CAUSES)
    retention.delete_bulk_actions(history=history, limit=_CAUSES)
    counters.delete_old_hours(history=history)
    incident_retention.delete_incidents(history=history, limit=_CAUSES)
    sending.give_up_old()  # also notifications to destinations without a URL
    while calls.delete_old(limit=_GROUP) >= _GROUP:
        pass
    retention.delete_reports(history=history, limit=_REPORTS)
    return purged
