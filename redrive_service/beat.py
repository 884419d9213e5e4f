"""Celery beat in several processes, of which one leads and sends the scheduled tasks that are due.

django-celery-beat 2.9.0 sends a due task, and saves minutes later that the task was sent. So a process that becomes
leader meanwhile sends the task again. Here, a process first claims a due task: it changes the task's row in the
database, and only one process succeeds. So even two leaders do not send a due task twice (docs/adr/0002).

One of these tasks is called "tick" (`reprocessing.tick`). It is sent every 2 s. Celery's method `Scheduler.tick` is
something else: it checks the schedule once.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from redrive_service.leadership import Leadership, dedicated_connection
from redrive_service.telemetry.alive import touch

logger = logging.getLogger("redrive.beat")

BeatValue: TypeAlias = Any
"""A value from Celery or django-celery-beat, which are untyped."""

_CHECK_EVERY = 2.0  # max seconds between two checks of the schedule
_RETRY_EVERY = 1.0  # seconds until a process that does not lead tries to lead, or until a retry after an error
_DATABASE_ERRORS = (DatabaseError, InterfaceError)
_LONG_AGO = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)  # an entry that was last sent at this time is due


class ClaimFailed(Exception):  # the name says what happened
    """A due task could not be claimed: another process claimed it first, or somebody changed the schedule."""


class LeaderScheduler(DatabaseScheduler):  # type: ignore[misc]  # django-celery-beat is untyped
    """django-celery-beat's scheduler, made safe for several processes.

    A process claims a due task by a compare-and-set of the run count in the row of the scheduled task. Then it sends
    the task. If sending fails, it tries again until the same entry of the schedule is due again. If the process is
    killed after the claim, the task is not sent. A lost or repeated task does no harm, because PostgreSQL, not the
    task, has the work to do.

    The schedule follows this machine's clock. If the clock was set back, or if the clock of the previous leader was
    ahead, the stored time of an entry's last send can be in the future. Then the entry is due at once.
    """

    def __init__(self, *args: BeatValue, **kwargs: BeatValue) -> None:
        self._leadership = Leadership(lambda: dedicated_connection(connections["default"].get_connection_params()))
        self._schedule_is_known = False
        self._time = 0.0  # this machine's clock at the last check, in seconds since 1970
        self._unsent: dict[str, ModelEntry] = {}  # claimed entries whose tasks are not sent yet, by name
        self._unconfirmed: ModelEntry | None = None  # an entry whose claim the database did not confirm
        super().__init__(*args, **kwargs)
        self.max_interval: float = min(self.max_interval, _CHECK_EVERY)

    def tick(self, *_args: BeatValue, **_kwargs: BeatValue) -> float:
        """Check the schedule: if this process leads, send the next due task. Return the seconds until the next check.

        Errors are logged.
        """
        touch(settings.ALIVE_FILE)
        if self._clock_was_set_back():
            self._schedule_is_known = False
        if not self._leadership.is_held():
            self._schedule_is_known = False
            return _RETRY_EVERY
        try:
            close_old_connections()
            if not self._schedule_is_known:
                self._read_schedule()
            until_next: float = super().tick()
            if until_next > 0:  # only now: a due task replaces an unsent one of the same entry
                self._send_unsent()
            return min(until_next, _CHECK_EVERY)
        except ClaimFailed:
            logger.warning("redrive.beat.claim_failed: reading the schedule again")
        except _DATABASE_ERRORS as error:
            logger.error("redrive.beat.database_failed error=%s", type(error).__name__)  # noqa: TRY400  # every second, one line
        except Exception:
            logger.exception("redrive.beat.schedule_check_failed")
        self._schedule_is_known = False
        return _RETRY_EVERY

    def close(self) -> None:
        """Disconnect from the broker, and stop leading. Celery calls this in its signal handler, and again at exit."""
        try:
            super().close()
        finally:
            self._leadership.release()

    # Claiming and sending.

    def reserve(self, entry: ModelEntry) -> ModelEntry:
        """Claim a due task: add 1 to the run count in its row. Return the entry with the new count.

        Raises:
            ClaimFailed: the row has changed, for example because another process claimed the task.
        """
        runs = entry.model.total_run_count
        following = next(entry)
        self._unconfirmed = following
        claimed = self.Model.objects.filter(pk=entry.model.pk, enabled=True, total_run_count=runs).update(
            total_run_count=following.model.total_run_count, last_run_at=following.model.last_run_at
        )
        self._unconfirmed = None
        if not claimed:
            raise ClaimFailed(entry.name)
        self._unsent[entry.name] = following
        return following

    def apply_entry(self, entry: ModelEntry, producer: BeatValue = None) -> None:
        """Send the task of a claimed entry. If this fails, the next check of the schedule sends the task."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # noqa: BLE001  # the broker's errors are of any class
            cause = type(error.__cause__ or error.__context__ or error).__name__
            logger.error("redrive.beat.task_not_sent name=%s error=%s", entry.name, cause)  # noqa: TRY400  # every second, one line
        else:
            self._unsent.pop(entry.name, None)

    def _send_unsent(self) -> None:
        for entry in list(self._unsent.values()):
            self.apply_entry(entry, producer=self.producer)

    # Reading the schedule.

    def setup_schedule(self) -> None:
        """Do nothing, so that a process can start while PostgreSQL is down. The leader reads the schedule later."""

    def sync(self) -> None:
        """Do nothing: `reserve` has saved each sent task already.

        django-celery-beat 2.9.0 saves sent tasks in this method. If the save failed, it would send the tasks again.
        """

    def _clock_was_set_back(self) -> bool:
        before, self._time = self._time, self.app.now().timestamp()
        if self._time >= before:
            return False
        logger.warning("redrive.beat.clock_was_set_back seconds=%.1f: reading the schedule again", before - self._time)
        return True

    def _read_schedule(self) -> None:
        self._schedule = self._heap = self.old_schedulers = None
        self._initial_read = True
        self._last_timestamp = self.Changes.last_change()  # read before the schedule, so that no later change is missed
        super().setup_schedule()
        known = self.schedule
        unconfirmed, self._unconfirmed = self._unconfirmed, None
        if unconfirmed is not None and unconfirmed.name in known and _is_same_run(known[unconfirmed.name], unconfirmed):
            self._unsent[unconfirmed.name] = unconfirmed
        self._schedule_is_known = True

    def schedule_changed(self) -> bool:
        """Return whether the schedule's tables changed since the last call, whatever this machine's clock says."""
        last_change = self.Changes.last_change()
        changed: bool = last_change != self._last_timestamp
        self._last_timestamp = last_change
        return changed

    def enabled_models(self) -> list[BeatValue]:
        """Return the rows of all enabled tasks.

        django-celery-beat 2.9.0 leaves out crontabs that are not due in the next hours. It computes this wrongly in
        time zones with half hours.
        """
        return list(self.Model.objects.enabled())

    def all_as_schedule(self) -> dict[str, ModelEntry]:
        """Return the stored schedule: its entries by name. A row that cannot be read is logged and left out.

        If the stored time of an entry's last send is in the future, the entry is sent at once. Otherwise, beat would
        wait until after that time.
        """
        schedule = {}
        now = self.app.now()
        for model in self.enabled_models():
            if model.last_run_at is not None and model.last_run_at > now:
                model.last_run_at = _LONG_AGO
            try:
                schedule[model.name] = self.Entry(model, app=self.app)
            except _DATABASE_ERRORS:
                raise
            except Exception:
                logger.exception("redrive.beat.entry_not_understood name=%s", model.name)
        return schedule

    def update_from_dict(self, mapping: Mapping[str, Mapping[str, BeatValue]]) -> None:
        """Store the entries of CELERY_BEAT_SCHEDULE. Raise database errors, which django-celery-beat would hide."""
        for name, fields in mapping.items():
            self.Entry.from_entry(name, app=self.app, **fields)


def _is_same_run(stored: ModelEntry, claimed: ModelEntry) -> bool:
    return bool(
        stored.model.total_run_count == claimed.model.total_run_count
        and stored.model.last_run_at == claimed.model.last_run_at
    )
