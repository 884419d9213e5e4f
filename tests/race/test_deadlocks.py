"""After a deadlock, PostgreSQL cancels one transaction, which is run again; nothing is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from reprocessing.models import Lane
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _crosswise(ids: list[int]) -> list[Callable[[], object]]:
    """Two transactions that lock the same two lanes in opposite order, once both have one of them."""
    both = threading.Barrier(2)

    def lock(first: int, second: int, *, met: list[bool]) -> None:
        lanes.lock([first], [None])
        if not met:
            met.append(True)
            both.wait(10)
        lanes.lock([second], [None])

    def one(first: int, second: int) -> Callable[[], object]:
        met: list[bool] = []
        return lambda: rows.in_transaction(lambda: lock(first, second, met=met))

    return [one(ids[0], ids[1]), one(ids[1], ids[0])]


def _two_lanes() -> list[int]:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    bench.bury("a", key="a")
    bench.enqueue("b", key="b")
    return sorted(Lane.objects.values_list("id", flat=True))


@pytest.mark.soak
def test_a_deadlock_s_victim_is_run_again_as_a_whole() -> None:
    together(_crosswise(_two_lanes()))
