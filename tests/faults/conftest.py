"""What tests of faults share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reprocessing.pipeline.bench import Clock


@pytest.fixture
def clock(transactional_db: None) -> Iterator[Clock]:
    """The database's clock, to be moved on."""
    ours = Clock()
    yield ours
    ours.restore()
