"""Letters wait in their lanes while somebody else has AWS move their messages: nothing is sent once more."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from reprocessing.models import (
    Attempt,
    Custody,
    DeadLetter,
    DeadLetterQueue,
    Lane,
    Run,
    Target,
    lanes,
    operations,
    recall,
    stops,
)
from reprocessing.models.intent import intend
from reprocessing.pipeline import hand_over
from tests.race.native import begin_outside, captured_and_in_sight, let_it_end, let_it_end_unseen, mine
from tests.reprocessing.admin.lot import person, post
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

MOVED = ("captured", "moved_by_aws")


def _interrupted(clock: Clock, *bodies: str) -> tuple[Workbench, Run]:
    """A run that was paused before it sent anything, whose copies have come to sight again, in SQS as here."""
    bench = mine()
    captured_and_in_sight(bench, clock, *bodies)
    run = bench.enlist()
    operations.pause(run.pk, by="anna", reason="wait")
    return bench, run


def _ends(bench: Workbench) -> list[tuple[str, str]]:
    return list(DeadLetter.objects.filter(dlq=bench.dlq).order_by("id").values_list("state", "objection"))


def _sent(bench: Workbench) -> list[str]:
    bench.replay(seconds=1)
    return sorted(one["Body"] for one in bench.delivered())


@pytest.mark.parametrize("seen", [True, False], ids=["seen at work", "unseen"])
def test_what_aws_moved_while_a_run_was_interrupted_is_not_sent_when_that_goes_on(clock: Clock, seen: bool) -> None:
    bench, run = _interrupted(clock, "a", "b")
    begin_outside(bench, MaxNumberOfMessagesPerSecond=1)
    if seen:
        hand_over.look(bench.dlq)
    let_it_end(bench)
    assert (bench.left(), len(bench.delivered())) == (0, 2)
    assert _ends(bench) == [MOVED] * 2
    operations.resume(run.pk, by="anna", reason="go on")
    assert _sent(bench) == []


def test_what_aws_did_not_move_is_there_for_the_next_run(clock: Clock) -> None:
    """Of what it moved, a person decides."""
    bench, _ = _interrupted(clock, "a", "b")
    (kept,) = DeadLetter.objects.filter(payload__body=b"b").values_list("message_id", flat=True)
    recall.letters(bench.dlq.pk)
    assert (_ends(bench), bench.left()) == ([MOVED] * 2, 2)
    (copy,) = [one for one in bench.sqs.receive_message(QueueUrl=bench.dlq_url)["Messages"] if one["MessageId"] != kept]
    bench.sqs.delete_message(QueueUrl=bench.dlq_url, ReceiptHandle=copy["ReceiptHandle"])
    bench.ready()
    assert _sent(bench) == ["b"]
    assert (bench.letter(payload__body=b"a").reason, bench.letter(payload__body=b"b").state) == (
        "moved_by_aws", "delivered",
    )  # fmt: skip


def test_a_letter_that_was_called_back_goes_on_when_it_comes_back(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    begin_outside(bench)
    let_it_end(bench)
    (moved,) = bench.delivered()
    clock.restore()
    DeadLetter.objects.update(captured_at=bench.letter().died_at)
    bench.come_back({"MessageAttributes": {}, **moved})
    assert (bench.capture().captured.known, bench.letter().objection) == (1, "")
    bench.enlist()
    assert (_sent(bench), Lane.objects.count()) == (["a"], 1)


def test_the_owner_of_a_lane_finds_out_that_its_head_was_moved_before_it_sends(clock: Clock) -> None:
    bench, run = _interrupted(clock, "a", "b")
    operations.resume(run.pk, by="anna", reason="go on")
    (mine_now,) = lanes.lease("an owner", limit=1, lease=60)
    (head,) = lanes.advance([mine_now.lane_id], [mine_now.fence], keep=True, lease=60)
    begin_outside(bench)
    let_it_end(bench)
    assert (_ends(bench), sorted(Lane.objects.values_list("phase", flat=True))) == ([MOVED] * 2, ["idle", "leased"])
    assert intend([head.lane_id], [head.fence], [head.letter_id or 0], margin=0, hold=60) == []
    (after,) = lanes.advance([mine_now.lane_id], [mine_now.fence], keep=True, lease=60)
    assert (after.phase, after.letter_id) == ("idle", None)


def test_what_was_out_of_sight_goes_on() -> None:
    bench = mine()
    bench.bury("a")
    run = bench.ready()
    operations.pause(run.pk, by="anna", reason="wait")
    bench.bury("b")
    begin_outside(bench)
    let_it_end(bench)
    assert (_ends(bench), [one["Body"] for one in bench.delivered()]) == ([("waiting", "")], ["b"])
    operations.resume(run.pk, by="anna", reason="go on")
    assert _sent(bench) == ["a"]


def test_a_letter_of_which_a_copy_may_lie_in_its_target_too_keeps_its_lane(clock: Clock) -> None:
    bench, run = _interrupted(clock, "a")
    Target.objects.filter(pk=bench.target.pk).update(window=1_000)
    now = lanes.clock()
    Attempt.objects.create(
        letter=bench.letter(), lane=bench.lane(), target=bench.target, run=run, no=1, epoch=0, fence=1, opened_at=now,
        holds_lane=False, outcome="unknown", closed_at=now,
    )  # fmt: skip
    begin_outside(bench)
    let_it_end(bench)
    assert _ends(bench) == [("waiting", "")]


def test_letters_that_are_enlisted_meanwhile_are_called_back_too(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the recall and the lock of the dlq's row an enlistment comes to its end."""
    bench, _ = _interrupted(clock, "a")
    captured_and_in_sight(bench, clock, "b")
    begin_outside(bench)
    let_it_end_unseen(bench)
    call_back = recall.letters

    def and_one_more(dlq: int, **until: Any) -> int:  # noqa: ANN401  a date
        done = call_back(dlq, **until)
        monkeypatch.setattr(recall, "letters", call_back)
        bench.enlist()
        return done

    monkeypatch.setattr(recall, "letters", and_one_more)
    hand_over.look(bench.dlq)
    assert _ends(bench) == [("parked", ""), MOVED]  # of what had been called back before, a person decides


