"""Facts of SQS that the protocol leans on or must bear, and that AWS does not promise in one clear sentence.

If one of them fell, captured letters would be known under the wrong name, looked for at the wrong time, or taken away
from whoever delivers them.
"""

from __future__ import annotations

import pytest

from tests.contract.conftest import Advance, MakePair, MakeQueue
from tests.contract.queues import Counts, Queue

both_types = pytest.mark.parametrize("fifo", [False, True], ids=["standard", "fifo"])


def send(queue: Queue, *, fifo: bool) -> str:
    if fifo:
        return queue.send_group("g", "m")[0]["MessageId"]
    return queue.send("m")["MessageId"]


@both_types
def test_the_message_id_is_kept_when_a_message_dies(make_pair: MakePair, advance: Advance, fifo: bool) -> None:
    source, dlq = make_pair(fifo=fifo)
    message_id = send(source, fifo=fifo)
    source.receive_one()
    advance(31)
    assert source.bodies() == []
    assert dlq.receive_one()["MessageId"] == message_id


@both_types
def test_dying_waits_for_the_next_receive_on_the_source(make_pair: MakePair, advance: Advance, fifo: bool) -> None:
    source, dlq = make_pair(fifo=fifo)
    send(source, fifo=fifo)
    source.receive_one()
    advance(3600)
    asked_elsewhere = dlq.bodies(), source.counts(), dlq.counts()
    assert source.bodies() == []
    assert asked_elsewhere == ([], Counts(visible=1, in_flight=0, delayed=0), Counts(0, 0, 0))
    assert (source.counts(), dlq.counts()) == (Counts(0, 0, 0), Counts(visible=1, in_flight=0, delayed=0))


def test_an_older_handle_can_take_a_message_away_from_its_consumer_on_a_standard_queue(
    make_queue: MakeQueue, advance: Advance
) -> None:
    queue = make_queue()
    queue.send("m")
    older = queue.receive_one()
    advance(31)
    queue.receive_one()
    assert queue.bodies() == []
    queue.hide(older, 0)
    assert queue.bodies() == ["m"]
