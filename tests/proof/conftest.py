"""What the layers of the proof share: the ledger, and how long the long form may take."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from time import monotonic

import pytest

from tests.proof.ledger import HOME, Ledger
from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]

_MINUTES = os.environ.get("PROVE_MINUTES", "10")


def pytest_configure() -> None:
    """Nothing begins whose end is not known, or whose result nobody could write down."""
    try:
        endless = not 0 < float(_MINUTES) < float("inf")
    except ValueError:
        endless = True
    if endless:
        raise pytest.UsageError(f"MINUTES is {_MINUTES!r}: how many minutes each test may take, such as 10 or 0.5.")
    if HOME.exists() and not os.access(HOME, os.R_OK | os.W_OK | os.X_OK):
        raise pytest.UsageError(f"{HOME} cannot be written to: what is proved is kept there.")
    if HOME.exists() and not HOME.is_dir():
        raise pytest.UsageError(f"{HOME} is no folder: what is proved is kept in one of this name.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """A test of the long form that tried nothing has proved nothing."""
    ledger: Ledger | None = getattr(item, "funcargs", {}).get("ledger")
    before = ledger.noted if ledger else 0
    yield
    if ledger and ledger.noted == before:
        pytest.fail("Nothing was tried: what was asked for names no case, or there was no time for one.", pytrace=False)


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """What `make prove` has proved so far."""
    return Ledger()


@pytest.fixture
def is_time() -> Callable[[], bool]:
    """Whether there is time for another case: PROVE_MINUTES of each test, 10 unless they are told."""
    end = monotonic() + 60 * float(_MINUTES)
    return lambda: monotonic() < end
