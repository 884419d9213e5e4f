"""A drain shows its plan before it acts, acts when told to, and ends in words that say what is left."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.db import connection
from django_celery_beat.models import IntervalSchedule
from pytest_django import Settings

from reprocessing.gateways.sqs import Move
from reprocessing.management.commands.drain_dlq import show_capture
from reprocessing.management.console import format_time
from reprocessing.management.shared import drain_progress
from reprocessing.management.shared import progress as progress_of_work
from reprocessing.management.shared.drain_command import Interruption
from reprocessing.management.shared.progress import Pace, ProgressLog
from reprocessing.models import Attempt, Breaker, DeadLetterQueue, Letter, Run, Target
from reprocessing.models import Lane as LaneRow
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.capture.capture import Captured
from reprocessing.pipeline.replay import replay_slice
from reprocessing.pipeline.replay.replay_slice import Report
from reprocessing.pipeline.runs import drain
from reprocessing.store.capture import capture_lease
from reprocessing.store.ordering.lanes import database_now
from reprocessing.store.outcomes import evidence
from reprocessing.store.routing import rule_changes
from reprocessing.store.runs import enlistment_batches, progress, run_transitions
from reprocessing.store.safety import stops
from tests.conditions import eventually
from tests.nobody import nobody
from tests.reprocessing.commands.conftest import Ask, AskJson
from tests.reprocessing.commands.refusals import refusal
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.stories.consumer import Consumer

pytestmark = pytest.mark.django_db(transaction=True)

KEYED: dict[str, Any] = {"ordering_key": "attribute:key", "sequence": "attribute:n"}


def change(bench: Workbench, **values: object) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(**values)


def bench_of(bodies: Iterable[object], **options: Any) -> Workbench:  # noqa: ANN401  those of a Workbench
    """A dlq with letters of one key, in this order."""
    bench = Workbench(**{"fields": KEYED, **options})
    for number, body in enumerate(bodies):
        bench.bury(f"{body}", key="a", n=str(number))
    return bench


@pytest.mark.parametrize(
    ("redrive", "missing"),
    [({}, "REDRIVE_OUTBOUND_HOSTS"), ({"OUTBOUND_HOSTS": ["shop.example.com"]}, "REDRIVE_SECRETS")],
)
def test_a_process_that_may_not_reach_the_target_sends_nothing_and_says_what_it_lacks(
    settings: Settings, redrive: dict[str, Any], missing: str
) -> None:
    bench = bench_of("a")
    Target.objects.filter(pk=bench.target.pk).update(kind="http", url="https://shop.example.com/hook", secret="shop")
    settings.REDRIVE = {**settings.REDRIVE, **redrive}
    assert missing in refusal("drain_dlq", bench.name, "--confirm")
    assert not Attempt.objects.exists()


def test_a_plan_tells_of_letters_that_wait_in_a_paused_run(ask: Ask) -> None:
    bench = bench_of("a")
    run = bench.ready()
    Run.objects.filter(pk=run.pk).update(state="paused", stopped_by="ann", why="the consumer is down")
    told = ask("drain_dlq", bench.name)
    assert "only messages of paused runs wait" in told
    assert f"{run.name} is paused" in told


def test_a_plan_names_another_that_holds_letters(ask: Ask, ask_json: AskJson) -> None:
    bench = bench_of("a")
    ask("drain_dlq", bench.name, "--run", "monday", "--by", "ann")
    told = ask("drain_dlq", bench.name)
    held = f"1 message: in the plan monday, which ann made and nobody has started (manage.py show_runs {bench.name})"
    assert ("nothing to redrive" in told, held in told) == (True, True)
    assert ask_json("drain_dlq", bench.name)["in_other_plans"] == {"monday": 1}


def test_a_dry_run_captures_and_plans_and_sends_nothing(ask_json: AskJson) -> None:
    bench = bench_of(["a0", "a1", "a2"])
    bench.bury("b", key="b", n="1")
    bench.bury("lost")
    told = ask_json("drain_dlq", bench.name)
    plan = {
        "captured": 5, "new": 5, "messages": 4, "lanes": 2, "longest_lane": 3, "not_eligible": 1,
        "objections": {"no_ordering_key": 1}, "waiting": 5, "dry_run": True,
    }  # fmt: skip
    assert {name: told[name] for name in plan} == plan
    run = Run.objects.get()
    assert (run.state, run.selected, told["run"]) == ("planned", 5, run.name)
    assert (bench.arrivals(), Attempt.objects.count()) == ([], 0)
    assert set(bench.states().values()) == {"captured"}
    assert bench.left() == 5


def test_a_dry_run_says_that_it_hides_messages_and_how_to_act(capsys: pytest.CaptureFixture[str], ask: Ask) -> None:
    bench = Workbench()
    bench.bury("letter")
    said = ask("drain_dlq", bench.name, "--limit", "7", "--run", "monday")
    assert f"Capturing {bench.name}: the messages stay in the DLQ, invisible" in capsys.readouterr().err
    assert said.splitlines()[-2:] == [
        "This was a dry run: nothing was sent, parked or discarded. To execute the plan:",
        f"manage.py drain_dlq {bench.name} --run monday --confirm",
    ]


def test_a_fifo_dlq_is_said_to_move_to_postgres(capsys: pytest.CaptureFixture[str], ask: Ask) -> None:
    bench = Workbench(fifo=True)
    ask("drain_dlq", bench.name)
    assert "the messages move to PostgreSQL and are deleted from SQS" in capsys.readouterr().err


def test_a_drain_delivers_parks_and_ends_with_one_object(ask_json: AskJson) -> None:
    bench = bench_of(["a0", "a1", "a2"])
    bench.bury("lost")
    told = ask_json("drain_dlq", bench.name, "--confirm", "--run", "monday", "--by", "ann")
    assert told == {
        "run": "monday", "captured": 4, "delivered": 3, "presumed": 0, "parked": 1, "closed_as_duplicate": 0,
        "discarded": 0, "waiting": 0, "failed_attempts": 0, "dry_run": False, "dlq": bench.name, "held": 0,
        "blocked": 0, "along": {},
    }  # fmt: skip
    assert [one["Body"] for one in bench.delivered()] == ["a0", "a1", "a2"]
    run = Run.objects.get()
    assert (run.name, run.asked_by, run.state) == ("monday", "ann", "finished")
    assert bench.left() == 0


@pytest.mark.soak
def test_what_is_presumed_is_told_apart_from_what_is_delivered(ask_json: AskJson) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    dead = json.dumps({"deadLetterTargetArn": bench.dlq.arn, "maxReceiveCount": "1"})
    bench.sqs.set_queue_attributes(
        QueueUrl=bench.source_url, Attributes={"VisibilityTimeout": "1", "RedrivePolicy": dead}
    )
    bench.judge_by_absence(window=1.5, visibility=1)
    for number in range(4):
        bench.bury(f"{number}")
    with Consumer(bench.source_url, lambda one: one["Body"] != "3"):
        told = ask_json("drain_dlq", bench.name, "--confirm")
    assert (told["delivered"], told["presumed"], told["parked"], told["failed_attempts"]) == (0, 3, 1, 1)
    assert (told["captured"], told["waiting"]) == (4, 0)


@pytest.mark.parametrize("of_all", [True, False])
def test_what_is_stopped_can_be_planned_and_whoever_stopped_it_is_named(
    ask: Ask, capfd: pytest.CaptureFixture[str], of_all: bool
) -> None:
    bench = Workbench()
    bench.bury("letter")
    stops.stop(None if of_all else bench.dlq.pk, by="ann", reason="the shop is down")
    stopped, which = ("Everything", "--all") if of_all else (bench.name, bench.name)
    said = refusal("drain_dlq", bench.name, "--confirm")
    assert said.startswith(f"{stopped} is stopped since")
    assert 'by ann ("the shop is down")' in said
    assert f"resume_redrive {which}" in said
    assert Letter.objects.count() == 0
    assert "This was a dry run: nothing was sent" in ask("drain_dlq", bench.name, "--run", "monday")
    told = capfd.readouterr().err
    assert f"{said}\nUntil then --confirm is refused" in told
    assert (Run.objects.get().selected, bench.delivered(), bench.states()) == (1, [], {"letter": "captured"})
    assert refusal("drain_dlq", bench.name, "--run", "monday", "--confirm") == said


@pytest.mark.parametrize(
    ("mode", "why"), [("observe", "--mode manual --confirm"), ("automatic", "redrive_status {name} --watch")]
)
def test_a_mode_that_is_no_persons_to_drain_is_refused_with_its_cure(mode: str, why: str) -> None:
    bench = Workbench(fields={"mode": mode})
    bench.bury("letter")
    assert why.format(name=bench.name) in refusal("drain_dlq", bench.name, "--confirm")
    assert Letter.objects.count() == 0


def test_aws_own_redrive_under_way_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    move = Move(status="RUNNING", destination_arn=None, moved=3, to_move=9, started_at=database_now(), handle="h")
    monkeypatch.setattr(follow_redrives, "move_tasks", lambda arn, role: [move] if arn == bench.dlq.arn else [])
    said = refusal("drain_dlq", bench.name, "--confirm")
    assert "A redrive by AWS has run since" in said
    assert f"manage.py native_redrive cancel {bench.name} --reason WHY --confirm" in said
    assert Letter.objects.count() == 0


def captured_then(act: Callable[[], object]) -> Callable[..., Captured]:
    """A capture after which something happens."""
    collect = drain.capture_dlq

    def collecting(*given: Any, **options: Any) -> Captured:  # noqa: ANN401  those of a capture
        found = collect(*given, **options)
        act()
        return found

    return collecting


def expire_in(left: float) -> Callable[..., Captured]:
    return captured_then(lambda: Letter.objects.update(expires_at=database_now() + timedelta(seconds=left)))


def progress_of(bench: Workbench, run: Run) -> str:
    return drain_progress.progress_line(bench.dlq, progress.count_letters(run.pk))


@pytest.mark.soak
def test_a_large_plan_is_drained_in_instalments_without_a_worker(
    monkeypatch: pytest.MonkeyPatch, ask_json: AskJson
) -> None:
    monkeypatch.setattr(enlistment_batches, "BATCH_LETTERS", 2)
    bench = bench_of(range(7))
    told = ask_json("drain_dlq", bench.name, "--confirm")
    assert (told["captured"], told["delivered"], told["waiting"]) == (7, 7, 0)
    assert [one["Body"] for one in bench.delivered()] == [str(number) for number in range(7)]


def known_after(seconds: float, settings: Settings) -> None:
    """Have outcomes take so long, at the least: two looks, a lag apart, the first a lag after the send."""
    settings.REDRIVE = {**settings.REDRIVE, "COUNT_LAG": (seconds - evidence.LOOKS_EVERY) / 2}


def test_a_plan_reckons_with_the_ramp_and_the_waves_and_says_so(
    ask: Ask, ask_json: AskJson, settings: Settings
) -> None:
    known_after(60, settings)
    bench = Workbench(fields={"waves": True}, target_fields={"rate": 2.0})
    bench.judge_by_absence(window=60)
    long_ago = database_now() - timedelta(days=1)
    Breaker.objects.filter(target=bench.target).update(ramp=1, ramp_from=0.25, ramp_every=30, ramp_at=long_ago)
    for number in range(14):
        bench.bury(f"{number}")
    said = ask("drain_dlq", bench.name)
    told = ask_json("drain_dlq", bench.name)
    assert told["targets"][0]["seconds_by_rate"] == 2 * 60 + 14 / 2
    empty = f"{bench.name} is empty when it is checked"
    assert told["forecast_assumes"] == [
        "no failures, and nothing else is sent to these targets",
        "the rate ramps from 25% and doubles every 30 s",
        "every wave succeeds, and its outcome is known after about 60 seconds",
        f"{empty}; if others fill it, an outcome takes about 89 seconds",
    ]
    assert f"  assumes         {'; '.join(told['forecast_assumes'])}" in said


def test_a_plan_reckons_with_the_messages_that_may_wait_for_their_outcomes_and_says_so(
    ask: Ask, ask_json: AskJson, settings: Settings
) -> None:
    known_after(60, settings)
    settings.REDRIVE = {**settings.REDRIVE, "MAX_UNSETTLED": 2}
    bench = Workbench(target_fields={"rate": 2.0})
    bench.judge_by_absence(window=60)
    for number in range(7):
        bench.bury(f"{number}")
    told = ask_json("drain_dlq", bench.name)["targets"][0]
    assert (told["seconds_by_rate"], told["seconds_by_lane"], told["seconds_by_outcomes"]) == (3.5, 60, 3 * 60)
    limit = "at most 2 messages may await their outcome (setting MAX_UNSETTLED), and each outcome takes 60 s or more"
    takes = f"takes about 3 minutes, limited by outcomes: {limit}; by the rate alone about 4 seconds"
    assert takes in ask("drain_dlq", bench.name)


def test_a_plan_for_workers_reckons_with_the_captures_that_beat_makes_and_says_so(
    ask: Ask, ask_json: AskJson, settings: Settings
) -> None:
    known_after(70, settings)
    bench = Workbench(fields={**KEYED, "waves": True}, target_fields={"rate": 2.0})
    bench.judge_by_absence(window=70)
    change(bench, interval=IntervalSchedule.objects.create(every=50, period="seconds"))
    for number in range(14):
        bench.bury(f"{number}", key=f"{number % 7}", n=str(number))
    said = ask("drain_dlq", bench.name, "--enqueue")
    told = ask_json("drain_dlq", bench.name, "--enqueue")
    (target,) = told["targets"]
    assert (target["captured_every"], target["seconds_by_rate"], target["seconds_by_lane"]) == (50, 70 + 100 + 7, 170)
    seen = f"{bench.name} is captured every 50 s, as its schedule says, which shows whether messages came back"
    assert told["forecast_assumes"][-2] == seen
    waits = f"each waits about 100 seconds, until a capture of {bench.name}, one every 50 s, shows that nothing came"
    assert waits in said
    assert "(2 x 100 s, the first one sooner)" in said
    here = ask_json("drain_dlq", bench.name)["targets"][0]
    assert (here["captured_every"], here["seconds_by_rate"], here["seconds_by_lane"]) == (None, 70 + 70 + 7, 140)


@pytest.mark.parametrize(("seconds", "late"), [(150.0, 1), (200.0, 0)])
def test_lanes_that_outlast_their_letters_are_refused_with_both_forecasts(
    monkeypatch: pytest.MonkeyPatch, ask_json: AskJson, settings: Settings, seconds: float, late: int
) -> None:
    known_after(60, settings)
    bench = bench_of(range(3), target_fields={"rate": 2.0})
    bench.judge_by_absence(window=60)
    monkeypatch.setattr(drain, "capture_dlq", expire_in(seconds))
    if not late:
        told = ask_json("drain_dlq", bench.name)
        assert (told["forecast_seconds"], told["refused"]) == (180.0, None)
        return
    said = refusal("drain_dlq", bench.name, "--confirm")
    assert "takes about 3 minutes, limited by the longest key (3 x 60 s); without this limit about 2 seconds" in said
    assert "--advance accepted" in said
    assert Run.objects.count() == 0


def test_a_fast_setting_is_not_refused_and_neither_is_what_sqs_no_longer_holds(
    monkeypatch: pytest.MonkeyPatch, ask_json: AskJson
) -> None:
    bench = bench_of(range(3), fields={**KEYED, "delete_when": "captured"})
    bench.judge_by_absence(window=60)
    monkeypatch.setattr(drain, "capture_dlq", expire_in(10))
    assert ask_json("drain_dlq", bench.name)["refused"] is None
    change(bench, delete_when="terminal")
    Target.objects.filter(pk=bench.target.pk).update(advance="accepted")
    assert ask_json("drain_dlq", bench.name)["refused"] is None


@pytest.mark.soak
def test_enqueued_letters_are_the_workers_once_it_is_confirmed(ask: Ask) -> None:
    bench = Workbench()
    bench.bury("letter")
    asked = ("drain_dlq", bench.name, "--run", "monday", "--enqueue")
    assert f"manage.py drain_dlq {bench.name} --run monday --enqueue --confirm" in ask(*asked)
    assert bench.states() == {"letter": "captured"}
    said = ask(*asked, "--confirm")
    assert f"redrive_status {bench.name} --watch" in said
    assert "manage.py rerun monday" in said
    assert (bench.states(), bench.arrivals()) == ({"letter": "waiting"}, [])
    assert bench.replay().taken == 1  # what a worker does


@pytest.fixture
def _interrupt(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Signals arrive, twice, when the first slice is over."""
    run = replay_slice.Slice.run

    def running(turn: replay_slice.Slice, *, seconds: float) -> Report:
        report = run(turn, seconds=seconds)
        for _ in range(2):
            os.kill(os.getpid(), request.param)
        return report

    monkeypatch.setattr(replay_slice.Slice, "run", running)


