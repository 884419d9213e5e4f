"""An outage of PostgreSQL takes one line of a worker's log; whatever else a task raises keeps its traceback."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest
from django.db import OperationalError

_TASKS = logging.getLogger("celery.app.trace")


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    _TASKS.addHandler(handler)
    yield heard
    _TASKS.removeHandler(handler)


@pytest.mark.parametrize(
    ("error", "first", "in_one_line"),
    [
        (OperationalError("server closed the connection"), "WARNING Task tick: server closed the connection", True),
        (ValueError("no such thing"), "ERROR Task tick: no such thing", False),
    ],
)
def test_only_an_outage_of_postgresql_has_no_traceback(
    log: io.StringIO, error: Exception, first: str, in_one_line: bool
) -> None:
    try:
        raise error
    except type(error):
        _TASKS.exception("Task tick: %s", error)
    written = log.getvalue().splitlines()
    assert (written[0], len(written) == 1) == (first, in_one_line)
