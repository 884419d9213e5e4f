"""The tasks: what a tick sends, what each task sends on, and that losing or doubling any of it is harmless."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import DataError, OperationalError, connection
from django_celery_beat.models import IntervalSchedule
from pytest_django import Settings

from reprocessing import tasks
from reprocessing.domain.errors import QueueUnreachable
from reprocessing.models import DeadLetterQueue, FailureGroup, Heartbeat, Lane, TickCount
from reprocessing.models.safety import CheckKind
from reprocessing.pipeline import notifications
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.capture.new_letters import NewLetters
from reprocessing.pipeline.maintenance import purge as purging
from reprocessing.pipeline.maintenance import recover as recovery
from reprocessing.pipeline.maintenance.doctor import CheckContext
from reprocessing.pipeline.notifications import checkup
from reprocessing.pipeline.outcomes import resolve_outcomes as promotion
from reprocessing.pipeline.parking_lot import group_failures
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
from tests.reprocessing.incidents import is_open
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.post import Post, asked, post
from tests.reprocessing.store.stock import Stock

__all__ = ["post"]

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic", "ordering_key": "attribute:key"}
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
    bench = _filled(*letters, **fields)
    bench.capture()
    return bench


def _filled(*letters: str, **fields: object) -> Workbench:
    """An automatic dlq with letters that nobody has captured."""
    bench = Workbench(fields={**AUTOMATIC, **fields})
    for one in letters:
        bench.bury(one, key=one[0])
    return bench


def _daily(*letters: str, **fields: object) -> Workbench:
    """One that has a turn a day, and the first one now."""
    return _filled(*letters, interval=IntervalSchedule.objects.create(every=1, period="days"), **fields)


def _given_again(post: Post, clock: Clock, seconds: float) -> list[tuple[Any, ...]]:
    post.take()
    clock.advance(seconds)
    tasks.tick()
    return post.of("poll_dlqs")


def _called(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Return the ids of the DLQs with which this function of `feed_run` was called; the list grows."""
    called, whole = list[int](), getattr(feed_run, name)

    def note(dlq: DeadLetterQueue, **options: object) -> object:
        called.append(dlq.pk)
        return whole(dlq, **options)

    monkeypatch.setattr(feed_run, name, note)
    return called


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


def test_a_tick_gives_so_many_due_dlqs_their_turn_and_each_of_them_once(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "DLQS_A_TICK", 1)
    first, second = (_filled().dlq.pk for _ in range(2))
    for _ in range(3):
        tasks.tick()
    assert post.of("poll_dlqs") == [([first],), ([second],)]
    assert {one.options["queue"] for one in post.take() if one.name == "poll_dlqs"} == {"redrive-capture"}
    clock.advance(MINUTE)
    tasks.tick()
    assert post.of("poll_dlqs") == [([first],)]


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