@pytest.mark.soak
@pytest.mark.usefixtures("_interrupt")
@pytest.mark.parametrize(
    ("_interrupt", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], indirect=["_interrupt"]
)
def test_interrupted_twice_it_hands_back_and_says_how_to_go_on(status: int) -> None:
    bench = bench_of(range(2))
    bench.judge_by_absence(window=3_600)
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    out = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command("drain_dlq", bench.name, "--run", "monday", "--confirm", "--json", stdout=out, stderr=StringIO())
    assert refused.value.returncode == status
    assert "2 messages unfinished (1 queued, 1 awaiting outcome)" in str(refused.value)
    assert "To continue here: manage.py rerun monday --confirm" in str(refused.value)
    assert f"manage.py stop_redrive {bench.name} --reason WHY --confirm" in str(refused.value)
    assert json.loads(out.getvalue())["waiting"] == 2
    assert bench.lane().phase == "awaiting"
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


def test_interrupted_in_the_capture_it_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")
    monkeypatch.setattr(drain, "capture_dlq", captured_then(lambda: os.kill(os.getpid(), signal.SIGINT)))
    with pytest.raises(CommandError, match="nothing was sent") as refused:
        call_command("drain_dlq", bench.name, "--confirm", stdout=StringIO(), stderr=StringIO())
    assert (refused.value.returncode, Run.objects.count(), bench.arrivals()) == (130, 0, [])


