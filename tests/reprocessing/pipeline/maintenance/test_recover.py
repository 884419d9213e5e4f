"""A sweep repairs what dead workers and failed calls left behind."""

from __future__ import annotations

import logging
from functools import partial
from types import ModuleType
from unittest.mock import Mock

import pytest
from django.db import DatabaseError, OperationalError, connection

from reprocessing.domain.errors import StepsFailed
from reprocessing.models import Breaker, DeadLetterQueue, DlqCopy, Letter, ParkingQueueMessage, Run
from reprocessing.pipeline.aws import follow_redrives
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.parking_lot import group_failures
from reprocessing.store.aws import metrics
from reprocessing.store.capture import capture_lease, expiry_rescue
from reprocessing.store.maintenance import counters
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions
from reprocessing.store.replay.settlement import Deletable
from reprocessing.store.routing import rule_changes
from reprocessing.store.safety import circuit_breakers, stops, waves
from tests.reprocessing.pipeline.bench import BRISK, KEYED, Clock, Workbench, enqueued
from tests.reprocessing.pipeline.benches import bury_keyed, captured, parked
from tests.reprocessing.pipeline.rulings import ask_all, rule
from tests.reprocessing.post import statements

pytestmark = pytest.mark.django_db(transaction=True)


def _no(*_: object, **__: object) -> int:
    return 0


def _with_a_copy_to_delete() -> Workbench:
    """Return a bench whose letter is delivered, and whose copy was not deleted from the DLQ."""
    bench = enqueued("letter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delete_copies, "delete_from_dlq", _no)
        bench.replay()
    assert (bench.left(), DlqCopy.objects.get().state) == (1, "held")
    return bench


def _some_refused(bench: Workbench, refused: int, copies: int) -> list[str]:
    """Capture copies that are to be deleted; return their sorted ids. SQS refuses the handles of the first ones."""
    ids = sorted(bench.bury_all(*map(str, range(copies))))
    bench.capture()
    DlqCopy.objects.filter(message_id__in=ids[:refused]).update(state="delete", handle="of a deleted queue")
    DlqCopy.objects.filter(message_id__in=ids[refused:]).update(state="delete")
    return ids


def _begin_after(monkeypatch: pytest.MonkeyPatch, *ids: str) -> None:
    """Let the sweeps begin after these message ids, and not after ids that depend on the time."""
    starts, find = iter(ids), capture_lease.copies_to_delete

    def found(dlq: int, *, above: str | None, limit: int) -> list[Deletable]:
        return find(dlq, above=next(starts) if above is None else above, limit=limit)

    monkeypatch.setattr(capture_lease, "copies_to_delete", found)


def _a_dlq_in_front_of_another() -> tuple[Workbench, Workbench]:
    """The first holds a letter, so that its sweep comes first, and owes a notice; the second has a copy to delete."""
    second = _with_a_copy_to_delete()
    first = parked("parked", fields={"parking_url": "no queue"})
    first.enqueue("waiting")
    return first, second


def _logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == recover.__name__]