def test_of_a_dlq_that_nobody_captures_aws_is_asked_once_in_a_while(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    begin_outside(bench)
    let_it_end_unseen(bench)
    DeadLetterQueue.objects.update(native_asked_at=lanes.clock())
    hand_over.sweep()
    assert _ends(bench) == [("waiting", "")]
    clock.advance(hand_over.EVERY + 1)
    hand_over.sweep()
    assert _ends(bench) == [MOVED]


def test_where_no_copy_is_in_sight_or_nothing_waits_aws_is_not_asked(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = mine()
    hidden.bury("a")
    hidden.ready()
    idle = mine()
    captured_and_in_sight(idle, clock, "a")
    monkeypatch.setattr(hand_over, "move_tasks", lambda *_: pytest.fail("it was asked"))
    Custody.objects.filter(dlq_id=hidden.dlq.pk).update(visible_until=lanes.clock() + timedelta(hours=1))
    hand_over.sweep()
    hand_over.look_first(None)


def _by_command(_: Workbench, run: Run) -> None:
    call_command("resume_run", run.name, by="anna", reason="go on", confirm=True, stdout=StringIO())


def _at_the_desk(_: Workbench, run: Run) -> None:
    _press(person("ann", "operate_run", "view_run"), f"/admin/reprocessing/run/{run.pk}/resume/now")


def _all_by_command(_: Workbench, run: Run) -> None:
    _stop(None, run)
    call_command("resume_redrive", all=True, by="anna", reason="go on", confirm=True, stdout=StringIO())


def _the_dlq_at_the_desk(bench: Workbench, run: Run) -> None:
    _stop(bench.dlq.pk, run)
    ann = person("ann", "stop_deadletterqueue", "view_deadletterqueue")
    _press(ann, f"/admin/reprocessing/deadletterqueue/{bench.dlq.pk}/resume")


def _all_at_the_desk(_: Workbench, run: Run) -> None:
    _stop(None, run)
    _press(person("ann", "stop_sends", "view_run"), "/admin/resume")


def _the_lane_at_the_desk(_: Workbench, run: Run) -> None:
    operations.resume(run.pk, by="anna", reason="go on")
    lane = Lane.objects.get()
    stops.stop_lane(lane.pk, by="anna", reason="wait")
    _press(person("ann", "stop_lane", "view_lane"), f"/admin/reprocessing/lane/{lane.pk}/resume")


def _press(client: Client, address: str) -> None:
    """The button of a page that somebody has just opened."""
    seen = client.get(address).context["form"]["seen"].value()
    post(client, address, seen=seen, reason="go on")


def _stop(dlq: int | None, run: Run) -> None:
    stops.stop(dlq, by="anna", reason="wait")
    operations.resume(run.pk, by="anna", reason="go on")


@pytest.mark.parametrize(
    "goes_on",
    [_by_command, _at_the_desk, _all_by_command, _all_at_the_desk, _the_dlq_at_the_desk, _the_lane_at_the_desk],
)
def test_who_has_letters_go_on_asks_aws_first_what_it_has_moved(
    clock: Clock, goes_on: Callable[[Workbench, Run], None]
) -> None:
    bench, run = _interrupted(clock, "a")
    begin_outside(bench)
    let_it_end_unseen(bench)
    goes_on(bench, run)
    assert _ends(bench) == [MOVED]
    run.refresh_from_db()
    assert (run.state, stops.stopped(None), stops.stopped(bench.dlq.pk)) == ("running", None, None)
