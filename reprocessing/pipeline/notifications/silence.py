"""Open an incident (notify people) if beat sends no tasks, or workers take no tasks; end it when they do again."""

from __future__ import annotations

from functools import partial

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.heartbeat import Silence
from reprocessing.domain.notifications.subjects import BEAT, of_workers
from reprocessing.store import rows
from reprocessing.store.notifications.open_incidents import open_incidents
from reprocessing.store.notifications.outbox import announce, conclude


def record_silence(silence: Silence, *, control: str, silent_for: float) -> None:
    """Open an incident for beat if it sends no ticks, and for workers if they take no tasks; else end these incidents.

    A tick is the task that beat sends every 2 s. If the state of beat or of the workers is not known, its incident
    stays as it is. Even if several processes watch, there is only one incident for beat, and one for the workers. This
    function commits by itself.

    Args:
        silence: whether beat and the workers are silent, as this process has found; None: not known.
        control: the name of the queue to which beat sends its ticks.
        silent_for: seconds after which beat or workers count as silent.
    """
    seen = (
        (silence.beat, Event(EventKind.BEAT_SILENT, BEAT, {"seconds": round(silent_for)})),
        (silence.workers, Event(EventKind.WORKERS_SILENT, of_workers(control),
                                {"queue": control, "seconds": round(silent_for)})),
    )  # fmt: skip
    found = [event for is_silent, event in seen if is_silent]
    over = {(event.kind, event.subject) for is_silent, event in seen if is_silent is False}
    if silence.workers is False:  # the control queue may have had another name
        over |= open_incidents((EventKind.WORKERS_SILENT,))
    if found or over:
        rows.in_transaction(partial(_write, found, over))


def _write(found: list[Event], over: set[tuple[EventKind, str]]) -> None:
    announce(found)
    conclude(over)
