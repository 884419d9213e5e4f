"""What the layers of the proof share: the ledger, and how long the long form may take."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from time import monotonic

import pytest

from tests.proof.asked import refused
from tests.proof.ledger import Ledger
from tests.proof.progress import quiet_console
from tests.reprocessing.pipeline.bench import clock

__all__ = ["clock"]

_LONG = re.compile(r"(?<!not )\bprove\b")


def _is_long(config: pytest.Config) -> bool:
    return bool(_LONG.search(config.getoption("markexpr")))


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a long form that cannot be done. `make prove` asks the same before there are servers."""
    if _is_long(config) and (why := refused(os.environ)):
        raise pytest.UsageError(why)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    ledger: Ledger | None = getattr(item, "funcargs", {}).get("ledger")
    before = ledger.noted if ledger else 0
    yield
    if ledger and ledger.noted == before:
        pytest.fail("Nothing was tried: what was asked for names no case, or there was no time for one.", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def _progress_is_seen(request: pytest.FixtureRequest) -> Iterator[None]:
    """With `-s` the long form's own lines would drown among those that the service logs."""
    with quiet_console() if _is_long(request.config) else nullcontext():
        yield


@pytest.fixture(scope="session")
def ledger() -> Ledger:
    """What `make prove` has proved so far."""
    return Ledger()


@pytest.fixture
def is_time() -> Callable[[], bool]:
    """Whether there is time for another case: PROVE_MINUTES of each test, 10 unless they are told.

    Time begins when it is first asked, so one case is always begun; whatever is begun is ended.
    """
    ends: list[float] = []

    def asked() -> bool:
        if not ends:
            ends.append(monotonic() + 60 * float(os.environ.get("PROVE_MINUTES", "10")))
            return True
        return monotonic() < ends[0]

    return asked
