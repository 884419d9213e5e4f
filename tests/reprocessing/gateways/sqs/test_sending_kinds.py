"""What a letter carries, and what a FIFO queue asks for, decide how it travels; no letter hurts another."""

from __future__ import annotations

import pytest

from reprocessing.domain.message.envelope import Attribute, OutgoingMessage
from reprocessing.domain.replay.verdicts import Refused, Taken
from reprocessing.gateways import sqs
from reprocessing.gateways.sqs import QueueAddress
from tests.contract.endpoints import Sandbox
from tests.contract.queues import Queue
from tests.reprocessing.gateways.letters import TEN, bodies, kinds, letter, requests, send

# What a letter carries.


@pytest.mark.parametrize(
    ("poison", "code"),
    [
        (letter(5, "\x00"), "InvalidMessageContents"),
        (letter(5, "\ufffe"), "InvalidMessageContents"),
        (letter(5, b"\xed\xa0\x80"), "InvalidMessageContents"),  # a lone surrogate, as a receive may hand it over
        (letter(5, b"\xff"), "InvalidMessageContents"),
        (letter(5, ""), "MissingParameter"),
        (letter(5, "x", {"empty": Attribute("String", "")}), "InvalidParameterValue"),
        (letter(5, "x", {"n": Attribute("Number", "seven")}), "InvalidParameterValue"),
        (letter(5, "x", {"AWS.own": Attribute("String", "a")}), "InvalidParameterValue"),
        (letter(5, "x", {f"a{n}": Attribute("String", "a") for n in range(11)}), "InvalidParameterValue"),
        (letter(5, b"x" * (sqs.LARGEST + 1)), "MessageTooLong"),
    ],
)
def test_a_poison_letter_is_refused_for_good_and_its_batch_mates_are_taken(
    address: QueueAddress, poison: OutgoingMessage, code: str
) -> None:
    outcomes = send(address, *TEN[:5], poison, *TEN[6:])
    fate = outcomes.pop(5)
    assert isinstance(fate, Refused)
    assert (fate.code, fate.poison) == (code, True)
    assert set(kinds(outcomes).values()) == {"Taken"}
    assert sorted(map(int, bodies(address))) == [0, 1, 2, 3, 4, 6, 7, 8, 9]


def test_a_letter_too_large_for_its_queue_travels_alone_and_is_refused_for_good(
    address: QueueAddress, queue: Queue, sandbox: Sandbox
) -> None:
    queue.set(MaximumMessageSize="2048")
    outcomes = sqs.send(address, [letter(1), letter(2, "x" * 2049), letter(3)], may_start=lambda: True, largest=2048)
    assert kinds(outcomes) == {1: "Taken", 2: "Refused", 3: "Taken"}
    assert sorted(len(sent) for sent in requests(sandbox, queue)) == [0, 1, 1]
    assert getattr(outcomes[2], "poison", None) is True


# What a FIFO queue asks for.


def test_a_group_keeps_its_order_over_many_requests(fifo_address: QueueAddress, fifo: Queue, sandbox: Sandbox) -> None:
    letters = [letter(number, group="abc"[number % 3]) for number in range(75)]
    outcomes = send(fifo_address, *letters)
    assert set(kinds(outcomes).values()) == {"Taken"}
    by_id = {fate.message_id: attempt for attempt, fate in outcomes.items() if isinstance(fate, Taken)}
    accepted = [by_id[message_id] for request in requests(sandbox, fifo) for message_id in request]
    for group in range(3):
        assert [one for one in accepted if one % 3 == group] == list(range(group, 75, 3))


def test_after_a_failure_no_later_request_carries_the_groups_next_letter(
    fifo_address: QueueAddress, sandbox: Sandbox
) -> None:
    sandbox.plan(
        {"kind": "partial", "action": "SendMessageBatch", "positions": [4], "times": 1, "code": "RequestThrottled"}
    )
    outcomes = send(fifo_address, *[letter(number, group="a") for number in range(25)])
    assert kinds(outcomes) == {
        **dict.fromkeys(range(10), "Taken"),  # SQS took them, whatever became of 4
        4: "Refused",
        **dict.fromkeys(range(10, 25), "NotSent"),
    }


def test_in_the_halves_of_a_refused_batch_a_group_stops_at_its_poison(fifo_address: QueueAddress) -> None:
    letters = [letter(0, group="a"), letter(1, "", group="a"), letter(2, group="b"), letter(3, group="a")]
    outcomes = send(fifo_address, *letters)
    assert kinds(outcomes) == {0: "Taken", 1: "Refused", 2: "Taken", 3: "NotSent"}
    assert sorted(bodies(fifo_address)) == ["0", "2"]


def test_a_letter_without_a_group_is_refused_by_a_fifo_queue_and_no_poison(fifo_address: QueueAddress) -> None:
    outcomes = send(fifo_address, letter(1), letter(2, group="a"))
    assert kinds(outcomes) == {1: "Refused", 2: "Taken"}
    assert getattr(outcomes[1], "poison", None) is False


def test_the_same_attempt_sent_again_is_swallowed_and_told_by_its_first_id(fifo_address: QueueAddress) -> None:
    again = letter(1, group="a")
    assert send(fifo_address, again) == send(fifo_address, again)
    assert bodies(fifo_address) == ["1"]
