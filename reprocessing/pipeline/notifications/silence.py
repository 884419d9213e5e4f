"""Write down whether beat, or the workers, give no sign of life."""

from __future__ import annotations

from functools import partial

from reprocessing.domain.notifications.event import Event, EventKind
from reprocessing.domain.notifications.heartbeat import Silence
from reprocessing.domain.notifications.subjects import BEAT, of_workers
from reprocessing.models import rows
from reprocessing.store.notifications.outbox import announce, conclude


def note(silence: Silence, *, control: str, silent_for: float) -> None:
    """Announce who is silent, and conclude that of who is not; what is not known changes nothing.

    However many watch: one incident is open for beat, and one for the workers. Commits by itself.

    Args:
        silence: as this watcher sees it.
        control: the name of the queue that beat's tick travels in.
        silent_for: seconds after which this is told.
    """
    seen = (
        (silence.beat, Event(EventKind.BEAT_SILENT, BEAT, {"seconds": round(silent_for)})),
        (silence.workers, Event(EventKind.WORKERS_SILENT, of_workers(control),
                                {"queue": control, "seconds": round(silent_for)})),
    )  # fmt: skip
    found = [event for is_silent, event in seen if is_silent]
    over = [(event.kind, event.subject) for is_silent, event in seen if is_silent is False]
    if found or over:
        rows.whole(partial(_write, found, over))


def _write(found: list[Event], over: list[tuple[EventKind, str]]) -> None:
    announce(found)
    conclude(over)
