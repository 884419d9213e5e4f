"""A drain does not wait for messages behind a message of a run that has ended or is paused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings

from reprocessing.gateways.redis.send_rate import Rates
from reprocessing.models import DeadLetterQueue, Run
from reprocessing.pipeline.maintenance.doctor import stalled_lanes as doctor
from reprocessing.pipeline.runs import drain, feed_run
from reprocessing.store.ordering import stalled_lanes
from reprocessing.store.ordering.blocking_runs import BlockingRun, blocking_runs
from reprocessing.store.runs import progress
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.blocked_runs import (
    Runs,
    behind_a_late_return,
    behind_a_paused_run,
    behind_an_aborted_run,
)

pytestmark = pytest.mark.django_db(transaction=True)

ENDED = [behind_a_late_return, behind_an_aborted_run]


def _ends(bench: Workbench, run: Run) -> bool:
    """Replay a run; return whether the drain ended by itself."""
    turns: list[object] = []
    context = drain.DrainContext(
        conf=replace(bench.conf, slice=timedelta(milliseconds=500)), rates=Rates.at(settings.REDIS_URL),
        dice=lambda: 0.0, owner="a drain", stop=lambda: len(turns) > 5,
    )  # fmt: skip
    drain.replay_run(run, context, on_progress=turns.append)
    return not context.stop()


@pytest.mark.parametrize("runs", [*ENDED, behind_a_paused_run])
def test_a_drain_ends_if_only_messages_behind_a_run_that_sends_nothing_are_left(runs: Callable[[], Runs]) -> None:
    bench, first, second = runs()
    assert _ends(bench, second)
    assert (bench.states(), bench.delivered()) == ({"1": "waiting", "2": "waiting"}, [])
    first.refresh_from_db()
    assert progress.run_state(second.pk) == "running"
    assert blocking_runs(second.pk, most=9) == [BlockingRun(first.pk, first.name, first.state, lanes=1, messages=1)]
    assert blocking_runs(first.pk, most=9) == []


def test_messages_behind_a_running_run_are_not_blocked_and_a_drain_sends_them() -> None:
    bench, first, second = behind_a_paused_run()
    Run.objects.filter(pk=first.pk).update(state="running", stopped_by="", why="")
    assert (blocking_runs(second.pk, most=9), progress.count_letters(second.pk).blocked) == ([], 0)
    assert _ends(bench, second)
    assert bench.delivered_bodies() == ["1", "2"]


def test_in_mode_automatic_a_drain_waits_until_the_automatic_run_takes_over_what_an_ended_run_left() -> None:
    bench, _, second = behind_an_aborted_run()
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode="automatic")
    automatic = feed_run.automatic_run(DeadLetterQueue.objects.get(pk=bench.dlq.pk))
    assert progress.count_letters(second.pk).under_way == 1
    Run.objects.filter(pk=automatic.pk).update(state="paused", stopped_by="ann", why="why")
    assert progress.count_letters(second.pk).under_way == 0


@pytest.mark.parametrize("runs", ENDED)
def test_lanes_that_begin_with_a_message_of_an_ended_run_are_stalled(runs: Callable[[], Runs], clock: Clock) -> None:
    bench, _, _ = runs()
    assert stalled_lanes.find_stalled([bench.dlq.pk], long=900, lost=60) == []
    clock.advance(901)
    assert [(one.how, one.n) for one in stalled_lanes.find_stalled(None, long=900, lost=60)] == [("blocked", 1)]
    assert [finding.what[:56] for finding in doctor.findings([])] == [
        "Key queues begin with a message of a run that has ended,"
    ]
    assert stalled_lanes.find_stalled([bench.dlq.pk + 1], long=900, lost=60) == []


def test_a_paused_run_stalls_no_lane(clock: Clock) -> None:
    bench, _, _ = behind_a_paused_run()
    clock.advance(901)
    assert stalled_lanes.find_stalled([bench.dlq.pk], long=900, lost=60) == []