@pytest.mark.soak
def test_a_parking_queue_that_does_not_exist_keeps_no_other_dlq_from_its_sweep(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _a_dlq_in_front_of_another()
    handed: list[int] = []
    monkeypatch.setattr(follow_redrives, "sweep", lambda: handed.append(1))
    with caplog.at_level(logging.WARNING, logger=recover.__name__):
        recover.sweep_all(conf=first.conf)
    assert (first.left(), second.left(), handed) == (1, 0, [1])
    assert [text.partition(":")[0] for text in _logged(caplog)] == [first.name]


@pytest.mark.soak
@pytest.mark.parametrize("fault", [RuntimeError("nobody thought of it"), DatabaseError("a deadlock")])
def test_a_sweep_of_one_dlq_that_fails_is_logged_once_and_the_others_are_swept(
    fault: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _a_dlq_in_front_of_another()
    let_go = decisions.advance_held_lanes

    def fails(dlq: int) -> None:
        if dlq == first.dlq.pk:
            raise fault
        let_go(dlq)

    monkeypatch.setattr(decisions, "advance_held_lanes", fails)
    with (
        caplog.at_level(logging.WARNING, logger=recover.__name__),
        pytest.raises(StepsFailed, match=f"^These steps of the sweep failed: {first.name}. The next"),
    ):
        recover.sweep_all(conf=first.conf)
    assert second.left() == 0
    assert _logged(caplog) == [f"{first.name}: the sweep failed."]


def test_a_sweep_ends_when_postgres_is_gone(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = _a_dlq_in_front_of_another()

    def gone(_: int) -> None:
        connection.close()
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(decisions, "advance_held_lanes", gone)
    with caplog.at_level(logging.WARNING, logger=recover.__name__), pytest.raises(OperationalError):
        recover.sweep_all(conf=first.conf)
    assert _logged(caplog) == []


@pytest.mark.parametrize("seconds", [0, BRISK.receive_visibility + 1], ids=["hidden", "perhaps visible"])
def test_a_copy_of_a_finished_letter_that_was_not_deleted_is_deleted_by_the_sweep(clock: Clock, seconds: float) -> None:
    """It is deleted too when it should be visible: a lost answer may have hidden it for longer than is recorded."""
    bench = _with_a_copy_to_delete()
    clock.advance(seconds)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert (bench.left(), DlqCopy.objects.get().state) == (0, "gone")


@pytest.mark.parametrize(("lanes_leased", "batches"), [(0, 4), (1, 1)])
def test_a_sweep_assigns_fewer_letters_to_failure_groups_while_lanes_are_replayed(
    monkeypatch: pytest.MonkeyPatch, *, lanes_leased: int, batches: int
) -> None:
    monkeypatch.setattr(group_failures, "BATCH", 1)
    bench = enqueued(*map(str, range(6)))
    lanes.lease("worker", limit=lanes_leased, lease=8)
    recover.sweep_all(conf=bench.conf)
    assert Letter.objects.exclude(group=None).count() == batches


def test_a_sweep_assigns_no_more_letters_to_failure_groups_when_a_replay_begins_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_failures, "BATCH", 1)
    bench = enqueued(*map(str, range(6)))
    begins = iter([False, True])
    monkeypatch.setattr(lanes, "are_leased", lambda: next(begins))
    recover.sweep_all(conf=bench.conf)
    assert Letter.objects.exclude(group=None).count() == 2


def test_copies_of_unfinished_letters_are_not_deleted() -> None:
    bench = enqueued("letter")
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert (bench.left(), DlqCopy.objects.get().state) == (1, "held")


def test_copies_of_letters_under_way_stay_out_of_sight_for_longer_once(clock: Clock) -> None:
    bench = enqueued("letter")
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.get().extended is False
    clock.advance(bench.conf.receive_visibility * 2 / 3 + 1)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    copy = DlqCopy.objects.get()
    assert copy.extended is True
    assert (
        round((copy.visible_until - lanes.database_now()).total_seconds(), -1) == 43_200 - bench.conf.receive_visibility
    )
    clock.advance(
        recover.MAX_HIDDEN_SECONDS - bench.conf.receive_visibility - 20
    )  # SQS hides nothing any longer than this
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.get().visible_until == copy.visible_until


def test_copies_of_letters_in_no_run_are_not_hidden_for_longer(clock: Clock) -> None:
    bench = captured("letter")
    clock.advance(bench.conf.receive_visibility - 10)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert DlqCopy.objects.get().extended is False


def test_a_run_is_finished_when_all_of_its_letters_are() -> None:
    bench = enqueued("letter")
    recover.sweep_all(conf=bench.conf)
    assert Run.objects.get().state == "running"
    bench.replay()
    recover.sweep_all(conf=bench.conf)
    assert Run.objects.get().state == "finished"


def test_a_dlq_in_mode_observe_is_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields={"mode": "observe"})
    monkeypatch.setattr(recover, "sweep_dlq", lambda *_, **__: pytest.fail("it was swept"))
    recover.sweep_all(conf=bench.conf)


def test_held_lanes_go_on_when_their_dlq_does_not_hold_lanes_any_more(clock: Clock) -> None:
    bench = Workbench(fields={**KEYED, "when_parked": "hold", "max_attempts": 1})
    bury_keyed(bench, "a1", "a2")
    bench.ready()
    with bench.refusing("a1"):
        bench.replay()
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert (bench.lane().phase, bench.states()) == ("held", {"a1": "parked", "a2": "waiting"})
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(when_parked="aside")
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    clock.advance(1)
    bench.replay()
    assert (bench.lane().phase, bench.states()) == ("idle", {"a1": "parked", "a2": "delivered"})


@pytest.mark.parametrize("everything", [False, True])
def test_the_parking_queue_is_told_nothing_while_its_dlq_is_stopped(*, everything: bool) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    parking = bench.queue(f"{bench.name}-parking")
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(parking_url=parking)
    dlq = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    bench.enqueue("letter")
    with bench.refusing("letter"):
        bench.replay()
    which = None if everything else dlq.pk
    stops.stop(which, by="anna", reason="an incident")
    recover.sweep_dlq(dlq, conf=bench.conf)
    assert (bench.left(parking), ParkingQueueMessage.objects.filter(sent_at=None).count()) == (0, 1)
    stops.resume(which, by="anna", reason="mended")
    recover.sweep_dlq(dlq, conf=bench.conf)
    assert (bench.left(parking), ParkingQueueMessage.objects.filter(sent_at=None).count()) == (1, 0)


def test_failures_that_a_dead_worker_recorded_and_did_not_look_at_open_the_breaker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    Breaker.objects.update(threshold=1)
    bench.enqueue("letter")
    with monkeypatch.context() as patch, bench.refusing("letter"):
        patch.setattr(circuit_breakers, "move_breakers", _no)
        bench.replay(seconds=0.1)
    assert Breaker.objects.get().state == "closed"
    recover.sweep_all(conf=bench.conf)
    assert Breaker.objects.get().state == "open"


def test_a_lane_held_by_a_disabled_rule_is_released_by_the_sweep_if_nobody_else_did() -> None:
    bench = Workbench()
    wait = rule("wait", "hold")
    ask_all(bench, "x")
    rule_changes.set_enabled(wait.pk, enabled=False, by="anna", reason="enough")
    assert bench.lane().phase == "held"
    recover.sweep_all(conf=bench.conf)
    assert bench.lane().phase == "ready"


def test_a_lane_held_by_a_rule_is_not_released_by_the_parking_lot() -> None:
    bench = Workbench()
    rule("wait", "hold")
    ask_all(bench, "x")
    with statements() as asked:
        decisions.advance_held_lanes(bench.dlq.pk)
    assert len(asked) == 1


def test_copies_that_sqs_refuses_to_delete_do_not_keep_other_copies_in_the_dlq(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    ids = _some_refused(bench, 3, 4)
    monkeypatch.setattr(recover, "_GROUP", 1)
    _begin_after(monkeypatch, "", *ids)
    for _ in range(5):
        recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert set(DlqCopy.objects.filter(state="delete").values_list("message_id", flat=True)) == set(ids[:3])


def test_one_sweep_deletes_all_copies_around_one_that_sqs_refuses_to_delete(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    ids = _some_refused(bench, 1, 6)
    monkeypatch.setattr(recover, "_GROUP", 2)
    _begin_after(monkeypatch, ids[2])
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert list(DlqCopy.objects.filter(state="delete").values_list("message_id", flat=True)) == ids[:1]


def test_a_sweep_gives_way_to_other_dlqs_if_sqs_deletes_only_some_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    ids = sorted(bench.bury_all(*map(str, range(6))))
    bench.capture()
    DlqCopy.objects.update(state="delete")
    DlqCopy.objects.filter(message_id__in=ids[::2]).update(handle="of a deleted queue")  # one in each batch
    monkeypatch.setattr(recover, "_GROUP", 2)
    _begin_after(monkeypatch, "")
    seconds = iter([0.0, 5.0, 11.0])
    recover.sweep_dlq(bench.dlq, conf=bench.conf, clock=lambda: next(seconds))
    left = DlqCopy.objects.filter(state="delete").order_by("message_id").values_list("message_id", flat=True)
    assert list(left) == [ids[0], ids[2], ids[4], ids[5]]


def test_dlqs_with_an_error_are_swept_after_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    failing, sound = Workbench(), Workbench()
    DeadLetterQueue.objects.filter(pk=failing.dlq.pk).update(last_error="SQS did not answer.")
    failing_first = [DeadLetterQueue.objects.get(pk=bench.dlq.pk) for bench in (failing, sound)]
    monkeypatch.setattr(expiry_rescue, "most_urgent_first", lambda _: failing_first)
    swept = list[int]()
    monkeypatch.setattr(recover, "sweep_dlq", lambda dlq, **_: swept.append(dlq.pk))
    recover.sweep_all(conf=sound.conf)
    assert swept == [sound.dlq.pk, failing.dlq.pk]


@pytest.mark.parametrize(
    ("module", "step", "name"),
    [
        (waves, "judge_all_waves", "The service"),
        (group_failures, "assign_groups", "Failure groups"),
        (counters, "fold_deltas", "Counters"),
    ],
    ids=["waves", "groups", "counters"],
)
def test_a_step_that_fails_keeps_no_dlq_from_its_sweep_and_the_sweep_says_so_at_its_end(
    module: ModuleType, step: str, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bench = _with_a_copy_to_delete()
    monkeypatch.setattr(module, step, Mock(side_effect=ValueError))
    with pytest.raises(StepsFailed, match=f"^These steps of the sweep failed: {name}. The next"):
        recover.sweep_all(conf=bench.conf)
    assert (bench.left(), len([entry for entry in caplog.records if entry.exc_info])) == (0, 1)


def test_a_sweep_sends_a_limited_number_of_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.dlq.parking_url = bench.dlq.url
    send = Mock(return_value=True)
    monkeypatch.setattr(recover, "_send_notices", send)
    recover.sweep_dlq(bench.dlq, conf=bench.conf)
    assert send.call_count == recover._NOTICE_BATCHES


def test_one_worker_sweeps_at_a_time_and_a_killed_one_is_replaced_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    bench, begun = Workbench(), list[str]()
    sweep = partial(recover.sweep_alone, conf=bench.conf)

    def second() -> None:
        begun.append("another")
        sweep()  # while the first one sweeps

    monkeypatch.setattr(recover, "sweep_service", second)
    sweep()
    assert begun == ["another"]
    monkeypatch.setattr(recover, "sweep_service", Mock(side_effect=SystemExit))
    monkeypatch.setattr(metrics, "make_due", Mock())  # the worker is killed
    with pytest.raises(SystemExit):
        sweep()
    service = Mock()
    monkeypatch.setattr(recover, "sweep_service", service)
    clock.advance(59)
    sweep()
    assert service.call_count == 0
    clock.advance(2)
    sweep()
    assert service.call_count == 1


def test_a_sweep_that_takes_long_keeps_its_turn(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    bench, swept = Workbench(), list[str]()

    def slow(dlq: DeadLetterQueue, **_: object) -> None:
        clock.advance(50)
        recover.sweep_alone(conf=bench.conf)
        swept.append(dlq.name)

    Workbench()
    monkeypatch.setattr(recover, "sweep_dlq", slow)
    recover.sweep_alone(conf=bench.conf)
    assert len(swept) == 2


def test_a_time_limit_ends_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    monkeypatch.setattr(recover, "sweep_service", Mock(side_effect=TimeoutError))
    monkeypatch.setattr(recover, "sweep_dlq", Mock(side_effect=AssertionError))
    with pytest.raises(TimeoutError):
        recover.sweep_all(conf=bench.conf, ended_by=(TimeoutError,))
