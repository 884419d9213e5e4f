"""Check a message's envelope (headers and form of a Celery task) before Celery reads it.

Celery does not validate envelopes. A time limit that is not a number blocks a slot of the worker for good, or ends the
worker. A task with an ETA occupies a slot until its ETA. An id that is not text would be written to the log. This
service's tasks need few fields. A message whose envelope has other fields or values is refused, and stays in SQS.
"""

from __future__ import annotations

import json
from datetime import datetime

from redrive_service.broker.version import KombuValue

_LONGEST_NAME = 255  # max characters of a task's name or id


class EnvelopeIsUnusable(ValueError):
    """A message is not a Celery task of this service.

    The error names the invalid part of the message, without its content.
    """


def check(message: KombuValue) -> None:
    """Check that a message has the form of this service's tasks. Raises EnvelopeIsUnusable if it has not."""
    headers = message.headers
    if not isinstance(headers, dict):
        raise EnvelopeIsUnusable("headers")
    for part, is_right in _HEADERS.items():
        if not is_right(headers.get(part)):
            raise EnvelopeIsUnusable(part)
    if (message.content_type, message.content_encoding) != ("application/json", "utf-8"):
        raise EnvelopeIsUnusable("content type")
    if not _is_call(message.body):
        raise EnvelopeIsUnusable("body")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME


def _is_name_or_none(value: object) -> bool:
    return value is None or _is_name(value)


def _is_none(value: object) -> bool:
    return value is None


def _is_count_or_none(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_instant_or_none(value: object) -> bool:
    try:
        return value is None or bool(datetime.fromisoformat(value))  # type: ignore[arg-type]  # refused just below
    except (TypeError, ValueError):
        return False


def _are_limits(value: object) -> bool:
    """Return whether the value is None, or a list of two time limits. A limit is in seconds; None means no limit."""
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004  # the hard limit and the soft limit
        return False
    return all(limit is None or type(limit) in {int, float} for limit in value)


_HEADERS = {
    "task": _is_name,
    "id": _is_name,
    "root_id": _is_name_or_none,
    "parent_id": _is_name_or_none,
    "group": _is_name_or_none,
    "shadow": _is_name_or_none,
    "retries": _is_count_or_none,
    "timelimit": _are_limits,
    "eta": _is_none,
    "expires": _is_instant_or_none,
    "compression": _is_none,
}


def _is_call(body: str | bytes) -> bool:
    """Return whether the body is a call in Celery's protocol 2: arguments, keyword arguments, no follow-up tasks."""
    try:
        args, kwargs, following = json.loads(body)
    except (TypeError, ValueError, RecursionError):
        return False
    shapes = isinstance(args, list), isinstance(kwargs, dict), isinstance(following, dict)
    return all(shapes) and not any(following.values())
