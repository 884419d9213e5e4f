"""Beat and workers: a process that lives proves nothing, a task that was consumed does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from reprocessing.domain.maintenance.findings import Grade, Remark, clock, ill, unknown, warn, well
from reprocessing.domain.runs.forecast import in_words
from reprocessing.store.ordering import stalled_lanes
from reprocessing.store.ordering.stalled_lanes import Beat

#: Seconds: beat ticks every two.
_SILENT: Final = 60.0
_BEAT, _WORKERS, _REPLAY = "beat", "workers", "workers of lanes"
_CLOCK: Final = "the clock of beat's host against PostgreSQL's"
_START_BEAT: Final = (
    "celery -A redrive_service beat, with this DATABASE_URL and these queue URLs; as many as you like, one leads. "
    "Where one runs, its log says why none leads: redrive.beat.… ; it has to reach PostgreSQL itself, not a pooler."
)
_START_WORKER: Final = (
    "Restart the workers (celery -A redrive_service worker), with this DATABASE_URL and these queue URLs. Their "
    "log says why they consume nothing."
)


def remarks(control: str, *, hint_life: float) -> Iterator[Remark]:
    """Whether ticks are sent and taken, and hints are.

    Args:
        control: the name of the queue that the tick travels in.
        hint_life: seconds that a hint waits while workers take them.
    """
    found = stalled_lanes.beat(control)
    ahead = _ahead(found)
    if ahead.grade is not Grade.WELL:
        yield ahead
    if ahead.grade is Grade.ILL:
        yield unknown(_BEAT, "Whether it lives is not known: it dates its ticks far ahead.")
        yield unknown(_WORKERS, "Whether they consume is not known while beat's clock is wrong.")
        return
    ticked = None if found.ticked is None else max(found.ticked, 0.0)
    if _is_late(ticked):
        since = "has never sent a tick" if ticked is None else f"sent its last tick {in_words(ticked)} ago"
        why = "No dlq is polled, no lane is hinted at, nothing that dead workers held is recovered."
        say = ill if found.needed else warn
        yield say(_BEAT, f"It {since}: it is dead, or none leads.", why, _START_BEAT)
        yield unknown(_WORKERS, "Whether they consume is not known while beat sends nothing.")
        return
    yield well(_BEAT, f"it sent a tick {in_words(ticked or 0.0)} ago.")
    yield _consumed(found, control)
    if found.hinted and not found.worked_on and (found.lifetime or 0.0) > hint_life:
        what = f"Lanes are due, hints at them outlived their time, and nobody has taken any: {found.hinted:,}."
        yield ill(_REPLAY, what, "Nothing is sent.", _START_WORKER)


def _ahead(found: Beat) -> Remark:
    """How far the clock of beat's host, which dates its ticks, is ahead of PostgreSQL's; one behind does not show.

    A tick of some seconds ahead is a live beat's. One that is further ahead may be of any age: whoever is dead may
    have sent it.
    """
    return clock(_CLOCK, timedelta(seconds=max(-(found.ticked or 0.0), 0.0)), timedelta(0))


def _consumed(found: Beat, control: str) -> Remark:
    if not _is_late(found.consumed):
        return well(_WORKERS, f"one took a task of {control} {in_words(found.consumed or 0.0)} ago.")
    last = (
        "None has ever taken a task"
        if found.consumed is None
        else f"None has taken a task for {in_words(found.consumed)}"
    )
    why = "Beat sends, and nobody does it: workers can live on and consume nothing."
    return ill(_WORKERS, f"{last} of {control}.", why, _START_WORKER)


def _is_late(age: float | None) -> bool:
    """One of the future shows nothing, as none does."""
    return age is None or not 0 <= age <= _SILENT
