"""A capture ends when everything that the DLQ held at its beginning was received."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from reprocessing.domain.errors import QueueUnreachable
from reprocessing.domain.message.envelope import ReceivedMessage
from reprocessing.gateways.sqs import Depth, QueueAddress, receive
from reprocessing.models import DeadLetterQueue
from reprocessing.pipeline.capture import delete_copies, receivers
from reprocessing.pipeline.capture.receivers import ReceiverPool
from tests.conditions import eventually
from tests.reprocessing.pipeline.bench import Workbench

pytestmark = pytest.mark.django_db(transaction=True)

AUTOMATIC: dict[str, Any] = {"mode": "automatic"}
BY_GROUP: dict[str, Any] = {"ordering_key": "system:MessageGroupId", "sequence": "system:SequenceNumber"}


@contextmanager
def _trickle(bench: Workbench) -> Iterator[None]:
    """Send a message of a new group whenever a message is received."""
    arrived, over, real = threading.Event(), threading.Event(), receive

    def bury() -> None:
        number = 0
        while arrived.wait() and not over.is_set():
            arrived.clear()
            bench.bury(f"late {number}", key=f"late-{number}")
            number += 1

    def telling(address: QueueAddress, *, wait: int, visibility: int) -> list[ReceivedMessage]:
        got = real(address, wait=wait, visibility=visibility)
        if got:
            arrived.set()
        return got

    burying = threading.Thread(target=bury)
    burying.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(receivers, "receive", telling)
            yield
    finally:
        over.set()
        arrived.set()
        burying.join()


def test_a_false_empty_answer_does_not_end_a_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")
    falsely = iter([True] * (receivers.EMPTY_POLLS - 1))

    def some(address: QueueAddress, *, wait: int, visibility: int) -> list[ReceivedMessage]:
        return [] if next(falsely, False) else receive(address, wait=wait, visibility=visibility)

    monkeypatch.setattr(receivers, "receive", some)
    captured = bench.capture().captured
    assert (captured.letters, captured.drained, receivers.EMPTY_POLLS) == (1, True, 3)


@pytest.mark.parametrize("polls", [1, receivers.SHORT_POLLS])
def test_short_polls_do_not_end_a_capture(monkeypatch: pytest.MonkeyPatch, polls: int) -> None:
    bench = Workbench()
    bench.bury_all(*map(str, range(24)))
    monkeypatch.setattr(receivers, "_ASK", 0.0 if polls == 1 else receivers._ASK)
    monkeypatch.setattr(receivers, "SHORT_POLLS", polls)
    monkeypatch.setattr(receivers, "receive", partial(receive, maximum=2))
    captured = bench.capture().captured
    assert (captured.letters, captured.drained) == (24, True)


@pytest.mark.soak
@pytest.mark.parametrize("fifo", [False, True])
def test_a_capture_ends_though_messages_trickle_in(fifo: bool) -> None:
    bench = Workbench(fifo=fifo, fields={**AUTOMATIC, **(BY_GROUP if fifo else {})})
    bench.conf = replace(bench.conf, long_poll=1)
    bench.bury("first", key="first")
    with _trickle(bench):
        gathered = bench.capture(seconds=60)
    assert (gathered.captured.drained, gathered.enlisted is not None) == (True, True)
    assert bench.letter(payload__body=b"first").state == "waiting"
    assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).drained_through is not None


@pytest.mark.parametrize(("polls", "seconds"), [(0, 600.0), (10_000, 0.0)])
def test_a_failed_count_does_not_end_a_capture(monkeypatch: pytest.MonkeyPatch, polls: int, seconds: float) -> None:
    bench, asked = Workbench(), list[Depth]()

    def depth(_: QueueAddress) -> Depth:
        asked.append(Depth(0, 0, 0))
        if len(asked) == 1:
            raise QueueUnreachable("no answer")
        return asked[-1]

    bench.bury_all(*map(str, range(6)))
    monkeypatch.setattr(receivers, "EMPTY_POLLS", 1_000_000)  # no silence ends it before it is asked again
    monkeypatch.setattr(receivers, "_ASK", 0.0)
    monkeypatch.setattr(receivers, "SHORT_POLLS", polls)
    monkeypatch.setattr(receivers, "SHORT_SECONDS", seconds)
    monkeypatch.setattr(receivers, "depth", depth)
    captured = bench.capture().captured
    assert (len(asked), captured.error, captured.drained) == (2, "", True)


def test_a_receiver_that_fails_unexpectedly_ends_the_capture_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench()
    bench.bury("letter")

    def fail(*_: object, **__: object) -> list[ReceivedMessage]:
        raise ValueError("canary")

    monkeypatch.setattr(receivers, "receive", fail)
    captured = bench.capture().captured
    said = "An unexpected error occurred: ValueError. Its traceback is in the log of the workers."
    assert (captured.error, captured.drained) == (said, False)
    assert DeadLetterQueue.objects.get(pk=bench.dlq.pk).last_error == said


def test_a_message_in_the_last_poll_makes_all_receivers_poll_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first receiver is quiet when the last poll of the second brings a message."""
    polls, last_poll, late = [0, 0], threading.Event(), object()
    listening = ReceiverPool(
        QueueAddress.of("https://sqs.eu-west-1.amazonaws.com/000000000000/dlq"),
        receivers=2, wait=0, visibility=30, seconds=5, stop=lambda: False,
    )  # fmt: skip

    def some(_: QueueAddress, **__: int) -> list[Any]:
        number = listening._threads.index(threading.current_thread())
        polls[number] += 1
        if number == 1 and polls[1] == receivers.EMPTY_POLLS + 1:
            last_poll.set()
            eventually(lambda: listening._quiet[0] == receivers.EMPTY_POLLS, within=5)
            return [late]
        if number == 0 and polls[0] == receivers.EMPTY_POLLS:
            last_poll.wait(5)
        return []

    monkeypatch.setattr(receivers, "receive", some)
    with listening:
        arrived = [message for poll in listening for message in poll.arrived]
    assert (arrived, listening.has_run_dry) == ([late], True)


