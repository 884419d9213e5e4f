"""What the tests of reports share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reprocessing.reasons.stub import Stub, listening, unhooked


@pytest.fixture
def stub() -> Iterator[Stub]:
    """An endpoint that takes reports."""
    with listening() as one:
        yield one


@pytest.fixture
def receivers_as_before() -> Iterator[None]:
    """Hooks that a test installs are gone after it."""
    with unhooked():
        yield
