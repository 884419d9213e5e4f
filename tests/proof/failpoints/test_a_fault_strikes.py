"""A few cells of the matrix, small and quick; `make prove LAYER=failpoints` tries every one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.conditions import eventually
from tests.proof.failpoints.booths import Booth
from tests.proof.failpoints.points import POINTS, Point
from tests.proof.failpoints.trap import find

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300)]


@pytest.fixture
def booth(tmp_path: Path) -> Iterator[Booth]:
    with closing(Booth(1, tmp_path)) as one:
        yield one


@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_a_point_names_a_function_of_the_product(point: Point) -> None:
    for where in filter(None, (point.where, point.within)):
        owner, name = find(where)
        assert callable(getattr(owner, name))


@pytest.mark.soak
def test_whatever_strikes_a_worker_the_healthy_finish_every_letter(booth: Booth) -> None:
    for cell in (
        "SQS has taken it, the answer not read: kill -9",
        "inside the settlement's transaction: its Postgres backends terminated",
        "answered, not settled: stopped past its lease",
    ):
        assert booth.tries(cell, 0, hurry=True)["why"] == []


@pytest.mark.long
@pytest.mark.soak
def test_a_booth_that_is_ended_takes_its_workers_along(booth: Booth) -> None:
    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(booth.tries, "lanes leased, no head through the gate: kill -9", 0)
        process = psutil.Process(booth._process.pid)
        workers = eventually(lambda: both if len(both := process.children()) > 1 else [], within=60)
        booth.end()
        with pytest.raises(AssertionError, match="the booth has ended"):
            trial.result(timeout=30)
    booth.close()
    assert [one for one in workers if one.is_running()] == []
