"""Two captures of one DLQ at the same time: one of them has it, and every message becomes one letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from reprocessing.models import DeadLetterQueue, DlqCopy, Letter, Run
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.runs import plan
from reprocessing.store.capture import capture_lease
from reprocessing.store.capture.capture_lease import CaptureLease
from reprocessing.store.dlqs import schedule
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans
from reprocessing.store.runs.plans import RunRequest
from tests.race.abreast import elsewhere, together
from tests.race.letters import bury
from tests.reprocessing.pipeline.bench import KEYED, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def test_of_simultaneous_captures_one_leases_the_dlq() -> None:
    bench = Workbench()

    def lease() -> CaptureLease | None:
        return capture_lease.lease(bench.dlq.pk, lease=60, dirty=140)

    found = [*together([lease] * 4), lease()]  # the last one meets no lock, only the lease
    assert sum(capturing is not None for capturing in found) == 1


def test_a_new_row_that_names_a_dlq_keeps_nobody_from_capturing_it() -> None:
    """The foreign key locks the DLQ's row until the commit."""
    bench = Workbench()
    with elsewhere() as begin, transaction.atomic():
        Run.objects.create(dlq=bench.dlq, name="a run", asked_by="a test")
        connection.check_constraints()  # as the commit does
        assert begin(lambda: schedule.claim_due(now=lanes.database_now(), limit=9)).result(10) == [bench.dlq.pk]
        assert begin(lambda: capture_lease.lease(bench.dlq.pk, lease=60, dirty=140)).result(10) is not None


def test_simultaneous_captures_write_every_message_once() -> None:
    bench = Workbench()
    bury(bench, 45)
    found = together([bench.capture] * 3)
    if sum(done.captured.letters for done in found) < 45:  # a late one skipped the DLQ
        bench.capture()
    assert sorted(int(body) for body in bench.states()) == list(range(45))
    assert (Letter.objects.count(), DlqCopy.objects.count(), bench.left()) == (45, 45, 45)
    assert sum(done.captured.received > 0 for done in found) == 1


def _half_captured(bench: Workbench) -> None:
    """Of two letters of a key another capture has written the later one, and not the earlier one yet."""
    bench.bury("k1", key="K", n="1")
    (earlier,) = bench.sqs.receive_message(QueueUrl=bench.dlq_url, VisibilityTimeout=600)["Messages"]
    bench.bury("k2", key="K", n="2")
    found = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    capture.letters(found, conf=bench.conf, dice=lambda: 0.0, seconds=10, receivers=1)
    bench.sqs.change_message_visibility(
        QueueUrl=bench.dlq_url, ReceiptHandle=earlier["ReceiptHandle"], VisibilityTimeout=0
    )


def _placed_beside_another_capture(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> tuple[Workbench, Run | None]:  # noqa: ANN401  of the dlq
    """A turn whose capture has ended, and which places letters while another capture begins."""
    bench = Workbench(fields={**KEYED, **fields})
    run = plans.create_plan(bench.dlq, RunRequest("monday", "anna")) if fields["mode"] == "manual" else None
    bench.bury("first", key="other", n="0")
    places, begun = plan.place_captured, list[int]()

    def slow(dlq: DeadLetterQueue, *, stop: Callable[[], bool]) -> plan.PlaceResult:
        done = places(dlq, stop=stop)
        if not begun:
            begun.append(1)
            _half_captured(bench)
            return places(dlq, stop=stop)
        return done

    with monkeypatch.context() as patch:
        patch.setattr(plan, "place_captured", slow)
        bench.capture()
    return bench, run


def test_letters_of_an_unfinished_capture_are_enlisted_when_it_has_run_dry(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, _ = _placed_beside_another_capture(monkeypatch, mode="automatic")
    bench.replay()
    assert bench.states() == {"first": "delivered", "k2": "captured"}
    bench.capture()
    bench.replay()
    assert [sent["MessageAttributes"]["n"]["StringValue"] for sent in bench.delivered()] == ["0", "1", "2"]


def test_a_plan_that_waits_for_the_dlq_gets_only_letters_of_the_finished_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, run = _placed_beside_another_capture(monkeypatch, mode="manual")
    assert run
    run.refresh_from_db()
    assert (run.selected, bench.letter(payload__body=b"k2").run_id) == (1, None)
