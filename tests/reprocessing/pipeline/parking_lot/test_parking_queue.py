"""A DLQ's parking queue gets a copy of each parked letter, and a mark when the letter leaves the parking lot."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest.mock import Mock

import pytest

from reprocessing.domain.replay.verdicts import Outcome, Refused
from reprocessing.gateways.sqs import LARGEST, send
from reprocessing.models import ParkingQueueMessage
from reprocessing.pipeline.maintenance import recover
from reprocessing.pipeline.parking_lot import act_on_parked, parking_queue
from reprocessing.store.maintenance import parking_queue_outbox
from reprocessing.store.safety import stops
from tests.reprocessing.pipeline.bench import Killed, Workbench
from tests.reprocessing.pipeline.interposed import happens_after

pytestmark = pytest.mark.django_db(transaction=True)

BINARY = b"\xff\x00\xfe"


def _parking(bench: Workbench, *, fifo: bool = False, **attributes: str) -> str:
    """Make a parking queue for the DLQ; return its URL."""
    name = f"{bench.name}-parking{'.fifo' if fifo else ''}"
    url: str = bench.queue(name)
    if attributes:
        bench.sqs.set_queue_attributes(QueueUrl=url, Attributes=attributes)
    bench.dlq.parking_url = url
    bench.dlq.save(update_fields=["parking_url"])
    return url


def _park(bench: Workbench, *bodies: str) -> None:
    bench.ready()
    with ExitStack() as refusing:
        for body in bodies:
            refusing.enter_context(bench.refusing(body))
        bench.replay()


def _with_one_parked(*, fifo: bool = False) -> tuple[Workbench, str]:
    bench = Workbench(fields={"max_attempts": 1})
    url = _parking(bench, fifo=fifo)
    bench.bury("letter")
    _park(bench, "letter")
    return bench, url


def _unsent() -> int:
    return ParkingQueueMessage.objects.filter(sent_at=None).count()


def _sweep(bench: Workbench) -> None:
    recover.sweep_dlq(bench.dlq, conf=bench.conf)


def _texts(message: dict[str, Any]) -> dict[str, str]:
    return {name: one["StringValue"] for name, one in message["MessageAttributes"].items() if "StringValue" in one}


def test_what_is_parked_goes_into_the_parking_queue_as_it_was() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    url = _parking(bench)
    bench.sqs.send_message(
        QueueUrl=bench.dlq_url, MessageBody="grüße\r\n",
        MessageAttributes={
            "blob": {"DataType": "Binary.png", "BinaryValue": BINARY},
            "n": {"DataType": "Number.int", "StringValue": "007"},
        },
    )  # fmt: skip
    _park(bench, "grüße\r\n")
    _sweep(bench)
    _sweep(bench)  # a notice is sent once
    (copy,) = bench.delivered(url)
    own = {name: (one["DataType"], one.get("BinaryValue", one.get("StringValue")))
           for name, one in copy["MessageAttributes"].items() if name in {"blob", "n"}}  # fmt: skip
    assert (copy["Body"], own) == ("grüße\r\n", {"blob": ("Binary.png", BINARY), "n": ("Number.int", "007")})
    letter = bench.letter()
    assert {**_texts(copy), "n": "-"} == {
        "n": "-", parking_queue.LETTER: str(letter.public_id), parking_queue.STATUS: "parked",
        parking_queue.REASON: letter.reason,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "status"), [(act_on_parked.release, "waiting"), (act_on_parked.discard, "discarded")]
)
def test_what_left_the_parking_lot_is_marked_in_the_parking_queue(action: Any, status: str) -> None:  # noqa: ANN401
    bench, url = _with_one_parked()
    _sweep(bench)
    (copy,) = bench.delivered(url)
    action([bench.letter().pk], by="anna", reason="because")
    _sweep(bench)
    (mark,) = bench.delivered(url)
    assert _texts(mark)[parking_queue.LETTER] == _texts(copy)[parking_queue.LETTER]
    assert _texts(mark)[parking_queue.STATUS] == status
    assert mark["Body"] == f'{{"letter": "{bench.letter().public_id}", "status": "{status}"}}'


def test_without_a_parking_queue_there_are_no_notices() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    bench.bury("letter")
    _park(bench, "letter")
    _sweep(bench)
    act_on_parked.discard([bench.letter().pk], by="anna", reason="because")
    _sweep(bench)
    assert ParkingQueueMessage.objects.count() == 0


def test_what_the_parking_queue_did_not_take_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Workbench(fields={"max_attempts": 1})
    url = _parking(bench)
    bench.bury_all("a", "b")
    _park(bench, "a", "b")

    def busy_once(*args: Any, **options: Any) -> dict[int, Outcome]:  # noqa: ANN401
        monkeypatch.undo()
        first, *others = args[1]
        refused: Outcome = Refused("Busy", "not now", poison=False)
        return {first.attempt: refused} | send(args[0], others, **options)

    monkeypatch.setattr(parking_queue, "send", busy_once)
    _sweep(bench)
    assert (len(bench.delivered(url)), _unsent()) == (1, 1)
    _sweep(bench)
    assert (len(bench.delivered(url)), _unsent()) == (1, 0)


def test_a_parking_queue_that_is_not_there_is_owed_its_notices_and_the_log_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench, url = _with_one_parked()
    bench.dlq.parking_url = f"{url}-misspelt"
    with caplog.at_level(logging.WARNING, logger=recover.__name__):
        _sweep(bench)
    assert ParkingQueueMessage.objects.get().sent_at is None
    bench.dlq.parking_url = url
    with caplog.at_level(logging.WARNING, logger=recover.__name__):
        _sweep(bench)
    said = [record.getMessage() for record in caplog.records if record.name == recover.__name__]
    assert said == [f"{bench.name}: its parking queue did not take 1 of 1 notices."]
    assert bench.delivered_bodies(url) == ["letter"]


def test_what_the_parking_queue_can_never_take_holds_nothing_up() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    url = _parking(bench, MaximumMessageSize="1024")
    bench.bury_all("x" * 1_025, "letter")
    _park(bench, "x" * 1_025, "letter")
    _sweep(bench)
    assert (bench.delivered_bodies(url), _unsent()) == (["letter"], 0)


def test_a_fifo_parking_queue_takes_a_copy_and_its_mark_in_their_order() -> None:
    bench, url = _with_one_parked(fifo=True)
    act_on_parked.release([bench.letter().pk], by="anna", reason="mended")
    with bench.refusing("letter"):
        bench.replay()
    _sweep(bench)
    found = bench.delivered(url)
    assert [_texts(one)[parking_queue.STATUS] for one in found] == ["parked", "parked", "parked"]
    assert {one["Attributes"]["MessageGroupId"] for one in found} == {str(bench.letter().public_id)}


def test_a_fifo_parking_queue_swallows_a_notice_that_is_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, url = _with_one_parked(fifo=True)
    with monkeypatch.context() as patch:
        happens_after(patch, parking_queue, "send_notices", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            _sweep(bench)
    _sweep(bench)
    assert len(bench.delivered(url)) == 1


def _freezes_when(monkeypatch: pytest.MonkeyPatch, place: object, name: str, meanwhile: Callable[[], object]) -> None:
    """Freeze the next sweep for a minute after this call, and let something happen meanwhile."""
    now = 100.0

    def freeze() -> None:
        nonlocal now
        meanwhile()
        now += 60

    happens_after(monkeypatch, place, name, freeze, once=True)
    monkeypatch.setattr(recover, "suspend_aware_clock", lambda: lambda: now)


def test_what_a_sweep_read_before_it_froze_is_not_told_after_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, url = _with_one_parked()

    def another() -> None:
        _sweep(bench)
        act_on_parked.discard([bench.letter().pk], by="anna", reason="because")
        _sweep(bench)

    _freezes_when(monkeypatch, parking_queue_outbox, "pending_messages", another)
    _sweep(bench)
    assert sorted(_texts(message)[parking_queue.STATUS] for message in bench.delivered(url)) == ["discarded", "parked"]


@pytest.mark.parametrize(("place", "name"), [(parking_queue_outbox, "pending_messages"), (stops, "stop_of")])
def test_a_sweep_that_froze_tells_nothing_of_a_dlq_that_was_stopped_meanwhile_and_owes_it(
    monkeypatch: pytest.MonkeyPatch, place: object, name: str
) -> None:
    bench, url = _with_one_parked()
    _freezes_when(monkeypatch, place, name, lambda: stops.stop(bench.dlq.pk, by="anna", reason="an incident"))
    _sweep(bench)
    assert (bench.left(url), _unsent()) == (0, 1)
    stops.resume(bench.dlq.pk, by="anna", reason="mended")
    _sweep(bench)
    assert (bench.left(url), _unsent()) == (1, 0)


def test_a_copy_that_has_no_room_for_what_is_said_of_it_goes_without() -> None:
    bench = Workbench(fields={"max_attempts": 1})
    url = _parking(bench)
    bench.bury("ten", **{f"a{n}": "1" for n in range(10)})
    _park(bench, "ten")
    whole = "x" * (LARGEST - 60)
    bench.bury(whole)
    _park(bench, whole)
    _sweep(bench)
    ten, full = sorted(bench.delivered(url), key=lambda one: len(one["Body"]))
    assert (sorted(_texts(ten)), len(full["Body"])) == ([f"a{n}" for n in range(10)], len(whole))
