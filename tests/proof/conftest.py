"""What the layers of the proof share: the ledger, and how long the long form may take."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

import pytest

from tests.proof.ledger import Ledger
from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """What `make prove` has proved so far."""
    return Ledger()


@pytest.fixture
def is_time() -> Callable[[], bool]:
    """Whether there is time for another case: PROVE_MINUTES of each layer, 10 unless they are told."""
    end = monotonic() + 60 * float(os.environ.get("PROVE_MINUTES", "10"))
    return lambda: monotonic() < end
