"""A capture that lost its DLQ, or froze, proves nothing and writes nothing, and finds that out by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection

from reprocessing.models import DeadLetterQueue, DlqCopy
from reprocessing.pipeline.capture import capture, delete_copies
from reprocessing.store.capture import capture_lease, received_copies, returned_messages
from reprocessing.store.capture.received_copies import NewLetter
from reprocessing.store.ordering import lanes
from reprocessing.store.replay.settlement import Deletable
from tests.reprocessing.pipeline.bench import Clock, Workbench
from tests.reprocessing.pipeline.interposed import happens_before

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bench() -> Workbench:
    found = Workbench()
    found.bury("a letter")
    return found


def _dlq() -> DeadLetterQueue:
    return DeadLetterQueue.objects.get()


def _copies() -> list[tuple[str, int]]:
    return list(DlqCopy.objects.values_list("handle", "receives"))


def _capture(bench: Workbench, heard: Callable[[], object], **options: Any) -> capture.Captured:  # noqa: ANN401  those of letters
    def tell(_: capture.Captured) -> None:
        heard()

    values = {"conf": bench.conf, "seconds": 10, "receivers": 1, **options}
    return capture.letters(bench.dlq, dice=lambda: 0.0, on_progress=tell, **values)


def _freezes(
    bench: Workbench, clock: Clock, where: object, name: str, meanwhile: Callable[[], object] = lambda: None
) -> capture.Captured:
    """Capture; the statement `name` comes when its copies are visible again."""

    def freeze() -> None:
        clock.advance(bench.conf.receive_visibility + 1)
        meanwhile()

    with pytest.MonkeyPatch.context() as patch:
        happens_before(patch, where, name, freeze, once=True)
        return bench.capture().captured


def test_a_capture_that_lost_its_dlq_during_silence_has_drained_nothing() -> None:
    bench = Workbench()
    assert not _capture(bench, lambda: DeadLetterQueue.objects.update(fence=2**40)).drained
    assert _dlq().drained_through is None


@pytest.mark.soak
def test_a_silent_capture_renews_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "LEASE", 0.3)
    bench = Workbench()
    leases: set[object] = set()
    conf = replace(bench.conf, long_poll=1)
    captured = _capture(bench, lambda: leases.add(_dlq().leased_until), conf=conf, stop=lambda: len(leases) > 2)
    assert captured.received == 0
    assert len(leases) > 2


def test_a_clean_capture_proves_nothing_while_copies_of_a_dead_one_are_invisible() -> None:
    bench = Workbench()
    assert capture_lease.lease(bench.dlq.pk, lease=0, dirty=100) is not None  # and dies
    for number in range(2):
        bench.bury(f"{number}")
        assert not bench.capture().captured.drained
        assert _dlq().drained_through is None
    DeadLetterQueue.objects.update(orphans_hidden_until=lanes.database_now() - timedelta(seconds=1))
    bench.bury("a letter")  # an empty DLQ is not received from
    assert bench.capture().captured.drained


def test_a_renewed_lease_extends_the_time_in_which_nothing_is_proved(bench: Workbench, clock: Clock) -> None:
    died = capture_lease.lease(bench.dlq.pk, lease=60, dirty=100)
    assert died is not None
    clock.advance(59)
    assert capture_lease.renew(died, lease=60, dirty=100) is not None
    clock.advance(61)  # only what it received first is visible again
    assert not bench.capture().captured.drained


def test_a_capture_whose_connection_is_lost_gives_its_dlq_back_and_proves_nothing(bench: Workbench) -> None:
    with pytest.raises(OperationalError):
        _capture(bench, _terminate)
    assert (_dlq().leased_until, _dlq().drained_through) == (None, None)
    bench.bury("another")
    captured = bench.capture().captured
    assert (captured.busy, captured.drained) == (False, False)


def test_a_frozen_capture_does_not_record_its_handle_after_another_received_the_copy(
    bench: Workbench, clock: Clock
) -> None:
    bench.capture()
    bench.show_again()
    latest = list[tuple[str, int]]()

    def another_receives_it() -> None:
        bench.show_again()
        assert bench.capture().captured.known == 1
        latest.extend(_copies())

    assert _freezes(bench, clock, received_copies, "refresh_known", another_receives_it).received == 1
    assert _copies() == latest != []


@pytest.mark.parametrize("statement", ["refresh_known", "admit"])
def test_a_capture_that_froze_until_its_copy_was_visible_writes_nothing_and_proves_nothing(
    bench: Workbench, clock: Clock, statement: str
) -> None:
    if statement == "refresh_known":
        bench.capture()
        bench.show_again()
    before, drained_through = _copies(), _dlq().drained_through
    captured = _freezes(bench, clock, received_copies, statement)
    assert (captured.received, captured.letters, captured.drained) == (1, 0, False)
    assert (_copies(), _dlq().drained_through) == (before, drained_through)


def test_a_return_whose_capture_froze_until_it_was_visible_is_neither_recorded_nor_deleted(
    bench: Workbench, clock: Clock
) -> None:
    bench.ready()
    bench.replay()
    bench.come_back(bench.delivered()[0])
    assert not _freezes(bench, clock, returned_messages, "record").drained
    assert (bench.left(), bench.states()) == (1, {"a letter": "delivered"})


def test_a_copy_deleted_by_an_older_handle_is_not_gone() -> None:
    bench = Workbench(fields={"delete_when": "captured"})
    bench.bury("a letter")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delete_copies, "delete_from_dlq", lambda *_: 0)
        bench.capture()
    copy = DlqCopy.objects.get()
    for handle, state in (("an older one", "delete"), (copy.handle, "gone")):
        capture_lease.mark_gone([Deletable(bench.dlq.pk, copy.message_id, handle)])
        assert DlqCopy.objects.get().state == state


def test_a_letter_written_by_a_frozen_capture_gets_the_handle_of_a_later_receive(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit = received_copies.admit

    def thaws(dlq: int, letters: Sequence[NewLetter], **options: Any) -> set[str]:  # noqa: ANN401  those of admit
        monkeypatch.setattr(received_copies, "admit", admit)
        older = [replace(letter, handle="an older one") for letter in letters]
        assert len(admit(dlq, older, **options)) == 1
        return admit(dlq, letters, **options)

    monkeypatch.setattr(received_copies, "admit", thaws)
    captured = bench.capture().captured
    assert (captured.letters, captured.known) == (0, 1)
    bench.sqs.delete_message(QueueUrl=bench.dlq_url, ReceiptHandle=DlqCopy.objects.get().handle)
    assert bench.left() == 0


def _terminate() -> None:
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [connection.connection.info.backend_pid])
