"""Check that beat sends tasks, that workers take them, and that no task fails every time.

A tick is the task that beat sends every 2 s. A hint is a task that sends the messages of lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from reprocessing.domain.maintenance.findings import (
    DoctorFinding,
    FindingSeverity,
    clock_finding,
    error_finding,
    ok_finding,
    unknown_finding,
    warning_finding,
)
from reprocessing.domain.runs.forecast import duration_in_words
from reprocessing.store.maintenance import task_failures
from reprocessing.store.maintenance.task_failures import FailingTask
from reprocessing.store.ordering import stalled_lanes
from reprocessing.store.ordering.stalled_lanes import BeatStatus

_SILENT: Final = 60.0  #: seconds without a tick that are a problem; beat sends a tick every 2 s
#: Failures of a task without a success in between that are an error: one or two may have a passing cause, such as a
#: deadlock. A task whose last failure is older than this (s) is not reported: the rarest tasks run every hour.
_FAILURES, _FORGOTTEN_AFTER = 3, 3 * 3600.0
_BEAT, _WORKERS, _REPLAY = "beat", "workers", "workers of redrive-replay"
_CLOCK: Final = "the clock of beat's host against PostgreSQL's"
_START_BEAT: Final = (
    "Start beat: celery -A redrive_service beat, with this DATABASE_URL and these queue URLs. Several may run, and one "
    "leads. If one runs, its log (redrive.beat) says why it does not lead. It must connect to PostgreSQL without a "
    "pooler."
)
_START_WORKER: Final = (
    "Restart the workers (celery -A redrive_service worker), with this DATABASE_URL and these queue URLs. Their "
    "log says why they consume nothing."
)
_NOT_CONSUMED: Final = "Beat sends tasks, but no worker takes them. A worker can run and consume nothing."
_NOT_KNOWN: Final = "Nothing is sent. Either beat sends no tasks, or no worker takes them."
_CHECK_BOTH: Final = f"Check that a beat leads (log: redrive.beat). If one leads: {_START_WORKER}"


def findings(control: str, *, hint_life: float) -> Iterator[DoctorFinding]:
    """Yield findings that say whether beat sends ticks, and whether workers take ticks and hints.

    `control`: the queue of the ticks. `hint_life`: seconds within which workers must take a hint.
    """
    found = stalled_lanes.beat_status(control)
    clock = _clock(found)
    if clock.severity is not FindingSeverity.WELL:
        yield clock
    if clock.severity is FindingSeverity.ERROR:
        yield unknown_finding(_BEAT, "Whether it runs is unknown, because its clock is wrong.")
        yield _consumed(found, control, why=_NOT_KNOWN, cure=_CHECK_BOTH)
        return
    ticked = None if found.ticked is None else max(found.ticked, 0.0)
    if _is_late(ticked):
        since = "has never sent a tick" if ticked is None else f"sent its last tick {duration_in_words(ticked)} ago"
        why = "No DLQ is polled, no tasks are sent to workers, and the work of dead workers is not finished."
        say = error_finding if found.needed else warning_finding
        yield say(_BEAT, f"It {since}: it does not run, or no beat leads.", why, _START_BEAT)
        yield unknown_finding(_WORKERS, "Whether they consume is unknown while beat sends nothing.")
        return
    yield ok_finding(_BEAT, f"it sent a tick {duration_in_words(ticked or 0.0)} ago.")
    yield _consumed(found, control)
    if found.hinted and not found.worked_on and (found.lifetime or 0.0) > hint_life:
        what = f"Key queues are due, but workers did not take the tasks for them in time: {found.hinted:,}."
        yield error_finding(_REPLAY, what, "Nothing is sent.", _START_WORKER)


def task_findings() -> Iterator[DoctorFinding]:
    """Yield a finding for each task that fails again and again."""
    found = task_failures.failing_tasks(least=_FAILURES, within=_FORGOTTEN_AFTER)
    yield from map(_failing, found)
    if not found:
        yield ok_finding("tasks", "none fails again and again.")


def _failing(task: FailingTask) -> DoctorFinding:
    what = f"It failed or expired {task.failures:,} times without a success, last {duration_in_words(task.age)} ago."
    why = "The work of this task is not done, or only in part."
    cure = (
        f"Search the workers' log for {task.name}. If it has a traceback, fix its cause, or report it as a bug. If "
        "the task was discarded because it had expired, start more workers, and compare their clocks with beat's."
    )
    return error_finding(task.name, what, why, cure)


def _clock(found: BeatStatus) -> DoctorFinding:
    """Return a finding about the difference between beat's clock and PostgreSQL's clock.

    Beat records the time of each tick by its own clock. If its clock is ahead, this time may be in the future. If its
    clock is behind, a worker seems to take the tick long after this time.
    """
    ticked = found.ticked or 0.0
    behind = 0.0 if found.consumed is None else ticked - found.consumed
    ahead = -ticked if ticked < 0 else -behind if behind > _SILENT else 0.0
    return clock_finding(_CLOCK, timedelta(seconds=ahead), timedelta(0))


def _consumed(found: BeatStatus, control: str, *, why: str = _NOT_CONSUMED, cure: str = _START_WORKER) -> DoctorFinding:
    if not _is_late(found.consumed):
        return ok_finding(
            _WORKERS, f"a worker took a task of {control} {duration_in_words(found.consumed or 0.0)} ago."
        )
    since = "at any time" if found.consumed is None else f"for {duration_in_words(found.consumed)}"
    return error_finding(_WORKERS, f"No worker has taken a task of {control} {since}.", why, cure)


def _is_late(age: float | None) -> bool:
    """Return whether the last tick is too old, or its age (s) is not plausible.

    That is so if the age is above 60, below 0 (the tick's time is in the future), or None (unknown).
    """
    return age is None or not 0 <= age <= _SILENT
