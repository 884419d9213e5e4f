"""A plan that waits for its letters has its dlq looked into, in mode manual too, and gets them when that is dry."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reprocessing.models import DeadLetterQueue, Run
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.ordering import lanes
from reprocessing.store.runs import plans, run_transitions
from reprocessing.store.runs.plans import Asked
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _wanted(bench: Workbench) -> bool:
    return feed_run.is_wanted(DeadLetterQueue.objects.get(pk=bench.dlq.pk))


def test_a_manual_dlq_is_received_from_as_long_as_a_plan_waits_for_its_letters() -> None:
    bench = Workbench()
    bench.bury("letter")
    assert not _wanted(bench)
    run = plans.plan(bench.dlq, Asked("monday", "ann", reason="mended"))
    assert _wanted(bench)
    bench.capture()
    run.refresh_from_db()
    assert (run.state, run.selected, bench.letter().run_id) == ("planned", 1, run.pk)
    assert [(one.by, one.reason) for one in run.reviews.all()] == [("ann", "mended")]
    assert not _wanted(bench)
    assert bench.delivered() == []


def test_an_empty_dlq_is_looked_into_too_so_that_its_plan_is_not_left_waiting() -> None:
    bench = Workbench()
    run = plans.plan(bench.dlq, Asked("monday", "ann"))
    bench.capture()
    run.refresh_from_db()
    assert run.selected == 0


def test_a_plan_from_before_the_last_look_waits_for_no_other() -> None:
    bench = Workbench()
    bench.capture()
    run = plans.plan(bench.dlq, Asked("monday", "ann"))
    Run.objects.filter(pk=run.pk).update(created_at=run.created_at - timedelta(hours=1))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=run.created_at)
    assert not _wanted(bench)


def test_a_stopped_dlq_is_looked_into_for_a_plan_alone() -> None:
    bench = Workbench(fields={"mode": Mode.AUTOMATIC})
    stops.stop(bench.dlq.pk, by="ann", reason="it burns")
    bench.bury("letter")
    assert not _wanted(bench)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode=Mode.MANUAL)
    run = plans.plan(bench.dlq, Asked("monday", "ann"))
    assert _wanted(bench)
    bench.capture()
    run.refresh_from_db()
    assert (run.selected, _wanted(bench), bench.delivered()) == (1, False, [])


def test_nothing_is_received_for_a_plan_of_a_dlq_that_is_observed() -> None:
    bench = Workbench()
    plans.plan(bench.dlq, Asked("monday", "ann"))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode=Mode.OBSERVE)
    assert not _wanted(bench)


def test_a_plan_that_was_started_by_hand_is_told_to_workers_and_replayed_by_them() -> None:
    bench = Workbench()
    bench.bury("letter")
    run = plans.plan(bench.dlq, Asked("monday", "ann", in_waves=False))
    bench.capture()
    run.refresh_from_db()
    run_transitions.start(run, by="ann", reason="mended")
    told = lanes.hint(limit=10, lifetime=60)
    assert told == [bench.lane().pk]
    assert bench.replay(only=told).taken == 1
    assert [one["Body"] for one in bench.delivered()] == ["letter"]