def test_letters_behind_a_parked_one_are_left_to_a_person(ask: Ask) -> None:
    bench = bench_of(
        ["first", "second"],
        fields={**KEYED, "when_parked": "hold", "max_attempts": 1}, target_fields={"size_limit": 1_000_000},
    )  # fmt: skip
    bench.capture()
    run = bench.enlist()
    Letter.objects.filter(payload__body=b"first").update(attempts=1)
    assert "1 message held by a parked message of the same key" in ask("rerun", run.name, "--confirm")
    assert sorted(bench.states().items()) == [("first", "parked"), ("second", "waiting")]


@pytest.mark.soak
def test_another_runs_letters_ahead_of_ours_go_along(ask_json: AskJson) -> None:
    bench = Workbench(fields=KEYED)
    bench.bury("1", key="a", n="1")
    bench.ready()  # a run that nobody works on
    bench.bury("2", key="a", n="2")
    assert ask_json("drain_dlq", bench.name, "--confirm")["delivered"] == 1
    assert [one["Body"] for one in bench.delivered()] == ["1", "2"]


@pytest.mark.soak
def test_other_runs_that_are_under_way_are_drained_to_their_end_and_counted(ask: Ask, ask_json: AskJson) -> None:
    def under_way() -> tuple[Workbench, str]:
        bench = Workbench()
        bench.bury("1")
        other = bench.ready()  # a run that nobody works on
        LaneRow.objects.filter(dlq=bench.dlq).update(due_at=database_now() + timedelta(seconds=1))
        return bench, other.name

    bench, other = under_way()
    assert f"in progress     1 message of the run {other} (sent with this run)" in ask("drain_dlq", bench.name)
    said = ask("drain_dlq", bench.name, "--run", "monday", "--confirm")
    assert "monday: no messages." in said
    assert f"Sent with it: {other}: 1 message: 1 delivered." in said
    assert set(bench.states().values()) == {"delivered"}
    bench, other = under_way()
    told = ask_json("drain_dlq", bench.name, "--confirm")
    assert (told["captured"], told["waiting"]) == (0, 0)
    assert told["along"][other] == {
        "captured": 1, "delivered": 1, "presumed": 0, "parked": 0, "closed_as_duplicate": 0, "discarded": 0,
        "waiting": 0, "held": 0, "blocked": 0, "capped": [],
    }  # fmt: skip


