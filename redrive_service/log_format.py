"""The log format: a refused request and a task without a database take one line each, whatever they contain."""

from __future__ import annotations

import copy
import logging
from http import HTTPStatus

from django.db import InterfaceError, OperationalError

_REFUSING = ("django.request", "django.security")


class LogFormatter(logging.Formatter):
    """Formats Django's records of refused requests without a traceback, and other records as usual."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record. For a refused request: the status and the path, without control characters."""
        status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        if not record.name.startswith(_REFUSING) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().format(record)
        said = record.getMessage()
        path = getattr(getattr(record, "request", None), "path", "")
        if not record.args:  # then the record has no path
            said = f"{said}: {path}"
        plain = copy.copy(record)
        plain.msg, plain.args, plain.exc_info, plain.exc_text = _visible(f"{int(status)} {said}"), (), None, None
        return super().format(plain)


class DatabaseOutageFilter(logging.Filter):
    """Makes the record of a task that failed because PostgreSQL did not answer a warning without a traceback.

    Beat enqueues the task again, so nothing is lost.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True: every record is logged."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, OperationalError | InterfaceError):
            record.exc_info, record.exc_text = None, None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def _visible(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
