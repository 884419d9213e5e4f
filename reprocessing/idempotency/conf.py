"""Read settings.REDRIVE_IDEMPOTENCY into a typed, frozen `Conf`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from django.conf import settings

from reprocessing.idempotency.errors import InvalidIdempotencySettings

#: The longest retention of SQS.
RETENTION_LIMIT: Final = timedelta(days=14)
#: The shortest `keep` that causes no warning. A message may be redriven at the end of its retention. The redriven
#: message is a new message for SQS, so it has a full retention again.
LEAST_KEEP: Final = 2 * RETENTION_LIMIT
#: The longest visibility timeout of SQS.
LONGEST_LEASE: Final = timedelta(hours=12)
#: Most characters of a space and of a key. Both are in one index, and an index entry of PostgreSQL has at most 2,704
#: bytes, so 600 characters of up to 4 bytes fit.
LONGEST_SPACE: Final = 100
LONGEST_KEY: Final = 500
#: The longest `keep`. Longer times exceed what PostgreSQL and Python can both represent.
LONGEST_KEEP: Final = timedelta(days=36_500)
_NAMES: Final = frozenset({"KEEP", "LEASE", "DATABASE", "ERROR_MESSAGES"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """The settings in REDRIVE_IDEMPOTENCY, which are the defaults of all claims.

    Attributes:
        keep: how long the result of finished work is stored (default: 30 days).
        lease: how long a claim is valid (default: 5 minutes).
        database: the alias of the database that stores claims, unless they are transactional.
        error_messages: whether the texts of exceptions are stored, which may quote payloads.
    """

    keep: timedelta = field(default=LEAST_KEEP + timedelta(days=2))
    lease: timedelta = field(default=timedelta(minutes=5))
    database: str = "default"
    error_messages: bool = True


def current_settings() -> Conf:
    """Return settings.REDRIVE_IDEMPOTENCY with its defaults, or raise InvalidIdempotencySettings."""
    return read_settings(getattr(settings, "REDRIVE_IDEMPOTENCY", {}))


def read_settings(given: object) -> Conf:
    """Return the settings that a value of REDRIVE_IDEMPOTENCY contains, or raise InvalidIdempotencySettings."""
    if not isinstance(given, Mapping):
        raise InvalidIdempotencySettings(f"REDRIVE_IDEMPOTENCY is a {type(given).__name__}; make it a dict.")
    if unknown := {str(name) for name in given} - _NAMES:
        raise InvalidIdempotencySettings(
            f"REDRIVE_IDEMPOTENCY has no {', '.join(sorted(unknown))}. It has: {', '.join(sorted(_NAMES))}."
        )
    usual = Conf()
    database = given.get("DATABASE", usual.database)
    messages = given.get("ERROR_MESSAGES", usual.error_messages)
    if not isinstance(database, str) or not database:
        raise InvalidIdempotencySettings(
            f'REDRIVE_IDEMPOTENCY["DATABASE"] is {database!r}; name an alias of DATABASES.'
        )
    if not isinstance(messages, bool):
        raise InvalidIdempotencySettings(f'REDRIVE_IDEMPOTENCY["ERROR_MESSAGES"] is {messages!r}; set True or False.')
    return Conf(
        keep=read_duration(given.get("KEEP", usual.keep), 'REDRIVE_IDEMPOTENCY["KEEP"]', most=LONGEST_KEEP),
        lease=read_duration(given.get("LEASE", usual.lease), 'REDRIVE_IDEMPOTENCY["LEASE"]', most=LONGEST_LEASE),
        database=database,
        error_messages=messages,
    )


def read_duration(value: object, name: str, *, most: timedelta) -> timedelta:
    """Return a duration above zero and up to `most`, or raise InvalidIdempotencySettings. A number means seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most.total_seconds():
        return timedelta(seconds=value)
    if isinstance(value, timedelta) and timedelta() < value <= most:
        return value
    raise InvalidIdempotencySettings(
        f"{name} is {value!r}; it takes a timedelta or a number of seconds, above 0 and at most {most.days} days and "
        f"{most.seconds // 3600} hours."
    )
