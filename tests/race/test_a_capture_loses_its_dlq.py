"""Two captures of one dlq: whoever lost it proves nothing, and finds out also while it hears nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from reprocessing.models import Custody, DeadLetterQueue
from reprocessing.pipeline.capture import capture, delete_copies
from reprocessing.store.capture import capture_lease, received_copies, returned_messages
from reprocessing.store.capture.received_copies import KnownCopy, NewLetter
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.settlement import Deletable
from tests.reprocessing.pipeline.bench import Clock, Workbench

pytestmark = pytest.mark.django_db(transaction=True)


def _taken_by_another(bench: Workbench) -> None:
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(fence=2**40)


def _capture(bench: Workbench) -> capture.Captured:
    return capture.letters(
        bench.dlq, conf=bench.conf, dice=lambda: 0.0, seconds=10, receivers=1, heard=lambda _: _taken_by_another(bench)
    )


def test_a_capture_whose_dlq_was_taken_over_in_its_silence_has_drained_nothing() -> None:
    bench = Workbench()
    assert not _capture(bench).drained
    assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through is None


@pytest.mark.soak
def test_a_silent_capture_renews_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "LEASE", 0.3)
    bench = Workbench()
    leases: set[object] = set()
    captured = capture.letters(
        bench.dlq, conf=replace(bench.conf, long_poll=1), dice=lambda: 0.0, seconds=10, receivers=1,
        stop=lambda: len(leases) > 2,
        heard=lambda _: leases.add(DeadLetterQueue.objects.get(pk=bench.dlq.pk).leased_until),
    )  # fmt: skip
    assert captured.received == 0
    assert len(leases) > 2


def test_a_clean_capture_does_not_vouch_for_one_that_died_before_it() -> None:
    bench = Workbench()
    assert (
        capture_lease.lease(bench.dlq.pk, lease=0, dirty=100) is not None
    )  # and dies: what it received is out of sight
    for number in range(2):
        bench.bury(f"{number}")
        assert not bench.capture().captured.drained
        assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through is None
    later = lanes.clock() - timedelta(seconds=1)
    DeadLetterQueue.objects.filter(pk=bench.dlq.pk).update(unclean_until=later)  # its time has passed
    bench.bury("a letter")  # an empty dlq is not received from
    assert bench.capture().captured.drained


def test_nor_for_one_that_lasted_long_before_it_died(clock: Clock) -> None:
    bench = Workbench()
    died = capture_lease.lease(bench.dlq.pk, lease=60, dirty=100)
    assert died is not None
    clock.advance(59)
    assert capture_lease.renew(died, lease=60, dirty=100) is not None
    clock.advance(61)  # what it received last is out of sight, though what it received first is not
    bench.bury("letter")
    assert not bench.capture().captured.drained


def test_a_capture_whose_connection_is_lost_gives_its_dlq_back_and_vouches_for_nothing() -> None:
    bench = Workbench()
    bench.bury("a letter")
    with pytest.raises(OperationalError):
        capture.letters(
            bench.dlq, conf=bench.conf, dice=lambda: 0.0, seconds=10, receivers=1, heard=lambda _: _terminated()
        )
    dlq = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    assert (dlq.leased_until, dlq.drained_through) == (None, None)
    bench.bury("another")
    captured = bench.capture().captured
    assert (captured.busy, captured.drained) == (False, False)


def test_the_dlq_of_a_capture_that_died_is_captured_again_within_twenty_seconds(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench()
    bench.bury("a letter")
    monkeypatch.setattr(capture._Capture, "run", _die)
    with pytest.raises(KeyboardInterrupt):
        bench.capture()
    monkeypatch.undo()
    assert bench.capture().captured.busy
    clock.advance(20.1)
    assert bench.capture().captured.letters == 1


def test_one_that_froze_until_another_received_its_copy_does_not_note_its_own_handle(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench()
    bench.bury("a letter")
    bench.capture()
    bench.show_again()
    refresh, latest = received_copies.refresh, list[str]()

    def froze(*args: Any, **options: Any) -> list[KnownCopy]:  # noqa: ANN401  those of refresh
        monkeypatch.undo()
        clock.advance(bench.conf.receive_visibility + 1)
        bench.show_again()
        assert bench.capture().captured.known == 1
        latest.append(Custody.objects.get().handle)
        return refresh(*args, **options)

    monkeypatch.setattr(received_copies, "refresh", froze)
    assert bench.capture().captured.received == 1
    assert [Custody.objects.get().handle] == latest


@pytest.mark.parametrize("statement", ["refresh", "admit"])
def test_one_that_froze_until_its_copy_came_to_sight_writes_nothing_and_proves_nothing(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    bench = Workbench()
    bench.bury("a letter")
    known = statement == "refresh"
    if known:
        bench.capture()
        bench.show_again()
    before = list(Custody.objects.values_list("handle", "receives"))
    drained_through = DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through
    write = getattr(received_copies, statement)

    def froze(*args: Any, **options: Any) -> object:  # noqa: ANN401  those of the statement
        monkeypatch.undo()
        clock.advance(bench.conf.receive_visibility + 1)
        return write(*args, **options)

    monkeypatch.setattr(received_copies, statement, froze)
    captured = bench.capture().captured
    assert (captured.received, captured.letters, captured.drained) == (1, 0, False)
    assert list(Custody.objects.values_list("handle", "receives")) == before
    assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through == drained_through


def test_a_return_that_one_received_who_froze_until_it_came_to_sight_is_neither_recorded_nor_deleted(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Workbench()
    bench.bury("a letter")
    bench.ready()
    bench.replay()
    bench.come_back(bench.delivered()[0])
    record = returned_messages.record

    def froze(*args: Any, **options: Any) -> object:  # noqa: ANN401  those of record
        monkeypatch.undo()
        clock.advance(bench.conf.receive_visibility + 1)
        return record(*args, **options)

    monkeypatch.setattr(returned_messages, "record", froze)
    assert not bench.capture().captured.drained
    assert (bench.left(), bench.states()) == (1, {"a letter": "delivered"})


def test_what_was_deleted_by_an_older_handle_is_not_gone() -> None:
    bench = Workbench(fields={"delete_when": "captured"})
    bench.bury("a letter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delete_copies, "copies", lambda *_: 0)
        bench.capture()
    copy = Custody.objects.get()
    capture_lease.gone([Deletable(bench.dlq.pk, copy.message_id, "an older one")])
    assert Custody.objects.get().state == "delete"
    capture_lease.gone([Deletable(bench.dlq.pk, copy.message_id, copy.handle)])
    assert Custody.objects.get().state == "gone"


def test_a_letter_that_one_wrote_who_froze_has_the_handle_under_which_another_received_it_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Workbench()
    bench.bury("a letter")
    admit = received_copies.admit

    def thaws(dlq: int, letters: Sequence[NewLetter], *, until: datetime, at_capture: bool) -> set[str]:
        older = [replace(one, handle="an older one") for one in letters]
        assert len(admit(dlq, older, until=until, at_capture=at_capture)) == 1
        return admit(dlq, letters, until=until, at_capture=at_capture)

    monkeypatch.setattr(received_copies, "admit", thaws)
    captured = bench.capture().captured
    assert (captured.letters, captured.known) == (0, 1)
    bench.sqs.delete_message(QueueUrl=bench.dlq_url, ReceiptHandle=Custody.objects.get().handle)
    assert bench.left() == 0


def _terminated() -> None:
    """The connection of this test's own, by another one."""
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
