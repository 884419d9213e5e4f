"""After a deadlock, PostgreSQL cancels one transaction, which is run again; nothing is lost or done twice."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import OperationalError, transaction

from reprocessing.models import Lane
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from tests.race.abreast import together
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _crosswise(ids: list[int], do: Callable[[Callable[[], None]], None]) -> list[Callable[[], object]]:
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
        return lambda: do(lambda: lock(first, second, met=met))

    return [one(ids[0], ids[1]), one(ids[1], ids[0])]


def _two_lanes() -> list[int]:
    bench = Workbench(fields={"ordering_key": "attribute:key"})
    bench.bury("a", key="a")
    bench.enqueue("b", key="b")
    return sorted(Lane.objects.values_list("id", flat=True))


@pytest.mark.soak
def test_a_deadlock_s_victim_is_run_again_as_a_whole() -> None:
    together(_crosswise(_two_lanes(), rows.in_transaction))


@pytest.mark.soak
def test_without_a_retry_one_of_two_deadlocked_transactions_fails() -> None:
    def once(work: Callable[[], None]) -> None:
        with transaction.atomic():
            work()

    with pytest.raises(OperationalError, match="deadlock"):
        together(_crosswise(_two_lanes(), once))