def test_a_full_poll_resets_the_counts_of_all_receivers() -> None:
    listening = ReceiverPool(
        QueueAddress.of("https://sqs.eu-west-1.amazonaws.com/000000000000/dlq"),
        receivers=2, wait=0, visibility=30, seconds=0, stop=lambda: False,
    )  # fmt: skip
    for _ in range(receivers.SHORT_POLLS):
        listening._note(0, 1, hidden=False)
        listening._note(1, 0, hidden=False)
    assert (listening._short, listening._quiet) == ([10, 10], [0, 1])
    listening._note(0, 10, hidden=False)
    assert (listening._short, listening._quiet) == ([0, 0], [0, 0])


@pytest.mark.soak
def test_a_fifo_capture_ends_when_every_group_is_received() -> None:
    bench = Workbench(fifo=True, fields=BY_GROUP)
    for number in range(24):  # a receive of ten cuts groups of three apart
        bench.bury(str(number), key=f"g{number % 8}")
    captured = bench.capture().captured
    assert (captured.letters, captured.drained, bench.left()) == (24, True, 0)


@pytest.mark.soak
def test_a_fifo_dlq_is_not_drained_behind_a_copy_that_was_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fifo=True, fields=BY_GROUP)
    bench.bury_all(*map(str, range(12)), key="g")
    monkeypatch.setattr(delete_copies, "delete_from_dlq", lambda *_: 0)
    captured = bench.capture(seconds=3).captured
    assert (captured.letters, captured.drained) == (10, False)
    dlq = DeadLetterQueue.objects.get(pk=bench.dlq.pk)
    assert dlq.drained_through is None
    assert dlq.orphans_hidden_until is not None
    monkeypatch.undo()
    assert not bench.capture().captured.drained
