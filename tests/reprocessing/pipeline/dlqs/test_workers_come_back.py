"""Workers come back after an outage: lanes are leased when AWS has said whether it moved their messages meanwhile."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reprocessing.domain.errors import QueueRequestRefused, QueueUnreachable
from reprocessing.gateways.sqs import Move, move_tasks
from reprocessing.models import DeadLetterQueue, DlqCopy, Run
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.replay.gate import MAYBE_MOVED
from reprocessing.store.aws import aws_redrive_checks
from reprocessing.store.ordering import lanes, stalled_lanes, why_lanes_wait
from tests.race.native import begin_outside, captured_and_in_sight, is_aws_s, let_it_end_unseen, mine
from tests.reprocessing.pipeline.bench import Clock, Killed, Workbench, enqueued
from tests.reprocessing.pipeline.interposed import happens_after

pytestmark = pytest.mark.django_db(transaction=True)

Asked = list[str]


@pytest.fixture
def asked(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The ARNs of DLQs that AWS is asked about, one a call."""
    found: Asked = []

    def ask(arn: str, role: str) -> list[Move]:
        found.append(arn)
        return move_tasks(arn, role)

    monkeypatch.setattr(follow_redrives, "move_tasks", ask)
    return found


def _lease(**options: object) -> list[lanes.LeasedLane]:
    return lanes.lease(uuid.uuid4().hex, limit=9, lease=8, **options)  # type: ignore[arg-type]


def _fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(follow_redrives, "move_tasks", Mock(side_effect=error))


@pytest.fixture
def bench(clock: Clock) -> Workbench:
    """A run in progress, its copies visible, and no worker there for two minutes."""
    bench = mine()
    captured_and_in_sight(bench, clock, "a", "b")
    bench.enlist()
    return bench


def test_what_aws_moved_meanwhile_is_not_sent_again(bench: Workbench) -> None:
    begin_outside(bench)
    let_it_end_unseen(bench)
    assert len(bench.delivered()) == 2
    bench.replay(seconds=1)
    assert bench.delivered() == []
    assert {lane.why for lane in bench.dlq.lanes.all()} == {MAYBE_MOVED}


def test_a_dlq_that_aws_empties_right_now_is_left_to_aws(bench: Workbench) -> None:
    begin_outside(bench, MaxNumberOfMessagesPerSecond=1)
    bench.replay(seconds=1)
    assert (is_aws_s(bench), bench.states()) == (True, {"a": "waiting", "b": "waiting"})


def test_what_aws_did_not_move_goes_at_once(bench: Workbench, asked: Asked) -> None:
    bench.replay()
    assert (len(bench.delivered()), asked) == (2, [bench.dlq.arn])


def _any(_: list[int]) -> dict[str, object]:
    return {}


def _these(lane_ids: list[int]) -> dict[str, object]:
    return {"only": lane_ids}


@pytest.mark.parametrize("which", [_any, _these])
def test_no_lane_is_leased_until_aws_was_asked_within_a_minute(
    bench: Workbench, clock: Clock, which: Callable[[list[int]], dict[str, object]]
) -> None:
    options = which(list(bench.dlq.lanes.values_list("pk", flat=True)))
    assert _lease(**options) == []
    follow_redrives.check_before_leasing(None)
    clock.advance(aws_redrive_checks.ANSWER_VALID_FOR - 1)
    assert len(_lease(**options)) == 2
    clock.advance(10)  # the leases are over, their owner is dead
    assert _lease(**options) == []


@pytest.mark.parametrize("runs", [None, "its own"])
def test_aws_is_asked_once_a_dlq_and_minute_however_many_turns_there_are(
    bench: Workbench, clock: Clock, asked: Asked, runs: str | None
) -> None:
    own = None if runs is None else list(Run.objects.values_list("pk", flat=True))
    for _ in range(3):
        follow_redrives.check_before_leasing(own)
        clock.advance(14)
    assert asked == [bench.dlq.arn]
    clock.advance(aws_redrive_checks.ANSWER_VALID_FOR)
    follow_redrives.check_before_leasing(own)
    assert asked == [bench.dlq.arn] * 2


