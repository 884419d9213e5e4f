"""Recovering: what dead workers and failed calls left behind is seen to, without a person."""

from __future__ import annotations

import logging

import pytest
from django.db import DatabaseError, OperationalError, connection

from reprocessing.models import Breaker, Custody, DeadLetterQueue, Notice, Run
from reprocessing.pipeline.aws import native_redrive
from reprocessing.pipeline.capture import delete_copies
from reprocessing.pipeline.maintenance import recover
from reprocessing.store.ordering import lanes
from reprocessing.store.parking_lot import decisions
from reprocessing.store.routing import rule_changes
from reprocessing.store.safety import circuit_breakers, stops
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.rulings import ask_all, rule
from tests.reprocessing.post import statements

pytestmark = pytest.mark.django_db(transaction=True)


def _no(*_: object, **__: object) -> int:
    return 0


def _a_dlq_in_front_of_another(monkeypatch: pytest.MonkeyPatch) -> tuple[Workbench, Workbench]:
    """The first holds a letter, so that its sweep comes first, and owes a notice; the second has a copy to delete."""
    second, first = Workbench(), Workbench(fields={"max_attempts": 1, "parking_url": "no queue"})
    second.bury("letter")
    second.ready()
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "copies", _no)
        second.replay()
    first.bury("parked")
    first.ready()
    with first.refusing("parked"):
        first.replay()
    first.bury("waiting")
    first.ready()
    return first, second


def _said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == recover.__name__]


