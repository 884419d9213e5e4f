"""Forget what is past its time: finished letters with their history, what was said of them, copies gone for long."""

from __future__ import annotations

from collections.abc import Callable

from reprocessing.conf import Conf
from reprocessing.store.maintenance import counters, retention
from reprocessing.store.notifications import incident_retention, sending

_GROUP, _REPORTS, _CAUSES = 1_000, 100_000, 10_000


def letters(*, conf: Conf, stop: Callable[[], bool] = lambda: False) -> int:
    """Purge letters that have been finished for the kept history, parked ones excepted; how many.

    Nothing is purged before its dlq's retention, and a day, have passed since its copy was gone: until then the copy
    could turn up again, and has to be known.
    """
    purged = 0
    while not stop():
        found = retention.forget(history=conf.history.total_seconds(), limit=_GROUP)
        purged += found
        if found < _GROUP:
            break
    history = conf.history.total_seconds()
    retention.forget_waves(history=history)
    retention.forget_groups(history=history, limit=_CAUSES)
    retention.forget_operations(history=history, limit=_CAUSES)
    counters.forget(history=history)
    incident_retention.forget_incidents(history=history, limit=_CAUSES)
    sending.give_up()  # also of what no process has a URL for
    retention.forget_reports(history=history, limit=_REPORTS)
    return purged