def test_of_another_run_s_dlq_nobody_asks(bench: Workbench, asked: Asked) -> None:
    follow_redrives.check_before_leasing([0])
    assert asked == []
    assert bench.states() == {"a": "waiting", "b": "waiting"}


def test_where_no_copy_is_in_sight_aws_is_not_asked_and_lanes_are_leased(
    bench: Workbench, clock: Clock, asked: Asked
) -> None:
    DlqCopy.objects.update(visible_until=lanes.database_now() + timedelta(hours=1))
    bench.replay()
    assert (len(bench.delivered()), asked) == (2, [])


@pytest.mark.soak
def test_while_sqs_is_out_of_reach_the_lanes_wait_and_say_why(
    bench: Workbench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        _fails(patch, QueueUnreachable("dlq: ListMessageMoveTasks failed: no route to host."))
        bench.replay(seconds=1)
    assert (bench.delivered(), bench.states()) == ([], {"a": "waiting", "b": "waiting"})
    why = "AWS does not say whether it moved messages of the DLQ: dlq: ListMessageMoveTasks failed: no route to host."
    assert set(_obstacles(bench)) == {why}
    clock.advance(600)
    assert (stalled_lanes.find_stalled(None, long=60, lost=60), lanes.hint(limit=9, lifetime=60)) == ([], [])
    follow_redrives.sweep()  # beat's, once a minute
    assert (len(lanes.hint(limit=9, lifetime=60)), DeadLetterQueue.objects.get().aws_redrive_error) == (2, "")
    bench.replay()
    assert len(bench.delivered()) == 2


def test_what_aws_answered_is_known_when_it_is_written_down(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever dies in between has another one ask."""
    dies = Mock(side_effect=Killed)
    with monkeypatch.context() as patch:
        patch.setattr(follow_redrives, "_resolve", dies)
        with pytest.raises(Killed):
            follow_redrives.check_before_leasing(None)
    assert (_lease(), bench.delivered()) == ([], [])


def _obstacles(bench: Workbench) -> list[str]:
    lanes_of_a_dlq = f"redrive_lane n {why_lanes_wait.OBSTACLE_JOINS} WHERE n.dlq_id = %s"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {why_lanes_wait.OBSTACLE} AS why FROM {lanes_of_a_dlq}", [bench.dlq.pk])
        return [why for (why,) in cursor.fetchall()]


def test_whoever_may_not_ask_lets_them_go_on(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    _fails(monkeypatch, QueueRequestRefused("dlq: ListMessageMoveTasks failed: AccessDenied."))
    bench.replay()
    assert len(bench.delivered()) == 2


def test_a_question_whose_asker_died_is_asked_again(bench: Workbench, clock: Clock, asked: Asked) -> None:
    assert aws_redrive_checks.dlqs_to_ask_about(None) == [bench.dlq.pk]
    follow_redrives.check_before_leasing(None)
    assert (asked, _lease()) == ([], [])
    clock.advance(21)
    bench.replay()
    assert (asked, len(bench.delivered())) == ([bench.dlq.arn], 2)


def test_an_answer_holds_from_when_it_was_asked_for(
    bench: Workbench, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AWS takes its time, or whoever asked is frozen with the answer: what was moved since is in no list."""
    monkeypatch.setattr(follow_redrives, "run_as_completed", lambda act, works, _threads, within: map(act, works))
    takes = aws_redrive_checks.ANSWER_VALID_FOR + 1
    happens_after(monkeypatch, follow_redrives, "move_tasks", lambda: clock.advance(takes))
    follow_redrives.check_before_leasing(None)
    assert _lease() == []
    assert bench.states() == {"a": "waiting", "b": "waiting"}


def test_asking_costs_a_turn_one_statement_however_many_letters_it_sends(clock: Clock) -> None:
    bench = enqueued(*map(str, range(12)))
    clock.advance(1)
    with CaptureQueriesContext(connection) as queries:
        bench.replay()
    assert len(bench.delivered()) == 12
    assert sum("aws_redrive_asked_at" in query["sql"] for query in queries) == 1
