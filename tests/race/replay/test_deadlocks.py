"""A deadlocked transaction is run again; a worker that freezes inside a transaction loses its locks."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import Error as DatabaseError
from django.db import transaction

from redrive_service import apps
from reprocessing.models import Breaker, Lane
from reprocessing.store import rows
from reprocessing.store.ordering import lanes
from tests.race.abreast import elsewhere, together
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


def test_a_frozen_worker_loses_its_locks_and_gets_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    monkeypatch.setattr(apps, "IDLE_AT_MOST", "100ms")
    held, thaws = threading.Event(), threading.Event()

    def freezes() -> None:
        with transaction.atomic():
            _lock(bench)
            held.set()
            assert thaws.wait(60)
            _lock(bench)

    with elsewhere() as begin:
        frozen = begin(freezes)
        assert held.wait(60)
        try:
            with transaction.atomic():
                _lock(bench)  # it would stand here for ever
        finally:
            thaws.set()
        with pytest.raises(DatabaseError, match="idle-in-transaction timeout"):
            frozen.result()


def _lock(bench: Workbench) -> None:
    Breaker.objects.select_for_update().get(target=bench.target)
