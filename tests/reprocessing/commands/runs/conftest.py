"""What the tests of runs share: an SQS that counts without delay, and a run."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.reprocessing.commands.conftest import Ask
from tests.reprocessing.pipeline.bench import Workbench


@pytest.fixture(autouse=True)
def _brisk(settings: Settings) -> None:
    settings.REDRIVE = {"COUNT_LAG": 0, "LONG_POLL": 0}


@pytest.fixture
def bench(ask: Ask) -> Workbench:
    """A dlq with a running run named monday, of two letters, that nobody has worked on."""
    bench = Workbench()
    for number in range(2):
        bench.bury(f"{number}")
    ask("drain_dlq", bench.name, "--run", "monday", "--enqueue", "--confirm")
    return bench
