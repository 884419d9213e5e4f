"""One turn at a DLQ: it is captured when it may be and that brings something; an empty DLQ costs one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from reprocessing.models import DeadLetterQueue, Lane, Run
from reprocessing.models.dlq import Mode
from reprocessing.pipeline.capture import capture
from reprocessing.pipeline.replay import replay_slice
from reprocessing.pipeline.runs import feed_run
from reprocessing.store.maintenance import restore_hold
from reprocessing.store.ordering import lanes
from reprocessing.store.payloads import payload_keys
from reprocessing.store.runs import plans, progress, run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import BRISK, Workbench, redriven
from tests.reprocessing.post import asked, statements
from tests.stories.scene import lettered, published

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic"}
FEW, MANY = 200, 400


def _fresh(bench: Workbench) -> DeadLetterQueue:
    return DeadLetterQueue.objects.get(pk=bench.dlq.pk)


def _bury(bench: Workbench, number: int) -> None:
    published(bench.sqs, bench.dlq_url, (lettered(f"letter {n}", key=f"k{n // 2}") for n in range(number)))


@pytest.fixture
def bench() -> Workbench:
    return Workbench()


def test_an_empty_automatic_dlq_costs_one_attribute_call() -> None:
    bench = Workbench(fields=AUTOMATIC)
    before = len(asked(bench.dlq_url))
    assert bench.capture().skipped
    assert asked(bench.dlq_url)[before:] == ["GetQueueAttributes"]


@pytest.mark.soak
def test_an_empty_dlq_is_received_from_while_letters_await_what_that_proves() -> None:
    bench = Workbench(fields=AUTOMATIC)
    bench.judge_by_absence(window=0)
    bench.bury("letter")
    bench.capture()
    bench.replay()
    bench.delivered()
    assert bench.promote() == 0  # seen, and not yet proved
    assert not bench.capture().skipped
    assert bench.promote() == 1
    assert bench.capture().skipped


def test_an_automatic_dlq_s_letters_go_into_its_automatic_run() -> None:
    bench = Workbench(fields=AUTOMATIC)
    for body in ("a", "b"):
        bench.bury(body)
        bench.capture()
    run = Run.objects.get()
    assert (run.kind, run.state, bench.states()) == ("automatic", "running", {"a": "waiting", "b": "waiting"})
    assert bench.letter(payload__body=b"b").run_id == run.pk


@pytest.mark.soak
def test_a_letter_that_came_back_to_a_finished_drain_goes_on_when_its_dlq_becomes_automatic() -> None:
    bench = redriven("letter")
    progress.finish_runs()
    bench.take_back(bench.delivered()[0])
    assert (bench.states(), bench.capture().skipped) == ({"letter": "waiting"}, True)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(**AUTOMATIC)
    assert not bench.capture().skipped
    bench.replay()
    assert (bench.states(), bench.capture().skipped) == ({"letter": "delivered"}, True)


def test_nothing_is_enlisted_before_the_dlq_has_run_dry(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields=AUTOMATIC)
    bench.bury("letter")
    whole = capture.letters

    def cut_short(*args: Any, **options: Any) -> capture.Captured:  # noqa: ANN401
        captured = whole(*args, **options)
        captured.drained = False
        return captured

    with monkeypatch.context() as patch:
        patch.setattr(capture, "letters", cut_short)
        assert bench.capture().enlisted is None
    assert (bench.states(), Lane.objects.count()) == ({"letter": "captured"}, 0)
    bench.capture()
    assert bench.states() == {"letter": "waiting"}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"mode": "observe"}, False),
        ({"mode": "manual"}, False),
        ({"mode": "automatic"}, True),
        ({"mode": "automatic", "stopped_at": "2026-01-01T00:00Z", "stopped_by": "a", "stop_reason": "b"}, False),
    ],
)
def test_beat_receives_only_from_automatic_dlqs_that_are_not_stopped(fields: dict[str, Any], wanted: bool) -> None:
    assert feed_run.is_wanted(_fresh(Workbench(fields=fields))) is wanted


@pytest.mark.parametrize(("mode", "wanted"), [("manual", True), ("automatic", True), ("observe", False)])
def test_beat_looks_into_a_dlq_that_is_stopped_while_everything_is_held_after_a_restore(
    mode: str, wanted: bool
) -> None:
    bench = Workbench(fields={"mode": mode})
    stops.stop(bench.dlq.pk, by="eva", reason="the consumer is broken")
    assert feed_run.is_wanted(_fresh(bench)) is False
    restore_hold.begin_hold(lanes.database_now(), by="eva", reason="a disk died")
    assert feed_run.is_wanted(_fresh(bench)) is wanted


def _letters_await_an_outcome(bench: Workbench) -> None:
    bench.judge_by_absence(window=0)
    bench.redrive("letter")


def _a_plan_waits(bench: Workbench) -> None:
    plans.create_plan(bench.dlq, RunRequest("monday", "ann"))


@pytest.mark.parametrize("waits", [_letters_await_an_outcome, _a_plan_waits])
@pytest.mark.parametrize(("mode", "wanted"), [("manual", True), ("observe", False)])
def test_beat_captures_a_dlq_that_somebody_waits_for_except_in_mode_observe(
    bench: Workbench, waits: Callable[[Workbench], None], mode: str, wanted: bool
) -> None:
    waits(bench)
    DeadLetterQueue.objects.update(mode=mode)
    assert feed_run.is_wanted(_fresh(bench)) is wanted


def test_a_look_notes_the_depth_and_ends_trouble() -> None:
    bench = Workbench(fields={"mode": "observe", "last_error": "out of reach"})
    bench.bury("letter")
    feed_run.record_depth(bench.dlq)
    seen = _fresh(bench)
    assert (seen.depth_visible, seen.depth_in_flight, seen.last_error) == (1, 0, "")
    assert "ReceiveMessage" not in asked(bench.dlq_url)


@pytest.mark.parametrize(("visible", "wanted"), [(0, 1), (1, 1), (100, 1), (101, 2), (10_000, 8)])
def test_the_more_there_is_the_more_receivers_up_to_a_limit(visible: int, wanted: int) -> None:
    assert feed_run.receiver_count(visible, BRISK) == wanted


# A plan that waits for its letters


def test_a_manual_dlq_is_received_from_as_long_as_a_plan_waits_for_its_letters(bench: Workbench) -> None:
    bench.bury("letter")
    assert not feed_run.is_wanted(_fresh(bench))
    run = plans.create_plan(bench.dlq, RunRequest("monday", "ann", reason="mended"))
    assert feed_run.is_wanted(_fresh(bench))
    bench.capture()
    run.refresh_from_db()
    assert (run.state, run.selected, bench.letter().run_id) == ("planned", 1, run.pk)
    assert [(review.by, review.reason) for review in run.reviews.all()] == [("ann", "mended")]
    assert not feed_run.is_wanted(_fresh(bench))
    assert bench.delivered() == []


def test_an_empty_dlq_is_looked_into_too_so_that_its_plan_is_not_left_waiting(bench: Workbench) -> None:
    run = plans.create_plan(bench.dlq, RunRequest("monday", "ann"))
    bench.capture()
    run.refresh_from_db()
    assert run.selected == 0


def test_a_plan_from_before_the_last_look_waits_for_no_other(bench: Workbench) -> None:
    bench.capture()
    run = plans.create_plan(bench.dlq, RunRequest("monday", "ann"))
    Run.objects.filter(pk=run.pk).update(created_at=run.created_at - timedelta(hours=1))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(drained_through=run.created_at)
    assert not feed_run.is_wanted(_fresh(bench))


def test_a_stopped_dlq_is_looked_into_for_a_plan_alone() -> None:
    bench = Workbench(fields={"mode": Mode.AUTOMATIC})
    stops.stop(bench.dlq.pk, by="ann", reason="it burns")
    bench.bury("letter")
    assert not feed_run.is_wanted(_fresh(bench))
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(mode=Mode.MANUAL)
    run = plans.create_plan(bench.dlq, RunRequest("monday", "ann"))
    assert feed_run.is_wanted(_fresh(bench))
    bench.capture()
    run.refresh_from_db()
    assert (run.selected, feed_run.is_wanted(_fresh(bench)), bench.delivered()) == (1, False, [])


def test_a_plan_that_was_started_by_hand_is_told_to_workers_and_replayed_by_them(bench: Workbench) -> None:
    bench.bury("letter")
    run = plans.create_plan(bench.dlq, RunRequest("monday", "ann", in_waves=False))
    bench.capture()
    run.refresh_from_db()
    run_transitions.start(run, by="ann", reason="mended")
    told = lanes.hint(limit=10, lifetime=60)
    assert told == [bench.lane().pk]
    assert bench.replay(only=told).taken == 1
    assert bench.delivered_bodies() == ["letter"]


@pytest.mark.soak
def test_a_capture_needs_no_statement_more_for_a_letter_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "CHUNK", MANY + 1)
    monkeypatch.setattr(capture, "CHUNK_WAIT", 600.0)
    monkeypatch.setattr(payload_keys, "_LOOK_AGAIN", 600.0)  # else a slow capture reads twice
    needed = []
    for number in (FEW, MANY):
        bench = Workbench(fields={**AUTOMATIC, "ordering_key": "attribute:key"})
        _bury(bench, number)
        payload_keys.forget_unwrapped()  # each capture begins with an empty memory, so it must read the same
        with statements() as sent:
            gathered = bench.capture(seconds=60)
        assert (gathered.captured.letters, Lane.objects.filter(dlq=bench.dlq).count()) == (number, number // 2)
        needed.append(len(sent))
    assert needed[0] == needed[1] <= 47


@pytest.mark.soak
def test_a_replay_needs_no_statement_more_for_a_letter_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_slice, "_SEEN_FOR", 600.0)  # else a slow replay reads send limits and rules once more
    monkeypatch.setattr(replay_slice, "_ASKS_EVERY", 600.0)
    needed = []
    for number in (FEW, MANY):
        bench = Workbench(fields={**AUTOMATIC, "ordering_key": "attribute:key"})
        bench.conf = replace(bench.conf, lanes_per_task=MANY, intent_size=MANY, lease=timedelta(seconds=300))
        _bury(bench, number)
        bench.capture(seconds=60)
        with statements() as sent:
            report = bench.replay(seconds=60)
        assert (report.taken, set(bench.states().values())) == (number, {"delivered"})
        needed.append(len(sent))
    assert needed[0] == needed[1] <= 40
