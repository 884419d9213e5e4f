"""The log format: a request that the web server refused takes one line, whatever the request contains."""

from __future__ import annotations

import copy
import logging
from http import HTTPStatus

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


def _visible(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
