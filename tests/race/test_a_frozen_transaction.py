"""A worker that freezes inside a transaction loses its locks after half a minute."""

from __future__ import annotations

import threading

import pytest
from django.db import Error as DatabaseError
from django.db import transaction

from redrive_service import apps
from reprocessing.models import Breaker
from tests.race.abreast import elsewhere
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


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
