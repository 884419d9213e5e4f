"""A DLQ is handed to AWS's own redrive and taken back; letters that come back are recognised."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reprocessing.domain.replay.verdicts import Unknown
from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import Begun
from reprocessing.models import AuditEntry, DeadLetterQueue, DlqCopy, Letter
from reprocessing.pipeline.aws import follow_redrives, native_redrive
from reprocessing.pipeline.aws.native_redrive import Cancelling, NothingToCancel, RedriveUnknown, Refusal
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.runs.drain import plan_run
from reprocessing.store import rows
from reprocessing.store.aws import aws_redrives
from reprocessing.store.aws.aws_redrive_handover import HandoverBlockers
from reprocessing.store.capture import capture_lease, moved_by_aws
from reprocessing.store.ordering import lanes
from reprocessing.store.ordering.active_runs import ACTIVE_RUNS
from reprocessing.store.runs import run_transitions
from reprocessing.store.runs.plans import RunRequest
from reprocessing.store.safety import stops
from tests.race.native import (
    begin_outside,
    captured_and_in_sight,
    is_aws_s,
    let_it_end,
    mine,
    moved_outside,
    start,
    tasks,
)
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)


def _captured(clock: Clock, *bodies: str) -> Workbench:
    bench = mine()
    captured_and_in_sight(bench, clock, *bodies)
    return bench


def _moved(bench: Workbench) -> None:
    start(bench)
    let_it_end(bench)


def acts(bench: Workbench) -> list[tuple[str, str, str]]:
    return list(AuditEntry.objects.filter(dlq=bench.dlq, run=None).order_by("pk").values_list("act", "by", "reason"))


@pytest.fixture
def bench() -> Workbench:
    return mine()


def test_aws_moves_what_nobody_of_ours_is_at_and_the_dlq_is_ours_again(bench: Workbench) -> None:
    bench.bury_all("a", "b")
    assert isinstance(start(bench), Begun)
    assert is_aws_s(bench)
    let_it_end(bench)
    assert (is_aws_s(bench), bench.left()) == (False, 0)
    assert sorted(bench.delivered_bodies()) == ["a", "b"]
    assert acts(bench) == [
        ("started", "anna", "a bulk"), ("changed", "the service", "AWS says COMPLETED: 2 messages moved."),
    ]  # fmt: skip


def test_nothing_is_captured_enlisted_or_sent_while_aws_moves_messages() -> None:
    bench = mine(fields={"mode": "automatic"})
    run = bench.enqueue("earlier")
    DeadLetterQueue.objects.update(
        aws_redrive_since=lanes.database_now(), aws_redrive_by="anna", aws_redrive_reason="a bulk"
    )
    bench.bury("later")
    gathered = bench.capture()
    assert (gathered.captured.busy, gathered.enlisted, bench.states()) == (True, None, {"earlier": "waiting"})
    assert capture_lease.lease(bench.dlq.pk, lease=60, dirty=1) is None
    assert (rows.execute(ACTIVE_RUNS, {}), bench.replay().taken) == (0, 0)
    planned = plan_run(bench.dlq, RunRequest("later", "anna"))
    assert run_transitions.start(planned, by="anna", reason="now") is None
    planned.refresh_from_db()
    assert (planned.state, run.state) == ("planned", "running")


def _await_an_outcome(bench: Workbench) -> None:
    bench.judge_by_absence()
    bench.ready()
    bench.replay()


BUSY: dict[str, Callable[[Workbench], object]] = {
    "moving": lambda bench: DeadLetterQueue.objects.update(
        aws_redrive_since=lanes.database_now(), aws_redrive_by="bob", aws_redrive_reason="a bulk"
    ),
    "stopped": lambda bench: stops.stop(bench.dlq.pk, by="bob", reason="the consumer is broken"),
    "captured_until": lambda bench: capture_lease.lease(bench.dlq.pk, lease=60, dirty=1),
    "hidden": lambda bench: bench.capture(),
    "under_way": lambda bench: bench.ready(),
    "plans": lambda bench: plan_run(bench.dlq, RunRequest("of-monday", "bob")),
    "awaited": _await_an_outcome,
}


@pytest.mark.parametrize("why", BUSY)
def test_aws_is_not_asked_while_something_of_ours_is_at_the_dlq(bench: Workbench, why: str) -> None:
    bench.bury("letter")
    BUSY[why](bench)
    found = start(bench)
    assert isinstance(found, HandoverBlockers)
    assert getattr(found, why)
    assert tasks(bench) == []


def test_aws_is_not_asked_while_beat_drains_the_dlq() -> None:
    bench = mine(fields={"mode": "automatic"})
    found = start(bench)
    assert isinstance(found, HandoverBlockers)
    assert (found.mode, tasks(bench)) == ("automatic", [])


def test_copies_that_are_to_be_deleted_keep_aws_out_until_they_are(bench: Workbench) -> None:
    bench.redrive("letter")
    DlqCopy.objects.update(state="delete", gone_at=None)  # as whoever dies before it is noted leaves it
    found = start(bench)
    assert isinstance(found, HandoverBlockers)
    assert (found.to_delete, found.under_way) == (1, False)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert isinstance(start(bench), Begun)


def test_a_refusal_of_aws_leaves_the_dlq_ours(bench: Workbench) -> None:
    other = bench.sqs.create_queue(QueueName=f"{bench.name}-other")["QueueUrl"]
    to = bench.arn(other)
    bench.sqs.delete_queue(QueueUrl=other)
    done = start(bench, to=to)
    assert isinstance(done, Refusal)
    assert "ResourceNotFoundException" in done.why
    assert not is_aws_s(bench)


def lost(*_: object, **__: object) -> Unknown:
    return Unknown("there was no answer")


def test_a_lost_answer_leaves_the_dlq_aws_s_until_its_list_tells(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(native_redrive, "begin_move", lost)
    assert isinstance(start(bench), RedriveUnknown)
    follow_redrives.sweep()
    assert is_aws_s(bench)  # the call may be on its way
    clock.advance(follow_redrives.LISTED_WITHIN + 1)
    follow_redrives.sweep()
    assert (is_aws_s(bench), acts(bench)[-1]) == (False, ("changed", "the service", "AWS never began it."))


@pytest.mark.soak
def test_a_task_whose_answer_was_lost_is_found_in_aws_s_list(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):  # at one a second: it is under way for as long
        bench.bury(f"{number}")
    begin = sqs.begin_move

    def begun_and_lost(*args: object, **options: object) -> Unknown:
        begin(*args, **{**options, "per_second": 1})  # type: ignore[arg-type]  # those of begin_move
        return lost()

    monkeypatch.setattr(native_redrive, "begin_move", begun_and_lost)
    assert isinstance(start(bench), RedriveUnknown)
    follow_redrives.read_redrives(bench.dlq)
    found = aws_redrives.current(bench.dlq.pk)
    assert found is not None
    assert found.handle
    assert isinstance(native_redrive.cancel(bench.dlq, by="bob", reason="the wrong dlq"), Cancelling)
    let_it_end(bench)
    assert (is_aws_s(bench), tasks(bench)) == (False, ["CANCELLED"])
    assert acts(bench)[1] == ("aborted", "bob", "the wrong dlq")


def test_what_ended_before_is_not_taken_for_what_was_begun_now(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    _moved(bench)
    monkeypatch.setattr(native_redrive, "begin_move", lost)
    start(bench)
    follow_redrives.read_redrives(bench.dlq)
    assert is_aws_s(bench)


@pytest.mark.soak
def test_a_task_that_somebody_began_outside_is_honoured_and_over_when_aws_says_so(
    bench: Workbench, clock: Clock
) -> None:
    bench.bury_all(*"abc")
    begin_outside(bench, MaxNumberOfMessagesPerSecond=1)
    assert (bench.capture().captured.busy, Letter.objects.count()) == (True, 0)
    found = aws_redrives.current(bench.dlq.pk)
    assert found is not None
    assert found.by == aws_redrives.UNKNOWN_REQUESTER
    native_redrive.cancel(bench.dlq, by="anna", reason="ours to drain")
    let_it_end(bench)
    clock.advance(follow_redrives.CHECK_EVERY + 1)
    assert bench.capture().captured.letters == bench.left()


def test_cancelling_what_is_over_says_what_became_of_it(bench: Workbench) -> None:
    assert native_redrive.cancel(bench.dlq, by="anna", reason="a mistake") == NothingToCancel("")
    bench.bury("a")
    _moved(bench)
    done = native_redrive.cancel(bench.dlq, by="anna", reason="a mistake")
    assert done == NothingToCancel("AWS says COMPLETED: 1 messages moved.")


@pytest.mark.soak
def test_a_letter_that_aws_moved_goes_on_when_it_comes_back(clock: Clock) -> None:
    bench = _captured(clock, "a", "b")
    public = set(Letter.objects.values_list("public_id", flat=True))
    assert isinstance(start(bench), Begun)
    let_it_end(bench)
    moved = bench.delivered()
    assert (bench.left(), len(moved)) == (0, 2)
    clock.restore()
    bench.come_back({"MessageAttributes": {}, **moved[0]})
    Letter.objects.update(captured_at=Letter.objects.get(payload__body=b"a").first_sent_at)
    back = bench.capture().captured
    assert (back.letters, back.known) == (0, 1)
    assert set(Letter.objects.values_list("public_id", flat=True)) == public
    came = bench.letter(payload__body=moved[0]["Body"].encode())
    away = bench.letter(payload__body=moved[1]["Body"].encode())
    assert [(one.state, one.blocked_reason) for one in (came, away)] == [("captured", ""), ("captured", "moved_by_aws")]
    bench.enlist()
    assert bench.replay().taken == 1
    assert bench.delivered_bodies() == [moved[0]["Body"]]
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    away.refresh_from_db()
    assert (bench.left(), away.state, away.reason) == (0, "parked", "moved_by_aws")


def test_other_bytes_are_another_letter(clock: Clock) -> None:
    bench = _captured(clock, "a")
    _moved(bench)
    clock.restore()
    Letter.objects.update(captured_at=bench.letter().first_sent_at)
    bench.bury("a", kind="another")
    bench.bury("another")
    assert (bench.capture().captured.letters, Letter.objects.count()) == (2, 3)


def test_what_was_sent_before_the_letter_was_captured_is_another(clock: Clock) -> None:
    bench = _captured(clock, "a")
    _moved(bench)
    bench.bury("a")
    Letter.objects.update(captured_at=lanes.database_now() + timedelta(hours=1))
    clock.restore()
    assert (bench.capture().captured.letters, Letter.objects.count()) == (1, 2)


def objections(bench: Workbench) -> list[str]:
    return sorted(Letter.objects.filter(dlq=bench.dlq).values_list("blocked_reason", flat=True))


@pytest.mark.soak
def test_a_letter_that_was_seen_since_a_task_is_not_let_go_for_it_again(clock: Clock) -> None:
    bench = _captured(clock, "a")
    moved_outside(bench)
    assert objections(bench) == ["moved_by_aws"]
    Letter.objects.update(blocked_reason="", planned=False)  # as the capture that sees its copy leaves it
    follow_redrives.read_redrives(bench.dlq)
    assert objections(bench) == [""]
    moved_outside(bench)
    assert objections(bench) == [""]  # it moved nothing
    bench.bury("b")
    moved_outside(bench)
    assert objections(bench) == ["moved_by_aws"]


def test_a_task_of_ours_that_has_ended_is_not_taken_for_another_s(clock: Clock) -> None:
    bench = _captured(clock, "a")
    _moved(bench)
    Letter.objects.update(blocked_reason="", planned=False)
    follow_redrives.read_redrives(bench.dlq)
    assert objections(bench) == [""]


def test_a_capture_that_is_under_way_when_letters_are_let_go_knows_those_that_it_sees(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = _captured(clock, "a")
    happens_before(monkeypatch, capture_lease, "renew", lambda: moved_by_aws.mark_moved(bench.dlq.pk))
    assert bench.capture().captured.known == 1
    assert objections(bench) == [""]
