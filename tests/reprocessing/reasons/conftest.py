"""Fixtures of the tests of reports."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reprocessing.reasons.stub import Stub, listening, unhooked


@pytest.fixture
def stub() -> Iterator[Stub]:
    with listening() as one:
        yield one


@pytest.fixture
def receivers_as_before() -> Iterator[None]:
    with unhooked():
        yield
