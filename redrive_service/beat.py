"""A beat that is harmless when it is started twice: one leads, and even two could not send one tick twice.

django-celery-beat 2.9.0 sends first and writes later what it has sent, minutes later by default. Whoever takes over
sends again, a database error in between sends again, and two beats send everything twice. Here a tick is claimed in its
row before it is sent, and the row's count admits one claim only (docs/adr/0002-one-beat-leads.md).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias

from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from redrive_service.leadership import Leadership, dedicated_connection

logger = logging.getLogger("redrive.beat")

BeatValue: TypeAlias = Any
"""A value of Celery's or django-celery-beat's, which are untyped."""

_WAKES_EVERY = 2.0  # seconds at most between two looks at the schedule
_ASKS_EVERY = 1.0  # seconds between a standby's questions for the lead, and before a second try after an error
_DATABASE_ERRORS = (DatabaseError, InterfaceError)


class TickWasTaken(Exception):  # named for what happened
    """Somebody else claimed this tick, or its row changed: what this process knows of the schedule is old."""


class LeaderScheduler(DatabaseScheduler):  # type: ignore[misc]  # django-celery-beat is untyped
    """django-celery-beat's scheduler, for as many beats as one likes.

    Every tick is claimed by its row's run count, then sent, and owed until it was sent or the next one is due. A beat
    that dies in between loses that one tick; its tasks must bear that, and a repetition, as every Celery message here
    is only a hint.
    """

    def __init__(self, *args: BeatValue, **kwargs: BeatValue) -> None:
        self._leadership = Leadership(lambda: dedicated_connection(connections["default"].get_connection_params()))
        self._schedule_is_known = False
        self._owed: dict[str, ModelEntry] = {}  # claimed and not yet sent, by name
        self._doubtful: ModelEntry | None = None  # claimed, and the database did not say whether that came through
        super().__init__(*args, **kwargs)
        self.max_interval: float = min(self.max_interval, _WAKES_EVERY)

    def tick(self, *_args: BeatValue, **_kwargs: BeatValue) -> float:
        """Send what is due, if this process leads: seconds until the next look. Errors are logged and outlived."""
        if not self._leadership.is_held():
            self._schedule_is_known = False
            return _ASKS_EVERY
        try:
            close_old_connections()
            if not self._schedule_is_known:
                self._learn_schedule()
            until_next: float = super().tick()
            if until_next > 0:  # first what is due: a new tick of the same entry takes the owed one's place
                self._send_owed()
            return min(until_next, _WAKES_EVERY)
        except TickWasTaken:
            logger.warning("redrive.beat.tick_was_taken: reading the schedule again")
        except _DATABASE_ERRORS as error:
            logger.error("redrive.beat.database_failed error=%s", type(error).__name__)  # noqa: TRY400  # every second, one line
        except Exception:
            logger.exception("redrive.beat.tick_failed")
        self._schedule_is_known = False
        return _ASKS_EVERY

    def close(self) -> None:
        """Release the broker and the lead. Celery calls this from its signal handler, and once more on the way out."""
        try:
            super().close()
        finally:
            self._leadership.release()

    # Claiming and sending.

    def reserve(self, entry: ModelEntry) -> ModelEntry:
        """Claim the tick in its row, for this process alone.

        Raises:
            TickWasTaken: the row no longer is as it was read.
        """
        runs = entry.model.total_run_count
        following = next(entry)
        self._doubtful = following
        claimed = self.Model.objects.filter(pk=entry.model.pk, enabled=True, total_run_count=runs).update(
            total_run_count=following.model.total_run_count, last_run_at=following.model.last_run_at
        )
        self._doubtful = None
        if not claimed:
            raise TickWasTaken(entry.name)
        self._owed[entry.name] = following
        return following

    def apply_entry(self, entry: ModelEntry, producer: BeatValue = None) -> None:
        """Send a claimed tick. What cannot be sent stays owed, and is tried again with the next look."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except Exception as error:  # noqa: BLE001  # the broker's errors are of any class
            cause = type(error.__cause__ or error.__context__ or error).__name__
            logger.error("redrive.beat.tick_owed name=%s error=%s", entry.name, cause)  # noqa: TRY400  # every second, one line
        else:
            self._owed.pop(entry.name, None)

    def _send_owed(self) -> None:
        for entry in list(self._owed.values()):
            self.apply_entry(entry, producer=self.producer)

    # Knowing the schedule.

    def setup_schedule(self) -> None:
        """Nothing at start: a standby has no business in the tables, and the database may be away."""

    def sync(self) -> None:
        """Nothing: a claim is in its row before it is sent.

        2.9.0 forgets here what it could not write, reads the old time of the last run again and sends again.
        """

    def _learn_schedule(self) -> None:
        self._schedule = self._heap = self.old_schedulers = None
        self._initial_read = True
        self._last_timestamp = self.Changes.last_change()  # before reading, or a change in between goes unseen
        super().setup_schedule()
        known = self.schedule
        doubtful, self._doubtful = self._doubtful, None
        if doubtful is not None and doubtful.name in known and _is_same_run(known[doubtful.name], doubtful):
            self._owed[doubtful.name] = doubtful
        self._schedule_is_known = True

    def schedule_changed(self) -> bool:
        """Whether the tables changed since they were last read. 2.9.0 also asks whether by a clock that runs later."""
        last_change = self.Changes.last_change()
        changed: bool = last_change != self._last_timestamp
        self._last_timestamp = last_change
        return changed

    def enabled_models(self) -> list[BeatValue]:
        """All of them: 2.9.0 leaves out crontabs by the hour, with a sum that half-hour time zones do not survive."""
        return list(self.Model.objects.enabled())

    def all_as_schedule(self) -> dict[str, ModelEntry]:
        """The schedule as it is stored. A row that cannot be understood is left out, and takes no other with it."""
        schedule = {}
        for model in self.enabled_models():
            try:
                schedule[model.name] = self.Entry(model, app=self.app)
            except _DATABASE_ERRORS:
                raise
            except Exception:
                logger.exception("redrive.beat.entry_not_understood name=%s", model.name)
        return schedule

    def update_from_dict(self, mapping: Mapping[str, Mapping[str, BeatValue]]) -> None:
        """Store the entries that settings declare. 2.9.0 swallows a database error here, and the entry with it."""
        for name, fields in mapping.items():
            self.Entry.from_entry(name, app=self.app, **fields)


def _is_same_run(stored: ModelEntry, claimed: ModelEntry) -> bool:
    return bool(
        stored.model.total_run_count == claimed.model.total_run_count
        and stored.model.last_run_at == claimed.model.last_run_at
    )
