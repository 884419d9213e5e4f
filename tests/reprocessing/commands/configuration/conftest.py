"""Configuration files in a folder of the test's own, and DLQs with a source queue."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from pytest_django.fixtures import Settings

from tests.contract.queues import Queue, redrive_policy
from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.gateways.aws_endpoint import MakeQueue

Write: TypeAlias = Callable[[str], str]
Apply: TypeAlias = Callable[..., str]


#: What an apply says that only marks objects as managed.
MARKED = "No settings changed. The file now manages these objects.\n"


class Shop:
    """A DLQ, and a queue whose messages fail into it."""

    def __init__(self, make_queue: MakeQueue, *, fifo: bool = False) -> None:
        self.dlq: Queue = make_queue(fifo=fifo, MessageRetentionPeriod="1209600")
        self.source: Queue = make_queue(fifo=fifo, RedrivePolicy=redrive_policy(self.dlq, 3))


@pytest.fixture
def shop(make_queue: MakeQueue) -> Shop:
    return Shop(make_queue)


@pytest.fixture(autouse=True)
def outbound(settings: Settings) -> None:
    """The endpoints to which the service may send."""
    settings.REDRIVE = {**settings.REDRIVE, "OUTBOUND_HOSTS": ["shop.example.com"]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file; its path."""

    def save(text: str) -> str:
        path = tmp_path / "redrive.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return str(path)

    return save


@pytest.fixture
def apply(ask: Ask, write: Write) -> Apply:
    """Apply a text as a file; what the command printed."""
    return lambda text, *options: ask("apply_config", write(text), *options, "--confirm")
