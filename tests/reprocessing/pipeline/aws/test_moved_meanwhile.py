"""Letters whose messages AWS may have moved meanwhile are not sent again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client

from reprocessing.models import DeadLetterQueue, DlqCopy, Lane, Letter, Run
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.parking_lot import act_on_parked
from reprocessing.pipeline.replay import gate
from reprocessing.store.aws import aws_redrives
from reprocessing.store.capture import moved_by_aws
from reprocessing.store.ordering import lane_state, lanes
from reprocessing.store.replay.intent import intend
from reprocessing.store.runs import enlistment_batches, run_transitions
from reprocessing.store.safety import stops
from tests.race.abreast import behind
from tests.race.native import begin_outside, captured_and_in_sight, let_it_end, let_it_end_unseen, mine, moved_outside
from tests.reprocessing.admin.parking_lot.parked_messages import person, post
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)

MAYBE = ("waiting", "moved_by_aws")


def _running(clock: Clock, *bodies: str) -> Workbench:
    """Return a bench whose run has sent nothing yet, and whose copies are visible again."""
    bench = mine()
    captured_and_in_sight(bench, clock, *bodies)
    bench.enlist()
    return bench


def _interrupted(clock: Clock, *bodies: str) -> tuple[Workbench, Run]:
    bench = _running(clock, *bodies)
    run = Run.objects.get()
    run_transitions.pause(run.pk, by="anna", reason="wait")
    return bench, run


def _ends(bench: Workbench) -> list[tuple[str, str]]:
    return list(Letter.objects.filter(dlq=bench.dlq).order_by("id").values_list("state", "blocked_reason"))


def _sent(bench: Workbench) -> list[str]:
    bench.replay(seconds=1)
    return sorted(bench.delivered_bodies())


def _goes_on(bench: Workbench, run: Run) -> list[str]:
    run_transitions.resume(run.pk, by="anna", reason="go on")
    return _sent(bench)


@pytest.mark.soak
@pytest.mark.parametrize("seen", [True, False], ids=["seen at work", "unseen"])
def test_what_aws_moved_while_a_run_was_interrupted_is_parked_when_a_capture_has_looked(
    clock: Clock, seen: bool
) -> None:
    bench, run = _interrupted(clock, "a", "b")
    begin_outside(bench, MaxNumberOfMessagesPerSecond=1)
    if seen:
        follow_redrives.read_redrives(bench.dlq)
    let_it_end(bench)
    assert (bench.left(), len(bench.delivered())) == (0, 2)
    assert (_ends(bench), _goes_on(bench, run)) == ([MAYBE] * 2, [])
    assert set(Lane.objects.values_list("phase", "why")) == {("ready", gate.MAYBE_MOVED)}
    clock.advance(gate.UNTIL_CAPTURED.total_seconds())
    bench.capture()  # though it is nobody's turn: letters wait for it
    assert _sent(bench) == []
    assert set(Letter.objects.values_list("state", "reason", "run")) == {("parked", "moved_by_aws", run.pk)}


def test_what_aws_did_not_move_goes_on_once_it_is_seen(clock: Clock) -> None:
    bench, run = _interrupted(clock, "a", "b")
    moved_by_aws.mark_moved(bench.dlq.pk)
    (kept,) = Letter.objects.filter(payload__body=b"b").values_list("message_id", flat=True)
    copies = bench.sqs.receive_message(QueueUrl=bench.dlq_url, MaxNumberOfMessages=10)["Messages"]
    for copy in copies:
        asked = {"QueueUrl": bench.dlq_url, "ReceiptHandle": copy["ReceiptHandle"]}
        if copy["MessageId"] == kept:
            bench.sqs.change_message_visibility(**asked, VisibilityTimeout=0)
        else:
            bench.sqs.delete_message(**asked)
    clock.advance(1)
    bench.capture()
    assert (_ends(bench), _goes_on(bench, run)) == ([MAYBE, ("waiting", "")], ["b"])
    assert bench.states() == {"a": "parked", "b": "delivered"}


@pytest.mark.soak
def test_a_letter_that_waited_goes_on_when_it_comes_back(clock: Clock) -> None:
    bench, run = _interrupted(clock, "a")
    moved_outside(bench)
    (moved,) = bench.delivered()
    Letter.objects.update(captured_at=bench.letter().first_sent_at)
    bench.come_back({"MessageAttributes": {}, **moved})
    assert (bench.capture().captured.known, _ends(bench)) == (1, [("waiting", "")])
    assert (_goes_on(bench, run), Letter.objects.count()) == (["a"], 1)


@pytest.mark.soak
def test_a_letter_that_was_parked_so_and_comes_back_goes_with_the_next_run(clock: Clock) -> None:
    bench, run = _interrupted(clock, "a")
    moved_outside(bench)
    (moved,) = bench.delivered()
    clock.advance(1)
    bench.capture()
    _goes_on(bench, run)
    assert bench.letter().reason == "moved_by_aws"
    clock.restore()
    Letter.objects.update(captured_at=bench.letter().first_sent_at)
    bench.come_back({"MessageAttributes": {}, **moved})
    bench.ready()
    assert _sent(bench) == ["a"]


def test_what_is_committed_to_a_moment_later_is_not_sent(clock: Clock) -> None:
    """Whoever has judged the head finds out with the intent."""
    bench = _running(clock, "a")
    follow_redrives.check_before_leasing(None)
    (mine_now,) = lanes.lease("an owner", limit=1, lease=60)
    (head,) = lane_state.advance([mine_now.lane_id], [mine_now.fence], keep=True, lease=60)
    assert head.gone is None
    moved_by_aws.mark_moved(bench.dlq.pk)
    assert intend([head.lane_id], [head.fence], [head.letter_id or 0], margin=0, hold=60) == []


@pytest.mark.soak
def test_what_was_on_its_way_meanwhile_is_not_sent_once_more_when_it_fails(clock: Clock) -> None:
    bench = _running(clock, "a")
    bench.judge_by_absence(window=1_000)
    assert _sent(bench) == ["a"]
    moved_by_aws.mark_moved(bench.dlq.pk)
    assert _ends(bench) == [("awaiting", "moved_by_aws")]
    sent = bench.arrivals()[-1]
    bench.sqs.receive_message(QueueUrl=bench.dlq_url)  # what AWS has moved is not in sight
    bench.sqs.send_message(QueueUrl=bench.dlq_url, MessageBody="a", MessageAttributes={
        "RedriveId": {"DataType": "String", "StringValue": sent["attributes"]["RedriveId"]},
    })  # fmt: skip
    clock.advance(1)
    bench.capture()
    assert (_sent(bench), bench.letter().reason) == ([], "moved_by_aws")


def test_a_rule_s_delay_and_the_order_of_its_key_outlast_it(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    due = lanes.database_now() + timedelta(hours=6)
    Letter.objects.update(due_at=due, route="delay")
    lane = Lane.objects.get().pk
    moved_by_aws.mark_moved(bench.dlq.pk)
    clock.advance(1)
    bench.capture()
    assert (_ends(bench), bench.letter().due_at, bench.letter().lane_id) == ([("waiting", "")], due, lane)


def test_what_is_parked_for_another_reason_meanwhile_stays_so_though_its_message_is_seen(clock: Clock) -> None:
    bench = _running(clock, "a")
    with bench.refusing("a", poison=True), bench.meanwhile(lambda: moved_by_aws.mark_moved(bench.dlq.pk)):
        bench.replay(seconds=1)
    letter = bench.letter()
    assert (letter.reason, letter.blocked_reason) == ("refused", "")
    clock.advance(1)
    bench.capture()
    assert bench.letter().reason == "refused"
    Letter.objects.update(blocked_reason="moved_by_aws")  # a mark that is left changes nothing either
    moved_by_aws.unmark_not_moved(bench.dlq.pk, [letter.message_id], until=lanes.database_now() + timedelta(minutes=1))
    assert bench.letter().reason == "refused"
    act_on_parked.release([letter.pk], by="ann", reason="mended")
    assert _sent(bench) == ["a"]


def test_what_a_capture_saw_before_it_froze_may_be_aws_s_to_move_by_now(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    moved_by_aws.mark_moved(bench.dlq.pk)
    seen = [bench.letter().message_id]
    assert moved_by_aws.unmark_not_moved(bench.dlq.pk, seen, until=lanes.database_now()) == 0
    assert moved_by_aws.unmark_not_moved(bench.dlq.pk, seen, until=lanes.database_now() + timedelta(minutes=1)) == 1


def test_what_is_delivered_meanwhile_is_aws_s_no_more(clock: Clock) -> None:
    bench = _running(clock, "a")
    with bench.meanwhile(lambda: moved_by_aws.mark_moved(bench.dlq.pk)):
        bench.replay(seconds=1)
    assert (_ends(bench), moved_by_aws.has_moved_letters(bench.dlq.pk)) == ([("delivered", "")], False)


def test_a_lane_that_is_held_behind_what_was_seen_after_all_goes_on(clock: Clock) -> None:
    """Its head was parked as moved, and its message turned up."""
    bench = mine(fields={"ordering_key": "attribute:key", "sequence": "attribute:n", "when_parked": "hold"})
    bench.enqueue_lane("1", "2", key="k")
    first = bench.letter(payload__body=b"1")
    Letter.objects.filter(pk=first.pk).update(blocked_reason="moved_by_aws")
    DeadLetterQueue.objects.update(
        drained_through=lanes.database_now(), aws_may_have_moved_at=lanes.database_now() - timedelta(seconds=1)
    )
    assert (_sent(bench), bench.lane().phase) == ([], "held")
    moved_by_aws.unmark_not_moved(bench.dlq.pk, [first.message_id], until=lanes.database_now() + timedelta(minutes=1))
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert _sent(bench) == ["2"]


def test_while_a_capture_is_under_way_aws_s_work_is_noticed_all_the_same(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    DeadLetterQueue.objects.update(leased_until=lanes.database_now() + timedelta(minutes=1))
    begin_outside(bench, MaxNumberOfMessagesPerSecond=1)
    follow_redrives.check_before_resuming(bench.dlq.pk)
    assert (_ends(bench), bench.dlq.aws_redrive_since) == ([MAYBE], None)


def test_what_was_out_of_sight_for_as_long_as_aws_may_have_worked_goes_on(clock: Clock) -> None:
    bench = mine()
    captured_and_in_sight(bench, clock, "seen", "hidden")
    began = lanes.database_now() - aws_redrives.MAX_DURATION - timedelta(hours=1)
    for body, until in ((b"seen", began + timedelta(hours=1)), (b"hidden", began + aws_redrives.MAX_DURATION)):
        DlqCopy.objects.filter(letter__payload__body=body).update(visible_until=until)
    assert aws_redrives.record_missed(bench.dlq.pk, through=began, moved=began) == 1
    objections = dict(Letter.objects.values_list("payload__body", "blocked_reason"))
    assert objections == {b"seen": "moved_by_aws", b"hidden": ""}


def test_letters_that_are_put_on_their_lanes_in_that_moment_are_not_sent_either(clock: Clock) -> None:
    """An instalment is about to be committed when the look is written down."""
    bench = mine()
    captured_and_in_sight(bench, clock, "a")
    run, _ = behind(bench.enlist, partial(moved_by_aws.mark_moved, bench.dlq.pk))
    assert (_ends(bench), run.state) == ([MAYBE], "running")


def test_no_instalment_is_paid_while_a_dlq_is_aws_s(clock: Clock) -> None:
    bench = mine()
    captured_and_in_sight(bench, clock, "a")
    run = Run.objects.create(
        name="large", dlq=bench.dlq, state="running", asked_by="anna", started_at=lanes.database_now()
    )
    Letter.objects.update(run=run)
    DeadLetterQueue.objects.update(
        aws_redrive_since=lanes.database_now(), aws_redrive_by="somebody", aws_redrive_reason="a bulk"
    )
    ids = list(Letter.objects.values_list("id", flat=True))
    assert (enlistment_batches.enlist_batch(run.pk, ids), _ends(bench)) == (None, [("captured", "")])


def test_of_a_dlq_that_nobody_captures_aws_is_asked_once_in_a_while(clock: Clock) -> None:
    bench, _ = _interrupted(clock, "a")
    begin_outside(bench)
    let_it_end_unseen(bench)
    DeadLetterQueue.objects.update(aws_redrive_asked_at=lanes.database_now())
    follow_redrives.sweep()
    assert _ends(bench) == [("waiting", "")]
    clock.advance(follow_redrives.CHECK_EVERY + 1)
    follow_redrives.sweep()
    assert _ends(bench) == [MAYBE]


def test_where_no_copy_is_in_sight_or_nothing_waits_aws_is_not_asked(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = mine()
    hidden.enqueue("a")
    idle = mine()
    captured_and_in_sight(idle, clock, "a")
    monkeypatch.setattr(follow_redrives, "move_tasks", lambda *_: pytest.fail("it was asked"))
    DlqCopy.objects.filter(dlq_id=hidden.dlq.pk).update(visible_until=lanes.database_now() + timedelta(hours=1))
    follow_redrives.sweep()
    follow_redrives.check_before_resuming(None)


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
    run_transitions.resume(run.pk, by="anna", reason="go on")
    lane = Lane.objects.get()
    stops.stop_lane(lane.pk, by="anna", reason="wait")
    _press(person("ann", "stop_lane", "view_lane"), f"/admin/reprocessing/lane/{lane.pk}/resume")


def _press(client: Client, address: str) -> None:
    """The button of a page that somebody has just opened."""
    seen = client.get(address).context["form"]["seen"].value()
    post(client, address, seen=seen, reason="go on")


def _stop(dlq: int | None, run: Run) -> None:
    stops.stop(dlq, by="anna", reason="wait")
    run_transitions.resume(run.pk, by="anna", reason="go on")


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
    assert _ends(bench) == [MAYBE]
    run.refresh_from_db()
    assert (run.state, stops.stop_of(None), stops.stop_of(bench.dlq.pk)) == ("running", None, None)