@pytest.mark.soak
def test_a_plan_with_nothing_in_it_says_so_and_offers_no_act(ask: Ask) -> None:
    bench = Workbench(fields=KEYED)
    said = ask("drain_dlq", bench.name)
    assert f"{bench.name}: nothing to redrive." in said
    assert said.splitlines()[-1] == "This was a dry run: nothing was sent, parked or discarded."
    bench.bury("lost")
    ask("drain_dlq", bench.name, "--confirm")
    said = ask("drain_dlq", bench.name)
    assert "parked          1 message to review: manage.py release_parked" in said
    assert "--confirm" not in said


def test_help_says_that_a_dry_run_captures(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call_command("drain_dlq", "--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "Captured messages of a standard DLQ stay in SQS, invisible to other readers, up to the setting" in said
    assert "Further messages, and those of a FIFO DLQ, are deleted from SQS." in said


def test_while_letters_rest_progress_says_when_the_next_attempt_is_due() -> None:
    bench = Workbench()
    for number in range(2):
        bench.bury(f"{number}")
    run = bench.ready()
    assert "next attempt" not in progress_of(bench, run)
    due = database_now() + timedelta(hours=1)
    LaneRow.objects.filter(dlq=bench.dlq).update(due_at=due + timedelta(minutes=1))
    LaneRow.objects.filter(pk=bench.lane(letters__payload__body=b"0").pk).update(due_at=due)
    assert f"The next attempt is due at {format_time(due)}." in progress_of(bench, run)


def test_what_a_killed_capture_left_is_waited_for_until_it_is_in_sight_and_told_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    in_sight = database_now() + timedelta(hours=1)
    change(bench, leased_until=database_now() + timedelta(seconds=20), orphans_hidden_until=in_sight)
    waits: list[float] = []

    def wait(self: Interruption, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            self.signal = signal.SIGINT

    monkeypatch.setattr(Interruption, "wait", wait)
    err = StringIO()
    with pytest.raises(CommandError, match="Interrupted"):
        call_command("drain_dlq", bench.name, "--confirm", stdout=StringIO(), stderr=err)
    told = [line for line in err.getvalue().splitlines() if line.startswith("Another capture of")]
    waited = f"Another capture of {bench.name} received messages that are still invisible: waiting for them"
    assert told == [f"{waited}, until {format_time(in_sight)} at the latest."]
    assert len(waits) == 3


def test_a_target_that_nobody_empties_is_named_with_its_depth_and_after_ten_seconds_with_what_to_do(
    clock: Clock,
) -> None:
    bench = Workbench()
    bench.judge_by_absence(window=0.1)
    for number in range(2):
        bench.bury(f"{number}")
    run = bench.ready()
    bench.replay()
    waits = f"Waiting for outcomes: {bench.source_url.rpartition('/')[2]} has not been empty"
    assert eventually(lambda: f"{waits} since" in progress_of(bench, run), within=10)
    assert progress_of(bench, run).endswith(" UTC; 2 visible.")
    clock.advance(10)
    nobody = f"Nobody seems to consume {bench.target}: 2 visible, none in flight."
    accept = f"let SQS's acceptance count as delivered: manage.py add_dlq {bench.name} --outcome accepted --confirm."
    assert progress_of(bench, run).endswith(f" {nobody} Start its consumer, or {accept}")
    stops.stop(bench.dlq.pk, by="ann", reason="why")
    assert progress_of(bench, run).startswith(f"2 messages: 2 awaiting outcome. {nobody}")


def test_a_target_seen_empty_once_is_asked_about_after_a_while_of_not_being_seen_so_again(clock: Clock) -> None:
    bench = Workbench()
    bench.judge_by_absence(window=0.1)
    bench.bury("letter")
    run = bench.ready()
    bench.replay()
    bench.sqs.receive_message(QueueUrl=bench.source_url, VisibilityTimeout=600)
    clock.advance(600)
    bench.promote()  # which sees that nothing lies there, and something in flight
    assert f"wait for: {bench.name} to have no message in flight, or " in progress_of(bench, run)
    clock.advance(60)  # longer than a message that was received is out of sight
    told = progress_of(bench, run)
    assert ("has not been empty again since" in told, "is its consumer running?" in told) == (True, False)
    clock.advance(120)
    assert progress_of(bench, run).endswith("; is its consumer running? The wait does not end by itself.")


def test_a_plan_whose_longest_key_takes_far_longer_than_the_rate_says_what_would_be_faster(
    ask: Ask, ask_json: AskJson, settings: Settings
) -> None:
    known_after(60, settings)
    bench = bench_of(range(3), target_fields={"rate": 2.0})
    bench.judge_by_absence(window=60)
    order = (
        "the next message of a key is sent when SQS took the one before, so it may be processed before a message of "
        "its key that fails again"
    )
    ways = [
        f"--advance accepted: about 2 seconds. It gives up this order: {order}",
        "--outcome acknowledged (docs/outcomes.md): about 3 seconds, if consumers report within a second",
        "a finer --ordering-key: about 2 seconds, if no key has over 1 message; the longest has 3",
    ]
    assert ask_json("drain_dlq", bench.name)["targets"][0]["faster"] == ways
    said = ask("drain_dlq", bench.name)
    begins = f"Faster (options of manage.py add_dlq {bench.name}):\n"
    assert begins + "\n".join(f"      - {way}" for way in ways) in said
    Target.objects.filter(pk=bench.target.pk).update(rate=0.1)  # 30 s by the rate
    assert ask_json("drain_dlq", bench.name)["targets"][0]["faster"] == []


GIVEN_UP = (
    "a message that fails again is sent anew after up to 2 later messages of its key, since those do not wait for its "
    "outcome; the order is kept with "
)


@pytest.mark.parametrize(
    "plan",  # of so many letters of one key, what is set of their target, and the order that is said to be given up
    [
        (3, {"proof": "absence", "advance": "settled"}, None),
        (3, {"proof": "absence", "advance": "accepted"},
         f"{GIVEN_UP}--advance settled: the longest key then takes about 3 minutes"),
        (3, {"proof": "acknowledged", "advance": "accepted"}, f"{GIVEN_UP}--advance settled"),
        # SQS taking it is no outcome that could be waited for.
        (3, {"proof": "accepted", "advance": "settled"},
         f"{GIVEN_UP}--outcome absence or acknowledged, and --advance settled"),
        (3, {"proof": "accepted", "advance": "accepted", "kind": "http"}, None),  # its answer is the outcome
        (1, {"proof": "accepted", "advance": "accepted"}, None),
    ],
)  # fmt: skip
def test_a_plan_says_which_order_of_a_key_is_given_up_and_what_keeping_it_takes(
    ask: Ask, ask_json: AskJson, settings: Settings, plan: tuple[int, dict[str, str], str | None]
) -> None:
    letters, set_to, told = plan
    known_after(60, settings)
    bench = bench_of(range(letters))
    bench.judge_by_absence(window=60)
    Target.objects.filter(pk=bench.target.pk).update(**set_to)

    assert ask_json("drain_dlq", bench.name)["targets"][0]["order_given_up"] == told
    lines = [line for line in ask("drain_dlq", bench.name).splitlines() if line.startswith("      order: ")]
    assert lines == ([] if told is None else [f"      order: {told} (add_dlq {bench.name} ...)"])


def test_another_capture_is_waited_for(ask_json: AskJson, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")
    capturing = capture_lease.lease(bench.dlq.pk, lease=60, dirty=0)
    assert capturing is not None
    waits: list[float] = []

    def wait(_: Interruption, seconds: float) -> None:
        waits.append(seconds)
        capture_lease.end(capturing, clean=True, drained=False)

    monkeypatch.setattr(Interruption, "wait", wait)
    assert ask_json("drain_dlq", bench.name, "--confirm")["delivered"] == 1
    assert len(waits) == 1


def test_a_queue_out_of_reach_is_one_sentence() -> None:
    bench = Workbench()
    bench.sqs.delete_queue(QueueUrl=bench.dlq_url)
    said = refusal("drain_dlq", bench.name, "--confirm")
    assert bench.dlq_url.rpartition("/")[2] in said
    assert "\n" not in said


@pytest.mark.soak
def test_a_rate_that_nobody_knows_is_waited_for_with_a_message(
    settings: Settings, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench(target_fields={"rate": 100.0})
    bench.bury("letter")
    run = replay_slice.Slice.run

    def running(turn: replay_slice.Slice, *, seconds: float) -> Report:
        report = run(turn, seconds=min(seconds, 0.5))
        os.kill(os.getpid(), signal.SIGINT)
        return report

    monkeypatch.setattr(replay_slice.Slice, "run", running)
    with nobody() as port:
        settings.REDIS_URL = f"redis://127.0.0.1:{port}/0"
        assert "1 message unfinished" in refusal("drain_dlq", bench.name, "--confirm")
    assert "Nothing is sent until it does" in caplog.text
    assert (bench.arrivals(), bench.states()) == ([], {"letter": "waiting"})


@pytest.mark.soak
def test_a_watch_that_loses_its_database_connection_goes_on(ask_json: AskJson) -> None:
    """What sees to outcomes beside the replay has a connection of its own, and survives its end."""
    bench = Workbench()
    bench.sqs.set_queue_attributes(QueueUrl=bench.source_url, Attributes={"VisibilityTimeout": "1"})
    bench.judge_by_absence(window=1, visibility=1)
    bench.bury("letter")
    cut = threading.Thread(target=_cut_the_watch)
    cut.start()
    with Consumer(bench.source_url, lambda _: True):
        told = ask_json("drain_dlq", bench.name, "--confirm")
    cut.join()
    assert told["presumed"] == 1


# What the watch asks for last, each time: which last attempts can come back no more.
_CUT = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'
   AND query LIKE '%%a.deadline <= redrive_now() AND a.taken_at IS NULL%%'
"""


def _cut_the_watch() -> None:
    def done() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(_CUT)
            return bool(cursor.fetchone()[0])

    try:
        eventually(done, within=30)
    finally:
        connection.close()


def test_progress_is_told_beside_the_result(
    capsys: pytest.CaptureFixture[str], ask_json: AskJson, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_of_work, "_LOGGED", 0.0)
    bench = Workbench()
    bench.bury("letter")
    ask_json("drain_dlq", bench.name, "--confirm")
    assert "1 message: 1 delivered." in capsys.readouterr().err


def test_a_misspelt_plan_begins_no_other_run(ask: Ask) -> None:
    bench = bench_of(range(3))
    ask("drain_dlq", bench.name, "--limit", "1", "--run", "two")
    said = refusal("drain_dlq", bench.name, "--run", "tow", "--confirm")
    assert said.startswith(f"No run has the id tow, and plans of {bench.name} wait to be started: two.")
    assert set(bench.states().values()) == {"captured"}


@pytest.mark.parametrize("mistyped", ["longer", "shorter", "other digits"])
def test_a_mistyped_id_of_a_plan_that_nobody_named_begins_no_other_run(ask: Ask, mistyped: str) -> None:
    bench = bench_of(range(3))
    ask("drain_dlq", bench.name, "--limit", "1", "--run", "sunday", "--confirm")
    ask("drain_dlq", bench.name, "--limit", "1")
    plan = Run.objects.get(state="planned").name
    typed = {"longer": f"{plan}0", "shorter": plan[2:], "other digits": f"{plan[:-8]}00000000"}[mistyped]
    said = refusal("drain_dlq", bench.name, "--run", typed, "--confirm")
    assert said.startswith(
        f"No run has the id {typed}; nothing was sent. A plan with a similar id waits: {plan}. To exec"
    )
    assert f": manage.py drain_dlq {bench.name} --run {plan} --confirm To begin" in said
    assert sorted(bench.states().values()) == ["captured", "captured", "delivered"]
    assert set(Run.objects.values_list("name", flat=True)) == {"sunday", plan}


@pytest.mark.soak
def test_a_script_with_an_id_of_its_own_works_although_somebody_made_a_dry_run(ask: Ask) -> None:
    bench = bench_of(range(4))
    for name in ("nightly-1", "nightly-2", f"{bench.name}-2026-03-02", f"{bench.name}-3f2a91c"):
        ask("drain_dlq", bench.name, "--limit", "1")
        ask("drain_dlq", bench.name, "--run", name, "--limit", "1", "--confirm")
    assert set(bench.states().values()) == {"delivered"}


@pytest.mark.parametrize("act", [(), ("--confirm",), ("--confirm", "--json")])
@pytest.mark.parametrize(
    ("asked", "conditions", "shown"),
    [
        (("--key", "nokey"), "with the ordering key nokey", ""),
        (("--message-id", "none"), "named by message id (1)", "manage.py redrive_status --message none\n"),
    ],
)
def test_a_key_or_an_id_that_no_message_has_is_an_error_and_leaves_no_run(
    asked: tuple[str, ...], conditions: str, shown: str, act: tuple[str, ...]
) -> None:
    bench = bench_of(["a"])
    said = refusal("drain_dlq", bench.name, *asked, *act)
    assert said.startswith(f"No message of {bench.name} matches: {conditions}. Nothing was sent. Parked and finished")
    assert said.endswith(f" To see what is there:\n{shown}manage.py redrive_status {bench.name}")
    assert (Run.objects.count(), bench.states()) == (0, {"a": "captured"})


def test_a_filter_that_no_message_matches_sends_nothing_of_a_run_that_was_interrupted_but_names_it(ask: Ask) -> None:
    bench = bench_of(["a"])
    ask("drain_dlq", bench.name, "--enqueue", "--confirm")
    assert bench.states() == {"a": "waiting"}
    said = ask("drain_dlq", bench.name, "--sent-after", "2020-01-01T00:00:00Z", "--confirm")
    name = Run.objects.get().name
    assert said.endswith(f"The run {name} has not finished. To continue it:\nmanage.py rerun {name} --confirm\n")
    assert bench.states() == {"a": "waiting"}


def test_a_filter_that_no_message_matches_keeps_the_plan_of_before(ask: Ask) -> None:
    bench = bench_of(["a"])
    ask("drain_dlq", bench.name)
    for more in ((), ("--json",)):
        ask("drain_dlq", bench.name, "--sent-before", "2020-01-01T00:00:00Z", *more)
    assert list(Run.objects.values_list("state", flat=True)) == ["planned"]


def _bench_with_unsent_messages_of_an_aborted_run(ask: Ask) -> Workbench:
    bench = bench_of(["a", "b"])
    ask("drain_dlq", bench.name, "--enqueue", "--confirm")
    run_transitions.abort(Run.objects.get(), by="ann", reason="enough", stop_dlq=False)
    bench.bury("c", key="a", n="2")
    return bench


def test_messages_of_an_aborted_run_are_sent_with_selected_ones_only_after_a_plan_was_shown(ask: Ask) -> None:
    bench = _bench_with_unsent_messages_of_an_aborted_run(ask)
    said = refusal("drain_dlq", bench.name, "--limit", "1", "--confirm")
    assert said.startswith(
        "Nothing was sent yet. The run would also send 2 unfinished messages of runs that have ended,"
    )
    assert bench.states() == {"a": "waiting", "b": "waiting", "c": "captured"}
    ask(*said.splitlines()[-1].split()[1:])
    assert set(bench.states().values()) == {"delivered"}


def test_a_message_id_that_does_not_exist_sends_no_messages_of_an_aborted_run(ask: Ask) -> None:
    bench = _bench_with_unsent_messages_of_an_aborted_run(ask)
    assert "No message of" in refusal("drain_dlq", bench.name, "--message-id", "none", "--confirm")
    assert bench.states() == {"a": "waiting", "b": "waiting", "c": "captured"}


def test_the_plan_says_that_messages_of_ended_runs_are_also_sent(ask: Ask) -> None:
    bench = _bench_with_unsent_messages_of_an_aborted_run(ask)
    line = "also sent       2 unfinished messages of runs that have ended; the figures below do not count them"
    assert line in ask("drain_dlq", bench.name)


def test_a_plan_says_that_rules_decide_only_when_messages_are_sent(ask: Ask) -> None:
    bench = bench_of(["a"])
    assert "enabled rule" not in ask("drain_dlq", bench.name)
    said = {"action": "discard", "conditions": [], "enabled": True, "dlq": bench.dlq}
    rule_changes.save_rule("old", said, by="ann", reason="a test")
    assert "; 1 enabled rule decides only when messages are sent: some may be held," in ask("drain_dlq", bench.name)


def test_another_filter_that_no_message_matches_leaves_no_run_either(ask: Ask, ask_json: AskJson) -> None:
    bench = bench_of(["a"])
    asked = ("drain_dlq", bench.name, "--sent-before", "2020-01-01T00:00:00Z", "--confirm")
    said = f"No message of {bench.name} matches: first sent before 2020-01-01T00:00:00+00:00. Nothing was sent."
    assert ask(*asked).startswith(said)
    told = ask_json(*asked)
    assert (told["run"], told["messages"], told["dry_run"], Run.objects.count()) == (None, 0, False, 0)


def test_a_limit_of_a_dlq_without_messages_leaves_no_run(ask: Ask) -> None:
    bench = Workbench()
    assert ask("drain_dlq", bench.name, "--limit", "1", "--confirm").splitlines() == [
        f"{bench.name}: nothing to redrive. The DLQ is empty, and no message waits.",
        "Nothing was sent, parked or discarded.",
    ]
    assert Run.objects.count() == 0


def test_a_key_whose_messages_are_in_another_plan_is_no_mismatch(ask: Ask) -> None:
    bench = bench_of(["a"])
    ask("drain_dlq", bench.name, "--run", "monday")
    said = ask("drain_dlq", bench.name, "--key", "a")
    assert ("No message" in said, "in the plan monday" in said) == (False, True)


def lines_of_plan(said: str) -> list[str]:
    """The first two lines of a plan, and the line about waves, without the dlq's name."""
    lines = said.splitlines()
    return [lines[0].partition(": ")[2], *(line for line in lines if line.startswith(("  to be sent", "  waves")))]


def test_a_plan_of_a_part_of_the_messages_says_how_many_wait(ask: Ask) -> None:
    bench = bench_of(range(3), fields={**KEYED, "waves": True})
    assert lines_of_plan(ask("drain_dlq", bench.name, "--limit", "1")) == [
        "1 of 3 captured messages selected; the others wait. 3 captured just now",
        "  to be sent      1, of 1 ordering key, at most 1 of one key",
    ]
    assert lines_of_plan(ask("drain_dlq", bench.name)) == [
        "3 messages captured, 0 of them just now",
        "  to be sent      3, of 1 ordering key, at most 3 of one key",
        "  waves           1 message first, then 10, then 100, then all; a failed wave pauses the run",
    ]


def test_a_plan_of_a_dlq_without_ordering_key_counts_no_keys(ask: Ask) -> None:
    bench = bench_of(range(2), fields={})
    first, keys = lines_of_plan(ask("drain_dlq", bench.name))
    assert (first, keys) == ("2 messages captured, 2 of them just now", "  to be sent      2, without ordering keys")


def test_a_plan_that_sends_nothing_counts_no_keys_and_has_no_waves(ask: Ask) -> None:
    bench = Workbench(fields={**KEYED, "waves": True})
    bench.bury("lost")
    assert lines_of_plan(ask("drain_dlq", bench.name)) == [
        "1 message captured, 1 of them just now", "  to be sent      0",
    ]  # fmt: skip


def test_progress_is_told_of_what_was_received_and_never_of_nothing() -> None:
    out = StringIO()
    telling = ProgressLog(OutputWrapper(out))
    for received in (0, 0, 3):
        telling._next = 0.0
        show_capture(telling, Captured(received=received, letters=received), Pace())
    assert out.getvalue() == "3 messages received, 3 new\n"


@pytest.mark.parametrize(
    ("is_terminal", "told"), [(True, ["3 left", "2 left"]), (False, ["3 left", "3 left", "2 left"])]
)
def test_a_terminal_gets_each_progress_line_once(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, told: list[str]
) -> None:
    out, now = StringIO(), [0.0]
    monkeypatch.setattr(out, "isatty", lambda: is_terminal)
    monkeypatch.setattr("reprocessing.management.shared.progress.time.monotonic", lambda: now[0])
    log = ProgressLog(OutputWrapper(out))
    for text in ("3 left", "3 left", "2 left"):
        now[0] += 10.0
        log.line_if_due(lambda: text)  # noqa: B023  called at once
    assert out.getvalue().splitlines() == told
