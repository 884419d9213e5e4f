"""A pytest plugin: real servers under every test session, started before Django reads its settings."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import pytest

from redrive_service.sandbox.servers.local_sqs import LocalQueues
from redrive_service.sandbox.stack import Stack, variables_of_queues

_session = ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None]:
    """Start the stack in a folder of its own; workers of pytest-xdist find their controller's.

    Each has its own queues, so that Celery workers of two tests do not take each other's tasks. The environment of
    whoever runs the tests is replaced: no test may ever meet a real database or queue.
    """
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        port = urlsplit(os.environ["AWS_ENDPOINT_URL_SQS"]).port or 0
        queues = LocalQueues(folder=Path(), port=port)
        os.environ.update(variables_of_queues(queues.make_own_queues(f"-{worker}")))
    else:
        signal.signal(signal.SIGTERM, _ends)
        folder = _session.enter_context(tempfile.TemporaryDirectory(prefix="redrive-tests-"))
        stack = Stack(Path(folder))
        # Once the servers have ended, what may lie outside the folder goes, too.
        _session.callback(lambda: stack.postgres.forget())  # noqa: PLW0108  # there is a `postgres` after the start
        _session.enter_context(stack)
        for name in [name for name in os.environ if name.startswith(("AWS_", "CELERY_"))]:
            del os.environ[name]
        os.environ.update(stack.environment(), DJANGO_SETTINGS_MODULE="redrive_service.settings")
    return (yield)


def _ends(*_: object) -> NoReturn:
    """Whoever is told to end leaves nothing behind, as after Ctrl-C."""
    pytest.exit("It was told to end (SIGTERM).", returncode=128 + signal.SIGTERM)


def pytest_unconfigure() -> None:
    """Stop what this process started."""
    _session.close()
