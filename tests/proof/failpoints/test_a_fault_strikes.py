"""A few cells of the matrix, small and quick; `make prove LAYER=failpoints` tries every one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.proof.failpoints.booths import Booth

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


@pytest.fixture
def booth(tmp_path: Path) -> Iterator[Booth]:
    with closing(Booth(1, tmp_path)) as one:
        yield one


def test_whatever_strikes_a_worker_the_healthy_finish_every_letter(booth: Booth) -> None:
    for cell in (
        "SQS has taken it, the answer not read: kill -9",
        "inside the settlement's transaction: its Postgres backends terminated",
        "answered, not settled: stopped past its lease",
    ):
        assert booth.tries(cell, 0, hurry=True)["why"] == []
