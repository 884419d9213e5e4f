"""The tasks: what a tick sends, what each task sends on, and that losing or doubling any of it is harmless."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django_celery_beat.models import IntervalSchedule
from pytest_django import Settings

from reprocessing import tasks
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.models import DeadLetterQueue, FailureGroup, Heartbeat, Lane, TickCount
from reprocessing.models.safety import CheckKind
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.maintenance import purge as purging
from reprocessing.pipeline.maintenance import recover as recovery
from reprocessing.pipeline.outcomes import resolve_outcomes as promotion
from reprocessing.pipeline.replay import replay_slice
from reprocessing.pipeline.runs import drain, feed_run, plan
from reprocessing.pipeline.safety import run_health_checks
from reprocessing.store.dlqs import schedule
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import enlistment_batches, run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import health_checks
from reprocessing.store.safety.health_checks import CheckQuestion
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.post import Post, asked, post
from tests.reprocessing.store.stock import Stock

__all__ = ["post"]

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic", "ordering_key": "attribute:key"}
STOPPED: dict[str, Any] = {"stopped_at": "2026-01-01T00:00Z", "stopped_by": "anna", "stop_reason": "broken"}
DAY, MINUTE, TICK = 86_400, 60, 2
REDRIVE: dict[str, Any] = {"COUNT_LAG": 0, "LONG_POLL": 0}


@pytest.fixture(autouse=True)
def brisk(settings: Settings) -> Settings:
    """Nothing waits for what AWS would need."""
    settings.REDRIVE = REDRIVE
    return settings


def _due_lanes(number: int, *, phase: str = "ready") -> Stock:
    stock = Stock()
    Lane.objects.bulk_create(
        Lane(
            dlq=stock.dlq, source=stock.source, key_hash=n.to_bytes(32, "big"), run=stock.run, phase=phase,
            due_at=lanes.database_now() - timedelta(minutes=1),
        )
        for n in range(number)
    )  # fmt: skip
    return stock


def _buried(*letters: str, **fields: object) -> Workbench:
    """An automatic dlq with letters named key and number, enlisted and due."""
    bench = Workbench(fields={**AUTOMATIC, **fields})
    for one in letters:
        bench.bury(one, key=one[0])
    bench.capture()
    return bench


def _daily(**fields: object) -> Workbench:
    """An automatic dlq that has a turn a day, and the first one now."""
    return Workbench(
        fields={**AUTOMATIC, "interval": IntervalSchedule.objects.create(every=1, period="days"), **fields}
    )


def _given_again(post: Post, clock: Clock, seconds: float) -> list[tuple[Any, ...]]:
    """The turns that a tick gives so much later."""
    post.take()
    clock.advance(seconds)
    tasks.tick()
    return post.of("poll_dlqs")


def _bodies(bench: Workbench) -> list[str]:
    return [one["Body"] for one in bench.delivered()]


@pytest.mark.parametrize("noticed_by", ["a tick", "a hint of before"])
def test_a_restored_database_sends_nothing(post: Post, noticed_by: str) -> None:
    bench = _buried("a1")
    lane = bench.lane().pk
    for _ in range(2):
        tasks.tick()
    TickCount.objects.update(ticks=1)  # what followed is forgotten
    if noticed_by == "a tick":
        TickCount.objects.update(ticks=0)
        tasks.tick()
    tasks.replay_lanes([lane])
    assert (_bodies(bench), restore_hold.current_hold() is not None) == ([], True)


def test_a_tick_gives_due_dlqs_their_turn_once(post: Post, clock: Clock) -> None:
    bench = Workbench(fields=AUTOMATIC)
    tasks.tick()
    tasks.tick()
    assert post.of("poll_dlqs") == [([bench.dlq.pk],)]
    assert {one.options["queue"] for one in post.take() if one.name == "poll_dlqs"} == {"redrive-capture"}
    clock.advance(MINUTE)
    tasks.tick()
    assert post.of("poll_dlqs") == [([bench.dlq.pk],)]


def test_a_tick_gives_so_many_dlqs_their_turn_and_the_next_one_the_others(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "DLQS_A_TICK", 2)
    dlqs = [Stock().dlq.pk for _ in range(3)]
    tasks.tick()
    assert post.of("poll_dlqs") == [(dlqs[:2],)]
    tasks.tick()
    assert post.of("poll_dlqs") == [(dlqs[:2],), (dlqs[2:],)]


def test_a_turn_that_could_not_be_handed_over_is_given_again_a_minute_later(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _daily()

    def refuse(*_: object, **__: object) -> None:
        raise OSError("the broker is away")

    with monkeypatch.context() as broken, pytest.raises(OSError, match="away"):  # noqa: PT012
        broken.setattr(tasks.poll_dlqs, "apply_async", refuse)
        tasks.tick()
    assert _given_again(post, clock, MINUTE) == [([bench.dlq.pk],)]


@pytest.mark.parametrize("error", [QueueUnreachable("gone"), RuntimeError("what nobody thought of")])
def test_a_look_that_fails_is_given_again_a_minute_later_and_keeps_no_other_dlq_from_its_turn(
    error: Exception, post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing, other = _daily(), _daily()
    look = feed_run.record_depth

    def fail(dlq: DeadLetterQueue) -> bool:
        if dlq.pk == failing.dlq.pk:
            raise error
        return look(dlq)

    monkeypatch.setattr(feed_run, "record_depth", fail)
    tasks.tick()
    post.work_off()
    other.dlq.refresh_from_db()
    assert other.dlq.depth_visible == 0
    assert _given_again(post, clock, MINUTE) == [([failing.dlq.pk],)]


def test_a_look_ends_where_postgres_is_gone(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    benches = [_daily(), _daily()]

    def fail(_: DeadLetterQueue) -> bool:
        connection.close()
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(feed_run, "record_depth", fail)
    with pytest.raises(OperationalError, match="the server closed"):
        tasks.poll_dlqs([one.dlq.pk for one in benches])
    assert post.messages == []


@pytest.mark.parametrize("fields", [{}, {"mode": "manual"}, {"mode": "observe"}])
@pytest.mark.parametrize("letters", [0, 1])
def test_a_turn_that_was_had_is_not_given_again_before_the_next(
    letters: int, fields: dict[str, Any], post: Post, clock: Clock
) -> None:
    bench = _daily(**fields)
    for _ in range(letters):
        bench.bury("letter", key="a")
    tasks.tick()
    post.work_off()
    before = len(asked(bench.dlq_url))
    for _ in range(10):
        assert _given_again(post, clock, MINUTE) == []
        post.take()
    assert asked(bench.dlq_url)[before:] == []
    assert _given_again(post, clock, DAY) == [([bench.dlq.pk],)]


@pytest.mark.parametrize("mode", ["automatic", "manual", "observe"])
def test_a_capture_that_found_nothing_to_receive_was_the_turn(mode: str, post: Post, clock: Clock) -> None:
    bench = _daily(mode=mode)
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert _given_again(post, clock, DAY / 2) == []


def test_a_look_that_sqs_doubles_asks_once(post: Post) -> None:
    bench = _daily()
    tasks.tick()
    before = len(asked(bench.dlq_url))
    tasks.poll_dlqs([bench.dlq.pk])
    tasks.poll_dlqs([bench.dlq.pk])
    assert asked(bench.dlq_url)[before:] == ["GetQueueAttributes"]


def test_a_capture_that_sqs_doubles_is_one(post: Post) -> None:
    bench = _daily()
    bench.bury("letter", key="a")
    tasks.tick()
    post.take()
    tasks.capture(bench.dlq.pk)
    before = len(asked(bench.dlq_url))
    tasks.capture(bench.dlq.pk)
    assert asked(bench.dlq_url)[before:] == []


def test_a_turn_whose_capture_is_lost_is_given_again_a_minute_later(post: Post, clock: Clock) -> None:
    bench = _daily()
    bench.bury("letter", key="a")
    tasks.tick()
    tasks.poll_dlqs([bench.dlq.pk])
    assert _given_again(post, clock, MINUTE) == [([bench.dlq.pk],)]


@pytest.mark.parametrize("end", [{"busy": True}, {"trouble": "why"}, {"received": 0}, {"received": 1}])
def test_a_turn_whose_capture_did_not_run_dry_is_given_again_soon(
    end: dict[str, Any], post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _daily()
    monkeypatch.setattr(feed_run, "take_turn", lambda *_, **__: feed_run.TurnResult(Captured(**end)))
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert _given_again(post, clock, tasks.CAPTURE_SLICE + MINUTE) == [([bench.dlq.pk],)]


def test_nobody_else_is_given_a_turn_that_is_being_had(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _daily()
    given: list[object] = []

    def take_long(*_: object, **__: object) -> feed_run.TurnResult:
        given.extend(_given_again(post, clock, tasks.CAPTURE_SLICE))
        return feed_run.TurnResult(Captured(drained=True))

    monkeypatch.setattr(feed_run, "take_turn", take_long)
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert (given, _given_again(post, clock, MINUTE)) == ([], [])


def test_a_turn_goes_on_at_once_until_the_dlq_has_run_dry(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _daily()
    bench.bury("letter", key="a")
    ends = [Captured(received=1), Captured(received=1), Captured(drained=True)]
    monkeypatch.setattr(feed_run, "take_turn", lambda *_, **__: feed_run.TurnResult(ends.pop(0)))
    tasks.tick()
    done = [one.name for one in post.work_off()]
    assert (done.count("capture"), ends) == (3, [])


def test_a_look_at_many_dlqs_has_those_captured_that_hold_something(post: Post) -> None:
    empty, full, manual = (Workbench(fields={**AUTOMATIC, "mode": mode}) for mode in ("automatic",) * 2 + ("manual",))
    for bench in (full, manual):
        bench.bury("letter", key="a")
    gone = Workbench(fields=AUTOMATIC)
    gone.sqs.delete_queue(QueueUrl=gone.dlq_url)
    tasks.poll_dlqs([gone.dlq.pk, empty.dlq.pk, full.dlq.pk, manual.dlq.pk, 0])
    assert (post.of("capture"), post.of("poll_dlqs")) == ([(full.dlq.pk,)], [])
    gone.dlq.refresh_from_db()
    assert "GetQueueAttributes failed" in gone.dlq.trouble


def test_a_look_that_takes_long_leaves_the_others_to_another_one(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    dlqs = [Workbench(fields=AUTOMATIC).dlq.pk for _ in range(3)]
    monkeypatch.setattr(tasks, "CAPTURE_SLICE", -1.0)
    tasks.poll_dlqs(dlqs)
    assert post.of("poll_dlqs") == [(dlqs[1:],)]


def test_idle_dlqs_cost_what_the_status_says(post: Post) -> None:
    dlqs = [Workbench(fields=AUTOMATIC) for _ in range(3)]
    before = sum(len(asked(one.dlq_url)) for one in dlqs)
    tasks.tick()
    done = [one.name for one in post.work_off()]
    assert done.count("poll_dlqs") == 1
    assert sum(len(asked(one.dlq_url)) for one in dlqs) - before == 3
    assert schedule.polls_per_second() == pytest.approx(3 / 60)


def test_that_a_tick_arrived_is_the_pulse_of_the_control_queue(post: Post) -> None:
    tasks.tick()
    assert Heartbeat.is_recent(Heartbeat.ages("redrive-control").first(), within=timedelta(minutes=1))


@pytest.mark.parametrize("fields", [{"mode": "manual"}, {"mode": "observe"}, {"mode": "automatic", **STOPPED}])
def test_a_dlq_that_may_not_be_received_from_is_looked_at(fields: dict[str, Any], post: Post) -> None:
    bench = Workbench(fields=fields)
    bench.bury("letter")
    tasks.tick()
    post.work_off()
    assert (set(asked(bench.dlq_url)) & {"ReceiveMessage", "DeleteMessage", "DeleteMessageBatch"}) == set()
    assert DeadLetterQueue.objects.get().depth_visible == 1


def test_the_turn_at_an_empty_dlq_costs_one_attribute_call(post: Post) -> None:
    bench = Workbench(fields=AUTOMATIC)
    before = len(asked(bench.dlq_url))
    tasks.capture(bench.dlq.pk)
    assert (asked(bench.dlq_url)[before:], post.messages) == (["GetQueueAttributes"], [])


def test_a_tick_and_what_follows_it_bring_a_letter_back(post: Post) -> None:
    bench = Workbench(fields=AUTOMATIC)
    for body in ("a1", "a2", "b1"):
        bench.bury(body, key=body[0])
    for _ in range(2):  # the first one captures, the second tells of lanes
        tasks.tick()
        post.work_off()
    assert (sorted(_bodies(bench)), bench.left()) == (["a1", "a2", "b1"], 0)


def test_a_capture_enqueues_the_replay_of_the_messages_that_it_enlisted(post: Post) -> None:
    bench = _daily(new_key_delay=0)
    bench.bury("a1", key="a")
    bench.bury("b1", key="b")
    tasks.capture(bench.dlq.pk)
    assert sorted(post.hinted()) == sorted(Lane.objects.values_list("pk", flat=True))


def test_a_dlq_that_had_letters_has_its_next_turn_at_once_where_it_says_so(post: Post) -> None:
    eager, patient = (Workbench(fields={**AUTOMATIC, "at_once": at_once}) for at_once in (True, False))
    for bench in (eager, patient):
        bench.bury("letter", key="a")
    tasks.tick()
    post.work_off()
    tasks.tick()
    assert post.of("poll_dlqs") == [([eager.dlq.pk],)]
    post.work_off()
    tasks.tick()
    assert post.of("poll_dlqs") == []  # and no longer when there were none


def test_a_capture_that_was_not_enough_is_followed_by_another(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=AUTOMATIC)
    bench.bury("letter", key="a")
    gathered = feed_run.TurnResult()
    monkeypatch.setattr(feed_run, "take_turn", lambda *_, **__: gathered)
    gathered.captured.received = 1
    tasks.capture(bench.dlq.pk)
    assert post.of("capture") == [(bench.dlq.pk,)]
    post.take()
    for end in ({"drained": True}, {"trouble": "why"}, {"busy": True}, {"received": 0}):
        gathered.captured = Captured(**{"received": 1, **end})  # type: ignore[arg-type]
        tasks.capture(bench.dlq.pk)
    assert post.messages == []


def test_a_capture_that_had_no_time_to_enlist_everything_is_followed_by_another(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(fields=AUTOMATIC)
    gathered = feed_run.TurnResult(Captured(drained=True))
    monkeypatch.setattr(feed_run, "take_turn", lambda *_, **__: gathered)
    for left, sent in ((True, [(bench.dlq.pk,)]), (False, [])):
        gathered.enlisted = plan.EnlistResult(letters=1, left=left)
        tasks.capture(bench.dlq.pk)
        assert post.of("capture") == sent
        post.take()


@pytest.mark.parametrize("mode", ["automatic", "observe"])
def test_trouble_with_a_dlq_is_noted_on_it_and_raises_nothing(
    mode: str, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Workbench(fields={"mode": mode})
    bench.sqs.delete_queue(QueueUrl=bench.dlq_url)
    with caplog.at_level(logging.WARNING):
        tasks.capture(bench.dlq.pk)
    trouble = DeadLetterQueue.objects.get().trouble
    assert bench.dlq_url.rsplit("/", 1)[-1] in trouble
    assert [(one.getMessage(), one.exc_info) for one in caplog.records if one.name == "reprocessing.tasks"] == [
        (trouble, None)
    ]
    assert post.messages == []


def test_a_capture_of_a_dlq_that_is_gone_does_nothing(post: Post) -> None:
    tasks.capture(0)
    assert post.messages == []


def test_due_lanes_are_told_of_in_tasks_of_several(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 10}
    _due_lanes(25)
    tasks.tick()
    assert [len(told) for (told,) in post.of("replay_lanes")] == [10, 10, 5]
    assert {one.options["queue"] for one in post.messages if one.name == "replay_lanes"} == {"redrive-replay"}
    assert sorted(post.hinted()) == sorted(Lane.objects.filter(phase="ready").values_list("pk", flat=True))


def test_no_lane_is_told_of_twice_within_its_hint_s_lifetime(post: Post, clock: Clock, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "HINT_LIFE": 60, "HINT_LIFE_CAP": 60}
    _due_lanes(3)
    tasks.tick()
    clock.advance(40)
    tasks.tick()
    assert len(post.hinted()) == 3
    clock.advance(25)
    tasks.tick()
    assert len(post.hinted()) == 6


def test_untaken_hints_are_twice_the_slots_at_most(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 2, "HINT_LIFE": 60, "HINT_LIFE_CAP": 60}
    _due_lanes(2 * 2 * tasks.SLOTS + 10)
    for _ in range(3):
        tasks.tick()
    assert len(post.of("replay_lanes")) == 2 * tasks.SLOTS


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("ready", "orphans"),
    [
        pytest.param(1, 0, marks=pytest.mark.soak),
        pytest.param(900, 0, marks=[pytest.mark.soak, pytest.mark.long]),
        pytest.param(0, 300, marks=pytest.mark.soak),
    ],
)
def test_a_day_without_workers_leaves_about_a_thousand_messages(
    ready: int, orphans: int, post: Post, clock: Clock
) -> None:
    _due_lanes(ready)
    _due_lanes(orphans, phase="leased")
    passed = 0
    while passed < DAY:
        # When hints live as long as they may, only the tick after their end can tell anybody anything.
        step = TICK if passed < 5 * MINUTE else MINUTE + TICK
        tasks._hint()
        clock.advance(step)
        passed += step
    assert 1_000 < len(post.messages) < 1_500


def test_a_dead_worker_s_lanes_are_told_of_at_once(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 1}
    _due_lanes(2 * tasks.SLOTS)
    tasks.tick()
    post.take()
    _due_lanes(1, phase="leased")
    tasks.tick()
    assert post.hinted() == [Lane.objects.get(phase="leased").pk]


def test_what_a_slice_leaves_is_enqueued_again(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _buried("a1", "b1")
    monkeypatch.setattr(replay_slice.Turn, "run", lambda *_, **__: replay_slice.Report(left=[7, 8]))
    tasks.replay_lanes([bench.lane(key="a").pk])
    assert post.of("replay_lanes") == [([7, 8],)]


def test_a_slice_that_leaves_nothing_enqueues_nothing(post: Post) -> None:
    bench = _buried("a1", "b1")
    tasks.replay_lanes([bench.lane(key="a").pk])
    assert (sorted(_bodies(bench)), post.messages) == (["a1", "b1"], [])


@pytest.mark.soak
def test_one_lane_a_task_makes_exactly_one_task_for_every_ordering_key(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 1, "HINT_LIFE": 60, "HINT_LIFE_CAP": 60}  # a slow machine hints once
    keys = "abcdefghijklmnopqrst"  # more than are told of at a time
    assert len(keys) > 2 * tasks.SLOTS
    bench = _buried(*(f"{key}{n}" for key in keys for n in (1, 2)))
    tasks._hint()
    done = [one for one in post.work_off() if one.name == "replay_lanes"]
    assert sorted(one.args[0] for one in done) == sorted([lane] for lane in Lane.objects.values_list("pk", flat=True))
    assert len(_bodies(bench)) == 2 * len(keys)


def test_losing_any_message_is_harmless(post: Post, clock: Clock) -> None:
    bench = Workbench(fields=AUTOMATIC)
    bench.bury("a1", key="a")
    tasks.tick()
    post.take()  # the capture is lost
    clock.advance(MINUTE)
    tasks.tick()
    while not post.hinted():
        for message in post.take():
            message.work()
    post.take()  # the hint is lost
    clock.advance(6)
    tasks.tick()
    post.work_off()
    assert (_bodies(bench), bench.left()) == (["a1"], 0)


def test_doubling_every_message_is_harmless(post: Post) -> None:
    bench = Workbench(fields=AUTOMATIC)
    for body in ("a1", "a2", "b1"):
        bench.bury(body, key=body[0])
    for _ in range(3):
        tasks.tick()
        tasks.tick()
        while taken := post.take():
            for one in taken:
                one.work()
                one.work()
    found = _bodies(bench)
    assert ([one for one in found if one[0] == "a"], sorted(found)) == (["a1", "a2"], ["a1", "a2", "b1"])
    assert [no for no, _, _ in bench.history()] == [1, 1, 1]


def test_promotion_is_sent_only_while_letters_await_evidence(post: Post) -> None:
    bench = Workbench(fields=AUTOMATIC)
    tasks.tick()
    assert post.of("resolve_outcomes") == []
    bench.judge_by_absence(window=0)
    bench.bury("a1", key="a")
    bench.capture()
    bench.replay()
    tasks.tick()
    assert post.of("resolve_outcomes") == [()]


def test_outcomes_are_found_out_as_soon_as_a_capture_has_run_dry_and_their_keys_go_on_at_once(post: Post) -> None:
    bench = _buried("a1", "a2")
    bench.judge_by_absence(window=3_600)
    bench.replay()
    assert _bodies(bench) == ["a1"]
    tasks.resolve_outcomes()  # which sees that the target is empty
    assert post.messages == []
    tasks.capture(bench.dlq.pk)
    (found_out,) = (one for one in post.take() if one.name == "resolve_outcomes")
    found_out.work()
    assert post.of("replay_lanes") == [([bench.lane().pk],)]
    post.work_off()
    assert _bodies(bench) == ["a2"]


def test_health_is_looked_at_only_while_letters_wait_for_it_and_when_it_is_due(post: Post, clock: Clock) -> None:
    bench = Workbench(fields=AUTOMATIC)
    health_checks.add_check(bench.target.pk, CheckQuestion(CheckKind.DEPTH, ceiling=0), by="ann", reason="why")
    tasks.tick()
    assert post.of("check_targets") == []
    bench.bury("a1", key="a")
    bench.capture()
    tasks.tick()
    (sent,) = (one for one in post.take() if one.name == "check_targets")
    assert (sent.args, sent.options) == ((), {"queue": "redrive-control", "expires": 10})
    sent.work()
    assert [one.verdict for one in health_checks.checks_of([bench.target.pk])] == ["healthy"]
    tasks.tick()
    assert post.of("check_targets") == []
    clock.advance(10)
    tasks.tick()
    assert post.of("check_targets") == [()]


def test_sweeps_and_purges_are_sent_when_they_are_due(post: Post, clock: Clock) -> None:
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([], [])
    clock.advance(tasks.RECOVER_EVERY)
    tasks.tick()
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([()], [])
    clock.advance(tasks.PURGE_EVERY)
    tasks.tick()
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([(), ()], [()])


def test_a_sweep_has_large_plans_go_on_that_were_started(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 1)
    bench = Workbench()
    for body in ("a", "b"):
        bench.bury(body)
    bench.capture()
    run_transitions.start(drain.plan_run(bench.dlq, RunRequest("monday", "ann")), by="ann", reason="mended")
    tasks.tick()
    clock.advance(tasks.RECOVER_EVERY)
    tasks.tick()
    assert (post.of("enlist_letters"), set(bench.states().values())) == ([()], {"captured"})
    tasks.enlist_letters()
    assert set(bench.states().values()) == {"waiting"}
    clock.advance(tasks.RECOVER_EVERY)
    tasks.tick()
    assert post.of("enlist_letters") == [()]


def test_what_only_the_present_needs_does_not_pile_up_in_the_control_queue(post: Post, clock: Clock) -> None:
    tasks.tick()
    clock.advance(tasks.PURGE_EVERY)
    tasks.tick()
    kept = {one.name: one.options for one in post.messages}
    assert kept["recover"] == {"queue": "redrive-control", "expires": tasks.RECOVER_EVERY}
    assert kept["delete_expired"] == {"queue": "redrive-control", "expires": tasks.PURGE_EVERY}


@pytest.mark.parametrize(
    ("task", "stage", "name"),
    [
        (tasks.check_targets, run_health_checks, "run_due"),
        (tasks.resolve_outcomes, promotion, "resolve_letters"),
        (tasks.recover, recovery, "sweep_all"),
        (tasks.delete_expired, purging, "purge_expired"),
    ],
)
def test_each_task_is_one_call(task: Any, stage: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    called: list[float] = []
    monkeypatch.setattr(stage, name, lambda *, conf, **_: called.append(conf.long_poll))
    task()
    assert called == [0]


@pytest.mark.parametrize(
    "task", [tasks.tick, tasks.check_targets, tasks.resolve_outcomes, tasks.recover, tasks.delete_expired]
)
def test_a_task_bears_arguments_that_a_later_version_sends(task: Any, post: Post) -> None:  # noqa: ANN401
    task(since="a later version")


def test_a_tick_sees_that_a_rule_has_ended_and_has_what_it_held_asked_about_anew(post: Post, clock: Clock) -> None:
    bench = _buried("a1", mode="manual")
    said = {
        "action": "hold",
        "conditions": [],
        "enabled": True,
        "valid_until": lanes.database_now() + timedelta(minutes=1),
    }
    rule_changes.save_rule("wait", said, by="anna", reason="a test")
    bench.enlist()
    bench.replay()
    tasks.tick()
    assert (post.of("reroute_letters"), bench.lane().phase) == ([], "held")
    post.take()
    clock.advance(MINUTE)
    tasks.tick()
    tasks.tick()
    assert post.of("reroute_letters") == [()]
    tasks.reroute_letters()
    assert bench.lane().phase == "ready"


def test_what_a_capture_brought_is_sorted_by_its_cause(post: Post) -> None:
    bench = Workbench(fields=AUTOMATIC)
    bench.bury('{"a": 1}', key="k", error_type="KeyError")
    tasks.capture(bench.dlq.pk)
    assert bench.letter().group == FailureGroup.objects.get(title="error_type: KeyError")
