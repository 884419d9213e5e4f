"""Forget what is past its time: finished letters with their history, what was said of them, copies gone for long."""

from __future__ import annotations

from collections.abc import Callable

from reprocessing.conf import Conf
from reprocessing.models import oblivion, tallies
from reprocessing.store.notifications import retention, sending

_GROUP, _REPORTS, _CAUSES = 1_000, 100_000, 10_000


def letters(*, conf: Conf, stop: Callable[[], bool] = lambda: False) -> int:
    """Purge letters that have been finished for the kept history, parked ones excepted; how many.

    Nothing is purged before its dlq's retention, and a day, have passed since its copy was gone: until then the copy
    could turn up again, and has to be known.
    """
    purged = 0
    while not stop():
        found = oblivion.forget(history=conf.history.total_seconds(), limit=_GROUP)
        purged += found
        if found < _GROUP:
            break
    history = conf.history.total_seconds()
    oblivion.forget_waves(history=history)
    oblivion.forget_groups(history=history, limit=_CAUSES)
    oblivion.forget_operations(history=history, limit=_CAUSES)
    tallies.forget(history=history)
    retention.forget_incidents(history=history, limit=_CAUSES)
    sending.give_up()  # also of what no process has a URL for
    oblivion.forget_reports(history=history, limit=_REPORTS)
    return purged
