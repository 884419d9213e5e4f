"""A FIFO queue hides what is behind a message that is out: it has run dry only when nothing is out."""

from __future__ import annotations

from typing import Any

import pytest

from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

POLICY: dict[str, Any] = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}


@pytest.mark.soak
def test_a_fifo_capture_ends_when_every_group_is_received() -> None:
    bench = Workbench(fifo=True, fields=POLICY)
    for number in range(24):  # a receive of ten cuts groups of three apart
        bench.bury(str(number), key=f"g{number % 8}")
    captured = bench.capture().captured
    assert (captured.letters, captured.drained, bench.left()) == (24, True, 0)


def test_a_fifo_dlq_is_not_drained_behind_a_copy_that_was_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fifo=True, fields=POLICY)
    bench.bury_all(*map(str, range(12)), key="g")
    monkeypatch.setattr(delete_copies, "copies", lambda *_: 0)
    captured = bench.capture(seconds=3).captured
    assert (captured.letters, captured.drained) == (10, False)
    dlq = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    assert dlq.drained_through is None
    assert dlq.unclean_until is not None
    monkeypatch.undo()
    assert not bench.capture().captured.drained
