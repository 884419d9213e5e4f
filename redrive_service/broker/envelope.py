"""What an envelope must look like before Celery sees it.

Celery trusts what it reads: a time limit that is no number costs a slot for good or ends the worker, a far ETA is held
in memory until no slot is left, and an id that is no text is quoted in the log. Our own tasks need little, so
everything else is refused, and left to SQS.
"""

from __future__ import annotations

import json
from datetime import datetime

from redrive_service.broker.version import KombuValue

_LONGEST_NAME = 255


class EnvelopeIsUnusable(ValueError):
    """A message is no task of ours. Which part is wrong is told, never what it holds."""


def check(message: KombuValue) -> None:
    """Accept a kombu message as our own publishers write it.

    Raises:
        EnvelopeIsUnusable: any part of it is something else.
    """
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
    """Two limits in seconds, each of which may be missing: Celery takes them for numbers unseen."""
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004  # the hard one and the soft one
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
    """Whether it is what Celery's protocol 2 makes of a call: arguments, keyword arguments, and nothing to follow."""
    try:
        args, kwargs, following = json.loads(body)
    except (TypeError, ValueError, RecursionError):
        return False
    shapes = isinstance(args, list), isinstance(kwargs, dict), isinstance(following, dict)
    return all(shapes) and not any(following.values())
