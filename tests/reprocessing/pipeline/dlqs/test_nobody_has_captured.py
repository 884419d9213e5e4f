"""What nobody has captured is in SQS alone: the doctor says how much, how long yet, and what captures it."""

from __future__ import annotations

import pytest

from reprocessing.domain.maintenance.findings import DoctorFinding, FindingSeverity
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.maintenance.doctor import poll_history
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.capture import capture_lease
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def warnings(bench: Workbench, *, asks: bool = True) -> list[DoctorFinding]:
    row = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    if asks:
        feed_run.record_depth(row)
        row.refresh_from_db()
    return [finding for finding in poll_history.findings(row, bench.conf) if finding.severity is FindingSeverity.WARN]


@pytest.mark.parametrize(("fifo", "since"), [(False, "it was sent first"), (True, "it failed")])
def test_messages_that_nobody_captured_are_counted_with_their_end_and_their_cure(*, fifo: bool, since: str) -> None:
    bench = Workbench(fifo=fifo, fields={"retention": 4 * 86_400})
    assert warnings(bench) == []
    bench.bury_all("one", "two")
    (found,) = warnings(bench)
    assert found.what.startswith(
        "2 of its messages are not captured, and mode manual does not capture them automatically."
    )
    assert found.why.startswith(f"SQS deletes a message about 4 days after {since}; uncaptured messages are then lost.")
    assert found.cure.startswith(
        f"Capture them, and send nothing: manage.py drain_dlq {bench.name}, a dry run; or plan a run"
    )
    bench.capture()
    assert warnings(bench) == []


def test_where_beat_captures_nobody_is_warned() -> None:
    bench = Workbench(fields={"mode": "automatic"})
    bench.bury("one")
    assert warnings(bench) == []


@pytest.mark.parametrize("fifo", [False, True])
def test_what_was_captured_since_sqs_was_asked_is_told_of_by_nobody(*, fifo: bool) -> None:
    """Held or delivered and deleted, and though that capture proves nothing: it began before SQS was asked."""
    bench = Workbench(fifo=fifo)
    bench.bury("one", key="a")
    bench.enqueue("two", key="b")
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=None)
    held = warnings(bench, asks=False)
    bench.replay()
    delivered = warnings(bench, asks=False)
    bench.bury("late")
    (found,) = warnings(bench)
    assert (held, delivered, bench.states()) == ([], [], {"one": "delivered", "two": "delivered"})
    assert found.what.startswith("1 of its messages are not captured")


def test_while_a_capture_is_under_way_nobody_can_say() -> None:
    bench = Workbench()
    bench.bury("one")
    assert len(warnings(bench)) == 1
    capture_lease.lease(bench.dlq.pk, lease=60, dirty=60)
    assert warnings(bench) == []