def test_a_tick_that_fails_has_enqueued_the_tasks_that_notify_people(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.tick()
    post.take()
    clock.advance(tasks.RECOVER_EVERY)
    monkeypatch.setattr(schedule, "claim_due", Mock(side_effect=DataError))
    monkeypatch.setattr(notifications, "is_due", lambda _: True)
    with pytest.raises(DataError):
        tasks.tick()
    assert [message.name for message in post.take()] == ["send_notifications", "recover", "check_conditions"]


_UNEXPECTED = "An unexpected error occurred: RuntimeError. Its traceback is in the log of the workers."


@pytest.mark.parametrize(
    ("error", "text"),
    [(QueueUnreachable("gone"), "gone"), (RuntimeError("what nobody thought of"), _UNEXPECTED)],
    ids=["expected", "unexpected"],
)
def test_a_look_that_fails_is_the_dlq_s_error_and_given_again_a_minute_later_and_keeps_no_other_dlq_from_its_turn(
    error: Exception, text: str, post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
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
    failing.dlq.refresh_from_db()
    assert (other.dlq.depth_visible, other.dlq.last_error, failing.dlq.last_error) == (0, "", text)
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


@pytest.mark.soak
@pytest.mark.parametrize("fields", [{}, {"mode": "manual"}, {"mode": "observe"}])
@pytest.mark.parametrize("letters", [[], ["a"]])
def test_a_turn_that_was_had_is_not_given_again_before_the_next(
    letters: list[str], fields: dict[str, Any], post: Post, clock: Clock
) -> None:
    bench = _daily(*letters, **fields)
    tasks.tick()
    post.work_off()
    before = len(asked(bench.dlq_url))
    assert [_given_again(post, clock, MINUTE) for _ in range(10)] == [[]] * 10
    post.take()
    assert asked(bench.dlq_url)[before:] == []
    assert _given_again(post, clock, DAY) == [([bench.dlq.pk],)]


@pytest.mark.parametrize(("mode", "letters"), [("automatic", []), ("manual", ["a"]), ("observe", ["a"])])
def test_a_capture_that_found_nothing_that_it_may_receive_was_the_turn(
    mode: str, letters: list[str], post: Post, clock: Clock
) -> None:
    bench = _daily(*letters, mode=mode)
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert "ReceiveMessage" not in asked(bench.dlq_url)
    assert _given_again(post, clock, DAY / 2) == []


@pytest.mark.soak
def test_a_look_or_a_capture_that_sqs_doubles_asks_once(post: Post) -> None:
    empty, full = _daily(), _daily("a")
    tasks.tick()
    before = len(asked(empty.dlq_url))
    for _ in range(2):
        tasks.poll_dlqs([empty.dlq.pk])
    assert asked(empty.dlq_url)[before:] == ["GetQueueAttributes"]
    tasks.capture(full.dlq.pk)
    before = len(asked(full.dlq_url))
    tasks.capture(full.dlq.pk)
    assert asked(full.dlq_url)[before:] == []


def test_however_many_polls_of_a_dlq_wait_it_is_polled_and_captured_once(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled, captured = (_called(monkeypatch, name) for name in ("record_depth", "poll_dlq"))
    bench = _filled("a1")
    for _ in range(5):
        tasks.tick()
        clock.advance(MINUTE)
    assert post.of("poll_dlqs") == [([bench.dlq.pk],)] * 5
    post.work_off()
    assert (polled, captured) == ([bench.dlq.pk], [bench.dlq.pk])
    clock.advance(MINUTE)
    tasks.tick()
    post.work_off()
    assert polled == [bench.dlq.pk] * 2


def test_a_dlq_that_does_not_answer_is_asked_once_for_all_polls_that_wait(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _filled()
    bench.sqs.delete_queue(QueueUrl=bench.dlq_url)
    polled = _called(monkeypatch, "record_depth")
    for _ in range(3):
        tasks.tick()
        clock.advance(MINUTE)
    post.work_off()
    assert polled == [bench.dlq.pk]


def test_a_capture_that_sqs_doubles_runs_once(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = _called(monkeypatch, "poll_dlq")
    bench = _filled("a1")
    tasks.poll_dlqs([bench.dlq.pk])
    (capture,) = post.take()
    for _ in range(2):
        capture.work()
    assert captured == [bench.dlq.pk]


def test_a_poll_that_waited_until_its_dlq_was_due_again_still_runs(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = _called(monkeypatch, "record_depth")
    bench = _filled()
    tasks.tick()
    (late,) = (one for one in post.take() if one.name == "poll_dlqs")
    clock.advance(30 * MINUTE)
    tasks.tick()
    late.work()
    assert (polled, late.options["expires"]) == ([bench.dlq.pk], 60 * MINUTE)


def test_a_tick_has_the_letters_enlisted_that_waited_for_a_paused_automatic_run(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 1)
    bench = _daily("a1", "a2")
    who: dict[str, Any] = {"by": "ann", "reason": "mended"}
    run_transitions.pause(feed_run.automatic_run(bench.dlq).pk, **who)
    for paused in (True, False):
        tasks.tick()
        post.work_off()
        assert ("captured" in bench.states().values()) is paused
        if paused:
            run_transitions.resume(feed_run.automatic_run(bench.dlq).pk, **who)


@pytest.mark.parametrize(
    ("result", "batches"),
    [
        pytest.param(feed_run.PollResult(Captured(letters=1, drained=True)), [tasks.GROUPING_BATCHES], id="they wait"),
        pytest.param(
            feed_run.PollResult(Captured(letters=1, drained=True), plan.EnlistResult(letters=1)),
            [],
            id="they are sent now",
        ),
        pytest.param(feed_run.PollResult(skipped=True), [], id="the DLQ is empty, and others may be sent now"),
    ],
)
@pytest.mark.usefixtures("post")
def test_a_capture_task_assigns_letters_to_failure_groups_only_if_it_captured_letters_that_wait(
    result: feed_run.PollResult, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assigned = list[int]()
    monkeypatch.setattr(group_failures, "assign_groups", lambda *, batches: assigned.append(batches))
    monkeypatch.setattr(feed_run, "poll_dlq", lambda *_, **__: result)
    tasks.capture(_daily("a").dlq.pk)
    assert assigned == batches


def test_a_turn_whose_capture_is_lost_is_given_again_a_minute_later(post: Post, clock: Clock) -> None:
    bench = _daily("a")
    tasks.tick()
    tasks.poll_dlqs([bench.dlq.pk])
    assert _given_again(post, clock, MINUTE) == [([bench.dlq.pk],)]


@pytest.mark.parametrize("end", [{"busy": True}, {"error": "why"}, {"received": 0}, {"received": 1}])
def test_a_turn_whose_capture_did_not_run_dry_is_given_again_soon(
    end: dict[str, Any], post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _daily()
    monkeypatch.setattr(feed_run, "poll_dlq", lambda *_, **__: feed_run.PollResult(Captured(**end)))
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert _given_again(post, clock, tasks.CAPTURE_SLICE + MINUTE) == [([bench.dlq.pk],)]


def test_nobody_else_is_given_a_turn_that_is_being_had(
    post: Post, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _daily()
    given: list[object] = []

    def take_long(*_: object, **__: object) -> feed_run.PollResult:
        given.extend(_given_again(post, clock, tasks.CAPTURE_SLICE))
        return feed_run.PollResult(Captured(drained=True))

    monkeypatch.setattr(feed_run, "poll_dlq", take_long)
    tasks.tick()
    tasks.capture(bench.dlq.pk)
    assert (given, _given_again(post, clock, MINUTE)) == ([], [])


@pytest.mark.parametrize("make", [_daily, _filled])
def test_a_turn_goes_on_at_once_until_the_dlq_has_run_dry(
    make: Callable[..., Workbench], post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("a")
    ends = [Captured(received=1), Captured(received=1), Captured(drained=True)]
    monkeypatch.setattr(feed_run, "poll_dlq", lambda *_, **__: feed_run.PollResult(ends.pop(0)))
    tasks.tick()
    done = [one.name for one in post.work_off()]
    assert (done.count("capture"), ends) == (3, [])


@pytest.mark.soak
def test_a_look_at_many_dlqs_has_those_captured_that_hold_something(post: Post) -> None:
    empty, full, manual, gone = _filled(), _filled("a"), _filled("a", mode="manual"), _filled()
    gone.sqs.delete_queue(QueueUrl=gone.dlq_url)
    tasks.poll_dlqs([gone.dlq.pk, empty.dlq.pk, full.dlq.pk, manual.dlq.pk, 0])
    assert (post.of("capture"), post.of("poll_dlqs")) == ([(full.dlq.pk,)], [])
    gone.dlq.refresh_from_db()
    assert "GetQueueAttributes failed" in gone.dlq.last_error


def test_a_look_that_takes_long_leaves_the_others_to_another_one(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    dlqs = [Workbench(fields=AUTOMATIC).dlq.pk for _ in range(3)]
    monkeypatch.setattr(tasks, "CAPTURE_SLICE", -1.0)
    tasks.poll_dlqs(dlqs)
    assert post.of("poll_dlqs") == [(dlqs[1:],)]


def test_that_a_tick_arrived_is_the_pulse_of_the_control_queue(post: Post) -> None:
    tasks.tick()
    assert Heartbeat.is_recent(Heartbeat.ages("redrive-control").first(), within=timedelta(minutes=1))


def test_a_capture_enqueues_the_replay_of_the_messages_that_it_enlisted(post: Post) -> None:
    bench = Workbench(fields={**AUTOMATIC, "new_key_delay": 0})
    bench.bury("a1", key="a")
    bench.bury("b1", key="b")
    tasks.capture(bench.dlq.pk)
    assert sorted(post.hinted()) == sorted(Lane.objects.values_list("pk", flat=True))


@pytest.mark.soak
def test_a_dlq_that_had_letters_has_its_next_turn_at_once_where_it_says_so(post: Post) -> None:
    eager = _filled("a", at_once=True)
    _filled("a", at_once=False)
    tasks.tick()
    post.work_off()
    tasks.tick()
    assert post.of("poll_dlqs") == [([eager.dlq.pk],)]
    post.work_off()
    tasks.tick()
    assert post.of("poll_dlqs") == []  # and no longer when there were none


@pytest.mark.parametrize(
    ("end", "left", "sent"),
    [
        ({}, None, True), ({"drained": True}, None, False), ({"error": "why"}, None, False),
        ({"busy": True}, None, False), ({"received": 0}, None, False), ({"drained": True}, True, True),
        ({"drained": True}, False, False),
    ],
)  # fmt: skip
def test_a_capture_that_was_not_enough_is_followed_by_another(
    post: Post, monkeypatch: pytest.MonkeyPatch, end: dict[str, Any], left: bool | None, sent: bool
) -> None:
    bench = _filled("a")
    enlisted = None if left is None else plan.EnlistResult(letters=1, left=left)
    gathered = feed_run.PollResult(Captured(**{"received": 1, **end}), enlisted=enlisted)
    monkeypatch.setattr(feed_run, "poll_dlq", lambda *_, **__: gathered)
    tasks.capture(bench.dlq.pk)
    assert post.of("capture") == [(bench.dlq.pk,)] * sent


@pytest.mark.parametrize("mode", ["automatic", "observe"])
def test_trouble_with_a_dlq_is_noted_on_it_and_raises_nothing(
    mode: str, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    bench = _filled(mode=mode)
    bench.sqs.delete_queue(QueueUrl=bench.dlq_url)
    with caplog.at_level(logging.WARNING):
        tasks.capture(bench.dlq.pk)
        tasks.capture(0)  # its dlq is gone
    last_error = DeadLetterQueue.objects.get().last_error
    assert bench.dlq_url.rsplit("/", 1)[-1] in last_error
    told = [(one.getMessage(), one.exc_info) for one in caplog.records if one.name == "reprocessing.tasks"]
    assert (told, post.messages) == ([(last_error, None)], [])


UNEXPECTED = "An unexpected error occurred: DataError. Its traceback is in the log of the workers."


def _capture_in_vain(bench: Workbench) -> None:
    def fail(*_: object, **__: object) -> set[str]:
        raise DataError("invalid value: canary")

    with pytest.MonkeyPatch.context() as broken, pytest.raises(DataError):  # noqa: PT012
        broken.setattr(NewLetters, "store", fail)
        tasks.capture(bench.dlq.pk)


def _last_error() -> str:
    return DeadLetterQueue.objects.get().last_error


@pytest.mark.usefixtures("post")
def test_an_unexpected_error_of_a_capture_is_shown_at_the_dlq_until_a_capture_succeeds() -> None:
    bench = _filled("a1")
    _capture_in_vain(bench)
    after_capture = _last_error()
    tasks.poll_dlqs([bench.dlq.pk])  # the message is invisible
    after_poll = _last_error()
    bench.bury("a2", key="a")
    tasks.capture(bench.dlq.pk)
    assert (after_capture, after_poll, _last_error()) == (UNEXPECTED, UNEXPECTED, "")


@pytest.mark.usefixtures("post")
def test_an_unexpected_error_of_a_poll_is_shown_at_the_dlq(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _filled()

    def fail(_: object) -> None:
        raise DataError("invalid value: canary")

    with monkeypatch.context() as broken:
        broken.setattr(feed_run, "depth", fail)
        tasks.poll_dlqs([bench.dlq.pk])
    failed = _last_error()
    tasks.poll_dlqs([bench.dlq.pk])
    assert (failed, _last_error()) == (UNEXPECTED, "")


@pytest.mark.usefixtures("post")
def test_messages_that_no_capture_can_store_are_told_of_before_sqs_deletes_them(clock: Clock) -> None:
    bench = _filled("a1")
    _capture_in_vain(bench)
    tasks.check_conditions()
    tasks.poll_dlqs([bench.dlq.pk])
    tasks.check_conditions()  # the message is invisible
    clock.advance(3.5 * DAY)
    bench.bury("a2", key="a")
    tasks.poll_dlqs([bench.dlq.pk])
    tasks.check_conditions()
    assert list(is_open("messages_expiring")) == [f"dlq:{bench.dlq.pk}"]


def test_due_lanes_are_told_of_in_tasks_of_several(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 10}
    _due_lanes(25)
    tasks.tick()
    assert [len(told) for (told,) in post.of("replay_lanes")] == [10, 10, 5]
    assert {one.options["queue"] for one in post.messages if one.name == "replay_lanes"} == {"redrive-replay"}
    assert sorted(post.hinted()) == sorted(Lane.objects.filter(phase="ready").values_list("pk", flat=True))


def test_untaken_hints_are_twice_the_slots_at_most(post: Post, brisk: Settings) -> None:
    brisk.REDRIVE = {**REDRIVE, "LANES_PER_TASK": 2, "HINT_LIFE": 60, "HINT_LIFE_CAP": 60}
    _due_lanes(2 * 2 * tasks.SLOTS + 10)
    for _ in range(3):
        tasks.tick()
    assert len(post.of("replay_lanes")) == 2 * tasks.SLOTS


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("ready", "orphans"), [pytest.param(1, 0, marks=pytest.mark.long), (0, 300)])
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


def test_what_a_slice_leaves_is_enqueued_again(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _buried("a1", "b1")
    lane = bench.lane(key="a").pk
    tasks.replay_lanes([lane])
    assert (sorted(_bodies(bench)), post.messages) == (["a1", "b1"], [])
    monkeypatch.setattr(replay_slice.Slice, "run", lambda *_, **__: replay_slice.Report(left=[7, 8]))
    tasks.replay_lanes([lane])
    assert post.of("replay_lanes") == [([7, 8],)]


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


@pytest.mark.soak
def test_losing_any_message_is_harmless(post: Post, clock: Clock) -> None:
    bench = _filled("a1")
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


@pytest.mark.soak
def test_doubling_every_message_is_harmless(post: Post) -> None:
    bench = _filled("a1", "a2", "b1")
    for _ in range(3):
        tasks.tick()
        tasks.tick()
        while taken := post.take():
            for one in taken:
                one.work()
                one.work()
    found = _bodies(bench)
    assert ([one for one in found if one[0] == "a"], sorted(found)) == (["a1", "a2"], ["a1", "a2", "b1"])
    assert ([no for no, _, _ in bench.history()], bench.left()) == ([1, 1, 1], 0)


@pytest.mark.soak
def test_promotion_is_sent_only_while_letters_await_evidence(post: Post) -> None:
    bench = _filled("a1")
    tasks.tick()
    assert post.of("resolve_outcomes") == []
    bench.judge_by_absence(window=0)
    bench.capture()
    bench.replay()
    tasks.tick()
    assert post.of("resolve_outcomes") == [()]


@pytest.mark.soak
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


def test_sweeps_and_purges_are_sent_when_they_are_due_and_do_not_pile_up(post: Post, clock: Clock) -> None:
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([], [])
    clock.advance(tasks.RECOVER_EVERY)
    tasks.tick()
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([()], [])
    clock.advance(purging.PURGE_EVERY)
    tasks.tick()
    tasks.tick()
    assert (post.of("recover"), post.of("delete_expired")) == ([(), ()], [()])
    options = {one.name: one.options for one in post.messages}
    assert options["recover"] == {"queue": "redrive-control", "expires": tasks.RECOVER_EVERY}
    assert options["delete_expired"] == {"queue": "redrive-control", "expires": purging.PURGE_EVERY}


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


@pytest.mark.parametrize(
    ("task", "stage", "name"),
    [
        (tasks.check_targets, run_health_checks, "run_due"),
        (tasks.resolve_outcomes, promotion, "resolve_letters"),
        (tasks.recover, recovery, "sweep_alone"),
        (tasks.delete_expired, purging, "purge_expired"),
    ],
)
def test_each_task_is_one_call(task: Any, stage: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    called: list[float] = []
    monkeypatch.setattr(stage, name, lambda *, conf, **_: called.append(conf.long_poll))
    task()
    assert called == [0]


def test_the_soft_time_limit_of_a_task_ends_the_checks_of_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = list[CheckContext]()
    monkeypatch.setattr(checkup, "checkup", contexts.append)
    tasks.run_doctor()
    assert [context.ended_by for context in contexts] == [(SoftTimeLimitExceeded,)]


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


@pytest.mark.parametrize(("key", "state", "at_once"), [(None, "parked", True), ("k", "waiting", False)])
def test_a_capture_groups_what_stays_and_a_sweep_what_waits(
    post: Post, key: str | None, state: str, *, at_once: bool
) -> None:
    bench = _filled()
    bench.bury('{"a": 1}', key=key, error_type="KeyError")
    tasks.capture(bench.dlq.pk)
    assert (bench.letter().state, bench.letter().group is not None) == (state, at_once)
    tasks.recover()
    assert bench.letter().group == FailureGroup.objects.get()
