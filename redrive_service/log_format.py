"""How log records are written: what the web server refused is one line, whoever sent it and whatever it said."""

from __future__ import annotations

import copy
import logging
from http import HTTPStatus

_REFUSING = ("django.request", "django.security")


class LogFormatter(logging.Formatter):
    """Django's records of refused requests without a traceback, since nothing of ours broke; all others as they are."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's line; of a refusal, with the status and the path, and nothing that ends the line or hides."""
        status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        if not record.name.startswith(_REFUSING) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().format(record)
        said = record.getMessage()
        path = getattr(getattr(record, "request", None), "path", "")
        if not record.args:  # then it does not say where
            said = f"{said}: {path}"
        plain = copy.copy(record)
        plain.msg, plain.args, plain.exc_info, plain.exc_text = _visible(f"{int(status)} {said}"), (), None, None
        return super().format(plain)


def _visible(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
