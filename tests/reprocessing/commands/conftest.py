"""What commands are tried on: real Postgres, a local SQS of these tests' own, rows of dlqs."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from typing import Any, TypeAlias

import pytest
from django.core.management import call_command

from reprocessing.models import DeadLetterQueue
from tests.reprocessing.commands.listeners import listeners  # noqa: F401  a fixture
from tests.reprocessing.gateways.aws_endpoint import endpoint, make_queue, own_sqs, sandbox  # noqa: F401  fixtures

Ask: TypeAlias = Callable[..., str]
AskJson: TypeAlias = Callable[..., Any]
AddRow: TypeAlias = Callable[..., DeadLetterQueue]


@pytest.fixture
def ask() -> Ask:
    """A command, as a shell would call it; what it printed."""

    def run(command: str, *arguments: str) -> str:
        out = StringIO()
        call_command(command, *arguments, stdout=out)
        return out.getvalue()

    return run


@pytest.fixture
def ask_json(ask: Ask) -> AskJson:
    """A command with --json; the one object it printed."""

    def run(command: str, *arguments: str) -> Any:  # noqa: ANN401  each test knows the shape of what it asked for
        return json.loads(ask(command, *arguments, "--json"))

    return run


@pytest.fixture
def add_row() -> AddRow:
    """The row of a dlq whose queue nobody will ask."""

    def make(name: str, **values: object) -> DeadLetterQueue:
        url = f"http://127.0.0.1:9/000000000000/{name}"
        arn = f"arn:aws:sqs:us-east-1:000000000000:{name}"
        return DeadLetterQueue.objects.create(**{"name": name, "url": url, "arn": arn, "region": "us-east-1"} | values)

    return make


@pytest.fixture
def orders(add_row: AddRow) -> DeadLetterQueue:
    return add_row("orders")
