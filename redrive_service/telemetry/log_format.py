"""Format log records as text or JSON, one line each. Line breaks in values are escaped, so that nobody forges a line.

In text format, the lines of a traceback follow, indented. Of an exception's text, only the first line is logged,
because PostgreSQL quotes values of messages in the other lines.
"""

from __future__ import annotations

import copy
import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final

from celery._state import get_current_task
from django.db import InterfaceError, OperationalError

_REFUSING = ("django.request", "django.security")
_INDENT: Final = "  "
_LONGEST_CHAIN: Final = 10  # max exceptions of a chain of causes that are logged
#: Fields of `extra` that are logged. Other fields are not: they may contain a request or a message.
FIELDS: Final = (
    "dlq", "run", "target", "rule", "redrive_id", "message_id", "key_queue_ids",
    "method", "path", "status", "duration_ms",
)  # fmt: skip


class _FirstLine:
    """Replaces an exception in the arguments of a log call, so that only the first line of its text is logged."""

    def __init__(self, error: BaseException) -> None:
        self._type, self._text = type(error).__qualname__, _first_line(error)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"{self._type}({self._text!r})"


class LogFormatter(logging.Formatter):
    """Formats a log record as text: one line, and the indented lines of its traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and the indented lines of its traceback."""
        plain = copy.copy(record)
        plain.msg, plain.args = _visible(_message(record)), ()
        plain.exc_info = plain.exc_text = plain.stack_info = None
        plain.__dict__ |= {"task_id": "???", "task_name": "???"} | _task(record)
        return "\n".join([super().format(plain), *(f"{_INDENT}{line}" for line in _error_lines(record))])


class JsonFormatter(logging.Formatter):
    """Formats a log record as one JSON object in one line of ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON object: time, level, logger, message, process, the `FIELDS` of the record, and the task."""
        made: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "process": record.process,
            **{name: getattr(record, name) for name in FIELDS if hasattr(record, name)},
            **_task(record),
        }
        if lines := list(_error_lines(record)):
            made["exception"] = "\n".join(lines)
        return json.dumps(made, default=str)


class DatabaseOutageFilter(logging.Filter):
    """Changes the record of a failed task into a warning without traceback, if PostgreSQL did not answer.

    A warning is enough, because beat enqueues the task again, so that nothing is lost.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record if its error is from PostgreSQL. Return True, because every record is logged."""
        error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
        if isinstance(error, OperationalError | InterfaceError):
            record.exc_info, record.exc_text = None, None
            record.levelno, record.levelname = logging.WARNING, "WARNING"
        return True


def formatter(log_format: str, text: str = "%(asctime)s %(levelname)s %(name)s %(message)s") -> logging.Formatter:
    """Return the formatter for `log_format`, which is "text" or "json". `text` is the format string of text logs."""
    return JsonFormatter() if log_format == "json" else LogFormatter(text)


def _message(record: logging.LogRecord) -> str:
    """Return the message of a record. If the record is about a refused request, add its status and path."""
    args = record.args
    if isinstance(args, tuple):
        args = tuple(_FirstLine(arg) if isinstance(arg, BaseException) else arg for arg in args)
    said = _first_line(record.msg) if isinstance(record.msg, BaseException) else str(record.msg)
    said = (said % args if args else said).strip()
    if not _is_refusal(record):
        return said
    path = getattr(getattr(record, "request", None), "path", "")
    said = said if record.args else f"{said}: {path}"  # a text without arguments lacks the path
    return f"{int(getattr(record, 'status_code', 0))} {said}"


def _is_refusal(record: logging.LogRecord) -> bool:
    status = getattr(record, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
    return record.name.startswith(_REFUSING) and status < HTTPStatus.INTERNAL_SERVER_ERROR


def _task(record: logging.LogRecord) -> dict[str, str]:
    """Return id and name of the Celery task that logs, or that the record is about, or {} if there is no task."""
    about = getattr(record, "data", None)
    if isinstance(about, dict) and about.get("id") and about.get("name"):
        return {"task_id": str(about["id"]), "task_name": str(about["name"])}
    task: Any = get_current_task()  # outside of a task, this is None, although its type excludes None
    return {"task_id": str(task.request.id), "task_name": str(task.name)} if task and task.request else {}


def _error_lines(record: logging.LogRecord) -> Iterator[str]:
    if not isinstance(record.exc_info, tuple) or record.exc_info[1] is None or _is_refusal(record):
        return
    chain: list[tuple[BaseException, TracebackType | None]] = [(record.exc_info[1], record.exc_info[2])]
    while len(chain) < _LONGEST_CHAIN and (before := _before(chain[-1][0])):
        chain.append((before, before.__traceback__))
    for error, at in reversed(chain):
        if at is not None:
            yield "Traceback (most recent call last):"
            yield from (_visible(line) for frame in traceback.format_tb(at) for line in frame.splitlines())
        yield _visible(f"{type(error).__qualname__}: {_first_line(error)}")


def _before(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _visible(text: str) -> str:
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )
