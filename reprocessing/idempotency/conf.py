"""A typed, frozen view of settings.REDRIVE_IDEMPOTENCY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from django.conf import settings

from reprocessing.idempotency.errors import SettingsAreUnclear

#: SQS keeps a message no longer (AWS: SetQueueAttributes, MessageRetentionPeriod).
RETENTION_LIMIT: Final = timedelta(days=14)
#: A letter may die at the end of one retention, and be sent back as a new message, which has another.
LEAST_KEEP: Final = 2 * RETENTION_LIMIT
#: A claim is no longer taken for alive than a message may stay invisible (AWS: SetQueueAttributes, VisibilityTimeout).
LONGEST_LEASE: Final = timedelta(hours=12)
#: Characters. PostgreSQL's index takes 2,704 bytes a row, and a character may have four.
LONGEST_SPACE: Final = 100
LONGEST_KEY: Final = 500
#: Of any time to keep: longer ones are no moment any more that PostgreSQL and Python both know.
LONGEST_KEEP: Final = timedelta(days=36_500)
_NAMES: Final = frozenset({"KEEP", "LEASE", "DATABASE", "ERROR_MESSAGES"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """What holds for every claim that says nothing else.

    Attributes:
        keep: how long what was done is remembered, after it was done.
        lease: how long a claim is taken for alive when nothing more is heard of it.
        database: the alias under which claims are committed; those with `transactional=True` name their own.
        error_messages: whether the text of a failure's exception is kept; it may quote what the work was given.
    """

    keep: timedelta = field(default=LEAST_KEEP + timedelta(days=2))
    lease: timedelta = field(default=timedelta(minutes=5))
    database: str = "default"
    error_messages: bool = True


def current() -> Conf:
    """What the settings say now.

    Raises:
        SettingsAreUnclear: they name what there is not, or say what cannot be.
    """
    return read(getattr(settings, "REDRIVE_IDEMPOTENCY", {}))


def read(given: object) -> Conf:
    """The view of one value of the setting.

    Raises:
        SettingsAreUnclear: as `current`.
    """
    if not isinstance(given, Mapping):
        raise SettingsAreUnclear(f"REDRIVE_IDEMPOTENCY is a {type(given).__name__}; make it a dict.")
    if unknown := {str(name) for name in given} - _NAMES:
        raise SettingsAreUnclear(
            f"REDRIVE_IDEMPOTENCY has no {', '.join(sorted(unknown))}. There are: {', '.join(sorted(_NAMES))}."
        )
    usual = Conf()
    database = given.get("DATABASE", usual.database)
    messages = given.get("ERROR_MESSAGES", usual.error_messages)
    if not isinstance(database, str) or not database:
        raise SettingsAreUnclear(f'REDRIVE_IDEMPOTENCY["DATABASE"] is {database!r}; name an alias of DATABASES.')
    if not isinstance(messages, bool):
        raise SettingsAreUnclear(f'REDRIVE_IDEMPOTENCY["ERROR_MESSAGES"] is {messages!r}; say True or False.')
    return Conf(
        keep=span(given.get("KEEP", usual.keep), 'REDRIVE_IDEMPOTENCY["KEEP"]', most=LONGEST_KEEP),
        lease=span(given.get("LEASE", usual.lease), 'REDRIVE_IDEMPOTENCY["LEASE"]', most=LONGEST_LEASE),
        database=database,
        error_messages=messages,
    )


def span(value: object, name: str, *, most: timedelta) -> timedelta:
    """A timedelta, or a number of seconds, above zero and at most `most`.

    Raises:
        SettingsAreUnclear: it is neither; the message names it by `name`.
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most.total_seconds():
        return timedelta(seconds=value)
    if isinstance(value, timedelta) and timedelta() < value <= most:
        return value
    raise SettingsAreUnclear(
        f"{name} is {value!r}; it takes a timedelta or a number of seconds, above 0 and at most {most.days} days and "
        f"{most.seconds // 3600} hours."
    )