def test_a_dlq_whose_parking_queue_cannot_be_told_keeps_none_behind_it_from_its_sweep(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _a_dlq_in_front_of_another(monkeypatch)
    handed: list[int] = []
    monkeypatch.setattr(native_redrive, "sweep", lambda: handed.append(1))
    with caplog.at_level(logging.WARNING, logger=recover.__name__):
        recover.dlqs(conf=first.conf)
    assert (first.left(), second.left(), handed) == (1, 0, [1])
    assert [one.partition(":")[0] for one in _said(caplog)] == [first.name]


@pytest.mark.parametrize("fault", [RuntimeError("nobody thought of it"), DatabaseError("a deadlock")])
def test_whatever_a_sweep_of_one_dlq_fails_of_is_said_once_and_the_others_have_theirs(
    fault: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _a_dlq_in_front_of_another(monkeypatch)
    let_go = decisions.let_go

    def fails(dlq: int) -> None:
        if dlq == first.dlq.pk:
            raise fault
        let_go(dlq)

    monkeypatch.setattr(decisions, "let_go", fails)
    with caplog.at_level(logging.WARNING, logger=recover.__name__):
        recover.dlqs(conf=first.conf)
    assert second.left() == 0
    assert _said(caplog) == [f"{first.name}: not all that was left behind is seen to."]


def test_a_sweep_ends_where_postgres_is_gone_for_all_of_them(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = _a_dlq_in_front_of_another(monkeypatch)

    def gone(_: int) -> None:
        connection.close()
        raise OperationalError("the server closed the connection")

    monkeypatch.setattr(decisions, "let_go", gone)
    with caplog.at_level(logging.WARNING, logger=recover.__name__), pytest.raises(OperationalError):
        recover.dlqs(conf=first.conf)
    assert _said(caplog) == []


def test_copies_of_finished_letters_that_were_not_deleted_are(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "copies", _no)
        bench.replay()
    assert (bench.left(), Custody.objects.get().state) == (1, "delete")
    recover.sweep(bench.dlq, conf=bench.conf)
    assert (bench.left(), Custody.objects.get().state) == (0, "gone")


def test_a_copy_that_is_hidden_for_longer_than_is_known_is_deleted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQS was asked to hide it for longer, and its answer was lost; nobody would see it for twelve hours."""
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    with monkeypatch.context() as patch:
        patch.setattr(delete_copies, "copies", _no)
        bench.replay()
    clock.advance(bench.conf.receive_visibility + 1)
    recover.sweep(bench.dlq, conf=bench.conf)
    assert (bench.left(), Custody.objects.get().state) == (0, "gone")


def test_copies_of_unfinished_letters_are_not_deleted() -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert (bench.left(), Custody.objects.get().state) == (1, "held")


def test_copies_of_letters_under_way_stay_out_of_sight_for_longer_once(clock: Clock) -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.ready()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert Custody.objects.get().extended is False
    clock.advance(bench.conf.receive_visibility * 2 / 3 + 1)
    recover.sweep(bench.dlq, conf=bench.conf)
    copy = Custody.objects.get()
    assert copy.extended is True
    assert round((copy.visible_until - lanes.clock()).total_seconds(), -1) == 43_200 - bench.conf.receive_visibility
    clock.advance(recover.LONGEST - bench.conf.receive_visibility - 20)  # SQS hides nothing any longer than this
    recover.sweep(bench.dlq, conf=bench.conf)
    assert Custody.objects.get().visible_until == copy.visible_until


def test_copies_of_letters_nobody_asked_for_come_to_sight_again(clock: Clock) -> None:
    bench = Workbench()
    bench.bury("letter")
    bench.capture()
    clock.advance(bench.conf.receive_visibility - 10)
    recover.sweep(bench.dlq, conf=bench.conf)
    assert Custody.objects.get().extended is False


def test_a_run_ends_when_all_of_its_letters_have() -> None:
    bench = Workbench()
    bench.bury("letter")
    run = bench.ready()
    recover.dlqs(conf=bench.conf)
    assert Run.objects.get(pk=run.pk).state == "running"
    bench.replay()
    recover.dlqs(conf=bench.conf)
    assert Run.objects.get(pk=run.pk).state == "finished"


def test_a_dlq_that_is_observed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields={"mode": "observe"})
    swept: list[str] = []
    monkeypatch.setattr(recover, "sweep", lambda dlq, **_: swept.append(dlq.name))
    recover.dlqs(conf=bench.conf)
    assert swept == []


def test_lanes_that_were_held_go_on_when_their_dlq_holds_none_any_more(clock: Clock) -> None:
    keyed = {"ordering_key": "attribute:key", "sequence": "attribute:n"}
    bench = Workbench(fields={**keyed, "parked_head": "hold", "max_attempts": 1})
    bench.bury("1", key="a", n="1")
    bench.bury("2", key="a", n="2")
    bench.ready()
    with bench.refusing("1"):
        bench.replay()
    recover.sweep(bench.dlq, conf=bench.conf)
    assert (bench.lane().phase, bench.states()) == ("held", {"1": "parked", "2": "waiting"})
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(parked_head="aside")
    recover.sweep(bench.dlq, conf=bench.conf)
    clock.advance(1)
    bench.replay()
    assert (bench.lane().phase, bench.states()) == ("idle", {"1": "parked", "2": "delivered"})


@pytest.mark.parametrize("everything", [False, True])
def test_the_parking_queue_is_told_nothing_while_its_dlq_is_stopped(*, everything: bool) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    parking = bench.queue(f"{bench.name}-parking")
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(parking_url=parking)
    dlq = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    bench.bury("letter")
    bench.ready()
    with bench.refusing("letter"):
        bench.replay()
    which = None if everything else dlq.pk
    stops.stop(which, by="anna", reason="an incident")
    recover.sweep(dlq, conf=bench.conf)
    assert (bench.left(parking), Notice.objects.filter(sent_at=None).count()) == (0, 1)
    stops.resume(which, by="anna", reason="mended")
    recover.sweep(dlq, conf=bench.conf)
    assert (bench.left(parking), Notice.objects.filter(sent_at=None).count()) == (1, 0)


def test_failures_that_a_dead_worker_recorded_and_did_not_look_at_open_the_breaker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    Breaker.objects.update(threshold=1)
    bench.bury("letter")
    bench.ready()
    with monkeypatch.context() as patch, bench.refusing("letter"):
        patch.setattr(circuit_breakers, "look", _no)
        bench.replay(seconds=0.1)
    assert Breaker.objects.get().state == "closed"
    recover.dlqs(conf=bench.conf)
    assert Breaker.objects.get().state == "open"


def test_what_a_rule_held_is_woken_though_whoever_disabled_it_died_before_the_waking() -> None:
    bench = Workbench()
    wait = rule("wait", "hold")
    ask_all(bench, "x")
    rule_changes.switch(wait.pk, enabled=False, by="anna", reason="enough")
    assert bench.lane().phase == "held"
    recover.dlqs(conf=bench.conf)
    assert bench.lane().phase == "ready"


def test_a_lane_that_a_rule_holds_is_no_affair_of_the_parking_lot_s() -> None:
    bench = Workbench()
    rule("wait", "hold")
    ask_all(bench, "x")
    with statements() as sent:
        decisions.let_go(bench.dlq.pk)
    assert len(sent) == 1
